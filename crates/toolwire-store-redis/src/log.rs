//! Logs: a hash for the head and a stream for the events of each.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use redis::{Script, Value};
use toolwire_store::{
    Event, EventLog, Head, LogKey, LogState, NewHead, NodeId, Op, SessionKey, Slice, StoreError,
    hex::{decode_exact, encode as hex},
    limits::check_event,
};

use crate::connection::{Connections, Work};
use crate::script::{Call, Reply, script, unexpected};
use crate::tasks::milliseconds;

/// How many events of one log are kept, and how many bytes of them.
const EVENTS: u64 = 256;
const BYTES: u64 = 4 * 1024 * 1024;

/// How many of the changes for all nodes are kept.
const CHANGES: u64 = 1000;

/// How long a stream is kept after its end, and another log after its last event.
const KEPT: Duration = Duration::from_secs(5 * 60);

/// How long a stream is kept to which nothing is written: then whoever wrote it is long gone.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// How many bytes one answer has, but for its last event.
const READ_BYTES: u64 = 8 * 1024 * 1024;

/// How many events one answer has.
const READ_EVENTS: usize = 1000;

/// Logs in Redis.
pub(crate) struct RedisLog {
    connections: Arc<Connections>,
    open: Script,
    append: Script,
    post: Script,
    read: Script,
    attend: Script,
    forget: Script,
}

impl fmt::Debug for RedisLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisLog").field("connections", &self.connections).finish_non_exhaustive()
    }
}

impl RedisLog {
    pub(crate) fn new(connections: Arc<Connections>) -> Self {
        Self {
            connections,
            open: script!("common", "log", "open"),
            append: script!("common", "log", "append"),
            post: script!("common", "log", "post"),
            read: script!("common", "log", "read"),
            attend: script!("common", "log", "attend"),
            forget: script!("common", "forget"),
        }
    }

    fn call<'a>(&'a self, script: &'a Script, key: &LogKey) -> Call<'a> {
        Call::new(script, self.connections.prefix())
            .text(hex(&key.to_bytes()))
            .text(key.session().map(|session| hex(session.as_bytes())).unwrap_or_default())
            .number(if *key == LogKey::Changes { CHANGES } else { EVENTS })
            .number(BYTES)
            .number(milliseconds(KEPT))
            .number(milliseconds(ABANDONED))
    }

    async fn run(&self, call: Call<'_>) -> Result<Value, StoreError> {
        self.connections.run(Work::Script(&call)).await
    }
}

impl EventLog for RedisLog {
    fn open<'a>(&'a self, key: &'a LogKey, head: NewHead, over: Option<u64>) -> Op<'a, u64> {
        Box::pin(async move {
            if !key.is_stream() {
                return Err(StoreError::Conflict);
            }
            let call = self
                .call(&self.open, key)
                .text(hex(head.node.as_bytes()))
                .text(serde_json::to_string(&head.pending).map_err(StoreError::corrupt)?)
                .text(over.map(|fence| fence.to_string()).unwrap_or_default());
            let mut reply = Reply::of(self.run(call).await?)?;
            decided(&mut reply)?;
            reply.number()
        })
    }

    fn append<'a>(
        &'a self,
        key: &'a LogKey,
        fence: u64,
        first: u64,
        events: &'a [Bytes],
        then: LogState,
    ) -> Op<'a, ()> {
        Box::pin(async move {
            events.iter().try_for_each(|event| check_event(event.len()))?;
            let call = self.call(&self.append, key).number(fence).number(first).text(state_text(then));
            let call = call.each(events, Call::text);
            decided(&mut Reply::of(self.run(call).await?)?)
        })
    }

    fn post<'a>(&'a self, key: &'a LogKey, event: Bytes) -> Op<'a, u64> {
        Box::pin(async move {
            check_event(event.len())?;
            if key.is_stream() {
                return Err(StoreError::Conflict);
            }
            let call = self.call(&self.post, key).text(&event);
            match self.connections.run_once(Work::Script(&call)).await? {
                Value::Int(number) => u64::try_from(number).map_err(|_| unexpected("a number")),
                _ => Err(unexpected("a number")),
            }
        })
    }

    fn read<'a>(&'a self, key: &'a LogKey, after: u64, limit: usize) -> Op<'a, Slice> {
        Box::pin(async move {
            let limit = limit.min(READ_EVENTS) as u64;
            let call = self.call(&self.read, key).number(after).number(limit).number(READ_BYTES);
            let mut reply = Reply::of(self.run(call).await?)?;
            let (head, first_kept) = read_head(reply.list()?)?;
            let mut list = reply.list()?;
            let mut events = Vec::new();
            while list.left() > 0 {
                events.push(Event { number: list.number()?, bytes: list.bytes()?.into() });
            }
            Ok(Slice::new(head, events, first_kept))
        })
    }

    fn attend<'a>(&'a self, key: &'a LogKey) -> Op<'a, u64> {
        Box::pin(async move {
            match self.run(self.call(&self.attend, key)).await? {
                Value::Nil => Err(StoreError::Lost),
                Value::Int(reader) => u64::try_from(reader).map_err(|_| unexpected("a number")),
                _ => Err(unexpected("a number")),
            }
        })
    }

    fn forget<'a>(&'a self, session: &'a SessionKey) -> Op<'a, ()> {
        Box::pin(async move {
            let call = Call::new(&self.forget, self.connections.prefix()).text(hex(session.as_bytes()));
            self.run(call).await.map(drop)
        })
    }
}

fn decided(reply: &mut Reply) -> Result<(), StoreError> {
    match reply.text()?.as_str() {
        "ok" => Ok(()),
        "lost" => Err(StoreError::Lost),
        "conflict" => Err(StoreError::Conflict),
        _ => Err(unexpected("a decision")),
    }
}

/// The head, if it is one of a stream, and the first number from which on all is kept.
fn read_head(mut reply: Reply) -> Result<(Option<Head>, u64), StoreError> {
    let fence = reply.maybe_number()?;
    let (node, pending, state) = (reply.maybe_bytes()?, reply.maybe_bytes()?, reply.maybe_bytes()?);
    let (last, reader) = (reply.maybe_number()?, reply.maybe_number()?);
    let first_kept = reply.maybe_number()?.unwrap_or(1);
    let (Some(fence), Some(node), Some(pending), Some(state)) = (fence, node, pending, state) else {
        return Ok((None, first_kept));
    };
    let node = std::str::from_utf8(&node).ok().and_then(decode_exact).ok_or_else(|| unexpected("a node"))?;
    let pending = serde_json::from_slice(&pending).map_err(StoreError::corrupt)?;
    let mut head = Head::new(NewHead { node: NodeId::from_bytes(node), pending }, fence);
    head.last = last.unwrap_or_default();
    head.reader = reader.unwrap_or_default();
    head.state = match state.as_slice() {
        b"open" => LogState::Open,
        b"ended" => LogState::Ended,
        b"broken" => LogState::Broken,
        _ => return Err(unexpected("a state")),
    };
    Ok((Some(head), first_kept))
}

fn state_text(state: LogState) -> &'static str {
    match state {
        LogState::Ended => "ended",
        LogState::Broken => "broken",
        _ => "open",
    }
}
