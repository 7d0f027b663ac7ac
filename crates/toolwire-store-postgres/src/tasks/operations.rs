//! What is done with tasks, each in a transaction.

use std::collections::HashMap;
use std::time::Duration;

use toolwire_protocol::RawJson;
use toolwire_store::{
    Advance, Answer, Answered, Cancelled, Claim, Claimed, Created, Entry, Lease, NewTask, Owner, Renewed,
    StoreError, TaskHead, TaskId, TaskNote, TaskView, Topic, milliseconds,
    record::{Record, Source},
};

use super::row::{State, columns, exact, record, signed};
use crate::connection::{At, Failed, Operation, Order, Pinned};

/// How many bytes of requests and journals one claim brings, but for the last task of it.
const CLAIM_BYTES: usize = 8 * 1024 * 1024;

type Done<'a, T> = Pinned<'a, Result<T, Failed>>;

fn row_of(id: &TaskId) -> Order {
    Order::row("task", id.as_bytes())
}

fn bytes(id: &TaskId) -> &[u8] {
    id.as_bytes()
}

/// The task, locked until the end of the transaction.
async fn lock(at: &mut At<'_>, id: &TaskId) -> Result<Option<Record>, Failed> {
    const SQL: &str = concat!("SELECT ", columns!(), " FROM task WHERE id = $1 AND until_ms > $2 FOR UPDATE");
    let row = at.first(SQL, &[&bytes(id), &signed(at.now)]).await?;
    row.map(|row| record(&row, 0)).transpose()
}

/// The same if it belongs to this owner: unknown and foreign look the same.
async fn lock_of(at: &mut At<'_>, owner: &Owner, id: &TaskId) -> Result<Option<Record>, Failed> {
    Ok(lock(at, id).await?.filter(|record| record.owner == *owner))
}

/// Writes a task back that was locked.
async fn save(at: &mut At<'_>, id: &TaskId, record: &mut Record) -> Result<(), Failed> {
    const SQL: &str =
        "UPDATE task SET due_ms = $2, until_ms = $3, ended = $4, state = $5, outcome = $6 WHERE id = $1";
    let outcome =
        record.outcome.as_ref().map(serde_json::to_string).transpose().map_err(StoreError::corrupt)?;
    let (due, until) = (record.due_ms.map(signed), signed(record.life.expires_ms()));
    let state = State::text(record)?;
    at.query(SQL, &[&bytes(id), &due, &until, &record.has_ended(), &state, &outcome]).await?;
    journal(at, id, record).await
}

/// Writes down what was added to the journal.
async fn journal(at: &mut At<'_>, id: &TaskId, record: &mut Record) -> Result<(), Failed> {
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

pub(super) struct CreateTask(pub(super) NewTask);

impl Operation for CreateTask {
    type Output = Created;

    fn order(&self) -> Order {
        Order::Quota(self.0.quota.as_bytes().to_vec())
    }

    fn run<'a>(&'a self, at: &'a mut At<'_>) -> Done<'a, Created> {
        const COUNT: &str = "SELECT count(*) FROM (
                SELECT FROM task WHERE quota = $1 AND NOT ended AND until_ms > $2 LIMIT $3) AS counted";
        Box::pin(async move {
            let (task, now) = (&self.0, at.now);
            // Only who creates takes this lock, so that of two who count at the same time one counts the other.
            let quota = task.quota.as_bytes().first_chunk().map_or(0, |first| i64::from_be_bytes(*first));
            at.query("SELECT pg_advisory_xact_lock($1)", &[&quota]).await?;
            if let Some(created) = self.again(at).await? {
                return Ok(created);
            }
            let limit = signed(task.limit as u64);
            let count = at.first(COUNT, &[&task.quota.as_bytes().as_slice(), &signed(now), &limit]).await?;
            let count = count.map(|row| row.try_get::<_, i64>(0)).transpose()?.unwrap_or_default();
            if count >= limit {
                return Err(StoreError::Full("tasks of this owner that have not ended").into());
            }
            self.insert(at).await
        })
    }
}

impl CreateTask {
    /// The same call once more, which renews its lease.
    async fn again(&self, at: &mut At<'_>) -> Result<Option<Created>, Failed> {
        let (task, now) = (&self.0, at.now);
        let known = at.first("SELECT FROM task WHERE id = $1", &[&bytes(&task.id)]).await?;
        if known.is_none() {
            return Ok(None);
        }
        // One that has expired is known, and its id is not used again.
        let mut record = lock_of(at, &task.owner, &task.id).await?.ok_or(StoreError::Conflict)?;
        let lease = task.lease.map(|lease| Lease { id: task.id, fence: 1, token: lease.token });
        let lease_ms = task.lease.map_or(0, |lease| milliseconds(lease.lease));
        let lease = lease.filter(|lease| record.renew(lease, lease_ms, now));
        if lease.is_some() {
            save(at, &task.id, &mut record).await?;
        }
        Ok(Some(Created::new(record.view(task.id, now), lease, now)))
    }

    async fn insert(&self, at: &mut At<'_>) -> Result<Created, Failed> {
        const SQL: &str = "INSERT INTO task
            (id, owner, quota, tool, revision, format, key, created_ms, due_ms, until_ms, ended, state, request)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, false, $11, $12) ON CONFLICT DO NOTHING RETURNING 1";
        let (task, now) = (&self.0, at.now);
        let mut record = Record::new(task.clone(), now);
        let request = serde_json::to_string(&task.request).map_err(StoreError::corrupt)?;
        let state = State::text(&record)?;
        let (due, until) = (record.due_ms.map(signed), signed(record.life.expires_ms()));
        let inserted = at
            .first(
                SQL,
                &[
                    &bytes(&task.id),
                    &task.owner.to_bytes(),
                    &task.quota.as_bytes().as_slice(),
                    &task.request.tool,
                    &i64::from(task.request.revision),
                    &i64::from(task.format),
                    &task.key.as_ref().map(|key| key.as_bytes().as_slice()),
                    &signed(now),
                    &due,
                    &until,
                    &state,
                    &request,
                ],
            )
            .await?;
        if inserted.is_none() {
            // Somebody with another quota was faster with this id.
            return Err(StoreError::Conflict.into());
        }
        let view = record.view(task.id, now);
        journal(at, &task.id, &mut record).await?;
        at.wakes.push(record.topic(task.id));
        let lease = task.lease.map(|lease| Lease { id: task.id, fence: 1, token: lease.token });
        if lease.is_none() {
            at.wakes.push(Topic::Ready);
        }
        Ok(Created::new(view, lease, now))
    }
}

pub(super) struct View(pub(super) Owner, pub(super) TaskId);

impl Operation for View {
    type Output = Option<TaskView>;

    fn order(&self) -> Order {
        Order::Last
    }

    fn run<'a>(&'a self, at: &'a mut At<'_>) -> Done<'a, Self::Output> {
        const SQL: &str =
            concat!("SELECT ", columns!(), " FROM task WHERE id = $1 AND owner = $2 AND until_ms > $3");
        Box::pin(async move {
            let now = at.now;
            let row = at.first(SQL, &[&bytes(&self.1), &self.0.to_bytes(), &signed(now)]).await?;
            Ok(row.map(|row| record(&row, 0)).transpose()?.map(|record| record.view(self.1, now)))
        })
    }
}

pub(super) struct ListTasks {
    pub(super) owner: Owner,
    pub(super) after: Option<(u64, TaskId)>,
    pub(super) limit: usize,
}

impl Operation for ListTasks {
    type Output = Vec<TaskHead>;

    fn order(&self) -> Order {
        Order::Last
    }

    fn run<'a>(&'a self, at: &'a mut At<'_>) -> Done<'a, Self::Output> {
        const SQL: &str = concat!(
            "SELECT id, ",
            columns!(),
            " FROM task WHERE owner = $1 AND until_ms > $2 AND (created_ms, id) < ($3, $4)
              ORDER BY created_ms DESC, id DESC LIMIT $5"
        );
        Box::pin(async move {
            let now = at.now;
            let (moment, id) = match &self.after {
                Some((moment, id)) => (signed(*moment), id.as_bytes().to_vec()),
                None => (i64::MAX, Vec::new()),
            };
            let limit = signed(self.limit as u64);
            let rows = at.query(SQL, &[&self.owner.to_bytes(), &signed(now), &moment, &id, &limit]).await?;
            let head = |row: &tokio_postgres::Row| -> Result<TaskHead, Failed> {
                let id = TaskId::from_bytes(exact(row.try_get(0)?)?);
                Ok(record(row, 1)?.head(id, now))
            };
            rows.iter().map(head).collect()
        })
    }
}

pub(super) struct RevsOf(pub(super) Vec<TaskId>);

impl Operation for RevsOf {
    type Output = Vec<Option<u64>>;

    fn order(&self) -> Order {
        Order::Last
    }

    fn run<'a>(&'a self, at: &'a mut At<'_>) -> Done<'a, Self::Output> {
        const SQL: &str =
            "SELECT id, (state::json ->> 'rev')::bigint FROM task WHERE id = ANY($1) AND until_ms > $2";
        Box::pin(async move {
            let ids: Vec<&[u8]> = self.0.iter().map(bytes).collect();
            let rows = at.query(SQL, &[&ids, &signed(at.now)]).await?;
            let mut revs = HashMap::new();
            for row in &rows {
                revs.insert(row.try_get::<_, Vec<u8>>(0)?, super::row::unsigned(row.try_get(1)?));
            }
            Ok(self.0.iter().map(|id| revs.get(bytes(id)).copied()).collect())
        })
    }
}

pub(super) struct ClaimTasks(pub(super) Claim);

impl Operation for ClaimTasks {
    type Output = Vec<Claimed>;

    fn order(&self) -> Order {
        Order::Last
    }

    fn run<'a>(&'a self, at: &'a mut At<'_>) -> Done<'a, Self::Output> {
        const SQL: &str = concat!(
            "SELECT id, ",
            columns!(),
            " FROM task WHERE due_ms <= $1 AND until_ms > $1 AND format <= $2 AND (key IS NULL OR key = ANY($3))
                AND (tool, revision) IN (SELECT * FROM unnest($4::text[], $5::bigint[]))
              ORDER BY due_ms, id LIMIT $6 FOR UPDATE SKIP LOCKED"
        );
        Box::pin(async move {
            let (claim, now) = (&self.0, at.now);
            let keys: Vec<&[u8]> = claim.keys.iter().map(|key| key.as_bytes().as_slice()).collect();
            let tools: Vec<&str> = claim.serves.iter().map(|(tool, _)| tool.as_str()).collect();
            let revisions: Vec<i64> = claim.serves.iter().map(|(_, revision)| i64::from(*revision)).collect();
            let (format, max) = (i64::from(claim.format), signed(claim.max as u64));
            let rows = at.query(SQL, &[&signed(now), &format, &keys, &tools, &revisions, &max]).await?;
            let (mut records, mut room) = (Vec::new(), CLAIM_BYTES);
            for row in &rows {
                if room == 0 {
                    break;
                }
                let id = TaskId::from_bytes(exact(row.try_get(0)?)?);
                // One that cannot be read, perhaps because a newer node has written it, does not hold up the others.
                let mut record = match record(row, 1) {
                    Ok(record) => record,
                    Err(Failed::Refused(error)) => {
                        tracing::warn!(%error, ?id, "a task cannot be read");
                        continue;
                    }
                    Err(error) => return Err(error),
                };
                room = room.saturating_sub(record.weight());
                record.claim(claim, now);
                save(at, &id, &mut record).await?;
                records.push((id, record));
            }
            let mut journals = journals(at, &records).await?;
            let claimed = |(id, record): (TaskId, Record)| {
                record.claimed(id, claim.token, journals.remove(bytes(&id)).unwrap_or_default(), now)
            };
            Ok(records.into_iter().map(claimed).collect())
        })
    }
}

/// The journals of tasks that are locked: nobody adds to them any more.
async fn journals(
    at: &mut At<'_>,
    tasks: &[(TaskId, Record)],
) -> Result<HashMap<Vec<u8>, Vec<Entry>>, Failed> {
    const SQL: &str = "SELECT task, entry FROM journal WHERE task = ANY($1) ORDER BY task, place";
    let ids: Vec<&[u8]> = tasks.iter().map(|(id, _)| bytes(id)).collect();
    let mut journals: HashMap<Vec<u8>, Vec<Entry>> = HashMap::new();
    for row in &at.query(SQL, &[&ids]).await? {
        journals.entry(row.try_get(0)?).or_default().push(entry(row.try_get(1)?)?);
    }
    Ok(journals)
}

fn entry(text: String) -> Result<Entry, StoreError> {
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
        Box::pin(async move {
            let now = at.now;
            let mut leases: Vec<&Lease> = self.leases.iter().collect();
            leases.sort_by_key(|lease| lease.id);
            let mut lost = Vec::new();
            for lease in leases {
                let mut record = lock(at, &lease.id).await?;
                let renewed = record.as_mut().filter(|record| record.is_run_by(lease));
                match renewed {
                    Some(record) => {
                        record.renew(lease, milliseconds(self.lease), now);
                        save(at, &lease.id, record).await?;
                    }
                    None => lost.push(lease.id),
                }
            }
            Ok(Renewed::new(lost, now))
        })
    }
}

pub(super) struct Write {
    pub(super) lease: Lease,
    pub(super) n: u64,
    pub(super) step: Advance,
}

impl Operation for Write {
    type Output = u64;

    fn order(&self) -> Order {
        row_of(&self.lease.id)
    }

    fn run<'a>(&'a self, at: &'a mut At<'_>) -> Done<'a, u64> {
        Box::pin(async move {
            let (id, now) = (self.lease.id, at.now);
            let mut record = lock(at, &id).await?.ok_or(StoreError::Lost)?;
            if !record.admits(&self.lease, self.n)? {
                return Ok(record.rev);
            }
            record.fits(&self.step)?;
            record.advance(self.n, self.step.clone(), now);
            save(at, &id, &mut record).await?;
            if !matches!(self.step, Advance::Record(_) | Advance::Release) {
                at.wakes.push(record.topic(id));
            }
            if record.is_ready() {
                at.wakes.push(Topic::Ready);
            }
            Ok(record.rev)
        })
    }
}

pub(super) struct AnswersOf(pub(super) Lease);

impl Operation for AnswersOf {
    type Output = Vec<Entry>;

    fn order(&self) -> Order {
        row_of(&self.0.id)
    }

    fn run<'a>(&'a self, at: &'a mut At<'_>) -> Done<'a, Self::Output> {
        const SQL: &str =
            "SELECT entry FROM journal WHERE task = $1 AND place >= $2 AND answer ORDER BY place";
        Box::pin(async move {
            let record = lock(at, &self.0.id).await?.filter(|record| record.is_run_by(&self.0));
            let first = signed(record.ok_or(StoreError::Lost)?.parked_at as u64);
            let rows = at.query(SQL, &[&bytes(&self.0.id), &first]).await?;
            rows.iter().map(|row| Ok(entry(row.try_get(0)?)?)).collect()
        })
    }
}

pub(super) struct AnswerTask {
    pub(super) owner: Owner,
    pub(super) id: TaskId,
    pub(super) answers: Vec<Answer>,
}

impl Operation for AnswerTask {
    type Output = Option<Answered>;

    fn order(&self) -> Order {
        row_of(&self.id)
    }

    fn run<'a>(&'a self, at: &'a mut At<'_>) -> Done<'a, Self::Output> {
        Box::pin(async move {
            let Some(mut record) = lock_of(at, &self.owner, &self.id).await? else { return Ok(None) };
            let wanted = record.wanted(self.answers.clone());
            record.fits_answers(&wanted)?;
            let answered = record.answer(wanted, at.now);
            if !answered.taken.is_empty() {
                save(at, &self.id, &mut record).await?;
                at.wakes.push(record.topic(self.id));
            }
            if answered.ready {
                at.wakes.push(Topic::Ready);
            }
            Ok(Some(answered))
        })
    }
}

pub(super) struct CancelTask {
    pub(super) owner: Owner,
    pub(super) id: TaskId,
    pub(super) why: TaskNote,
}

impl Operation for CancelTask {
    type Output = Option<Cancelled>;

    fn order(&self) -> Order {
        row_of(&self.id)
    }

    fn run<'a>(&'a self, at: &'a mut At<'_>) -> Done<'a, Self::Output> {
        Box::pin(async move {
            let Some(mut record) = lock_of(at, &self.owner, &self.id).await? else { return Ok(None) };
            let was_terminal = record.has_ended();
            if !was_terminal {
                record.cancel(self.why.clone(), at.now);
                save(at, &self.id, &mut record).await?;
                at.wakes.push(record.topic(self.id));
            }
            Ok(Some(Cancelled::new(record.view(self.id, at.now), was_terminal)))
        })
    }
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
            DELETE FROM task USING expired WHERE task.id = expired.id RETURNING task.id, task.request";
        Box::pin(async move {
            let rows = at.query(SQL, &[&signed(at.now), &signed(self.0 as u64)]).await?;
            for row in &rows {
                let id = TaskId::from_bytes(exact(row.try_get(0)?)?);
                let request = serde_json::from_str::<toolwire_store::TaskRequest>(row.try_get(1)?);
                at.wakes.push(Topic::Task { id, session: request.ok().and_then(|request| request.session) });
            }
            Ok(rows.len())
        })
    }
}
