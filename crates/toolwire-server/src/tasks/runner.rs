//! Drives one run of a task to its end, or to where it waits.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context as Task, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep};
use toolwire_protocol::{
    RawJson, RpcError,
    journal::{Entry, Folded, Reply as Answered},
    wire::Content,
};
use toolwire_store::{Advance, Finish, Lease, OpenQuestion, Outcome, Park, StoreError, TaskNote, TaskStore};

use super::{
    run::{End, Progress, TaskRun, Wanted},
    runs::{Registered, RunPlace},
    service::TaskService,
    vault::{Part, TaskVault, VaultError},
};
use crate::{
    Context, Reply,
    ask::{AskError, NeedInput, Waits},
    engine::DetachedRun,
};

/// Progress is written no more often than this.
const NOTE_PACE: Duration = Duration::from_secs(1);

/// How long what has ended is kept at least, unless its tool says otherwise.
const LEAST_KEEP: Duration = Duration::from_secs(15 * 60);

/// What is shown of an error.
const SHOWN_CHARS: usize = 200;

/// How a write is tried again.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Drives a run. It has the only hand that writes to the task.
pub(super) struct Runner {
    pub(super) service: Arc<TaskService>,
    pub(super) run: Arc<TaskRun>,
    pub(super) cx: Context,
    pub(super) lease: Lease,
    pub(super) vault: TaskVault,
    /// What the journal comes to.
    pub(super) folded: Folded,
    pub(super) live: bool,
    pub(super) run_time: Duration,
    /// How long the tool wants its tasks to be kept.
    pub(super) keep: Option<Duration>,
    pub(super) place: Option<RunPlace>,
    pub(super) registered: Registered,
}

/// What a run has come to.
enum Turn {
    Done(Result<Reply, RpcError>),
    /// The handler waits for answers or a time, and for nothing else.
    Settled,
    /// Answers may have come.
    Look,
    Overtime,
    End(End),
}

/// The run while it goes on.
struct Driven {
    base: Runner,
    work: Option<DetachedRun>,
    /// The number of the last write.
    n: u64,
    writing: Option<Writing>,
    /// Entries that are to be written one by one, because together they were refused.
    alone: usize,
    note_due: Option<Pin<Box<Sleep>>>,
    deadline: Pin<Box<Sleep>>,
    /// What a run that waits here has asked, while it does.
    held: Option<Held>,
}

struct Held {
    place: RunPlace,
    questions: Vec<HeldQuestion>,
}

struct HeldQuestion {
    key: String,
    wire: String,
    digest: String,
}

/// A write that is under way.
struct Writing {
    done: Pin<Box<dyn Future<Output = Result<u64, StoreError>> + Send>>,
    wanted: Vec<Wanted>,
}

impl Runner {
    /// Runs `work`, which is what the handler does.
    pub(super) async fn drive(self, work: DetachedRun) {
        let deadline = Box::pin(sleep(self.run_time));
        let driven = Driven {
            base: self,
            work: Some(work),
            n: 0,
            writing: None,
            alone: 0,
            note_due: None,
            deadline,
            held: None,
        };
        driven.drive().await;
    }

    /// Ends the task without running anything.
    pub(super) async fn fail(self, error: RpcError) {
        let deadline = Box::pin(sleep(self.run_time));
        let driven = Driven {
            base: self,
            work: None,
            n: 0,
            writing: None,
            alone: 0,
            note_due: None,
            deadline,
            held: None,
        };
        driven.finish(Err(error)).await;
    }
}

impl Driven {
    async fn drive(mut self) {
        loop {
            match poll_fn(|task| self.poll_turn(task)).await {
                Turn::Done(Ok(Reply::NeedInput(need))) => return self.ask(need).await,
                Turn::Done(result) => return self.finish(result).await,
                Turn::Settled if self.base.live => {
                    if let Err(error) = self.hold().await {
                        return self.finish_unless_lost(error).await;
                    }
                }
                Turn::Settled => return self.park().await,
                Turn::Look => {
                    if self.take_answers().await.is_err() {
                        return;
                    }
                }
                Turn::Overtime => {
                    let seconds = self.base.run_time.as_secs();
                    let error =
                        format!("the task ran for {seconds} s without a question (limit task_run_time)");
                    return self.finish(Err(RpcError::internal(error))).await;
                }
                Turn::End(end) => return self.end(end).await,
            }
        }
    }

    fn poll_turn(&mut self, task: &mut Task<'_>) -> Poll<Turn> {
        loop {
            // Looked at before every poll of the handler: a node that was frozen must not go on with what is not its own.
            if let Some(end) = self.base.run.poll_end(task) {
                return Poll::Ready(Turn::End(end));
            }
            if !self.base.live && self.base.run.age() >= self.base.service.fencing_age() {
                return Poll::Ready(Turn::End(End::Fenced));
            }
            if self.held.is_some() && self.base.run.take_look() {
                return Poll::Ready(Turn::Look);
            }
            if self.held.is_none() && self.deadline.as_mut().poll(task).is_ready() {
                return Poll::Ready(Turn::Overtime);
            }
            if let Some(end) = self.poll_writing(task) {
                return Poll::Ready(Turn::End(end));
            }
            if let Some(work) = &mut self.work
                && let Poll::Ready(result) = Pin::new(work).poll(task)
            {
                return Poll::Ready(Turn::Done(result));
            }
            if self.writing.is_none() {
                if self.begin_writing(task) {
                    continue;
                }
                let settled = self.base.cx.journal().is_settled(task.waker());
                if settled && !self.is_held_for_all() {
                    return Poll::Ready(Turn::Settled);
                }
            }
            return Poll::Pending;
        }
    }

    /// Whether everything that the handler asks was asked when it was last held.
    fn is_held_for_all(&self) -> bool {
        let Some(held) = &self.held else { return false };
        let asked = self.base.cx.journal().waits().questions;
        let known = |key: &str, digest: &str| {
            held.questions.iter().any(|question| question.key == key && question.digest == digest)
        };
        asked.len() == held.questions.len() && asked.iter().all(|asked| known(&asked.key, &asked.digest))
    }

    /// Goes on with the write that is under way. Says whether the run has lost its task.
    fn poll_writing(&mut self, task: &mut Task<'_>) -> Option<End> {
        let writing = self.writing.as_mut()?;
        let Poll::Ready(written) = writing.done.as_mut().poll(task) else { return None };
        let writing = self.writing.take()?;
        self.written(writing.wanted, written).err()
    }

    /// Tells those who wait for a write what became of it.
    fn written(&mut self, wanted: Vec<Wanted>, written: Result<u64, StoreError>) -> Result<(), End> {
        match written {
            Ok(_) => {
                for Wanted { entry, done } in wanted {
                    // What the handler records is found by name, and was refused if the name is taken.
                    if let Err(error) = self.base.folded.add(&entry) {
                        tracing::error!(%error, "a task has recorded something that contradicts its journal");
                    }
                    // Whoever asked for it may not wait any longer.
                    let _ = done.send(Ok(()));
                }
                Ok(())
            }
            Err(StoreError::Lost) => {
                for wanted in wanted {
                    // Whoever asked for it may be gone as well.
                    let _ = wanted.done.send(Err(AskError::Suspended));
                }
                Err(End::Lost)
            }
            // One of them is too large, and it should be the only one that is refused.
            Err(StoreError::TooLarge { .. }) if wanted.len() > 1 => {
                self.alone = wanted.len();
                self.base.run.put_back(wanted);
                Ok(())
            }
            Err(error) => {
                let why = format!(
                    "the step cannot be recorded: {error}; keep large results elsewhere and record where"
                );
                for wanted in wanted {
                    let _ = wanted.done.send(Err(AskError::Limit(why.clone())));
                }
                Ok(())
            }
        }
    }

    /// Begins to write what has gathered, if something has. Says whether it did.
    fn begin_writing(&mut self, task: &mut Task<'_>) -> bool {
        let most = if self.alone > 0 { 1 } else { usize::MAX };
        let wanted = self.base.run.take_entries(most);
        self.alone = self.alone.saturating_sub(wanted.len());
        if wanted.is_empty() {
            return self.begin_note(task);
        }
        let sealed = wanted.iter().map(|wanted| self.base.vault.seal_entry(wanted.entry.clone()));
        let done: Pin<Box<dyn Future<Output = _> + Send>> = match sealed.collect::<Result<Vec<_>, _>>() {
            Ok(entries) => Box::pin(self.persist(Advance::Record(entries))),
            Err(error) => Box::pin(std::future::ready(Err(StoreError::corrupt(error)))),
        };
        self.writing = Some(Writing { done, wanted });
        true
    }

    /// The same for progress, at its pace.
    fn begin_note(&mut self, task: &mut Task<'_>) -> bool {
        if !self.base.run.has_note() {
            return false;
        }
        if let Some(due) = &mut self.note_due
            && due.as_mut().poll(task).is_pending()
        {
            return false;
        }
        self.note_due = Some(Box::pin(sleep(NOTE_PACE)));
        let Some(Ok(note)) = self.base.run.take_note().map(|note| self.sealed_note(note)) else {
            return false;
        };
        self.writing =
            Some(Writing { done: Box::pin(self.persist(Advance::Note(note))), wanted: Vec::new() });
        true
    }

    fn sealed_note(&self, progress: Progress) -> Result<TaskNote, VaultError> {
        let mut note = match progress.message {
            Some(text) => self.message(&text)?,
            None => TaskNote::default(),
        };
        (note.done, note.total) = (Some(progress.done), progress.total);
        Ok(note)
    }

    fn message(&self, text: &str) -> Result<TaskNote, VaultError> {
        let text: String = text.chars().take(SHOWN_CHARS).collect();
        let text = RawJson::of(&text).map_err(|_| VaultError::NotJson)?;
        Ok(TaskNote::message(self.base.vault.seal(Part::Note, "", text)?))
    }

    /// A write that is tried until its outcome is known: what counts is the fence, not the time.
    fn persist(&mut self, step: Advance) -> impl Future<Output = Result<u64, StoreError>> + Send + use<> {
        self.n += 1;
        let (service, lease, n) = (Arc::clone(&self.base.service), self.base.lease, self.n);
        let until = Instant::now() + self.base.run_time;
        async move {
            let mut pause = FIRST_PAUSE;
            loop {
                let store: &Arc<dyn TaskStore> = service.tasks();
                match service.ask(store.advance(&lease, n, step.clone())).await {
                    Err(error) if error.is_unavailable() && Instant::now() < until => {
                        sleep(pause).await;
                        pause = (pause * 2).min(LONGEST_PAUSE);
                    }
                    written => {
                        if written.is_ok() && !matches!(step, Advance::Record(_)) {
                            service.changed_here(&lease.id);
                        }
                        return written;
                    }
                }
            }
        }
    }

    /// Writes what is left to be written.
    async fn flush(&mut self) -> Result<(), End> {
        loop {
            if let Some(writing) = self.writing.take() {
                let written = writing.done.await;
                self.written(writing.wanted, written)?;
            }
            let queued = poll_fn(|task| Poll::Ready(self.begin_writing(task))).await;
            if !queued {
                return Ok(());
            }
        }
    }

    /// Stops the handler; it is either done or will be run again.
    fn stop(&mut self) {
        self.work = None;
        self.base.cx.journal().end_run();
    }

    /// What the run waits for, as it is stored. Gives what is new in the journal by it.
    fn parked(&self, waits: Waits) -> Result<(Park, Vec<Entry>), Unable> {
        let mut entries = Vec::new();
        let mut park = Park::default();
        let folded = &self.base.folded;
        let mut asked = Vec::new();
        for question in waits.questions {
            let (wire, new) = folded.wire_for(&question.key, &question.digest);
            let text = RawJson::of(&question.request).map_err(|error| Unable::Question(error.to_string()))?;
            if new {
                let (key, digest) = (question.key, question.digest);
                entries.push(Entry::Ask { key, wire: wire.clone(), digest, q: Some(text.clone()) });
            }
            let sealed = self.base.vault.seal(Part::Question, &wire, text).map_err(Unable::Vault)?;
            park.open.push(OpenQuestion { key: wire.clone(), question: sealed });
            asked.push(wire);
        }
        let closed = folded.open.values().filter(|open| !asked.contains(&open.wire));
        let closed: Vec<_> = closed.map(|open| Entry::Closed { wire: open.wire.clone() }).collect();
        // A question that is asked anew has closed the old one by that.
        entries.splice(..0, closed);
        for (name, until) in &waits.timers {
            if !folded.timers.contains_key(name) {
                entries.push(Entry::Timer { name: name.clone(), until: *until });
            }
        }
        if waits.user != folded.memory.user {
            entries.push(Entry::User { v: waits.user });
        }
        let now = super::Run::now_ms(&*self.base.run);
        park.wake = waits.timers.values().min().map(|until| Duration::from_millis(until.saturating_sub(now)));
        for entry in &entries {
            park.entries.push(self.base.vault.seal_entry(entry.clone()).map_err(Unable::Vault)?);
        }
        Ok((park, entries))
    }

    /// Puts the run aside until what it waits for is there. Nothing of it stays in memory.
    async fn park(mut self) {
        let waits = self.base.cx.journal().waits();
        self.stop();
        if self.flush().await.is_err() {
            return;
        }
        let note = self.base.run.take_note().and_then(|note| self.sealed_note(note).ok());
        let mut park = match self.parked(waits) {
            Ok((park, _)) => park,
            Err(error) => return self.finish(Err(error.rpc_error())).await,
        };
        park.note = note;
        drop(self.base.place.take());
        match self.persist(Advance::Park(park)).await {
            // Answers may have come before the questions were put.
            Ok(_) => self.base.service.ready.notify_one(),
            Err(error) => self.finish_unless_lost(Unable::Store(error)).await,
        }
    }

    /// Asks what a handler has returned as questions.
    async fn ask(self, need: NeedInput) {
        if self.base.live {
            let error = "a live task cannot return its questions, since it is not run again; await them";
            return self.finish(Err(RpcError::internal(error))).await;
        }
        match need.post(&self.base.cx) {
            Ok(()) => self.park().await,
            Err(error) => self.finish(Err(error)).await,
        }
    }

    /// Lets the run wait where it is.
    async fn hold(&mut self) -> Result<(), Unable> {
        let waits = self.base.cx.journal().waits();
        self.flush().await.map_err(|_| Unable::Store(StoreError::Lost))?;
        let place = match self.held.take() {
            Some(held) => held.place,
            None => self.base.service.runs.waiting_place().ok_or(Unable::NoPlace)?,
        };
        let mut questions = Vec::new();
        for asked in &waits.questions {
            let (wire, _) = self.base.folded.wire_for(&asked.key, &asked.digest);
            questions.push(HeldQuestion { key: asked.key.clone(), wire, digest: asked.digest.clone() });
        }
        let (mut park, entries) = self.parked(waits)?;
        (park.hold, park.wake) = (true, None);
        self.persist(Advance::Park(park)).await.map_err(Unable::Store)?;
        for entry in &entries {
            self.base.folded.add(entry).map_err(|error| Unable::Question(error.to_string()))?;
        }
        self.held = Some(Held { place, questions });
        self.base.place = None;
        // Answers may have come before the questions were put.
        self.base.run.look();
        Ok(())
    }

    /// Hands answers that have come to a run that waits here.
    async fn take_answers(&mut self) -> Result<(), End> {
        let service = Arc::clone(&self.base.service);
        let answers = match service.ask(service.tasks().answers(&self.base.lease)).await {
            Ok(answers) => answers,
            Err(StoreError::Lost) => return Err(End::Lost),
            Err(error) => {
                tracing::warn!(%error, "the answers to a task cannot be read");
                sleep(LONGEST_PAUSE).await;
                self.base.run.look();
                return Ok(());
            }
        };
        let Some(held) = &mut self.held else { return Ok(()) };
        let mut given = false;
        for answer in answers {
            let Ok(entry) = self.base.vault.open_entry(&answer) else { continue };
            let Entry::Answer { wire, reply } = &entry else { continue };
            let Some(at) = held.questions.iter().position(|question| question.wire == *wire) else {
                continue;
            };
            let question = held.questions.remove(at);
            let reply = match reply {
                Answered::Value(value) => Ok(value.clone()),
                Answered::Error(error) => {
                    Err(error.decode().unwrap_or_else(|_| RpcError::internal("the client did not answer")))
                }
            };
            // What was asked is answered once.
            let _ = self.base.folded.add(&entry);
            self.base.cx.journal().answered(&question.key, &question.digest, reply);
            given = true;
        }
        if given {
            // What goes on needs a place, and has its time from the beginning.
            if self.base.place.is_none() {
                self.base.place = service.runs.next_place().await;
            }
            if held.questions.is_empty() {
                self.held = None;
            }
            self.deadline.as_mut().reset(Instant::now() + self.base.run_time);
        }
        Ok(())
    }

    /// Ends the run before its handler is done.
    async fn end(mut self, end: End) {
        tracing::debug!(task = ?self.base.run.id, ?end, "a run of a task has ended early");
        match end {
            End::Lost => self.stop(),
            End::Shutdown if self.base.live => {
                let error = "the process that ran this task was shut down";
                self.finish(Err(RpcError::internal(error))).await;
            }
            End::Fenced | End::Shutdown => {
                self.stop();
                drop(self.base.place.take());
                // What was begun to be written is finished: whether it counts is for the store to say.
                if self.flush().await.is_ok() {
                    let _ = self.persist(Advance::Release).await;
                    self.base.service.ready.notify_one();
                }
            }
        }
    }

    async fn finish_unless_lost(self, error: Unable) {
        match error {
            Unable::Store(StoreError::Lost) => {}
            error => self.finish(Err(error.rpc_error())).await,
        }
    }

    /// Ends the task.
    async fn finish(mut self, result: Result<Reply, RpcError>) {
        self.stop();
        if self.flush().await.is_err() {
            return;
        }
        let note = self.base.run.take_note().and_then(|note| self.sealed_note(note).ok());
        if let Some(note) = note
            && let Err(StoreError::Lost) = self.persist(Advance::Note(note)).await
        {
            return;
        }
        let finish = self.finished(result);
        match self.persist(Advance::Finish(finish)).await {
            Ok(_) | Err(StoreError::Lost) => {}
            Err(error) => {
                // It is not tried again, because it would come to the same.
                let error = RpcError::internal(format!("the result of the task cannot be stored: {error}"));
                let finish = self.finished(Err(error));
                if let Err(error) = self.persist(Advance::Finish(finish)).await {
                    tracing::error!(task = ?self.base.run.id, %error, "the end of a task could not be stored");
                }
            }
        }
        drop(self.base.registered);
    }

    /// How the task ends, as it is stored.
    fn finished(&self, result: Result<Reply, RpcError>) -> Finish {
        let stored = match result {
            Ok(Reply::CallTool(result)) => {
                let is_error = result.is_error == Some(true);
                let text = is_error.then(|| result.content.iter().find_map(Content::as_text)).flatten();
                let note = text.and_then(|text| self.message(text).ok());
                let sealed = RawJson::of(&result).map_err(|_| VaultError::NotJson);
                let sealed = sealed.and_then(|result| self.base.vault.seal(Part::Result, "", result));
                sealed.map(|result| (Outcome::Result(result), is_error, note))
            }
            Ok(_) => Err(VaultError::NotJson),
            Err(error) => self.failed(&error),
        };
        let (outcome, is_error, note) = stored.unwrap_or_else(|error| {
            tracing::error!(%error, "the result of a task cannot be stored");
            self.failed(&RpcError::internal("the result could not be stored")).unwrap_or_else(|_| {
                let nothing =
                    serde_json::json!({ "code": -32603, "message": "the result could not be stored" });
                (Outcome::Error(RawJson::from(&nothing)), false, None)
            })
        });
        let keep = self.base.keep.map_or(LEAST_KEEP, |keep| keep.min(LEAST_KEEP));
        let mut finish = Finish::new(outcome);
        (finish.is_error, finish.keep, finish.note) = (is_error, keep, note);
        finish
    }

    fn failed(&self, error: &RpcError) -> Result<(Outcome, bool, Option<TaskNote>), VaultError> {
        let note = self.message(&error.message)?;
        let error = RawJson::of(error).map_err(|_| VaultError::NotJson)?;
        Ok((Outcome::Error(self.base.vault.seal(Part::Error, "", error)?), false, Some(note)))
    }
}

/// Why a run cannot wait.
enum Unable {
    Store(StoreError),
    Vault(VaultError),
    Question(String),
    NoPlace,
}

impl Unable {
    fn rpc_error(&self) -> RpcError {
        match self {
            Self::Store(error) => {
                RpcError::internal(format!("the questions of the task cannot be stored: {error}"))
            }
            Self::Vault(error) => error.rpc_error(),
            Self::Question(error) => RpcError::internal(format!("the question cannot be asked: {error}")),
            Self::NoPlace => {
                RpcError::internal("too many tasks wait in the memory of this process (limit live_tasks)")
            }
        }
    }
}
