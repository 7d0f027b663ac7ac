//! What is done with tasks, each in a transaction.

use std::collections::HashMap;

use toolwire_store::{
    Advance, Answer, Answered, Cancelled, Created, Entry, Lease, NewTask, Owner, StoreError, TaskHead,
    TaskId, TaskNote, TaskView, Topic, milliseconds, record::Record,
};

use super::claim::{entry, readable};
use super::row::{self, Details, columns, phase_text, record, signed, unsigned};
use super::save::{bytes, journal, lock, lock_of, save};
use crate::connection::{At, Failed, Operation, Order, Pinned};

type Done<'a, T> = Pinned<'a, Result<T, Failed>>;

fn row_of(id: &TaskId) -> Order {
    Order::row("task", id.as_bytes())
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
            (id, owner, quota, tool, revision, format, key, created_ms, due_ms, until_ms, ended, details, request,
                session, phase, fence, token, attempt, lease_ms, lease_until_ms, rev)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, false, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)
            ON CONFLICT DO NOTHING RETURNING 1";
        let (task, now) = (&self.0, at.now);
        let mut record = Record::new(task.clone(), now);
        let request = serde_json::to_string(&task.request).map_err(StoreError::corrupt)?;
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
                    &record.due_ms.map(signed),
                    &signed(record.life.expires_ms()),
                    &Details::text(&record)?,
                    &request,
                    &task.request.session.map(|session| session.to_string()),
                    &phase_text(record.phase),
                    &signed(record.fence),
                    &record.token.map(|token| token.to_string()),
                    &i64::from(record.attempt),
                    &signed(record.lease_ms),
                    &signed(record.lease_until_ms),
                    &signed(record.rev),
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
            Ok(row.map(|row| record(&row)).transpose()?.map(|record| record.view(self.1, now)))
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
            "SELECT ",
            columns!(),
            " FROM task WHERE owner = $1 AND until_ms > $2 AND (created_ms, id) < ($3, $4)
              ORDER BY created_ms DESC, id DESC LIMIT $5"
        );
        Box::pin(async move {
            let (now, owner) = (at.now, self.owner.to_bytes());
            let mut after = match &self.after {
                Some((moment, id)) => (signed(*moment), id.as_bytes().to_vec()),
                None => (i64::MAX, Vec::new()),
            };
            let mut heads = Vec::new();
            loop {
                let left = self.limit - heads.len();
                let limit = signed(left as u64);
                let rows = at.query(SQL, &[&owner, &signed(now), &after.0, &after.1, &limit]).await?;
                for row in &rows {
                    // The others are shown.
                    let head = row::id(row).and_then(|id| Ok(record(row)?.head(id, now)));
                    heads.extend(readable(head)?);
                }
                match rows.last() {
                    // A page that is not full is the last one.
                    Some(last) if rows.len() == left && heads.len() < self.limit => {
                        after = (last.try_get("created_ms")?, last.try_get("id")?);
                    }
                    _ => return Ok(heads),
                }
            }
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
        const SQL: &str = "SELECT id, rev FROM task WHERE id = ANY($1) AND until_ms > $2";
        Box::pin(async move {
            let ids: Vec<&[u8]> = self.0.iter().map(bytes).collect();
            let rows = at.query(SQL, &[&ids, &signed(at.now)]).await?;
            let mut revs = HashMap::new();
            for row in &rows {
                revs.insert(row.try_get::<_, Vec<u8>>(0)?, unsigned(row.try_get(1)?));
            }
            Ok(self.0.iter().map(|id| revs.get(bytes(id)).copied()).collect())
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
        Order::Last
    }

    fn run<'a>(&'a self, at: &'a mut At<'_>) -> Done<'a, Self::Output> {
        // One row without an entry if there is no answer, none if the lease is lost. In one statement, so that what is
        // read belongs to the lease that is looked at.
        const SQL: &str = "SELECT journal.entry FROM task
            LEFT JOIN journal ON journal.task = task.id AND journal.place >= task.claimed_at AND journal.answer
            WHERE task.id = $1 AND until_ms > $2 AND fence = $3 AND token = $4 AND phase = 'leased'
            ORDER BY journal.place";
        Box::pin(async move {
            let Lease { id, fence, token } = &self.0;
            let rows =
                at.query(SQL, &[&bytes(id), &signed(at.now), &signed(*fence), &token.to_string()]).await?;
            if rows.is_empty() {
                return Err(StoreError::Lost.into());
            }
            let mut entries = Vec::new();
            for row in &rows {
                entries.extend(row.try_get::<_, Option<String>>(0)?.map(entry).transpose()?);
            }
            Ok(entries)
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
