//! Claims and leases, and the end of tasks that have expired.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Row;
use toolwire_protocol::RawJson;
use toolwire_store::{
    Claim, Claimed, Entry, Lease, Renewed, StoreError, TaskId, TaskRequest, Topic, milliseconds,
    pause_before_next, record::Record,
};

use super::row::{columns, id, record, signed, unsigned};
use super::save::{bytes, save_claimed};
use crate::connection::{At, Failed, Operation, Order, Pinned};

/// Limit of the bytes of requests and journals that one claim brings, but for its last task.
const CLAIM_BYTES: u64 = 8 * 1024 * 1024;

/// Number of tasks that a claim looks at beyond those that it takes: others may be claiming the first ones.
const SPARE: u64 = 256;

/// Limit of the tries of a claim that meets nothing but unreadable tasks.
const ROUNDS: usize = 8;

/// Pause of a task that a node could not read. Another node, perhaps a newer one, may be able to.
const REST: Duration = Duration::from_secs(15);

type Done<'a, T> = Pinned<'a, Result<T, Failed>>;

pub(super) struct ClaimTasks(pub(super) Claim);

impl Operation for ClaimTasks {
    type Output = Vec<Claimed>;

    fn order(&self) -> Order {
        Order::Last
    }

    fn run<'a>(&'a self, at: &'a mut At<'_>) -> Done<'a, Self::Output> {
        Box::pin(async move {
            for _ in 0..ROUNDS {
                let (claimed, unreadable) = self.take(at).await?;
                if !unreadable.is_empty() {
                    put_off(at, &unreadable).await?;
                }
                if !claimed.is_empty() || unreadable.is_empty() {
                    return Ok(claimed);
                }
            }
            Ok(Vec::new())
        })
    }
}

impl ClaimTasks {
    /// Takes what is due. What cannot be read is given back, and nothing of it was written.
    async fn take(&self, at: &mut At<'_>) -> Result<(Vec<Claimed>, Vec<Vec<u8>>), Failed> {
        let (claim, now) = (&self.0, at.now);
        let (mut locked, mut unreadable, mut room) = (Vec::new(), Vec::new(), CLAIM_BYTES);
        for row in &self.lock(at).await? {
            if room == 0 {
                break;
            }
            match readable(id(row).and_then(|id| Ok((id, record(row)?))))? {
                Some((id, record)) => {
                    let request = unsigned(row.try_get("request_bytes")?);
                    room = room.saturating_sub(request + record.weight() as u64);
                    locked.push((id, record));
                }
                None => unreadable.push(row.try_get("id")?),
            }
        }
        // They are locked: nothing is added to their journals any more.
        let mut requests = requests(at, &locked).await?;
        let mut journals = journals(at, &locked).await?;
        let (mut taken, mut kept) = (Vec::new(), Vec::new());
        for (id, mut record) in locked {
            let request =
                requests.remove(bytes(&id)).unwrap_or_else(|| Err(corrupt("a task without a request")));
            let journal = journals.remove(bytes(&id)).unwrap_or_else(|| Ok(Vec::new()));
            match readable(request.and_then(|request| Ok((request, journal?))).map_err(Failed::Refused))? {
                Some((request, journal)) => {
                    record.request = Arc::new(request);
                    record.claim(claim, now);
                    taken.push((id, record));
                    kept.push(journal);
                }
                None => unreadable.push(bytes(&id).to_vec()),
            }
        }
        if !taken.is_empty() {
            save_claimed(at, &taken).await?;
        }
        let claimed = taken.iter().zip(kept);
        let claimed = claimed.map(|((id, record), journal)| record.claimed(*id, claim.token, journal, now));
        Ok((claimed.collect(), unreadable))
    }

    /// Locks what is due and not locked, the longest due first, without its requests.
    async fn lock(&self, at: &mut At<'_>) -> Result<Vec<Row>, Failed> {
        // The first of each tool by an index, so that what this node does not serve costs nothing. Locks are taken of the
        // first of all of them only.
        const SQL: &str = concat!(
            "WITH served AS (SELECT DISTINCT * FROM unnest($4::text[], $5::bigint[]) AS served (tool, revision)),
            candidates AS (
                SELECT due.id FROM served CROSS JOIN LATERAL (
                    SELECT id, due_ms FROM task
                    WHERE task.tool = served.tool AND task.revision = served.revision AND due_ms <= $1
                        AND until_ms > $1 AND format <= $2 AND (key IS NULL OR key = ANY($3))
                    ORDER BY due_ms, id LIMIT $7) AS due
                ORDER BY due.due_ms, due.id LIMIT $7)
            SELECT coalesce(octet_length(request), 0)::bigint AS request_bytes, ",
            columns!(),
            " FROM task WHERE id = ANY(ARRAY(SELECT id FROM candidates)) AND due_ms <= $1 AND until_ms > $1
              ORDER BY due_ms, id LIMIT $6 FOR UPDATE SKIP LOCKED"
        );
        let claim = &self.0;
        let keys: Vec<&[u8]> = claim.keys.iter().map(|key| key.as_bytes().as_slice()).collect();
        let tools: Vec<&str> = claim.serves.iter().map(|(tool, _)| tool.as_str()).collect();
        let revisions: Vec<i64> = claim.serves.iter().map(|(_, revision)| i64::from(*revision)).collect();
        let (format, max) = (i64::from(claim.format), claim.max as u64);
        let looked_at = signed(max.saturating_add(SPARE));
        let with: [&(dyn tokio_postgres::types::ToSql + Sync); 7] =
            [&signed(at.now), &format, &keys, &tools, &revisions, &signed(max), &looked_at];
        Ok(at.query(SQL, &with).await?)
    }
}

fn corrupt(what: &'static str) -> StoreError {
    StoreError::corrupt(what)
}

/// Returns `None` for what cannot be read, perhaps because a newer node has written it: it does not hold up the others.
pub(super) fn readable<T>(read: Result<T, Failed>) -> Result<Option<T>, Failed> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(Failed::Refused(error)) => {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            tracing::warn!(cause, "a task cannot be read; it is left out");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Lets tasks rest, without an attempt.
async fn put_off(at: &mut At<'_>, unreadable: &[Vec<u8>]) -> Result<(), Failed> {
    const SQL: &str = "UPDATE task SET due_ms = $2 WHERE id = ANY($1)";
    let due = signed(at.now.saturating_add(milliseconds(REST)));
    at.query(SQL, &[&unreadable, &due]).await?;
    Ok(())
}

/// By the bytes of their ids.
type ById<T> = HashMap<Vec<u8>, Result<T, StoreError>>;

async fn requests(at: &mut At<'_>, tasks: &[(TaskId, Record)]) -> Result<ById<TaskRequest>, Failed> {
    const SQL: &str = "SELECT id, request FROM task WHERE id = ANY($1)";
    let ids: Vec<&[u8]> = tasks.iter().map(|(id, _)| bytes(id)).collect();
    let mut requests = HashMap::new();
    if ids.is_empty() {
        return Ok(requests);
    }
    for row in &at.query(SQL, &[&ids]).await? {
        let request = row.try_get::<_, Option<&str>>(1)?.unwrap_or_default();
        requests.insert(row.try_get(0)?, serde_json::from_str(request).map_err(StoreError::corrupt));
    }
    Ok(requests)
}

async fn journals(at: &mut At<'_>, tasks: &[(TaskId, Record)]) -> Result<ById<Vec<Entry>>, Failed> {
    const SQL: &str = "SELECT task, entry FROM journal WHERE task = ANY($1) ORDER BY task, place";
    let mut journals: ById<Vec<Entry>> = HashMap::new();
    let written = tasks.iter().filter(|(_, record)| record.entries > 0);
    let ids: Vec<&[u8]> = written.map(|(id, _)| bytes(id)).collect();
    if ids.is_empty() {
        return Ok(journals);
    }
    for row in &at.query(SQL, &[&ids]).await? {
        let journal = journals.entry(row.try_get(0)?).or_insert_with(|| Ok(Vec::new()));
        match entry(row.try_get(1)?) {
            Ok(entry) => journal.iter_mut().for_each(|journal| journal.push(entry.clone())),
            Err(error) => *journal = Err(error),
        }
    }
    Ok(journals)
}

pub(super) fn entry(text: String) -> Result<Entry, StoreError> {
    RawJson::parse(text).map_err(StoreError::corrupt)
}

pub(super) struct RenewLeases {
    pub(super) leases: Vec<Lease>,
    pub(super) lease: Duration,
}

impl Operation for RenewLeases {
    type Output = Renewed;

    fn order(&self) -> Order {
        Order::Alone
    }

    fn run<'a>(&'a self, at: &'a mut At<'_>) -> Done<'a, Renewed> {
        // Locked in the order of their ids, as everything that takes several locks does.
        const SQL: &str = "WITH held AS (
                SELECT task.id FROM task
                JOIN unnest($1::bytea[], $2::bigint[], $3::text[]) AS lease (id, fence, token) ON task.id = lease.id
                WHERE task.fence = lease.fence AND task.token = lease.token AND phase = 'leased' AND until_ms > $4
                ORDER BY task.id FOR UPDATE OF task)
            UPDATE task SET lease_ms = $5, lease_until_ms = $6,
                due_ms = $6 + ($7::bigint[])[least(attempt, $8) + 1]
            FROM held WHERE task.id = held.id RETURNING task.id, task.fence, task.token";
        Box::pin(async move {
            let now = at.now;
            if self.leases.is_empty() {
                return Ok(Renewed::new(Vec::new(), now));
            }
            let ids: Vec<&[u8]> = self.leases.iter().map(|lease| bytes(&lease.id)).collect();
            let fences: Vec<i64> = self.leases.iter().map(|lease| signed(lease.fence)).collect();
            let tokens: Vec<String> = self.leases.iter().map(|lease| lease.token.to_string()).collect();
            let (lease, pauses) = (milliseconds(self.lease), pauses(self.lease));
            let until = signed(now.saturating_add(lease)).min(LAST);
            let longest = signed(pauses.len() as u64 - 1);
            let rows = at
                .query(
                    SQL,
                    &[&ids, &fences, &tokens, &signed(now), &signed(lease), &until, &pauses, &longest],
                )
                .await?;
            let mut renewed = HashSet::new();
            for row in &rows {
                let (id, fence) = (row.try_get::<_, Vec<u8>>(0)?, row.try_get::<_, i64>(1)?);
                renewed.insert((id, fence, row.try_get::<_, String>(2)?));
            }
            let is_lost = |lease: &&Lease| {
                let key = (bytes(&lease.id).to_vec(), signed(lease.fence), lease.token.to_string());
                !renewed.contains(&key)
            };
            let lost = self.leases.iter().filter(is_lost).map(|lease| lease.id);
            Ok(Renewed::new(lost.collect(), now))
        })
    }
}

/// The last moment to which a pause can be added.
const LAST: i64 = i64::MAX / 2;

/// The pauses between the end of a lease and the next claim, by the number of attempts; the last one is for all further
/// attempts.
fn pauses(lease: Duration) -> Vec<i64> {
    (0..=4).map(|attempt| signed(milliseconds(pause_before_next(attempt, lease))).min(LAST)).collect()
}

pub(super) struct Sweep(pub(super) usize);

impl Operation for Sweep {
    type Output = usize;

    fn order(&self) -> Order {
        Order::Last
    }

    fn run<'a>(&'a self, at: &'a mut At<'_>) -> Done<'a, usize> {
        const SQL: &str = "WITH expired AS (
                SELECT id FROM task WHERE until_ms <= $1 ORDER BY until_ms LIMIT $2 FOR UPDATE SKIP LOCKED)
            DELETE FROM task USING expired WHERE task.id = expired.id RETURNING task.id, task.session";
        Box::pin(async move {
            let rows = at.query(SQL, &[&signed(at.now), &signed(self.0 as u64)]).await?;
            for row in &rows {
                let session =
                    row.try_get::<_, Option<&str>>("session")?.and_then(|session| session.parse().ok());
                // One that cannot be told of is gone as well.
                if let Some(id) = readable(id(row))? {
                    at.wakes.push(Topic::Task { id, session });
                }
            }
            Ok(rows.len())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_pause_is_that_of_all_further_attempts() {
        let lease = Duration::from_secs(20);
        let pauses = pauses(lease);
        for attempt in 0..20_u32 {
            let place = usize::try_from(attempt).unwrap().min(pauses.len() - 1);
            assert_eq!(pauses[place], signed(milliseconds(pause_before_next(attempt, lease))), "{attempt}");
        }
    }
}
