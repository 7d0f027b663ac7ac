//! What scripts answer about tasks.

use toolwire_protocol::wire::TaskStatus;
use toolwire_store::{
    Claimed, KeyId, Lease, OpenQuestion, Owner, SessionKey, StoreError, TaskHead, TaskId, TaskNote, TaskView,
    hex::{decode, decode_exact},
};

use crate::script::{Reply, unexpected};

fn id<const N: usize>(text: &str) -> Result<[u8; N], StoreError> {
    decode_exact(text).ok_or_else(|| unexpected("an id"))
}

pub(super) fn task_id(text: &str) -> Result<TaskId, StoreError> {
    id(text).map(TaskId::from_bytes)
}

pub(super) fn head(mut reply: Reply) -> Result<TaskHead, StoreError> {
    let (task, tool, status) = (task_id(&reply.text()?)?, reply.text()?, status(&reply.text()?)?);
    let (is_error, note) = (reply.flag()?, reply.text()?);
    let mut head = TaskHead::new(task, tool, reply.number()?);
    (head.status, head.is_error) = (status, is_error);
    if !note.is_empty() {
        head.note = serde_json::from_str::<TaskNote>(&note).map_err(StoreError::corrupt)?;
    }
    head.updated_ms = reply.number()?;
    head.expires_ms = reply.number()?;
    head.poll_ms = reply.number()?;
    head.rev = reply.number()?;
    let session = reply.text()?;
    if !session.is_empty() {
        head.session = Some(SessionKey::from_bytes(id(&session)?));
    }
    Ok(head)
}

fn status(text: &str) -> Result<TaskStatus, StoreError> {
    Ok(match text {
        "working" => TaskStatus::Working,
        "input_required" => TaskStatus::InputRequired,
        "completed" => TaskStatus::Completed,
        "failed" => TaskStatus::Failed,
        "cancelled" => TaskStatus::Cancelled,
        _ => return Err(unexpected("a status")),
    })
}

pub(super) fn view(mut reply: Reply) -> Result<TaskView, StoreError> {
    let head = head(reply.list()?)?;
    let mut open = Vec::new();
    let mut questions = reply.list()?;
    while questions.left() > 0 {
        open.push(OpenQuestion { key: questions.text()?, question: questions.json()? });
    }
    let outcome = match reply.maybe_bytes()? {
        Some(outcome) => Some(serde_json::from_slice(&outcome).map_err(StoreError::corrupt)?),
        None => None,
    };
    Ok(TaskView::new(head, open, outcome))
}

pub(super) fn claimed(mut reply: Reply, lease: Lease, now_ms: u64) -> Result<Claimed, StoreError> {
    let owner = decode(&reply.text()?).and_then(|owner| Owner::from_bytes(&owner));
    let owner = owner.ok_or_else(|| unexpected("an owner"))?;
    let head = head(reply.list()?)?;
    let request = serde_json::from_slice(&reply.bytes()?).map_err(StoreError::corrupt)?;
    let mut claimed = Claimed::new(lease, owner, head, request, now_ms);
    claimed.format = u32::try_from(reply.number()?).map_err(|_| unexpected("a format"))?;
    let key = reply.text()?;
    claimed.key = if key.is_empty() { None } else { Some(KeyId::from_bytes(id(&key)?)) };
    claimed.attempt = u32::try_from(reply.number()?).unwrap_or(u32::MAX);
    claimed.journal = reply.jsons()?;
    Ok(claimed)
}
