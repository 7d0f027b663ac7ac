//! A task as a row, and back.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio_postgres::Row;
use toolwire_protocol::{RawJson, Version, wire::TaskStatus};
use toolwire_store::{
    KeyId, Life, NodeId, OpenQuestion, Owner, Quota, StoreError, TaskId, TaskNote, TaskRequest,
    record::{Phase, Record},
};

use crate::connection::Failed;

/// The columns that [`record`] reads. The request is not among them: it may have megabytes, and only claims need it.
macro_rules! columns {
    () => {
        "id, owner, quota, format, key, tool, session, created_ms, due_ms, phase, fence, token, attempt, lease_ms, \
         lease_until_ms, rev, details, outcome"
    };
}
pub(super) use columns;

/// The part of a task that no statement looks into. Names may be added, with a default, and never removed.
#[derive(Serialize, Deserialize)]
pub(super) struct Details {
    keep_ms: u64,
    ttl_ms: u64,
    floor_ms: u64,
    works: bool,
    until_ms: u64,
    entries: usize,
    node: Option<NodeId>,
    written: u64,
    held: bool,
    parked_at: usize,
    journal_bytes: usize,
    open: Vec<OpenQuestion>,
    answered: Vec<String>,
    note: TaskNote,
    is_error: bool,
    poll_ms: u64,
    updated_ms: u64,
}

impl Details {
    /// The text that is stored.
    pub(super) fn text(record: &Record) -> Result<String, StoreError> {
        let details = Self {
            keep_ms: record.life.keep_ms,
            ttl_ms: record.life.ttl_ms,
            floor_ms: record.life.floor_ms,
            works: record.life.works,
            until_ms: record.life.until_ms,
            entries: record.entries,
            node: record.node,
            written: record.written,
            held: record.held,
            parked_at: record.parked_at,
            journal_bytes: record.journal_bytes,
            open: record.open.clone(),
            answered: record.answered.clone(),
            note: record.note.clone(),
            is_error: record.is_error,
            poll_ms: record.poll_ms,
            updated_ms: record.updated_ms,
        };
        serde_json::to_string(&details).map_err(StoreError::corrupt)
    }
}

pub(super) fn phase_text(phase: Phase) -> &'static str {
    match phase {
        Phase::Ready => "ready",
        Phase::Leased => "leased",
        Phase::Timed => "timed",
        Phase::Parked => "parked",
        Phase::Ended(TaskStatus::Completed) => "completed",
        Phase::Ended(TaskStatus::Cancelled) => "cancelled",
        Phase::Ended(_) => "failed",
    }
}

fn phase(text: &str) -> Result<Phase, StoreError> {
    Ok(match text {
        "ready" => Phase::Ready,
        "leased" => Phase::Leased,
        "timed" => Phase::Timed,
        "parked" => Phase::Parked,
        "completed" => Phase::Ended(TaskStatus::Completed),
        "failed" => Phase::Ended(TaskStatus::Failed),
        "cancelled" => Phase::Ended(TaskStatus::Cancelled),
        _ => return Err(StoreError::corrupt("a task is in a phase that this version does not know")),
    })
}

/// The id of a row.
pub(super) fn id(row: &Row) -> Result<TaskId, Failed> {
    Ok(TaskId::from_bytes(exact(row.try_get("id")?)?))
}

/// The task of a row with the [`columns`]. Of its request it has the tool and the session alone.
pub(super) fn record(row: &Row) -> Result<Record, Failed> {
    let number = |name: &str| row.try_get::<_, i64>(name).map(unsigned);
    let details: Details = serde_json::from_str(row.try_get("details")?).map_err(StoreError::corrupt)?;
    let outcome = row.try_get::<_, Option<&str>>("outcome")?;
    let outcome = outcome.map(serde_json::from_str).transpose().map_err(StoreError::corrupt)?;
    let mut life = Life::new(number("created_ms")?, Duration::ZERO, Duration::ZERO);
    (life.keep_ms, life.ttl_ms, life.floor_ms) = (details.keep_ms, details.ttl_ms, details.floor_ms);
    (life.works, life.until_ms) = (details.works, details.until_ms);
    let token = row.try_get::<_, Option<&str>>("token")?;
    let owner = Owner::from_bytes(row.try_get("owner")?);
    Ok(Record {
        owner: owner.ok_or_else(|| StoreError::corrupt("an owner that is unknown"))?,
        quota: Quota::from_bytes(exact(row.try_get("quota")?)?),
        format: u32::try_from(row.try_get::<_, i64>("format")?).unwrap_or(u32::MAX),
        key: row.try_get::<_, Option<&[u8]>>("key")?.map(exact).transpose()?.map(KeyId::from_bytes),
        request: Arc::new(outline(row)?),
        phase: phase(row.try_get("phase")?)?,
        due_ms: row.try_get::<_, Option<i64>>("due_ms")?.map(unsigned),
        life,
        fence: number("fence")?,
        attempt: u32::try_from(row.try_get::<_, i64>("attempt")?).unwrap_or(u32::MAX),
        added: Vec::new(),
        entries: details.entries,
        node: details.node,
        token: token.map(str::parse).transpose().map_err(StoreError::corrupt)?,
        lease_ms: number("lease_ms")?,
        lease_until_ms: number("lease_until_ms")?,
        written: details.written,
        held: details.held,
        parked_at: details.parked_at,
        journal_bytes: details.journal_bytes,
        open: details.open,
        answered: details.answered,
        note: details.note,
        outcome,
        is_error: details.is_error,
        poll_ms: details.poll_ms,
        updated_ms: details.updated_ms,
        rev: number("rev")?,
    })
}

/// The parts of a request that are known without reading it.
fn outline(row: &Row) -> Result<TaskRequest, Failed> {
    let null = RawJson::from(&serde_json::Value::Null);
    let mut request = TaskRequest::new(row.try_get::<_, &str>("tool")?, Version::LATEST, null);
    let session = row.try_get::<_, Option<&str>>("session")?;
    request.session = session.map(str::parse).transpose().map_err(StoreError::corrupt)?;
    Ok(request)
}

/// As many bytes as an id has.
pub(crate) fn exact<const N: usize>(bytes: &[u8]) -> Result<[u8; N], StoreError> {
    bytes.try_into().map_err(|_| StoreError::corrupt("an id of another length"))
}

pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
