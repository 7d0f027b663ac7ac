//! What has to be so before a server is trusted with anything.

use redis::{InfoDict, RedisResult, Value};
use toolwire_store::StoreError;

use crate::connection::Connections;

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
    let info: InfoDict = connections
        .run(async |connection| redis::cmd("INFO").arg("server").query_async(connection).await)
        .await?;
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
    let asked = async |connection: &mut _| {
        let answer: RedisResult<Vec<String>> =
            redis::cmd("CONFIG").arg("GET").arg(name).query_async(connection).await;
        match answer {
            Ok(pair) => Ok(pair.into_iter().nth(1)),
            // Those who rent out servers do not let everybody ask.
            Err(error) if !error.is_io_error() => Ok(None),
            Err(error) => Err(error),
        }
    };
    connections.run(asked).await
}

async fn format(connections: &Connections) -> Result<(), StoreError> {
    let key = format!("{}meta", connections.prefix());
    let set = async |connection: &mut _| {
        redis::cmd("SET").arg(&key).arg(FORMAT).arg("NX").arg("GET").query_async::<Value>(connection).await
    };
    match connections.run(set).await? {
        Value::Nil => Ok(()),
        Value::BulkString(format) if format == FORMAT.as_bytes() => Ok(()),
        _ => Err(StoreError::corrupt(format!(
            "the keys that begin with {} are laid out in a way that this version does not know: use one that is as \
             new as those that have written them",
            connections.prefix()
        ))),
    }
}
