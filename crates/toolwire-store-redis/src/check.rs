//! What has to be so before a server is trusted with anything.

use redis::{InfoDict, Value};
use toolwire_store::StoreError;

use crate::connection::{Connections, Work};
use crate::script::unexpected;

/// How the keys are laid out. A node refuses to work on another format.
const FORMAT: &str = "1";

/// The first version that can do what the scripts need.
const MAJOR: u64 = 7;

/// Looks at the server, and says whether what it acknowledges is there after its restart.
pub(crate) async fn server(connections: &Connections) -> Result<bool, StoreError> {
    version(connections).await?;
    let policy = setting(connections, "maxmemory-policy").await?;
    match policy.as_deref() {
        Some("noeviction") => {}
        None => tracing::warn!(
            "Redis does not tell its maxmemory-policy; with any other than noeviction it forgets tasks by itself"
        ),
        Some(policy) => {
            return Err(StoreError::corrupt(format!(
                "Redis may forget keys by itself, because its maxmemory-policy is {policy}: set it to noeviction"
            )));
        }
    }
    format(connections).await?;
    Ok(setting(connections, "appendonly").await?.as_deref() == Some("yes"))
}

async fn version(connections: &Connections) -> Result<(), StoreError> {
    let mut ask = redis::cmd("INFO");
    ask.arg("server");
    let info = connections.run(Work::Command(&ask)).await?;
    let info = redis::from_redis_value::<InfoDict>(info).map_err(|_| unexpected("facts of the server"))?;
    let version: Option<String> = info.get("valkey_version").or_else(|| info.get("redis_version"));
    let major = version.as_deref().and_then(|version| version.split('.').next()?.parse::<u64>().ok());
    match major {
        Some(major) if major < MAJOR => {
            let version = version.unwrap_or_default();
            Err(StoreError::corrupt(format!("Redis is {version}, and has to be {MAJOR}.0 or newer")))
        }
        _ => Ok(()),
    }
}

/// A setting, where the server tells it.
async fn setting(connections: &Connections, name: &str) -> Result<Option<String>, StoreError> {
    let mut ask = redis::cmd("CONFIG");
    ask.arg("GET").arg(name);
    match connections.run(Work::Command(&ask)).await {
        Ok(pair) => {
            Ok(redis::from_redis_value::<Vec<String>>(pair).ok().and_then(|pair| pair.into_iter().nth(1)))
        }
        // Those who rent out servers do not let everybody ask. If it cannot be reached, that is found out next.
        Err(StoreError::Unavailable(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn format(connections: &Connections) -> Result<(), StoreError> {
    let key = format!("{}meta", connections.prefix());
    let mut set = redis::cmd("SET");
    set.arg(&key).arg(FORMAT).arg("NX").arg("GET");
    match connections.run(Work::Command(&set)).await? {
        Value::Nil => Ok(()),
        Value::BulkString(format) if format == FORMAT.as_bytes() => Ok(()),
        _ => Err(StoreError::corrupt(format!(
            "the keys that begin with {} are laid out in a way that this version does not know: use one that is as \
             new as those that have written them",
            connections.prefix()
        ))),
    }
}
