//! Tasks. Each operation is one script: what decides is there.

mod read;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::{Script, Value};
use toolwire_store::{
    Advance, Answer, Answered, Cancelled, Claim, Claimed, Created, Entry, Finish, KeyId, Lease, NewTask, Op,
    Outcome, Owner, Park, Renewed, StoreError, TaskHead, TaskId, TaskNote, TaskStore, TaskView,
    hex::encode as hex,
    limits::{Check, JOURNAL_BYTES, JOURNAL_ENTRIES},
};

use crate::connection::{Connections, Work};
use crate::script::{Call, Reply, script, unexpected};

/// Longer than anybody keeps anything, and small enough that Lua counts it exactly.
const MAX_MILLISECONDS: u64 = 1 << 42;

/// How many bytes of requests and journals one claim brings, but for the last task of it.
const CLAIM_BYTES: u64 = 8 * 1024 * 1024;

/// How many tasks one call removes, because nobody else is served meanwhile.
const SWEPT: usize = 500;

/// How many tasks one call lists.
const LISTED: usize = 1000;

/// How many tasks one script looks at for a list, because no other client is served meanwhile.
const LOOKED_AT: u64 = 1000;

/// How many such scripts one list takes. What they look at in vain they do not meet again.
const LOOKS: usize = 100;

/// How long a task that this version cannot read is left to others before it is claimed again.
const UNREADABLE: Duration = Duration::from_secs(60);

/// Tasks in Redis.
pub(crate) struct RedisTasks {
    connections: Arc<Connections>,
    scripts: Scripts,
}

impl fmt::Debug for RedisTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisTasks").field("connections", &self.connections).finish_non_exhaustive()
    }
}

struct Scripts {
    create: Script,
    view: Script,
    list: Script,
    revs: Script,
    claim: Script,
    renew: Script,
    advance: Script,
    end: Script,
    unclaim: Script,
    answers: Script,
    answer: Script,
    cancel: Script,
    sweep: Script,
}

impl Scripts {
    fn new() -> Self {
        Self {
            create: script!("common", "tasks", "create"),
            view: script!("common", "tasks", "view"),
            list: script!("common", "tasks", "list"),
            revs: script!("common", "revs"),
            claim: script!("common", "tasks", "claim"),
            renew: script!(at maxmemory: "common", "tasks", "renew"),
            advance: script!("common", "tasks", "advance"),
            end: script!(at maxmemory: "common", "tasks", "advance"),
            unclaim: script!(at maxmemory: "common", "tasks", "unclaim"),
            answers: script!("common", "tasks", "answers"),
            answer: script!("common", "tasks", "answer"),
            cancel: script!(at maxmemory: "common", "tasks", "cancel"),
            sweep: script!(at maxmemory: "common", "tasks", "sweep"),
        }
    }
}

impl RedisTasks {
    pub(crate) fn new(connections: Arc<Connections>) -> Self {
        Self { connections, scripts: Scripts::new() }
    }

    /// A call of a script about tasks, which begins with the limits of a journal.
    fn call<'a>(&'a self, script: &'a Script) -> Call<'a> {
        let call = Call::new(script, self.connections.prefix());
        call.number(JOURNAL_BYTES as u64).number(JOURNAL_ENTRIES as u64)
    }

    async fn run(&self, call: Call<'_>) -> Result<Value, StoreError> {
        self.connections.run(Work::Script(&call)).await
    }

    async fn reply(&self, call: Call<'_>) -> Result<Reply, StoreError> {
        Reply::of(self.run(call).await?)
    }

    /// Leaves tasks that this version cannot read to others, without an attempt.
    async fn give_back(&self, unreadable: &[Lease]) {
        if unreadable.is_empty() {
            return;
        }
        let call = self.call(&self.scripts.unclaim).number(milliseconds(UNREADABLE));
        if let Err(error) = self.run(call.each(unreadable, with_lease)).await {
            // Then their leases run out, and the claim has been an attempt.
            tracing::warn!(%error, "tasks that cannot be read could not be given back");
        }
    }

    fn new_task(&self, task: &NewTask) -> Result<Call<'_>, StoreError> {
        let request = &task.request;
        let index = due_index(&request.tool, request.revision, task.format, task.key.as_ref());
        let lease = task.lease.as_ref();
        Ok(self
            .call(&self.scripts.create)
            .text(hex(task.id.as_bytes()))
            .text(hex(&task.owner.to_bytes()))
            .text(hex(task.quota.as_bytes()))
            .number(task.limit as u64)
            .text(&request.tool)
            .text(index)
            .text(serde_json::to_string(request).map_err(StoreError::corrupt)?)
            .number(milliseconds(task.keep))
            .number(milliseconds(task.ttl))
            .number(milliseconds(task.poll))
            .text(request.session.map(|session| hex(session.as_bytes())).unwrap_or_default())
            .number(task.format.into())
            .text(task.key.map(|key| hex(key.as_bytes())).unwrap_or_default())
            .text(lease.map(|lease| hex(lease.token.as_bytes())).unwrap_or_default())
            .number(lease.map(|lease| milliseconds(lease.lease)).unwrap_or_default())
            .each(&task.journal, |call, entry| call.text(entry.text())))
    }
}

impl TaskStore for RedisTasks {
    fn create(&self, task: NewTask) -> Op<'_, Created> {
        Box::pin(async move {
            task.check()?;
            let mut reply = self.reply(self.new_task(&task)?).await?;
            decided(&mut reply)?;
            let (now_ms, fence) = (reply.number()?, reply.maybe_number()?);
            let view = read::view(reply.list()?)?;
            let token = task.lease.map(|lease| lease.token);
            let lease = fence.zip(token).map(|(fence, token)| Lease { id: task.id, fence, token });
            Ok(Created::new(view, lease, now_ms))
        })
    }

    fn view<'a>(&'a self, owner: &'a Owner, id: &'a TaskId) -> Op<'a, Option<TaskView>> {
        Box::pin(async move {
            let call = self.call(&self.scripts.view).text(hex(&owner.to_bytes())).text(hex(id.as_bytes()));
            match self.run(call).await? {
                Value::Nil => Ok(None),
                value => read::view(Reply::of(value)?).map(Some),
            }
        })
    }

    fn list<'a>(
        &'a self,
        owner: &'a Owner,
        after: Option<(u64, &'a TaskId)>,
        limit: usize,
    ) -> Op<'a, Vec<TaskHead>> {
        Box::pin(async move {
            let limit = limit.min(LISTED);
            let (mut heads, mut looks) = (Vec::new(), 0);
            let mut after = after.map(|(moment, id)| (moment, hex(id.as_bytes())));
            while heads.len() < limit && looks < LOOKS {
                looks += 1;
                let call = self.call(&self.scripts.list).text(hex(&owner.to_bytes()));
                let call = call.number((limit - heads.len()) as u64).number(LOOKED_AT);
                let call = match after {
                    Some((moment, id)) => call.number(moment).text(id),
                    None => call.text("").text(""),
                };
                let mut reply = self.reply(call).await?;
                let mut found = reply.list()?;
                let read = (0..found.left()).map(|_| read::head(found.list()?));
                heads.extend(read.filter_map(|head| head.inspect_err(warn_unreadable).ok()));
                let mut place = reply.list()?;
                if place.left() == 0 {
                    break;
                }
                after = Some((place.number()?, place.text()?));
            }
            Ok(heads)
        })
    }

    fn revs<'a>(&'a self, ids: &'a [TaskId]) -> Op<'a, Vec<Option<u64>>> {
        Box::pin(async move {
            let call = self.call(&self.scripts.revs).each(ids, |call, id| call.text(hex(id.as_bytes())));
            let mut reply = self.reply(call).await?;
            (0..reply.left()).map(|_| reply.maybe_number()).collect()
        })
    }

    fn claim<'a>(&'a self, claim: &'a Claim) -> Op<'a, Vec<Claimed>> {
        Box::pin(async move {
            if claim.max == 0 || claim.serves.is_empty() {
                return Ok(Vec::new());
            }
            let call = self
                .call(&self.scripts.claim)
                .text(hex(claim.token.as_bytes()))
                .number(milliseconds(claim.lease))
                .number(claim.max as u64)
                .number(CLAIM_BYTES)
                .number(milliseconds(UNREADABLE))
                .each(due_indexes(claim), Call::text);
            let mut reply = self.reply(call).await?;
            let now_ms = reply.number()?;
            let mut tasks = reply.list()?;
            let (mut claimed, mut unreadable) = (Vec::new(), Vec::new());
            while tasks.left() > 0 {
                let mut task = tasks.list()?;
                let lease =
                    Lease { id: read::task_id(&task.text()?)?, fence: task.number()?, token: claim.token };
                match read::claimed(task, lease, now_ms) {
                    Ok(task) => claimed.push(task),
                    Err(error) => {
                        warn_unreadable(&error);
                        unreadable.push(lease);
                    }
                }
            }
            self.give_back(&unreadable).await;
            Ok(claimed)
        })
    }

    fn renew<'a>(&'a self, leases: &'a [Lease], lease: Duration) -> Op<'a, Renewed> {
        Box::pin(async move {
            let call = self.call(&self.scripts.renew).number(milliseconds(lease)).each(leases, with_lease);
            let mut reply = self.reply(call).await?;
            let now_ms = reply.number()?;
            let lost = reply.texts()?.iter().map(|id| read::task_id(id)).collect::<Result<_, _>>()?;
            Ok(Renewed::new(lost, now_ms))
        })
    }

    fn advance<'a>(&'a self, lease: &'a Lease, n: u64, step: Advance) -> Op<'a, u64> {
        Box::pin(async move {
            step.check()?;
            let script = match step {
                Advance::Finish(_) | Advance::Release => &self.scripts.end,
                _ => &self.scripts.advance,
            };
            let call = with_lease(self.call(script), lease).number(n);
            let mut reply = self.reply(with_step(call, &step)?).await?;
            decided(&mut reply)?;
            reply.number()
        })
    }

    fn answers<'a>(&'a self, lease: &'a Lease) -> Op<'a, Vec<Entry>> {
        Box::pin(async move {
            let mut reply = self.reply(with_lease(self.call(&self.scripts.answers), lease)).await?;
            decided(&mut reply)?;
            reply.jsons()
        })
    }

    fn answer<'a>(
        &'a self,
        owner: &'a Owner,
        id: &'a TaskId,
        answers: Vec<Answer>,
    ) -> Op<'a, Option<Answered>> {
        Box::pin(async move {
            answers.check()?;
            let call = self
                .call(&self.scripts.answer)
                .text(hex(&owner.to_bytes()))
                .text(hex(id.as_bytes()))
                .each(&answers, |call, answer| call.text(&answer.key).text(answer.entry.text()));
            let mut reply = self.reply(call).await?;
            if !decided(&mut reply)? {
                return Ok(None);
            }
            Ok(Some(Answered::new(reply.texts()?, reply.texts()?, reply.flag()?)))
        })
    }

    fn cancel<'a>(&'a self, owner: &'a Owner, id: &'a TaskId, why: TaskNote) -> Op<'a, Option<Cancelled>> {
        Box::pin(async move {
            why.check()?;
            let call = self.call(&self.scripts.cancel).text(hex(&owner.to_bytes())).text(hex(id.as_bytes()));
            match self.run(call.text(json(&why)?)).await? {
                Value::Nil => Ok(None),
                value => {
                    let mut reply = Reply::of(value)?;
                    let was_terminal = reply.flag()?;
                    Ok(Some(Cancelled::new(read::view(reply.list()?)?, was_terminal)))
                }
            }
        })
    }

    fn sweep(&self, limit: usize) -> Op<'_, usize> {
        Box::pin(async move {
            let call = self.call(&self.scripts.sweep).number(limit.min(SWEPT) as u64);
            match self.run(call).await? {
                Value::Int(swept) => usize::try_from(swept).map_err(|_| unexpected("a count")),
                _ => Err(unexpected("a count")),
            }
        })
    }
}

/// Whether there was something to decide about; what went wrong is an error.
fn decided(reply: &mut Reply) -> Result<bool, StoreError> {
    match reply.text()?.as_str() {
        "ok" => Ok(true),
        "none" => Ok(false),
        "lost" => Err(StoreError::Lost),
        "conflict" => Err(StoreError::Conflict),
        "full" => Err(StoreError::Full("tasks of this owner that have not ended")),
        "large" => Err(match reply.text()?.as_str() {
            "entries" => {
                StoreError::TooLarge { what: "the number of entries in the journal", limit: JOURNAL_ENTRIES }
            }
            _ => StoreError::TooLarge { what: "the journal of the task", limit: JOURNAL_BYTES },
        }),
        _ => Err(unexpected("a decision")),
    }
}

fn warn_unreadable(error: &StoreError) {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    tracing::warn!(cause, "a task in the store cannot be read");
}

fn with_lease<'a>(call: Call<'a>, lease: &Lease) -> Call<'a> {
    call.text(hex(lease.id.as_bytes())).number(lease.fence).text(hex(lease.token.as_bytes()))
}

fn with_step<'a>(call: Call<'a>, step: &Advance) -> Result<Call<'a>, StoreError> {
    let entry = |call: Call<'a>, entry: &Entry| call.text(entry.text());
    Ok(match step {
        Advance::Record(entries) => call.text("record").each(entries, entry),
        Advance::Note(note) => call.text("note").text(json(note)?),
        Advance::Park(Park { entries, open, wake, hold, note, .. }) => call
            .text("park")
            .text(wake.map(|wake| milliseconds(wake).to_string()).unwrap_or_default())
            .flag(*hold)
            .text(optional_json(note.as_ref())?)
            .number(open.len() as u64)
            .each(open, |call, open| call.text(&open.key).text(open.question.text()))
            .each(entries, entry),
        Advance::Finish(Finish { outcome, is_error, keep, note, .. }) => call
            .text("finish")
            .text(match outcome {
                Outcome::Result(_) => "completed",
                Outcome::Error(_) => "failed",
            })
            .text(json(outcome)?)
            .flag(*is_error)
            .number(milliseconds(*keep))
            .text(optional_json(note.as_ref())?),
        Advance::Release => call.text("release"),
        _ => return Err(StoreError::corrupt("this store is older than the step that it was given")),
    })
}

fn json(value: &impl serde::Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(StoreError::corrupt)
}

fn optional_json(value: Option<&impl serde::Serialize>) -> Result<String, StoreError> {
    value.map_or(Ok(String::new()), json)
}

/// The index that a task is due in. All that decides who can claim it is in its name, so that nobody has to pass over
/// tasks that are not for him.
fn due_index(tool: &str, revision: u32, format: u32, key: Option<&KeyId>) -> String {
    format!("{tool}:{revision}:{format}:{}", key.map(|key| hex(key.as_bytes())).unwrap_or_default())
}

fn due_indexes(claim: &Claim) -> impl Iterator<Item = String> {
    let keys = || std::iter::once(None).chain(claim.keys.iter().map(Some));
    claim.serves.iter().flat_map(move |(tool, revision)| {
        (1..=claim.format)
            .flat_map(move |format| keys().map(move |key| due_index(tool, *revision, format, key)))
    })
}

/// Whole milliseconds, rounded up: nothing lasts shorter than it was said.
pub(crate) fn milliseconds(duration: Duration) -> u64 {
    let rounded = duration.as_nanos().div_ceil(1_000_000);
    u64::try_from(rounded).unwrap_or(u64::MAX).min(MAX_MILLISECONDS)
}
