//! Fetching metadata and tokens, from addresses that may be asked.

mod message;

pub use self::message::{FetchError, FetchErrorKind, NamedBy, Request, Response};
