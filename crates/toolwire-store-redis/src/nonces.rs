//! What may be used once.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::{Script, Value};
use toolwire_store::{NonceStore, Op, Quota, StoreError, hex::encode as hex};

use crate::connection::{Connections, Work};
use crate::script::{Call, script, unexpected};
use crate::tasks::milliseconds;

/// How many nonces of one caller are remembered. For all of them the memory of Redis is the limit.
const CALLER_NONCES: u64 = 10_000;

/// Nonces in Redis.
pub(crate) struct RedisNonces {
    connections: Arc<Connections>,
    consume: Script,
}

impl fmt::Debug for RedisNonces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisNonces").field("connections", &self.connections).finish_non_exhaustive()
    }
}

impl RedisNonces {
    pub(crate) fn new(connections: Arc<Connections>) -> Self {
        Self { connections, consume: script!("common", "consume") }
    }
}

impl NonceStore for RedisNonces {
    fn consume<'a>(&'a self, by: &'a Quota, nonce: [u8; 24], keep: Duration) -> Op<'a, bool> {
        Box::pin(async move {
            let call = Call::new(&self.consume, self.connections.prefix())
                .text(hex(by.as_bytes()))
                .text(hex(&nonce))
                .number(milliseconds(keep))
                .number(CALLER_NONCES);
            // Done twice, the second would find it taken by the first.
            match self.connections.run_once(Work::Script(&call)).await? {
                Value::Int(1) => Ok(true),
                Value::Int(0) => Ok(false),
                Value::Int(-1) => Err(StoreError::Full("nonces of this caller")),
                _ => Err(unexpected("a decision")),
            }
        })
    }
}
