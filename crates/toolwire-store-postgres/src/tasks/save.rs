//! Locks tasks, and writes them back.

use toolwire_store::{
    Owner, StoreError, TaskId,
    record::{Record, Source},
};

use super::row::{Details, columns, phase_text, record, signed};
use crate::connection::{At, Failed};

pub(super) fn bytes(id: &TaskId) -> &[u8] {
    id.as_bytes()
}

/// The task, locked until the end of the transaction.
pub(super) async fn lock(at: &mut At<'_>, id: &TaskId) -> Result<Option<Record>, Failed> {
    const SQL: &str = concat!("SELECT ", columns!(), " FROM task WHERE id = $1 AND until_ms > $2 FOR UPDATE");
    let row = at.first(SQL, &[&bytes(id), &signed(at.now)]).await?;
    row.map(|row| record(&row)).transpose()
}

/// The task if it belongs to this owner: unknown and foreign look the same.
pub(super) async fn lock_of(at: &mut At<'_>, owner: &Owner, id: &TaskId) -> Result<Option<Record>, Failed> {
    Ok(lock(at, id).await?.filter(|record| record.owner == *owner))
}

/// The columns that change with most writes, in the order of the parameters of a statement, from the second on.
macro_rules! changes {
    () => {
        "due_ms = $2, until_ms = $3, ended = $4, phase = $5, fence = $6, token = $7, attempt = $8, lease_ms = $9, \
         lease_until_ms = $10, rev = $11, details = $12, outcome = $13"
    };
}

/// Writes a task back that was locked. One that has ended keeps neither its request nor its journal: it is not
/// claimed again.
pub(super) async fn save(at: &mut At<'_>, id: &TaskId, record: &mut Record) -> Result<(), Failed> {
    const GOES_ON: &str = concat!("UPDATE task SET ", changes!(), " WHERE id = $1");
    const ENDS: &str = concat!(
        "WITH gone AS (DELETE FROM journal WHERE task = $1) UPDATE task SET request = NULL, ",
        changes!(),
        " WHERE id = $1"
    );
    let ended = record.has_ended();
    if ended {
        record.strip();
    }
    let outcome =
        record.outcome.as_ref().map(serde_json::to_string).transpose().map_err(StoreError::corrupt)?;
    at.query(
        if ended { ENDS } else { GOES_ON },
        &[
            &bytes(id),
            &record.due_ms.map(signed),
            &signed(record.life.expires_ms()),
            &ended,
            &phase_text(record.phase),
            &signed(record.fence),
            &record.token.map(|token| token.to_string()),
            &i64::from(record.attempt),
            &signed(record.lease_ms),
            &signed(record.lease_until_ms),
            &signed(record.rev),
            &Details::text(record)?,
            &outcome,
        ],
    )
    .await?;
    journal(at, id, record).await
}

/// Writes back what a claim has changed, of all its tasks at once.
pub(super) async fn save_claimed(at: &mut At<'_>, claimed: &[(TaskId, Record)]) -> Result<(), Failed> {
    const SQL: &str = "UPDATE task SET due_ms = new.due, until_ms = new.until, phase = new.phase, fence = new.fence,
            token = new.token, attempt = new.attempt, lease_ms = new.lease, lease_until_ms = new.lease_until,
            claimed_at = new.entries, details = new.details
        FROM unnest($1::bytea[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::text[], $7::bigint[],
                $8::bigint[], $9::bigint[], $10::bigint[], $11::text[])
            AS new (id, due, until, phase, fence, token, attempt, lease, lease_until, entries, details)
        WHERE task.id = new.id";
    let number =
        |of: fn(&Record) -> u64| claimed.iter().map(|(_, record)| signed(of(record))).collect::<Vec<_>>();
    let ids: Vec<&[u8]> = claimed.iter().map(|(id, _)| bytes(id)).collect();
    let due: Vec<Option<i64>> = claimed.iter().map(|(_, record)| record.due_ms.map(signed)).collect();
    let phases: Vec<&str> = claimed.iter().map(|(_, record)| phase_text(record.phase)).collect();
    let token = |record: &Record| record.token.map(|token| token.to_string());
    let tokens: Vec<Option<String>> = claimed.iter().map(|(_, record)| token(record)).collect();
    let details: Result<Vec<String>, StoreError> =
        claimed.iter().map(|(_, record)| Details::text(record)).collect();
    at.query(
        SQL,
        &[
            &ids,
            &due,
            &number(|record| record.life.expires_ms()),
            &phases,
            &number(|record| record.fence),
            &tokens,
            &number(|record| u64::from(record.attempt)),
            &number(|record| record.lease_ms),
            &number(|record| record.lease_until_ms),
            &number(|record| record.entries as u64),
            &details?,
        ],
    )
    .await?;
    Ok(())
}

/// Writes down what was added to the journal.
pub(super) async fn journal(at: &mut At<'_>, id: &TaskId, record: &mut Record) -> Result<(), Failed> {
    const SQL: &str = "INSERT INTO journal (task, place, answer, entry)
        SELECT $1, $2 + number - 1, answer, entry
        FROM unnest($3::boolean[], $4::text[]) WITH ORDINALITY AS added (answer, entry, number)";
    let added = std::mem::take(&mut record.added);
    if added.is_empty() {
        return Ok(());
    }
    let first = signed((record.entries - added.len()) as u64);
    let answers: Vec<bool> = added.iter().map(|(_, from)| *from == Source::Answer).collect();
    let entries: Vec<&str> = added.iter().map(|(entry, _)| entry.text()).collect();
    at.query(SQL, &[&bytes(id), &first, &answers, &entries]).await?;
    Ok(())
}
