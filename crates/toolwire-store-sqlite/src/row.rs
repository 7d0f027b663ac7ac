//! A task as a row of its table.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row, named_params, params};
use toolwire_protocol::{RawJson, wire::TaskStatus};
use toolwire_store::{
    Entry, KeyId, Life, NodeId, Owner, Quota, SessionKey, StoreError, TaskId, TaskRequest, Token,
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

/// The tasks for which a condition holds, in its order.
pub(crate) fn select(
    connection: &Connection,
    condition: &str,
    parameters: &[&dyn rusqlite::ToSql],
) -> Result<Vec<Stored>, StoreError> {
    let mut statement = connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM task WHERE {condition}"))
        .map_err(failed)?;
    let mut rows = statement.query(parameters).map_err(failed)?;
    let mut stored = Vec::new();
    while let Some(row) = rows.next().map_err(failed)? {
        stored.push(Stored::read(row)?);
    }
    Ok(stored)
}

/// The task with this id, unless it has expired.
pub(crate) fn find(connection: &Connection, id: &TaskId, now: u64) -> Result<Option<Stored>, StoreError> {
    let found = select(connection, "id = ?1 AND until > ?2", params![id.as_bytes(), to_sql(now)])?;
    Ok(found.into_iter().next())
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

    /// Writes back what may have changed, and what was added to the journal.
    pub(crate) fn write(&mut self, connection: &Connection) -> Result<(), StoreError> {
        let record = &self.record;
        let ends = record.has_ended() && !self.had_ended;
        let mut update = connection.prepare_cached(UPDATE).map_err(failed)?;
        let outcome = record.outcome.as_ref().filter(|_| ends).map(encode).transpose()?;
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
                ":is_error": record.is_error,
                ":updated": to_sql(record.updated_ms),
                ":rev": to_sql(record.rev),
            })
            .map_err(failed)?;
        if ends {
            count(connection, &record.quota, -1)?;
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
     answered = :answered, note = :note, outcome = coalesce(:outcome, outcome), is_error = :is_error, \
     updated = :updated, rev = :rev WHERE row = :row";

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
    count(connection, &record.quota, 1)?;
    Stored { row, id, record, entries: 0, had_ended: false }.write(connection)
}

/// Removes a task with everything that belongs to it.
pub(crate) fn remove(connection: &Connection, stored: &Stored) -> Result<(), StoreError> {
    for sql in ["DELETE FROM journal WHERE task = ?1", "DELETE FROM task WHERE row = ?1"] {
        let mut statement = connection.prepare_cached(sql).map_err(failed)?;
        statement.execute(params![stored.row]).map_err(failed)?;
    }
    if stored.had_ended { Ok(()) } else { count(connection, &stored.record.quota, -1) }
}

/// How many tasks of a quota have not ended.
pub(crate) fn open_of(connection: &Connection, quota: &Quota) -> Result<u64, StoreError> {
    let mut statement = connection.prepare_cached("SELECT open FROM quota WHERE id = ?1").map_err(failed)?;
    let open = statement.query_row(params![quota.as_bytes()], |row| row.get(0)).optional();
    Ok(open.map_err(failed)?.map_or(0, from_sql))
}

fn count(connection: &Connection, quota: &Quota, change: i64) -> Result<(), StoreError> {
    let sql = "INSERT INTO quota VALUES (?1, ?2) ON CONFLICT DO UPDATE SET open = max(0, open + ?2)";
    let mut upsert = connection.prepare_cached(sql).map_err(failed)?;
    upsert.execute(params![quota.as_bytes(), change]).map_err(failed)?;
    if change < 0 {
        let sql = "DELETE FROM quota WHERE id = ?1 AND open <= 0";
        let mut delete = connection.prepare_cached(sql).map_err(failed)?;
        delete.execute(params![quota.as_bytes()]).map_err(failed)?;
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
