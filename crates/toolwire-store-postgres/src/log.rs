//! Logs: a row for each, and one for each event.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio_postgres::Row;
use toolwire_store::{
    Event, EventLog, Head, LogKey, LogState, NewHead, NodeId, Op, SessionKey, Slice, StoreError, Topic,
    limits::check_event, milliseconds,
};

use crate::connection::{At, Connections, Failed, Operation, Order, Pinned};
use crate::tasks::{exact, signed, unsigned};

/// How many events of one log are kept, and how many bytes of them.
const EVENTS: i64 = 256;
const BYTES: i64 = 4 * 1024 * 1024;

/// How many of the changes for all nodes are kept.
const CHANGES: i64 = 1000;

/// How long a stream is kept after its end, and another log after its last event.
const KEPT: Duration = Duration::from_secs(5 * 60);

/// How long a stream is kept to which nothing is written: then whoever wrote it is long gone.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// How many bytes one answer has, but for its last event, and how many events.
const READ_BYTES: usize = 8 * 1024 * 1024;
const READ_EVENTS: usize = 1000;

type Done<'a, T> = Pinned<'a, Result<T, Failed>>;

/// Logs in Postgres.
#[derive(Debug)]
pub(crate) struct PostgresLog(pub(crate) Arc<Connections>);

impl EventLog for PostgresLog {
    fn open<'a>(&'a self, key: &'a LogKey, head: NewHead, over: Option<u64>) -> Op<'a, u64> {
        Box::pin(async move {
            if !key.is_stream() {
                return Err(StoreError::Conflict);
            }
            self.0.run(Open { key: *key, head, over }).await
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
            self.0.run(Append { key: *key, fence, first, events: events.to_vec(), then }).await
        })
    }

    fn post<'a>(&'a self, key: &'a LogKey, event: Bytes) -> Op<'a, u64> {
        Box::pin(async move {
            check_event(event.len())?;
            if key.is_stream() {
                return Err(StoreError::Conflict);
            }
            self.0.run(Post { key: *key, event }).await
        })
    }

    fn read<'a>(&'a self, key: &'a LogKey, after: u64, limit: usize) -> Op<'a, Slice> {
        Box::pin(self.0.run(Read { key: *key, after, limit: limit.min(READ_EVENTS) }))
    }

    fn attend<'a>(&'a self, key: &'a LogKey) -> Op<'a, u64> {
        Box::pin(self.0.run(Attend(*key)))
    }

    fn forget<'a>(&'a self, session: &'a SessionKey) -> Op<'a, ()> {
        Box::pin(self.0.run(Forget(*session)))
    }
}

fn until(at: &At<'_>, time: Duration) -> i64 {
    signed(at.now.saturating_add(milliseconds(time)))
}

/// A log as it is stored.
struct Log {
    head: Option<Head>,
    first: u64,
}

const COLUMNS: &str = "SELECT node, fence, pending, state, last, reader, first FROM log
    WHERE key = $1 AND until_ms > $2";
const LOCKED: &str = "SELECT node, fence, pending, state, last, reader, first FROM log
    WHERE key = $1 AND until_ms > $2 FOR UPDATE";

fn log(row: &Row) -> Result<Log, Failed> {
    let (last, first) = (unsigned(row.try_get(4)?), unsigned(row.try_get(6)?));
    let (Some(node), Some(fence)) = (row.try_get::<_, Option<&[u8]>>(0)?, row.try_get::<_, Option<i64>>(1)?)
    else {
        return Ok(Log { head: None, first });
    };
    let pending = serde_json::from_str(row.try_get(2)?).map_err(StoreError::corrupt)?;
    let mut head = Head::new(NewHead { node: NodeId::from_bytes(exact(node)?), pending }, unsigned(fence));
    (head.last, head.reader) = (last, unsigned(row.try_get(5)?));
    head.state = match row.try_get(3)? {
        "ended" => LogState::Ended,
        "broken" => LogState::Broken,
        _ => LogState::Open,
    };
    Ok(Log { head: Some(head), first })
}

fn state_text(state: LogState) -> &'static str {
    match state {
        LogState::Ended => "ended",
        LogState::Broken => "broken",
        _ => "open",
    }
}

/// The log, locked until the end of the transaction. What has expired is taken away first.
async fn lock(at: &mut At<'_>, key: &[u8]) -> Result<Option<Log>, Failed> {
    at.query("DELETE FROM log WHERE key = $1 AND until_ms <= $2", &[&key, &signed(at.now)]).await?;
    at.first(LOCKED, &[&key, &signed(at.now)]).await?.map(|row| log(&row)).transpose()
}

/// Adds events to a log that is locked, and lets go of the oldest beyond its limits; never of the newest.
async fn add(at: &mut At<'_>, key: &LogKey, events: &[(u64, &Bytes)]) -> Result<(), Failed> {
    const ADD: &str =
        "INSERT INTO event (log, number, bytes) SELECT $1, * FROM unnest($2::bigint[], $3::bytea[])";
    const TRIM: &str = "WITH kept AS (
            SELECT number, sum(length(bytes)) OVER newest AS bytes, row_number() OVER newest AS count
            FROM event WHERE log = $1 WINDOW newest AS (ORDER BY number DESC)),
        gone AS (SELECT number FROM kept WHERE count > 1 AND (count > $2 OR bytes > $3)),
        deleted AS (DELETE FROM event WHERE log = $1 AND number IN (SELECT number FROM gone))
        SELECT max(number) FROM gone";
    let Some((last, _)) = events.last() else { return Ok(()) };
    let name = key.to_bytes();
    let numbers: Vec<i64> = events.iter().map(|(number, _)| signed(*number)).collect();
    let texts: Vec<&[u8]> = events.iter().map(|(_, bytes)| bytes.as_ref()).collect();
    let added = signed(texts.iter().map(|text| text.len() as u64).sum());
    at.query(ADD, &[&name, &numbers, &texts]).await?;
    let count = signed(events.len() as u64);
    let grown = "UPDATE log SET last = $2, bytes = bytes + $3, count = count + $4 WHERE key = $1 RETURNING bytes, count";
    let row = at.first(grown, &[&name, &signed(*last), &added, &count]).await?;
    let limit = if *key == LogKey::Changes { CHANGES } else { EVENTS };
    let is_over = match row {
        Some(row) => row.try_get::<_, i64>(0)? > BYTES || row.try_get::<_, i64>(1)? > limit,
        None => false,
    };
    if !is_over {
        return Ok(());
    }
    let trimmed = at.first(TRIM, &[&name, &limit, &BYTES]).await?;
    let trimmed = trimmed.map(|row| row.try_get::<_, Option<i64>>(0)).transpose()?.flatten();
    if let Some(trimmed) = trimmed {
        const COUNT: &str = "UPDATE log SET first = $2,
            bytes = (SELECT coalesce(sum(length(bytes)), 0) FROM event WHERE log = $1),
            count = (SELECT count(*) FROM event WHERE log = $1) WHERE key = $1";
        at.query(COUNT, &[&name, &(trimmed + 1)]).await?;
    }
    Ok(())
}

struct Open {
    key: LogKey,
    head: NewHead,
    over: Option<u64>,
}

impl Operation for Open {
    type Output = u64;

    fn order(&self) -> Order {
        Order::row("log", &self.key.to_bytes())
    }

    fn run<'a>(&'a self, at: &'a mut At<'_>) -> Done<'a, u64> {
        const INSERT: &str = "INSERT INTO log
            (key, session, node, fence, pending, state, last, reader, first, bytes, count, until_ms)
            VALUES ($1, $2, $3, 1, $4, 'open', 0, 0, 1, 0, 0, $5) ON CONFLICT DO NOTHING RETURNING 1";
        const TAKE: &str = "UPDATE log SET node = $2, fence = $3, pending = $4, until_ms = $5 WHERE key = $1";
        Box::pin(async move {
            let key = self.key.to_bytes();
            let fence = self.over.unwrap_or(0) + 1;
            let there = lock(at, &key).await?.and_then(|log| log.head);
            let node = self.head.node.as_bytes().as_slice();
            let pending = serde_json::to_string(&self.head.pending).map_err(StoreError::corrupt)?;
            let until = until(at, ABANDONED);
            match (there, self.over) {
                (Some(head), _) if head.fence == fence && head.node == self.head.node => {}
                (Some(head), Some(over)) if head.fence == over && head.state == LogState::Open => {
                    at.query(TAKE, &[&key, &node, &signed(fence), &pending, &until]).await?;
                    at.wakes.push(Topic::Log(self.key));
                }
                (_, Some(_)) => return Err(StoreError::Lost.into()),
                (Some(_), None) => return Err(StoreError::Conflict.into()),
                (None, None) => {
                    let session = self.key.session().map(|session| session.as_bytes().as_slice());
                    let made = at.first(INSERT, &[&key, &session, &node, &pending, &until]).await?;
                    made.ok_or(StoreError::Conflict)?;
                }
            }
            Ok(fence)
        })
    }
}

struct Append {
    key: LogKey,
    fence: u64,
    first: u64,
    events: Vec<Bytes>,
    then: LogState,
}

impl Append {
    /// Of the events those that are not there yet. What is there has to be the same.
    async fn new_ones<'a>(&'a self, at: &mut At<'_>, last: u64) -> Result<Vec<(u64, &'a Bytes)>, Failed> {
        if self.first == 0 {
            return Err(StoreError::Conflict.into());
        }
        let numbered = || (self.first..).zip(&self.events);
        for (number, bytes) in numbered().take_while(|(number, _)| *number <= last) {
            let sql = "SELECT FROM event WHERE log = $1 AND number = $2 AND bytes = $3";
            let same = at.first(sql, &[&self.key.to_bytes(), &signed(number), &bytes.as_ref()]).await?;
            same.ok_or(StoreError::Conflict)?;
        }
        Ok(numbered().filter(|(number, _)| *number > last).collect())
    }
}

impl Operation for Append {
    type Output = ();

    fn order(&self) -> Order {
        Order::row("log", &self.key.to_bytes())
    }

    fn run<'a>(&'a self, at: &'a mut At<'_>) -> Done<'a, ()> {
        Box::pin(async move {
            let key = self.key.to_bytes();
            let head = lock(at, &key).await?.and_then(|log| log.head);
            let head = head.filter(|head| head.fence == self.fence).ok_or(StoreError::Lost)?;
            let new = self.new_ones(at, head.last).await?;
            if head.state != LogState::Open {
                let same = new.is_empty() && head.state == self.then;
                return if same { Ok(()) } else { Err(StoreError::Conflict.into()) };
            }
            add(at, &self.key, &new).await?;
            let until = until(at, if self.then == LogState::Open { ABANDONED } else { KEPT });
            let sql = "UPDATE log SET state = $2, until_ms = $3 WHERE key = $1";
            at.query(sql, &[&key, &state_text(self.then), &until]).await?;
            at.wakes.push(Topic::Log(self.key));
            Ok(())
        })
    }
}

struct Post {
    key: LogKey,
    event: Bytes,
}

impl Operation for Post {
    type Output = u64;

    fn order(&self) -> Order {
        Order::row("log", &self.key.to_bytes())
    }

    fn run<'a>(&'a self, at: &'a mut At<'_>) -> Done<'a, u64> {
        // Whoever has the row is the only one who takes a number for it: they come in the order of their commits.
        const LOCK: &str = "INSERT INTO log (key, session, state, last, reader, first, bytes, count, until_ms)
            VALUES ($1, $2, 'open', 0, 0, 1, 0, 0, $3) ON CONFLICT (key) DO UPDATE SET until_ms = excluded.until_ms";
        Box::pin(async move {
            let session = self.key.session().map(|session| session.as_bytes().as_slice());
            let until = until(at, KEPT);
            at.query(LOCK, &[&self.key.to_bytes(), &session, &until]).await?;
            let number = at.first("SELECT nextval('posted')", &[]).await?;
            let number = number.map(|row| row.try_get(0)).transpose()?.map(unsigned);
            let number = number.ok_or_else(|| StoreError::corrupt("there is no next number"))?;
            add(at, &self.key, &[(number, &self.event)]).await?;
            at.wakes.push(Topic::Log(self.key));
            Ok(number)
        })
    }
}

struct Read {
    key: LogKey,
    after: u64,
    limit: usize,
}

impl Operation for Read {
    type Output = Slice;

    fn order(&self) -> Order {
        Order::Last
    }

    fn run<'a>(&'a self, at: &'a mut At<'_>) -> Done<'a, Slice> {
        // At least one, however large it is.
        const SQL: &str = "SELECT number, bytes FROM (
                SELECT number, bytes, sum(length(bytes)) OVER (ORDER BY number) - length(bytes) AS before
                FROM event WHERE log = $1 AND number > $2 ORDER BY number LIMIT $3) AS part
            WHERE before < $4 ORDER BY number";
        Box::pin(async move {
            let key = self.key.to_bytes();
            // First what is there, then what is known of it: what is let go of in between shows in the head.
            let limit = signed(self.limit as u64);
            let rows =
                at.query(SQL, &[&key, &signed(self.after), &limit, &signed(READ_BYTES as u64)]).await?;
            let now = signed(at.now);
            let log = at.first(COLUMNS, &[&key, &now]).await?.map(|row| log(&row)).transpose()?;
            let Some(log) = log else { return Ok(Slice::new(None, Vec::new(), 1)) };
            let event = |row: &Row| -> Result<Event, Failed> {
                let bytes = Bytes::from(row.try_get::<_, Vec<u8>>(1)?);
                Ok(Event { number: unsigned(row.try_get(0)?), bytes })
            };
            let events = rows.iter().map(event).collect::<Result<Vec<_>, _>>()?;
            Ok(Slice::new(log.head, events, log.first))
        })
    }
}

struct Attend(LogKey);

impl Operation for Attend {
    type Output = u64;

    fn order(&self) -> Order {
        Order::row("log", &self.0.to_bytes())
    }

    fn run<'a>(&'a self, at: &'a mut At<'_>) -> Done<'a, u64> {
        const SQL: &str = "UPDATE log SET reader = reader + 1
            WHERE key = $1 AND until_ms > $2 AND fence IS NOT NULL RETURNING reader";
        Box::pin(async move {
            let row = at.first(SQL, &[&self.0.to_bytes(), &signed(at.now)]).await?;
            let reader = unsigned(row.ok_or(StoreError::Lost)?.try_get(0)?);
            at.wakes.push(Topic::Log(self.0));
            Ok(reader)
        })
    }
}

struct Forget(SessionKey);

impl Operation for Forget {
    type Output = ();

    fn order(&self) -> Order {
        Order::Alone
    }

    fn run<'a>(&'a self, at: &'a mut At<'_>) -> Done<'a, ()> {
        const KEYS: &str = "SELECT key FROM log WHERE session = $1 ORDER BY key FOR UPDATE";
        Box::pin(async move {
            let rows = at.query(KEYS, &[&self.0.as_bytes().as_slice()]).await?;
            at.query("DELETE FROM log WHERE session = $1", &[&self.0.as_bytes().as_slice()]).await?;
            for row in &rows {
                at.wakes.extend(LogKey::from_bytes(row.try_get(0)?).map(Topic::Log));
            }
            Ok(())
        })
    }
}
