//! A task as a row of its table.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row, named_params, params};
use toolwire_protocol::{RawJson, wire::TaskStatus};
use toolwire_store::{
    Entry, KeyId, Life, NodeId, Owner, Quota, SessionKey, StoreError, TaskId, TaskRequest, Token, Topic,
    record::{Phase, Record, Source},
};

use crate::error::{array, failed, from_sql, to_sql};

/// A task that was read, and may be written back.
pub(crate) struct Stored {
    pub(crate) row: i64,
    pub(crate) id: TaskId,
    pub(crate) record: Record,
    /// How many entries the table has of its journal.
    entries: usize,
    had_ended: bool,
}

/// All but what may be large: the request and the outcome.
const COLUMNS: &str = "row, id, owner, quota, format, key, tool, revision, version, session, created, keep, ttl, poll, \
     phase, due, floor, works, until, fence, attempt, node, token, lease, lease_until, written, held, parked_at, \
     entries, bytes, open, answered, note, is_error, updated, rev";

/// A row that this version cannot read: a newer one may have written it, or it is damaged.
#[derive(Debug)]
pub(crate) struct Unreadable {
    row: i64,
    why: StoreError,
}

impl Unreadable {
    /// Tells apart what is wrong with one row from what is wrong with the file.
    pub(crate) fn of(row: i64, why: StoreError) -> Result<Self, StoreError> {
        if matches!(why, StoreError::Corrupt(_)) { Ok(Self { row, why }) } else { Err(why) }
    }

    pub(crate) fn warn(&self) {
        let cause = std::error::Error::source(&self.why).map(ToString::to_string);
        tracing::warn!(row = self.row, cause, "a task in the store cannot be read");
    }

    /// Leaves the task to others, without an attempt: nothing but the time at which it is due again is written.
    pub(crate) fn defer(&self, connection: &Connection, until: u64) -> Result<(), StoreError> {
        self.warn();
        let mut update =
            connection.prepare_cached("UPDATE task SET due = ?2 WHERE row = ?1").map_err(failed)?;
        update.execute(params![self.row, to_sql(until)]).map(drop).map_err(failed)
    }
}

/// Passes the tasks for which a condition holds to `take`, in the order of the condition, for as long as it returns
/// `true`.
pub(crate) fn each(
    connection: &Connection,
    condition: &str,
    parameters: &[&dyn rusqlite::ToSql],
    mut take: impl FnMut(Result<Stored, Unreadable>) -> bool,
) -> Result<(), StoreError> {
    let mut statement = connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM task WHERE {condition}"))
        .map_err(failed)?;
    let mut rows = statement.query(parameters).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let number = row.get("row").map_err(failed)?;
        let found = match Stored::read(row) {
            Ok(stored) => Ok(stored),
            Err(why) => Err(Unreadable::of(number, why)?),
        };
        if !take(found) {
            break;
        }
    }
    Ok(())
}

/// Returns the first task for which a condition holds.
pub(crate) fn first(
    connection: &Connection,
    condition: &str,
    parameters: &[&dyn rusqlite::ToSql],
) -> Result<Option<Stored>, StoreError> {
    let mut first = None;
    each(connection, condition, parameters, |found| {
        first = Some(found);
        false
    })?;
    first.transpose().map_err(|unreadable| unreadable.why)
}

/// The task with this id, unless it has expired.
pub(crate) fn find(connection: &Connection, id: &TaskId, now: u64) -> Result<Option<Stored>, StoreError> {
    first(connection, "id = ?1 AND until > ?2", params![id.as_bytes(), to_sql(now)])
}

impl Stored {
    fn read(row: &Row<'_>) -> Result<Self, StoreError> {
        let text = |column: &str| row.get::<_, String>(column).map_err(failed);
        let number = |column: &str| row.get::<_, i64>(column).map(from_sql).map_err(failed);
        let count = |column: &str| number(column).map(|number| usize::try_from(number).unwrap_or(usize::MAX));
        let small = |column: &str| number(column).map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        let flag = |column: &str| row.get::<_, bool>(column).map_err(failed);
        let bytes = |column: &str| row.get::<_, Option<Vec<u8>>>(column).map_err(failed);
        let needed = |column: &str| row.get::<_, Vec<u8>>(column).map_err(failed);

        let mut life = Life::new(number("created")?, std::time::Duration::ZERO, std::time::Duration::ZERO);
        (life.keep_ms, life.ttl_ms) = (number("keep")?, number("ttl")?);
        (life.floor_ms, life.works, life.until_ms) = (number("floor")?, flag("works")?, number("until")?);
        let version = text("version")?.parse().map_err(StoreError::corrupt)?;
        let null = RawJson::from(&serde_json::Value::Null);
        let mut request = TaskRequest::new(text("tool")?, version, null);
        request.revision = small("revision")?;
        request.session =
            bytes("session")?.map(|bytes| array(&bytes).map(SessionKey::from_bytes)).transpose()?;
        let owner =
            Owner::from_bytes(&needed("owner")?).ok_or_else(|| StoreError::corrupt("an unknown owner"))?;
        let phase = phase(number("phase")?)?;
        let entries = count("entries")?;
        let record = Record {
            owner,
            quota: Quota::from_bytes(array(&needed("quota")?)?),
            format: small("format")?,
            key: bytes("key")?.map(|bytes| array(&bytes).map(KeyId::from_bytes)).transpose()?,
            request: Arc::new(request),
            phase,
            due_ms: row.get::<_, Option<i64>>("due").map_err(failed)?.map(from_sql),
            life,
            fence: number("fence")?,
            attempt: small("attempt")?,
            added: Vec::new(),
            entries,
            node: bytes("node")?.map(|bytes| array(&bytes).map(NodeId::from_bytes)).transpose()?,
            token: bytes("token")?.map(|bytes| array(&bytes).map(Token::from_bytes)).transpose()?,
            lease_ms: number("lease")?,
            lease_until_ms: number("lease_until")?,
            written: number("written")?,
            held: flag("held")?,
            parked_at: count("parked_at")?,
            journal_bytes: count("bytes")?,
            open: decode(&text("open")?)?,
            answered: decode(&text("answered")?)?,
            note: decode(&text("note")?)?,
            outcome: None,
            is_error: flag("is_error")?,
            poll_ms: number("poll")?,
            updated_ms: number("updated")?,
            rev: number("rev")?,
        };
        let id = TaskId::from_bytes(array(&needed("id")?)?);
        let row = row.get("row").map_err(failed)?;
        Ok(Self { row, id, had_ended: record.has_ended(), record, entries })
    }

    /// Reads how the task ended.
    pub(crate) fn with_outcome(mut self, connection: &Connection) -> Result<Self, StoreError> {
        if self.record.has_ended() {
            let text: Option<String> = self.column(connection, "SELECT outcome FROM task WHERE row = ?1")?;
            self.record.outcome = text.map(|text| decode(&text)).transpose()?;
        }
        Ok(self)
    }

    /// Reads the request.
    pub(crate) fn with_request(mut self, connection: &Connection) -> Result<Self, StoreError> {
        let text: String = self.column(connection, "SELECT request FROM task WHERE row = ?1")?;
        self.record.request = Arc::new(decode(&text)?);
        Ok(self)
    }

    fn column<T: rusqlite::types::FromSql>(
        &self,
        connection: &Connection,
        sql: &str,
    ) -> Result<T, StoreError> {
        let mut statement = connection.prepare_cached(sql).map_err(failed)?;
        statement.query_row(params![self.row], |row| row.get(0)).map_err(failed)
    }

    /// The entries of the journal from a number on.
    pub(crate) fn journal(
        &self,
        connection: &Connection,
        from: usize,
    ) -> Result<Vec<(Entry, Source)>, StoreError> {
        let mut statement = connection
            .prepare_cached(
                "SELECT entry, answer FROM journal WHERE task = ?1 AND number >= ?2 ORDER BY number",
            )
            .map_err(failed)?;
        let mut rows = statement.query(params![self.row, to_sql(from as u64)]).map_err(failed)?;
        let mut journal = Vec::new();
        while let Some(row) = rows.next().map_err(failed)? {
            let text: String = row.get(0).map_err(failed)?;
            let source = if row.get(1).map_err(failed)? { Source::Answer } else { Source::Run };
            journal.push((decode(&text)?, source));
        }
        Ok(journal)
    }

    /// Writes back what may have changed, and what was added to the journal. The request and the journal of a task that
    /// ends are removed: no run needs them any more, and ended tasks are kept for as long as their callers choose.
    pub(crate) fn write(&mut self, connection: &Connection) -> Result<(), StoreError> {
        let ends = self.record.has_ended() && !self.had_ended;
        if ends {
            self.record.strip();
            self.entries = 0;
            execute(connection, "DELETE FROM journal WHERE task = ?1", self.row)?;
        }
        let record = &self.record;
        let mut update = connection.prepare_cached(UPDATE).map_err(failed)?;
        let outcome = record.outcome.as_ref().filter(|_| ends).map(encode).transpose()?;
        let request = ends.then(|| encode(&*record.request)).transpose()?;
        update
            .execute(named_params! {
                ":row": self.row,
                ":phase": phase_number(record.phase),
                ":due": record.due_ms.map(to_sql),
                ":floor": to_sql(record.life.floor_ms),
                ":works": record.life.works,
                ":until": to_sql(record.life.until_ms),
                ":fence": to_sql(record.fence),
                ":attempt": record.attempt,
                ":node": record.node.as_ref().map(NodeId::as_bytes),
                ":token": record.token.as_ref().map(Token::as_bytes),
                ":lease": to_sql(record.lease_ms),
                ":lease_until": to_sql(record.lease_until_ms),
                ":written": to_sql(record.written),
                ":held": record.held,
                ":parked_at": to_sql(record.parked_at as u64),
                ":entries": to_sql(record.entries as u64),
                ":bytes": to_sql(record.journal_bytes as u64),
                ":open": encode(&record.open)?,
                ":answered": encode(&record.answered)?,
                ":note": encode(&record.note)?,
                ":outcome": outcome,
                ":request": request,
                ":is_error": record.is_error,
                ":updated": to_sql(record.updated_ms),
                ":rev": to_sql(record.rev),
            })
            .map_err(failed)?;
        if ends {
            count_down(connection, record.quota.as_bytes())?;
        }
        self.had_ended = record.has_ended();
        self.add_entries(connection)
    }

    fn add_entries(&mut self, connection: &Connection) -> Result<(), StoreError> {
        let mut insert =
            connection.prepare_cached("INSERT INTO journal VALUES (?1, ?2, ?3, ?4)").map_err(failed)?;
        for (entry, source) in std::mem::take(&mut self.record.added) {
            let number = to_sql(self.entries as u64);
            let is_answer = source == Source::Answer;
            insert.execute(params![self.row, number, is_answer, entry.text()]).map_err(failed)?;
            self.entries += 1;
        }
        Ok(())
    }
}

const UPDATE: &str = "UPDATE task SET phase = :phase, due = :due, floor = :floor, works = :works, until = :until, \
     fence = :fence, attempt = :attempt, node = :node, token = :token, lease = :lease, lease_until = :lease_until, \
     written = :written, held = :held, parked_at = :parked_at, entries = :entries, bytes = :bytes, open = :open, \
     answered = :answered, note = :note, outcome = coalesce(:outcome, outcome), \
     request = coalesce(:request, request), is_error = :is_error, updated = :updated, rev = :rev WHERE row = :row";

const INSERT: &str = "INSERT INTO task (id, owner, quota, format, key, tool, revision, version, session, request, \
     created, keep, ttl, poll, phase, due, floor, works, until, fence, attempt, node, token, lease, lease_until, written, \
     held, parked_at, entries, bytes, open, answered, note, is_error, updated, rev) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, \
     ?8, ?9, ?10, ?11, ?12, ?13, ?14, 0, NULL, 0, 0, 0, 0, 0, NULL, NULL, 0, 0, 0, 0, 0, 0, 0, '[]', '[]', '{}', 0, 0, 0)";

/// Adds a task, which counts for its quota from now on.
pub(crate) fn insert(connection: &Connection, id: TaskId, record: Record) -> Result<(), StoreError> {
    let request = &record.request;
    let mut statement = connection.prepare_cached(INSERT).map_err(failed)?;
    let row = statement
        .insert(params![
            id.as_bytes(),
            record.owner.to_bytes(),
            record.quota.as_bytes(),
            record.format,
            record.key.as_ref().map(KeyId::as_bytes),
            request.tool,
            request.revision,
            request.version.as_str(),
            request.session.as_ref().map(SessionKey::as_bytes),
            encode(&**request)?,
            to_sql(record.life.created_ms),
            to_sql(record.life.keep_ms),
            to_sql(record.life.ttl_ms),
            to_sql(record.poll_ms),
        ])
        .map_err(failed)?;
    count_up(connection, &record.quota)?;
    Stored { row, id, record, entries: 0, had_ended: false }.write(connection)
}

/// As much of a task as its removal needs, so that one that cannot be read is removed as well.
pub(crate) struct Expired {
    row: i64,
    phase: i64,
    quota: Vec<u8>,
    id: Vec<u8>,
    session: Option<Vec<u8>>,
}

/// Returns up to `limit` tasks that have expired, the earliest first.
pub(crate) fn expired(connection: &Connection, now: u64, limit: usize) -> Result<Vec<Expired>, StoreError> {
    let sql = "SELECT row, phase, quota, id, session FROM task WHERE until <= ?1 ORDER BY until LIMIT ?2";
    let mut select = connection.prepare_cached(sql).map_err(failed)?;
    let found = select.query_map(params![to_sql(now), to_sql(limit as u64)], |row| {
        Ok(Expired {
            row: row.get(0)?,
            phase: row.get(1)?,
            quota: row.get(2)?,
            id: row.get(3)?,
            session: row.get(4)?,
        })
    });
    found.map_err(failed)?.collect::<Result<_, _>>().map_err(failed)
}

impl Expired {
    /// Removes the task with everything that belongs to it.
    pub(crate) fn remove(&self, connection: &Connection) -> Result<(), StoreError> {
        execute(connection, "DELETE FROM journal WHERE task = ?1", self.row)?;
        execute(connection, "DELETE FROM task WHERE row = ?1", self.row)?;
        // One in a phase that is not known counts as open: a quota that is counted down once too often lets its caller
        // have one task more, and one that is not counted down has one less for ever.
        let had_ended = phase(from_sql(self.phase)).is_ok_and(|phase| matches!(phase, Phase::Ended(_)));
        if had_ended { Ok(()) } else { count_down(connection, &self.quota) }
    }

    /// The topic of the task, unless its id or its session is of an unknown kind.
    pub(crate) fn topic(&self) -> Option<Topic> {
        let session = self.session.as_deref().map(array).transpose().ok()?;
        Some(Topic::Task {
            id: TaskId::from_bytes(array(&self.id).ok()?),
            session: session.map(SessionKey::from_bytes),
        })
    }
}

fn execute(connection: &Connection, sql: &str, row: i64) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(sql).map_err(failed)?;
    statement.execute(params![row]).map(drop).map_err(failed)
}

/// How many tasks of a quota have not ended.
pub(crate) fn open_of(connection: &Connection, quota: &Quota) -> Result<u64, StoreError> {
    let mut statement = connection.prepare_cached("SELECT open FROM quota WHERE id = ?1").map_err(failed)?;
    let open = statement.query_row(params![quota.as_bytes()], |row| row.get(0)).optional();
    Ok(open.map_err(failed)?.map_or(0, from_sql))
}

fn count_up(connection: &Connection, quota: &Quota) -> Result<(), StoreError> {
    let sql = "INSERT INTO quota VALUES (?1, 1) ON CONFLICT DO UPDATE SET open = open + 1";
    let mut upsert = connection.prepare_cached(sql).map_err(failed)?;
    upsert.execute(params![quota.as_bytes()]).map(drop).map_err(failed)
}

fn count_down(connection: &Connection, quota: &[u8]) -> Result<(), StoreError> {
    for sql in
        ["UPDATE quota SET open = open - 1 WHERE id = ?1", "DELETE FROM quota WHERE id = ?1 AND open <= 0"]
    {
        let mut statement = connection.prepare_cached(sql).map_err(failed)?;
        statement.execute(params![quota]).map_err(failed)?;
    }
    Ok(())
}

fn phase_number(phase: Phase) -> i64 {
    match phase {
        Phase::Ready => 0,
        Phase::Leased => 1,
        Phase::Timed => 2,
        Phase::Parked => 3,
        Phase::Ended(TaskStatus::Completed) => 4,
        Phase::Ended(TaskStatus::Cancelled) => 6,
        Phase::Ended(_) => 5,
    }
}

fn phase(number: u64) -> Result<Phase, StoreError> {
    Ok(match number {
        0 => Phase::Ready,
        1 => Phase::Leased,
        2 => Phase::Timed,
        3 => Phase::Parked,
        4 => Phase::Ended(TaskStatus::Completed),
        5 => Phase::Ended(TaskStatus::Failed),
        6 => Phase::Ended(TaskStatus::Cancelled),
        _ => return Err(StoreError::corrupt(format!("an unknown phase {number}"))),
    })
}

pub(crate) fn decode<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(StoreError::corrupt)
}

pub(crate) fn encode<T: serde::Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(StoreError::corrupt)
}
