//! Logs in the file.

use std::sync::Arc;

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, params};
use toolwire_protocol::RequestId;
use toolwire_store::{
    Event, EventLog, Head, LogKey, LogState, NewHead, NodeId, Op, SessionKey, Slice, StoreError, Topic,
    limits::check_event,
};

use crate::{
    error::{array, failed, from_sql, to_sql},
    row::{decode, encode},
    thread::{At, Threads},
};

/// How many events of one log are kept.
const EVENTS: u64 = 1000;
/// How many bytes of one log are kept. The newest event is kept whatever its size.
const BYTES: u64 = 8 * 1024 * 1024;
/// How long a stream is kept after its end, and another log after its last event, in milliseconds.
const TIME_MS: u64 = 5 * 60 * 1000;
/// How long a stream that has not ended is kept after its last event, in milliseconds.
const OPEN_MS: u64 = 24 * 60 * 60 * 1000;
/// How many logs one session may have.
const OF_SESSION: i64 = 10_000;

#[derive(Debug)]
pub(crate) struct SqliteLog(pub(crate) Arc<Threads>);

struct Stored {
    row: i64,
    /// `None` when it is posted to.
    head: Option<Head>,
    last: u64,
    trimmed: u64,
    events: u64,
    bytes: u64,
}

fn find(connection: &Connection, key: &LogKey, now: u64) -> Result<Option<Stored>, StoreError> {
    let sql = "SELECT row, node, fence, last, reader, pending, state, trimmed, events, bytes FROM head \
         WHERE key = ?1 AND (until IS NULL OR until > ?2)";
    let mut select = connection.prepare_cached(sql).map_err(failed)?;
    let found = select.query_row(params![key.to_bytes(), to_sql(now)], |row| {
        let numbers: [i64; 6] =
            [row.get(2)?, row.get(3)?, row.get(4)?, row.get(7)?, row.get(8)?, row.get(9)?];
        let pending: String = row.get(5)?;
        Ok((
            row.get(0)?,
            row.get::<_, Option<Vec<u8>>>(1)?,
            numbers.map(from_sql),
            pending,
            row.get::<_, i64>(6)?,
        ))
    });
    let Some((row, node, [fence, last, reader, trimmed, events, bytes], pending, state)) =
        found.optional().map_err(failed)?
    else {
        return Ok(None);
    };
    let head = node.map(|node| -> Result<Head, StoreError> {
        let pending: Vec<RequestId> = decode(&pending)?;
        let mut head = Head::new(NewHead { node: NodeId::from_bytes(array(&node)?), pending }, fence);
        (head.last, head.reader, head.state) = (last, reader, state_of(state)?);
        Ok(head)
    });
    Ok(Some(Stored { row, head: head.transpose()?, last, trimmed, events, bytes }))
}

fn state_of(number: i64) -> Result<LogState, StoreError> {
    match number {
        0 => Ok(LogState::Open),
        1 => Ok(LogState::Ended),
        2 => Ok(LogState::Broken),
        _ => Err(StoreError::corrupt(format!("an unknown state {number} of a stream"))),
    }
}

fn state_number(state: LogState) -> i64 {
    match state {
        LogState::Open => 0,
        LogState::Ended => 1,
        _ => 2,
    }
}

impl Stored {
    fn new(
        connection: &Connection,
        key: &LogKey,
        head: Option<Head>,
        until: u64,
    ) -> Result<Self, StoreError> {
        // One that has expired and was not removed yet makes room.
        remove(connection, "key = ?1", &key.to_bytes())?;
        let session = key.session().map(SessionKey::as_bytes);
        let sql = "SELECT count(*) FROM head WHERE session = ?1";
        let mut count = connection.prepare_cached(sql).map_err(failed)?;
        let logs: i64 = count.query_row(params![session], |row| row.get(0)).map_err(failed)?;
        if logs >= OF_SESSION {
            return Err(StoreError::Full("streams of this session"));
        }
        let sql = "INSERT INTO head (key, session, node, fence, last, reader, pending, state, trimmed, events, bytes, until) \
             VALUES (?1, ?2, ?3, ?4, 0, 0, ?5, 0, 0, 0, 0, ?6)";
        let mut insert = connection.prepare_cached(sql).map_err(failed)?;
        let node = head.as_ref().map(|head| *head.node.as_bytes());
        let fence = head.as_ref().map_or(0, |head| head.fence);
        let pending = head.as_ref().map_or_else(|| Ok("[]".to_owned()), |head| encode(&head.pending))?;
        let values = params![key.to_bytes(), session, node, to_sql(fence), pending, to_sql(until)];
        let row = insert.insert(values).map_err(failed)?;
        Ok(Self { row, head, last: 0, trimmed: 0, events: 0, bytes: 0 })
    }

    fn push(&mut self, connection: &Connection, number: u64, event: &[u8]) -> Result<(), StoreError> {
        let mut insert =
            connection.prepare_cached("INSERT INTO event VALUES (?1, ?2, ?3)").map_err(failed)?;
        insert.execute(params![self.row, to_sql(number), event]).map_err(failed)?;
        self.last = number;
        self.events += 1;
        self.bytes += event.len() as u64;
        while self.events > 1 && (self.events > EVENTS || self.bytes > BYTES) {
            self.trim(connection)?;
        }
        Ok(())
    }

    fn trim(&mut self, connection: &Connection) -> Result<(), StoreError> {
        let sql = "DELETE FROM event WHERE log = ?1 AND number = \
             (SELECT min(number) FROM event WHERE log = ?1) RETURNING number, length(bytes)";
        let mut delete = connection.prepare_cached(sql).map_err(failed)?;
        let (number, bytes): (i64, i64) =
            delete.query_row(params![self.row], |row| Ok((row.get(0)?, row.get(1)?))).map_err(failed)?;
        self.trimmed = from_sql(number);
        self.events -= 1;
        self.bytes = self.bytes.saturating_sub(from_sql(bytes));
        Ok(())
    }

    fn write(&self, connection: &Connection, until: u64) -> Result<(), StoreError> {
        let sql = "UPDATE head SET last = ?2, trimmed = ?3, events = ?4, bytes = ?5, state = ?6, until = ?7 \
             WHERE row = ?1";
        let mut update = connection.prepare_cached(sql).map_err(failed)?;
        let numbers = [self.last, self.trimmed, self.events, self.bytes].map(to_sql);
        let [last, trimmed, events, bytes] = numbers;
        let state = self.head.as_ref().map_or(0, |head| state_number(head.state));
        update
            .execute(params![self.row, last, trimmed, events, bytes, state, to_sql(until)])
            .map(drop)
            .map_err(failed)
    }

    fn event(&self, connection: &Connection, number: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let sql = "SELECT bytes FROM event WHERE log = ?1 AND number = ?2";
        let mut select = connection.prepare_cached(sql).map_err(failed)?;
        select.query_row(params![self.row, to_sql(number)], |row| row.get(0)).optional().map_err(failed)
    }
}

fn remove(connection: &Connection, which: &str, value: &[u8]) -> Result<(), StoreError> {
    let events = format!("DELETE FROM event WHERE log IN (SELECT row FROM head WHERE {which})");
    for sql in [events, format!("DELETE FROM head WHERE {which}")] {
        connection
            .prepare_cached(&sql)
            .and_then(|mut delete| delete.execute(params![value]))
            .map_err(failed)?;
    }
    Ok(())
}

/// Gives streams a time to be removed at that have none, because an older version has made them.
pub(crate) fn limit_endless(connection: &Connection, now: u64) -> Result<(), StoreError> {
    let until = to_sql(now.saturating_add(OPEN_MS));
    connection
        .execute("UPDATE head SET until = ?1 WHERE until IS NULL", params![until])
        .map(drop)
        .map_err(failed)
}

fn open(at: &mut At<'_>, key: &LogKey, new: NewHead, over: Option<u64>) -> Result<u64, StoreError> {
    let fence = over.unwrap_or(0) + 1;
    let until = at.now.saturating_add(OPEN_MS);
    let found = find(at.connection, key, at.now)?;
    match (found.as_ref().and_then(|stored| Some((stored.row, stored.head.as_ref()?))), over) {
        (Some((_, head)), _) if head.fence == fence && head.node == new.node => return Ok(fence),
        (Some((row, head)), Some(over)) if head.fence == over && head.state == LogState::Open => {
            let sql = "UPDATE head SET node = ?2, fence = ?3, pending = ?4, until = ?5 WHERE row = ?1";
            let mut update = at.connection.prepare_cached(sql).map_err(failed)?;
            let pending = encode(&new.pending)?;
            let values = params![row, new.node.as_bytes(), to_sql(fence), pending, to_sql(until)];
            update.execute(values).map_err(failed)?;
        }
        (_, Some(_)) => return Err(StoreError::Lost),
        (Some(_), None) => return Err(StoreError::Conflict),
        (None, None) => {
            Stored::new(at.connection, key, Some(Head::new(new, fence)), until)?;
        }
    }
    at.wakes.push(Topic::Log(*key));
    Ok(fence)
}

fn append(
    at: &mut At<'_>,
    key: &LogKey,
    fence: u64,
    first: u64,
    events: &[Bytes],
    then: LogState,
) -> Result<(), StoreError> {
    let mut stored = find(at.connection, key, at.now)?.ok_or(StoreError::Lost)?;
    let head = stored.head.as_ref().filter(|head| head.fence == fence).ok_or(StoreError::Lost)?;
    let (state, last) = (head.state, stored.last);
    if first == 0 {
        return Err(StoreError::Conflict);
    }
    let known = events.iter().zip(first..).take_while(|(_, number)| *number <= last);
    let mut count = 0;
    for (event, number) in known {
        if stored.event(at.connection, number)?.is_none_or(|bytes| bytes != *event) {
            return Err(StoreError::Conflict);
        }
        count += 1;
    }
    if state != LogState::Open {
        return if count == events.len() && state == then { Ok(()) } else { Err(StoreError::Conflict) };
    }
    for (event, number) in events.iter().zip(first..).skip(count) {
        stored.push(at.connection, number, event)?;
    }
    if let Some(head) = &mut stored.head {
        head.state = then;
    }
    let keep = if then == LogState::Open { OPEN_MS } else { TIME_MS };
    stored.write(at.connection, at.now.saturating_add(keep))?;
    at.wakes.push(Topic::Log(*key));
    Ok(())
}

fn post(at: &mut At<'_>, key: &LogKey, event: &Bytes) -> Result<u64, StoreError> {
    let sql = "UPDATE posted SET number = number + 1 RETURNING number";
    let mut next = at.connection.prepare_cached(sql).map_err(failed)?;
    let number = next.query_row([], |row| row.get(0)).map(from_sql).map_err(failed)?;
    let until = at.now.saturating_add(TIME_MS);
    let mut stored = match find(at.connection, key, at.now)? {
        Some(stored) => stored,
        None => Stored::new(at.connection, key, None, until)?,
    };
    stored.push(at.connection, number, event)?;
    stored.write(at.connection, until)?;
    at.wakes.push(Topic::Log(*key));
    Ok(number)
}

fn read(at: &At<'_>, key: &LogKey, after: u64, limit: usize) -> Result<Slice, StoreError> {
    let Some(stored) = find(at.connection, key, at.now)? else { return Ok(Slice::new(None, Vec::new(), 1)) };
    let sql = "SELECT number, bytes FROM event WHERE log = ?1 AND number > ?2 ORDER BY number LIMIT ?3";
    let mut select = at.connection.prepare_cached(sql).map_err(failed)?;
    let events = select.query_map(params![stored.row, to_sql(after), to_sql(limit as u64)], |row| {
        Ok(Event { number: from_sql(row.get(0)?), bytes: row.get::<_, Vec<u8>>(1)?.into() })
    });
    let events: Result<Vec<Event>, _> = events.map_err(failed)?.collect();
    Ok(Slice::new(stored.head, events.map_err(failed)?, stored.trimmed + 1))
}

impl EventLog for SqliteLog {
    fn open<'a>(&'a self, key: &'a LogKey, head: NewHead, over: Option<u64>) -> Op<'a, u64> {
        if !key.is_stream() {
            return Box::pin(async { Err(StoreError::Conflict) });
        }
        let key = *key;
        self.0.write(move |at| open(at, &key, head, over))
    }

    fn append<'a>(
        &'a self,
        key: &'a LogKey,
        fence: u64,
        first: u64,
        events: &'a [Bytes],
        then: LogState,
    ) -> Op<'a, ()> {
        if let Err(error) = events.iter().try_for_each(|event| check_event(event.len())) {
            return Box::pin(async { Err(error) });
        }
        let (key, events) = (*key, events.to_vec());
        self.0.write(move |at| append(at, &key, fence, first, &events, then))
    }

    fn post<'a>(&'a self, key: &'a LogKey, event: Bytes) -> Op<'a, u64> {
        let checked = if key.is_stream() { Err(StoreError::Conflict) } else { check_event(event.len()) };
        if let Err(error) = checked {
            return Box::pin(async { Err(error) });
        }
        let key = *key;
        self.0.write(move |at| post(at, &key, &event))
    }

    fn read<'a>(&'a self, key: &'a LogKey, after: u64, limit: usize) -> Op<'a, Slice> {
        let key = *key;
        self.0.read(move |at| read(at, &key, after, limit))
    }

    fn attend<'a>(&'a self, key: &'a LogKey) -> Op<'a, u64> {
        let key = *key;
        self.0.write(move |at| {
            let sql = "UPDATE head SET reader = reader + 1 WHERE key = ?1 AND node IS NOT NULL \
                 AND (until IS NULL OR until > ?2) RETURNING reader";
            let mut update = at.connection.prepare_cached(sql).map_err(failed)?;
            let reader = update.query_row(params![key.to_bytes(), to_sql(at.now)], |row| row.get(0));
            let reader = reader.optional().map_err(failed)?.ok_or(StoreError::Lost)?;
            at.wakes.push(Topic::Log(key));
            Ok(from_sql(reader))
        })
    }

    fn forget<'a>(&'a self, session: &'a SessionKey) -> Op<'a, ()> {
        let session = *session;
        self.0.write(move |at| remove(at.connection, "session = ?1", session.as_bytes()))
    }
}
