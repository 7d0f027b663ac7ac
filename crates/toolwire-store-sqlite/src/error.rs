//! Errors of SQLite as errors of a store.

use rusqlite::{Error, ErrorCode};
use toolwire_store::StoreError;

pub(crate) fn failed(error: Error) -> StoreError {
    match &error {
        Error::SqliteFailure(cause, _) if cause.code == ErrorCode::DiskFull => {
            StoreError::Full("data: the disk of the store is full")
        }
        Error::SqliteFailure(cause, _)
            if matches!(cause.code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) =>
        {
            StoreError::corrupt(error)
        }
        Error::FromSqlConversionFailure(..)
        | Error::InvalidColumnType(..)
        | Error::IntegralValueOutOfRange(..) => StoreError::corrupt(error),
        _ => StoreError::unavailable(error),
    }
}

/// Numbers of a store are far below this limit of SQLite; what is not is as good as the highest.
pub(crate) fn to_sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn from_sql(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// Bytes of a fixed length.
pub(crate) fn array<const N: usize>(bytes: &[u8]) -> Result<[u8; N], StoreError> {
    bytes.try_into().map_err(|_| StoreError::corrupt(format!("{} bytes instead of {N}", bytes.len())))
}
