//! Keeps the tasks of an MCP server in Redis (7.0 or newer) or Valkey, so that replicas share them.
//!
//! Sessions, streams and nonces have their place here as well, but no server uses it yet: over HTTP, sessions of the
//! legacy era need sticky routing.
//!
//! ```no_run
//! # async fn example() -> Result<(), toolwire_store::StoreError> {
//! let store = toolwire_store_redis::open("redis://:password@localhost:6379/0?name=reports").await?;
//! # Ok(())
//! # }
//! ```
//!
//! Every key begins with `tw:{NAME}:`. In a cluster all of them are in one slot, so that a script can change several
//! at once: it works with the capacity of one shard. Name several hosts, with commas between them, and the
//! primary is looked for among them, also after a failover.
//!
//! What is at stake when the server or its machine dies: with `appendonly yes` and `appendfsync everysec` a second or
//! two of what was acknowledged, with `always` nothing, without a log everything; an asynchronous failover loses
//! whatever was not replicated. [`Store::is_durable`] is `false` without a log, and with `appendfsync no`. A
//! `maxmemory-policy` that lets Redis forget keys by itself is refused, also after a failover to a host that has one.
//! Where `CONFIG` is forbidden, the answers are taken from `INFO`.
//!
//! When Redis has reached its `maxmemory`, new tasks and steps are refused; runs keep their leases and can end, and tasks can
//! be cancelled and are removed when they have expired.
//!
//! What this crate does not do: sharding, sentinels, and Redis before 7.0.

mod bus;
mod check;
mod connection;
mod log;
mod nonces;
mod script;
mod sessions;
mod settings;
mod tasks;
mod tls;

use std::sync::Arc;

use toolwire_store::{Store, StoreError};

use bus::RedisBus;
use connection::Connections;
use log::RedisLog;
use nonces::RedisNonces;
use sessions::RedisSessions;
use settings::Settings;
use tasks::RedisTasks;

/// Connects to the Redis that a URL names: `redis://[user[:password]@]host[:port][,host[:port]…][/database][?name=NAME]`.
///
/// With `rediss://` the connection is encrypted; `ca=FILE` names certificates that are trusted besides those of
/// the system. `NAME` (default `toolwire`) is for several servers with a store each in one database.
///
/// # Errors
/// `Unavailable` when Redis cannot be reached; `Corrupt` when the URL cannot be read, when Redis may forget keys by
/// itself, or when another version of this crate has written to it. The password is in none of them.
pub async fn open(url: &str) -> Result<Store, StoreError> {
    let settings = Settings::parse(url).map_err(StoreError::corrupt)?;
    let connections = Arc::new(Connections::new(settings).map_err(StoreError::corrupt)?);
    let durable = check::server(&connections).await?;
    let parts = || Arc::clone(&connections);
    let store = Store::new(
        Arc::new(RedisTasks::new(parts())),
        Arc::new(RedisSessions::new(parts())),
        Arc::new(RedisLog::new(parts())),
        Arc::new(RedisBus::new(parts())),
        Arc::new(RedisNonces::new(parts())),
    );
    Ok(store.durable(durable).shared(true).remote(true))
}
