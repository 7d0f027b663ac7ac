//! Keeps the tasks, sessions, streams and nonces of an MCP server in Postgres (13 or newer), so that many replicas are
//! one server.
//!
//! ```no_run
//! # async fn example() -> Result<(), toolwire_store::StoreError> {
//! let store = toolwire_store_postgres::open("postgres://me:password@localhost/reports").await?;
//! # Ok(())
//! # }
//! ```
//!
//! What is acknowledged is committed; with `synchronous_commit=on`, which is the default, it is there after a crash.
//! A failover is as good as its replication.
//!
//! What this crate does not do: pooling for others, and Postgres before 13.

mod connection;
mod listen;
mod log;
mod migrate;
mod nonces;
mod sessions;
mod settings;
mod tasks;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use toolwire_store::{Store, StoreError};

use connection::{Connections, Server};
use listen::PostgresBus;
use log::PostgresLog;
use nonces::PostgresNonces;
use sessions::PostgresSessions;
use settings::Settings;
use tasks::PostgresTasks;

/// How long any operation may take, from its call to its answer.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(5);

/// Connects to the Postgres that a URL names, `postgres://[user[:password]@]host[:port][,host…]/database`, and makes or
/// changes the tables.
///
/// After a `?`, besides what the driver knows: `schema=NAME` (default `toolwire`), `migrate=off` for those who do that
/// themselves, `listen=off` behind a pooler that does not let `LISTEN` through, `sslrootcert=FILE` with certificates
/// that are trusted besides those of the system. Certificates are always verified; `sslmode=disable` does without TLS.
///
/// # Errors
/// `Unavailable` when Postgres cannot be reached; `Corrupt` when the URL cannot be read, or the tables are of another
/// version. The password is in none of them.
pub async fn open(url: &str) -> Result<Store, StoreError> {
    let settings = Settings::parse(url).map_err(StoreError::corrupt)?;
    let server = Arc::new(Server::new(settings).map_err(StoreError::corrupt)?);
    migrate::migrate(&server).await?;
    let (bus, waker) = PostgresBus::new(Arc::clone(&server));
    let connections = Arc::new(Connections::new(&server, &waker));
    let parts = || Arc::clone(&connections);
    let store = Store::new(
        Arc::new(PostgresTasks(parts())),
        Arc::new(PostgresSessions(parts())),
        Arc::new(PostgresLog(parts())),
        Arc::new(bus),
        Arc::new(PostgresNonces(parts())),
    );
    Ok(store.durable(true).shared(true))
}
