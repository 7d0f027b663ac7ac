//! Tasks in the file.

use std::{sync::Arc, time::Duration};

use rusqlite::{Connection, params};
use toolwire_store::{
    Advance, Answer, Answered, Cancelled, Claim, Claimed, Created, Entry, Lease, NewTask, Op, Owner, Renewed,
    StoreError, TaskHead, TaskId, TaskNote, TaskStore, TaskView, Topic,
    limits::Check,
    milliseconds,
    record::{Record, Source},
};

use crate::{
    error::to_sql,
    row::{self, Stored, Unreadable},
    thread::{At, Threads},
};

#[derive(Debug)]
pub(crate) struct SqliteTasks(pub(crate) Arc<Threads>);

fn of(connection: &Connection, owner: &Owner, id: &TaskId, now: u64) -> Result<Option<Stored>, StoreError> {
    Ok(row::find(connection, id, now)?.filter(|stored| stored.record.owner == *owner))
}

fn create(at: &mut At<'_>, task: NewTask) -> Result<Created, StoreError> {
    let (id, asked, now) = (task.id, task.lease, at.now);
    let lease = asked.map(|lease| Lease { id, fence: 1, token: lease.token });
    // One that has expired and was not removed yet is there, too: its id is not used again.
    let there = row::first(at.connection, "id = ?1", params![id.as_bytes()])?;
    if let Some(mut stored) = there {
        if stored.record.owner != task.owner || stored.record.has_expired(now) {
            return Err(StoreError::Conflict);
        }
        let lease_ms = asked.map_or(0, |lease| milliseconds(lease.lease));
        let lease = lease.filter(|lease| stored.record.renew(lease, lease_ms, now));
        if lease.is_some() {
            stored.write(at.connection)?;
        }
        let stored = stored.with_outcome(at.connection)?;
        return Ok(Created::new(stored.record.view(id, now), lease, now));
    }
    if row::open_of(at.connection, &task.quota)? >= task.limit as u64 {
        return Err(StoreError::Full("open tasks of this caller"));
    }
    let record = Record::new(task, now);
    let view = record.view(id, now);
    at.wakes.push(record.topic(id));
    at.wakes.extend(lease.is_none().then_some(Topic::Ready));
    row::insert(at.connection, id, record)?;
    Ok(Created::new(view, lease, now))
}

const DUE: &str = "tool = ?1 AND revision = ?2 AND due <= ?3 AND until > ?3 AND format <= ?4 \
     AND (key IS NULL OR instr(?5, ',' || hex(key) || ',') > 0) ORDER BY due, row LIMIT ?6";

/// How long a task that cannot be read is left to others before it is looked at again, in milliseconds.
const UNREADABLE_MS: u64 = 60_000;

/// How often one claim looks again when it has found nothing but tasks that cannot be read.
const LOOKS: usize = 16;

fn claim(at: &mut At<'_>, claim: &Claim) -> Result<Vec<Claimed>, StoreError> {
    for _ in 0..LOOKS {
        let (claimed, unreadable) = claim_readable(at, claim)?;
        let until = at.now.saturating_add(UNREADABLE_MS);
        unreadable.iter().try_for_each(|one| one.defer(at.connection, until))?;
        if !claimed.is_empty() || unreadable.is_empty() {
            return Ok(claimed);
        }
    }
    Ok(Vec::new())
}

/// Claims what can be read of the tasks that are due, and returns the others.
fn claim_readable(at: &At<'_>, claim: &Claim) -> Result<(Vec<Claimed>, Vec<Unreadable>), StoreError> {
    let keys: Vec<String> =
        claim.keys.iter().map(|key| format!("{:08X}", u32::from_be_bytes(*key.as_bytes()))).collect();
    let keys = format!(",{},", keys.join(","));
    let max = to_sql(claim.max as u64);
    let (mut due, mut unreadable) = (Vec::new(), Vec::new());
    for (tool, revision) in &claim.serves {
        let wanted = params![tool, revision, to_sql(at.now), claim.format, keys, max];
        row::each(at.connection, DUE, wanted, |found| {
            match found {
                Ok(stored) => due.push(stored),
                Err(one) => unreadable.push(one),
            }
            true
        })?;
    }
    due.sort_by_key(|stored| (stored.record.due_ms, stored.row));
    due.dedup_by_key(|stored| stored.row);
    due.truncate(claim.max);
    let mut claimed = Vec::new();
    for stored in due {
        let row = stored.row;
        // All is read before anything is written.
        let whole = stored.with_request(at.connection).and_then(|stored| {
            let journal = stored.journal(at.connection, 0)?;
            Ok((stored, journal))
        });
        let (mut stored, journal) = match whole {
            Ok(whole) => whole,
            Err(why) => {
                unreadable.push(Unreadable::of(row, why)?);
                continue;
            }
        };
        stored.record.claim(claim, at.now);
        stored.write(at.connection)?;
        let journal = journal.into_iter().map(|(entry, _)| entry).collect();
        claimed.push(stored.record.claimed(stored.id, claim.token, journal, at.now));
    }
    Ok((claimed, unreadable))
}

fn renew(at: &mut At<'_>, leases: &[Lease], lease: Duration) -> Result<Renewed, StoreError> {
    let mut lost = Vec::new();
    for one in leases {
        let stored = match row::find(at.connection, &one.id, at.now) {
            // The run could not write either. The other leases are not held up by it.
            Err(StoreError::Corrupt(_)) => None,
            found => found?,
        };
        let renewed = stored
            .and_then(|mut stored| stored.record.renew(one, milliseconds(lease), at.now).then_some(stored));
        match renewed {
            Some(mut stored) => stored.write(at.connection)?,
            None => lost.push(one.id),
        }
    }
    Ok(Renewed::new(lost, at.now))
}

fn advance(at: &mut At<'_>, lease: &Lease, n: u64, step: Advance) -> Result<u64, StoreError> {
    let mut stored = row::find(at.connection, &lease.id, at.now)?.ok_or(StoreError::Lost)?;
    let record = &mut stored.record;
    if !record.admits(lease, n)? {
        return Ok(record.rev);
    }
    record.fits(&step)?;
    let visible = !matches!(step, Advance::Record(_) | Advance::Release);
    record.advance(n, step, at.now);
    at.wakes.extend(visible.then_some(record.topic(lease.id)));
    at.wakes.extend(record.is_ready().then_some(Topic::Ready));
    let rev = record.rev;
    stored.write(at.connection)?;
    Ok(rev)
}

fn answer(
    at: &mut At<'_>,
    owner: &Owner,
    id: &TaskId,
    answers: Vec<Answer>,
) -> Result<Option<Answered>, StoreError> {
    let Some(mut stored) = of(at.connection, owner, id, at.now)? else { return Ok(None) };
    let wanted = stored.record.wanted(answers);
    stored.record.fits_answers(&wanted)?;
    let answered = stored.record.answer(wanted, at.now);
    if !answered.taken.is_empty() {
        at.wakes.push(stored.record.topic(*id));
        at.wakes.extend(answered.ready.then_some(Topic::Ready));
        stored.write(at.connection)?;
    }
    Ok(Some(answered))
}

fn cancel(
    at: &mut At<'_>,
    owner: &Owner,
    id: &TaskId,
    why: TaskNote,
) -> Result<Option<Cancelled>, StoreError> {
    let Some(mut stored) = of(at.connection, owner, id, at.now)? else { return Ok(None) };
    if stored.record.has_ended() {
        let stored = stored.with_outcome(at.connection)?;
        return Ok(Some(Cancelled::new(stored.record.view(*id, at.now), true)));
    }
    stored.record.cancel(why, at.now);
    at.wakes.push(stored.record.topic(*id));
    stored.write(at.connection)?;
    Ok(Some(Cancelled::new(stored.record.view(*id, at.now), false)))
}

fn list(
    at: &At<'_>,
    owner: &Owner,
    after: Option<(u64, TaskId)>,
    limit: usize,
) -> Result<Vec<TaskHead>, StoreError> {
    const PAGE: &str = "owner = ?1 AND (created, id) < (?2, ?3) AND until > ?4 \
         ORDER BY created DESC, id DESC";
    if limit == 0 {
        return Ok(Vec::new());
    }
    let (created, id) = after.unwrap_or((u64::MAX, TaskId::from_bytes([u8::MAX; 24])));
    let wanted = params![owner.to_bytes(), to_sql(created), id.as_bytes(), to_sql(at.now)];
    let mut heads = Vec::new();
    row::each(at.connection, PAGE, wanted, |found| {
        match found {
            Ok(stored) => heads.push(stored.record.head(stored.id, at.now)),
            Err(unreadable) => unreadable.warn(),
        }
        heads.len() < limit
    })?;
    Ok(heads)
}

fn revs(at: &At<'_>, ids: &[TaskId]) -> Result<Vec<Option<u64>>, StoreError> {
    use rusqlite::OptionalExtension as _;
    let sql = "SELECT rev FROM task WHERE id = ?1 AND until > ?2";
    let mut statement = at.connection.prepare_cached(sql).map_err(crate::error::failed)?;
    let mut rev = |id: &TaskId| {
        let rev = statement.query_row(params![id.as_bytes(), to_sql(at.now)], |row| row.get(0)).optional();
        rev.map(|rev| rev.map(crate::error::from_sql)).map_err(crate::error::failed)
    };
    ids.iter().map(&mut rev).collect()
}

fn answers(at: &At<'_>, lease: &Lease) -> Result<Vec<Entry>, StoreError> {
    let stored = row::find(at.connection, &lease.id, at.now)?;
    let stored = stored.filter(|stored| stored.record.is_run_by(lease)).ok_or(StoreError::Lost)?;
    let since = stored.journal(at.connection, stored.record.parked_at)?;
    Ok(since.into_iter().filter(|(_, from)| *from == Source::Answer).map(|(entry, _)| entry).collect())
}

fn sweep(at: &mut At<'_>, limit: usize) -> Result<usize, StoreError> {
    let gone = row::expired(at.connection, at.now, limit)?;
    for task in &gone {
        task.remove(at.connection)?;
        at.wakes.extend(task.topic());
    }
    Ok(gone.len())
}

impl TaskStore for SqliteTasks {
    fn create(&self, task: NewTask) -> Op<'_, Created> {
        if let Err(error) = task.check() {
            return Box::pin(async { Err(error) });
        }
        self.0.write(move |at| create(at, task))
    }

    fn view<'a>(&'a self, owner: &'a Owner, id: &'a TaskId) -> Op<'a, Option<TaskView>> {
        let (owner, id) = (*owner, *id);
        self.0.read(move |at| {
            let Some(stored) = of(at.connection, &owner, &id, at.now)? else { return Ok(None) };
            Ok(Some(stored.with_outcome(at.connection)?.record.view(id, at.now)))
        })
    }

    fn list<'a>(
        &'a self,
        owner: &'a Owner,
        after: Option<(u64, &'a TaskId)>,
        limit: usize,
    ) -> Op<'a, Vec<TaskHead>> {
        let (owner, after) = (*owner, after.map(|(created, id)| (created, *id)));
        self.0.read(move |at| list(at, &owner, after, limit))
    }

    fn revs<'a>(&'a self, ids: &'a [TaskId]) -> Op<'a, Vec<Option<u64>>> {
        let ids = ids.to_vec();
        self.0.read(move |at| revs(at, &ids))
    }

    fn claim<'a>(&'a self, wanted: &'a Claim) -> Op<'a, Vec<Claimed>> {
        let wanted = wanted.clone();
        self.0.write(move |at| claim(at, &wanted))
    }

    fn renew<'a>(&'a self, leases: &'a [Lease], lease: Duration) -> Op<'a, Renewed> {
        let leases = leases.to_vec();
        self.0.write_first(move |at| renew(at, &leases, lease))
    }

    fn advance<'a>(&'a self, lease: &'a Lease, n: u64, step: Advance) -> Op<'a, u64> {
        if let Err(error) = step.check() {
            return Box::pin(async { Err(error) });
        }
        let lease = *lease;
        self.0.write(move |at| advance(at, &lease, n, step))
    }

    fn answers<'a>(&'a self, lease: &'a Lease) -> Op<'a, Vec<Entry>> {
        let lease = *lease;
        self.0.read(move |at| answers(at, &lease))
    }

    fn answer<'a>(
        &'a self,
        owner: &'a Owner,
        id: &'a TaskId,
        answers: Vec<Answer>,
    ) -> Op<'a, Option<Answered>> {
        if let Err(error) = answers.check() {
            return Box::pin(async { Err(error) });
        }
        let (owner, id) = (*owner, *id);
        self.0.write(move |at| answer(at, &owner, &id, answers))
    }

    fn cancel<'a>(&'a self, owner: &'a Owner, id: &'a TaskId, why: TaskNote) -> Op<'a, Option<Cancelled>> {
        if let Err(error) = why.check() {
            return Box::pin(async { Err(error) });
        }
        let (owner, id) = (*owner, *id);
        self.0.write(move |at| cancel(at, &owner, &id, why))
    }

    fn sweep(&self, limit: usize) -> Op<'_, usize> {
        self.0.write(move |at| sweep(at, limit))
    }
}
