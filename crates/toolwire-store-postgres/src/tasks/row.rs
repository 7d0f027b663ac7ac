//! A task as a row, and back.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio_postgres::Row;
use toolwire_protocol::wire::TaskStatus;
use toolwire_store::{
    KeyId, Life, NodeId, OpenQuestion, Owner, Quota, StoreError, TaskNote, Token,
    record::{Phase, Record},
};

use crate::connection::Failed;

/// What is read of a task, in the order of [`record`].
macro_rules! columns {
    () => {
        "owner, quota, format, key, created_ms, due_ms, state, request, outcome"
    };
}
pub(super) use columns;

/// All that changes with most writes. Names may be added, with a default, and never removed.
#[derive(Serialize, Deserialize)]
pub(super) struct State {
    phase: String,
    keep_ms: u64,
    ttl_ms: u64,
    floor_ms: u64,
    works: bool,
    until_ms: u64,
    fence: u64,
    attempt: u32,
    entries: usize,
    node: Option<NodeId>,
    token: Option<Token>,
    lease_ms: u64,
    lease_until_ms: u64,
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
    rev: u64,
}

impl State {
    /// The text that is stored.
    pub(super) fn text(record: &Record) -> Result<String, StoreError> {
        let state = Self {
            phase: phase_text(record.phase).to_owned(),
            keep_ms: record.life.keep_ms,
            ttl_ms: record.life.ttl_ms,
            floor_ms: record.life.floor_ms,
            works: record.life.works,
            until_ms: record.life.until_ms,
            fence: record.fence,
            attempt: record.attempt,
            entries: record.entries,
            node: record.node,
            token: record.token,
            lease_ms: record.lease_ms,
            lease_until_ms: record.lease_until_ms,
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
            rev: record.rev,
        };
        serde_json::to_string(&state).map_err(StoreError::corrupt)
    }
}

fn phase_text(phase: Phase) -> &'static str {
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

/// The task of a row, whose columns begin at `first`.
pub(super) fn record(row: &Row, first: usize) -> Result<Record, Failed> {
    let text = |index: usize| row.try_get::<_, &str>(first + index);
    let bytes = |index: usize| row.try_get::<_, &[u8]>(first + index);
    let state: State = serde_json::from_str(text(6)?).map_err(StoreError::corrupt)?;
    let outcome = match row.try_get::<_, Option<&str>>(first + 8)? {
        Some(outcome) => Some(serde_json::from_str(outcome).map_err(StoreError::corrupt)?),
        None => None,
    };
    let mut life =
        Life::new(unsigned(row.try_get(first + 4)?), std::time::Duration::ZERO, std::time::Duration::ZERO);
    (life.keep_ms, life.ttl_ms, life.floor_ms) = (state.keep_ms, state.ttl_ms, state.floor_ms);
    (life.works, life.until_ms) = (state.works, state.until_ms);
    let key = row.try_get::<_, Option<&[u8]>>(first + 3)?;
    Ok(Record {
        owner: Owner::from_bytes(bytes(0)?).ok_or_else(|| StoreError::corrupt("an owner that is unknown"))?,
        quota: Quota::from_bytes(exact(bytes(1)?)?),
        format: u32::try_from(row.try_get::<_, i64>(first + 2)?).unwrap_or(u32::MAX),
        key: key.map(exact).transpose()?.map(KeyId::from_bytes),
        request: Arc::new(serde_json::from_str(text(7)?).map_err(StoreError::corrupt)?),
        phase: phase(&state.phase)?,
        due_ms: row.try_get::<_, Option<i64>>(first + 5)?.map(unsigned),
        life,
        fence: state.fence,
        attempt: state.attempt,
        added: Vec::new(),
        entries: state.entries,
        node: state.node,
        token: state.token,
        lease_ms: state.lease_ms,
        lease_until_ms: state.lease_until_ms,
        written: state.written,
        held: state.held,
        parked_at: state.parked_at,
        journal_bytes: state.journal_bytes,
        open: state.open,
        answered: state.answered,
        note: state.note,
        outcome,
        is_error: state.is_error,
        poll_ms: state.poll_ms,
        updated_ms: state.updated_ms,
        rev: state.rev,
    })
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
