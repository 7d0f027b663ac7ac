//! Sessions, and which nodes are alive. They expire by themselves.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::{Script, Value};
use toolwire_store::{
    NodeId, Op, SessionKey, SessionRecord, SessionStore, StoreError, hex::encode as hex, limits::Check,
};

use crate::connection::{Connections, Work};
use crate::script::{Call, Reply, script, unexpected};
use crate::tasks::milliseconds;

/// Sessions in Redis.
pub(crate) struct RedisSessions {
    connections: Arc<Connections>,
    put: Script,
    touch: Script,
    remove: Script,
}

impl fmt::Debug for RedisSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisSessions").field("connections", &self.connections).finish_non_exhaustive()
    }
}

impl RedisSessions {
    pub(crate) fn new(connections: Arc<Connections>) -> Self {
        let put = script!("common", "put");
        Self { connections, put, touch: script!("common", "touch"), remove: script!("common", "remove") }
    }

    fn call<'a>(&'a self, script: &'a Script) -> Call<'a> {
        Call::new(script, self.connections.prefix())
    }

    fn node(&self, node: NodeId) -> String {
        format!("{}n:{}", self.connections.prefix(), hex(node.as_bytes()))
    }
}

impl SessionStore for RedisSessions {
    fn put<'a>(&'a self, session: &'a SessionRecord, expect: Option<u64>, idle: Duration) -> Op<'a, u64> {
        Box::pin(async move {
            session.check()?;
            let call = self
                .call(&self.put)
                .text(hex(session.key.as_bytes()))
                .text(expect.map(|rev| rev.to_string()).unwrap_or_default())
                .number(milliseconds(idle).max(1))
                .text(serde_json::to_string(session).map_err(StoreError::corrupt)?)
                .number(session.seen);
            // Done twice, the second would take the first for somebody else's.
            match self.connections.run_once(Work::Script(&call)).await? {
                Value::Nil => Err(StoreError::Conflict),
                Value::Int(rev) => u64::try_from(rev).map_err(|_| unexpected("a revision")),
                _ => Err(unexpected("a revision")),
            }
        })
    }

    fn get<'a>(&'a self, key: &'a SessionKey) -> Op<'a, Option<SessionRecord>> {
        Box::pin(async move {
            let name = format!("{}s:{}", self.connections.prefix(), hex(key.as_bytes()));
            let mut read = redis::cmd("HMGET");
            read.arg(&name).arg(&["rec", "rev", "seen"]);
            let mut reply = Reply::of(self.connections.run(Work::Command(&read)).await?)?;
            let Some(record) = reply.maybe_bytes()? else { return Ok(None) };
            let mut record: SessionRecord = serde_json::from_slice(&record).map_err(StoreError::corrupt)?;
            record.rev = reply.number()?;
            record.seen = reply.number()?;
            Ok(Some(record))
        })
    }

    fn touch<'a>(&'a self, keys: &'a [(SessionKey, u64)], idle: Duration) -> Op<'a, ()> {
        Box::pin(async move {
            let call = self.call(&self.touch).number(milliseconds(idle).max(1));
            let call = call.each(keys, |call, (key, seen)| call.text(hex(key.as_bytes())).number(*seen));
            self.connections.run(Work::Script(&call)).await.map(drop)
        })
    }

    fn remove<'a>(&'a self, key: &'a SessionKey) -> Op<'a, bool> {
        Box::pin(async move {
            let call = self.call(&self.remove).text(hex(key.as_bytes()));
            let removed = self.connections.run(Work::Script(&call)).await?;
            Ok(removed == Value::Int(1))
        })
    }

    fn beat<'a>(&'a self, node: &'a NodeId, lease: Duration) -> Op<'a, ()> {
        Box::pin(async move {
            let (key, lease) = (self.node(*node), milliseconds(lease).max(1));
            let mut set = redis::cmd("SET");
            set.arg(&key).arg(1).arg("PX").arg(lease);
            self.connections.run(Work::Command(&set)).await.map(drop)
        })
    }

    fn alive<'a>(&'a self, node: &'a NodeId) -> Op<'a, bool> {
        Box::pin(async move {
            let key = self.node(*node);
            let mut look = redis::cmd("EXISTS");
            look.arg(&key);
            Ok(self.connections.run(Work::Command(&look)).await? == Value::Int(1))
        })
    }
}
