//! What has to be so before a server is trusted with anything.

use redis::aio::MultiplexedConnection;
use redis::{InfoDict, RedisResult, Value};
use toolwire_store::StoreError;

use crate::connection::{Connections, Work};

/// How the keys are laid out. A node refuses to work on another format.
const FORMAT: &str = "1";

/// The first version that can do what the scripts need.
const MAJOR: u64 = 7;

/// Facts that a server tells of itself.
#[derive(Debug)]
pub(crate) struct Facts {
    version: Option<String>,
    policy: Option<String>,
    /// Whether it has a log of writes.
    appends: Option<bool>,
    /// When that log is written to the disk.
    fsync: Option<String>,
}

impl Facts {
    pub(crate) async fn of(connection: &mut MultiplexedConnection) -> RedisResult<Self> {
        let info: InfoDict = redis::cmd("INFO").query_async(connection).await?;
        let version = info.get("valkey_version").or_else(|| info.get("redis_version"));
        let mut policy: Option<String> = info.get("maxmemory_policy");
        if policy.is_none() {
            policy = setting(connection, "maxmemory-policy").await?;
        }
        let appends: Option<String> = info.get("aof_enabled");
        let fsync = setting(connection, "appendfsync").await?;
        Ok(Self { version, policy, appends: appends.map(|appends| appends == "1"), fsync })
    }

    /// Returns the policy by which it forgets keys by itself, if it has one.
    pub(crate) fn evicts(&self) -> Option<&str> {
        self.policy.as_deref().filter(|policy| *policy != "noeviction")
    }

    /// Returns whether what it acknowledges is there after its restart, but for the last two seconds.
    pub(crate) fn is_durable(&self) -> bool {
        self.appends == Some(true) && self.fsync.as_deref() != Some("no")
    }

    fn major(&self) -> Option<u64> {
        self.version.as_deref()?.split('.').next()?.parse().ok()
    }
}

/// Returns a setting, where the server tells it: hosted servers often forbid the question.
async fn setting(connection: &mut MultiplexedConnection, name: &str) -> RedisResult<Option<String>> {
    let pair: RedisResult<Vec<String>> =
        redis::cmd("CONFIG").arg("GET").arg(name).query_async(connection).await;
    match pair {
        Ok(pair) => Ok(pair.into_iter().nth(1)),
        Err(error) if error.is_io_error() || error.is_connection_dropped() => Err(error),
        Err(_) => Ok(None),
    }
}

/// Looks at the server, and returns whether what it acknowledges is there after its restart.
pub(crate) async fn server(connections: &Connections) -> Result<bool, StoreError> {
    let facts = connections.facts().await?;
    if facts.major().is_some_and(|major| major < MAJOR) {
        let version = facts.version.unwrap_or_default();
        return Err(StoreError::corrupt(format!("Redis is {version}, and has to be {MAJOR}.0 or newer")));
    }
    if let Some(policy) = facts.evicts() {
        return Err(StoreError::corrupt(format!(
            "Redis may forget keys by itself, because its maxmemory-policy is {policy}: set it to noeviction"
        )));
    }
    if facts.policy.is_none() {
        tracing::warn!(
            "Redis does not tell its maxmemory-policy; with any other than noeviction it forgets tasks by itself"
        );
    }
    format(connections).await?;
    connections.set_opened(facts.is_durable());
    Ok(facts.is_durable())
}

async fn format(connections: &Connections) -> Result<(), StoreError> {
    let key = format!("{}meta", connections.prefix());
    let (mut get, mut set) = (redis::cmd("GET"), redis::cmd("SET"));
    get.arg(&key);
    set.arg(&key).arg(FORMAT).arg("NX").arg("GET");
    // A write would be refused at `maxmemory`, where a store is opened to make room.
    let found = match connections.run(Work::Command(&get)).await? {
        Value::Nil => connections.run(Work::Command(&set)).await?,
        found => found,
    };
    match found {
        Value::Nil => Ok(()),
        Value::BulkString(format) if format == FORMAT.as_bytes() => Ok(()),
        _ => Err(StoreError::corrupt(format!(
            "the keys that begin with {} are laid out in a way that this version does not know: use one that is as \
             new as those that have written them",
            connections.prefix()
        ))),
    }
}
