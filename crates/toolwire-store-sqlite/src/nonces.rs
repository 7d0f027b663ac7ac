//! What may be used once, in the file.

use std::{sync::Arc, time::Duration};

use rusqlite::params;
use toolwire_store::{NonceStore, Op, Quota, StoreError, milliseconds};

use crate::{
    error::{failed, to_sql},
    thread::Threads,
};

/// How many are remembered for one caller. What has expired counts until it is removed, some seconds later.
const OF_CALLER: i64 = 10_000;

#[derive(Debug)]
pub(crate) struct SqliteNonces(pub(crate) Arc<Threads>);

impl NonceStore for SqliteNonces {
    fn consume<'a>(&'a self, by: &'a Quota, nonce: [u8; 24], keep: Duration) -> Op<'a, bool> {
        let by = *by;
        self.0.write(move |at| {
            let sql = "SELECT count(*) FROM (SELECT 1 FROM nonce WHERE by = ?1 LIMIT ?2)";
            let mut count = at.connection.prepare_cached(sql).map_err(failed)?;
            let used: i64 =
                count.query_row(params![by.as_bytes(), OF_CALLER], |row| row.get(0)).map_err(failed)?;
            if used >= OF_CALLER {
                return Err(StoreError::Full("nonces of this caller"));
            }
            let sql = "INSERT INTO nonce (nonce, by, until) VALUES (?1, ?2, ?3) \
                 ON CONFLICT (nonce) DO UPDATE SET by = ?2, until = ?3 WHERE until <= ?4";
            let mut insert = at.connection.prepare_cached(sql).map_err(failed)?;
            let until = to_sql(at.now.saturating_add(milliseconds(keep)));
            let taken =
                insert.execute(params![nonce, by.as_bytes(), until, to_sql(at.now)]).map_err(failed)?;
            Ok(taken > 0)
        })
    }
}
