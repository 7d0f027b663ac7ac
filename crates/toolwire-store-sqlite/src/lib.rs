//! Keeps the tasks of an MCP server in a file, with SQLite, so that they survive a restart.
//!
//! Several processes of one machine may share a file; each of them hears within some 50 ms what the others have
//! written. The file has to be on a local disk, and only its owner can read it.
//!
//! Everything that was acknowledged is on the disk, also after a loss of power, unless
//! [`SqliteOptions::power_loss_safe`] was turned off. What waits at the same time is written by one transaction.
//!
//! ```no_run
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = toolwire_store_sqlite::open("sqlite:reports.db").await?;
//! assert!(store.is_durable() && store.is_shared());
//! # Ok(())
//! # }
//! ```

mod bus;
mod error;
mod log;
mod neighbours;
mod nonces;
mod options;
mod row;
mod schema;
mod sessions;
mod tasks;
mod thread;
mod topics;
mod turns;

use std::sync::Arc;

use toolwire_store::{Hub, Store, StoreError};

pub use options::SqliteOptions;

/// Opens the store that a URL names: `sqlite:PATH`, with `?sync=normal` if the last writes may be lost with the power,
/// and `?migrate=off` if an old schema is to be an error.
///
/// # Errors
/// When the URL cannot be read, or the file cannot be opened.
pub async fn open(url: &str) -> Result<Store, StoreError> {
    open_with(SqliteOptions::from_url(url)?).await
}

/// Opens a store.
///
/// # Errors
/// When the file cannot be opened.
pub async fn open_with(options: SqliteOptions) -> Result<Store, StoreError> {
    let hub = Hub::new();
    let (ready, opened) = tokio::sync::oneshot::channel();
    let of_threads = hub.clone();
    // Opening reads and writes the disk, and may wait for other processes.
    let spawned = std::thread::Builder::new().name("toolwire-sqlite-open".to_owned()).spawn(move || {
        let _ = ready.send(thread::Threads::start(&options, &of_threads));
    });
    spawned.map_err(StoreError::unavailable)?;
    let threads = opened.await.map_err(|_| StoreError::unavailable("the file could not be opened"))??;
    let threads = Arc::new(threads);
    let store = Store::new(
        Arc::new(tasks::SqliteTasks(threads.clone())),
        Arc::new(sessions::SqliteSessions(threads.clone())),
        Arc::new(log::SqliteLog(threads.clone())),
        Arc::new(bus::SqliteBus::new(threads.clone(), hub)),
        Arc::new(nonces::SqliteNonces(threads)),
    );
    Ok(store.durable(true).shared(true))
}
