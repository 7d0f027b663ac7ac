//! Keeps the tasks, sessions, streams and nonces of an MCP server in Postgres (13 or newer), for many replicas.
//!
//! Today a server keeps its tasks in it. Its legacy HTTP sessions are in the memory of the replica that began them, to
//! which their requests have to be routed.
//!
//! ```no_run
//! # async fn example() -> Result<(), toolwire_store::StoreError> {
//! let store = toolwire_store_postgres::open("postgres://me:password@localhost/reports").await?;
//! # Ok(())
//! # }
//! ```
//!
//! What is acknowledged is committed. With `synchronous_commit`, which is on by default, it is there after a crash; where
//! the server has it off, the store says that it is not [durable](Store::is_durable). A failover is as good as its
//! replication.
//!
//! A node that freezes loses its locks: the server ends a transaction whose client is silent for three seconds. An
//! operation that waits for a lock longer than half a second is taken out of the transaction that it shares with others, and
//! tried again by itself.
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
mod worker;

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
/// Of several hosts the first that can be written to is used, beginning with the one that was reached last; each has two
/// seconds to answer. So a URL with the primary and its standby outlives a failover.
///
/// After a `?`, besides what the driver knows: `schema=NAME` (default `toolwire`), `migrate=off` for those who do that
/// themselves, `listen=off` behind a pooler that does not let `LISTEN` through, `sslrootcert=FILE` with certificates
/// that are trusted besides those of the system. Certificates are always verified; `sslmode=disable` does without TLS.
/// A pooler has to give each connection a session of its own (PgBouncer: `pool_mode=session`).
///
/// # Errors
/// `Unavailable` when Postgres cannot be reached; `Corrupt` when the URL cannot be read, or the tables are of a version
/// that this one cannot work on. The password is in none of them.
pub async fn open(url: &str) -> Result<Store, StoreError> {
    let settings = Settings::parse(url).map_err(StoreError::corrupt)?;
    let server = Arc::new(Server::new(settings).map_err(StoreError::corrupt)?);
    let durable = migrate::migrate(&server).await?;
    if !durable {
        tracing::warn!(
            "Postgres acknowledges commits before they are on the disk (`synchronous_commit` or `fsync` is off)"
        );
    }
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
    Ok(store.durable(durable).shared(true).remote(true))
}
