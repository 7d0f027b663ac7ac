//! The questions of a task to a client that waits for its result: requests on the stream of `tasks/result`.
//!
//! The id of such a request names the task and the key of the question. So whoever gets the response knows what it
//! answers, also if it did not ask: nothing has to be remembered, and nothing is lost with the one who asked.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};
use toolwire_protocol::{
    Method, RawJson, RequestId, Response, RpcError,
    codec::{adapt_question, relate, relate_question},
    envelope::write_notification,
    journal::Entry,
    seal::Memory,
    wire::{CancelledNotificationParams, ElicitRequestParams, InputRequest, InputRequests, JsonObject},
};
use toolwire_store::{Owner, TaskId};

use super::service::TaskService;
use crate::{
    CallerId, CallerScope, Context,
    ask::{check_capability, write_question},
};

/// Time for which storing an answer is tried.
const STORE_FOR: Duration = Duration::from_secs(10);

/// Shortest and longest pause before it is tried again.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Who asks which client for which task, on this node.
#[derive(Debug, Default)]
pub(super) struct Askers(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    /// Grows with each asker and each question.
    numbers: u64,
    askers: HashMap<(CallerId, TaskId), Vec<Arc<Asking>>>,
}

/// One request for the result of a task.
#[derive(Debug)]
struct Asking {
    number: u64,
    /// Questions that were put to the client, by their keys.
    asked: Mutex<BTreeMap<String, Asked>>,
    /// There are more or fewer of them.
    others: Notify,
}

/// A question that was put to a client.
#[derive(Debug)]
enum Asked {
    /// The request with this id waits for its response.
    Waits(RequestId),
    /// Its answer is being stored, or is stored. It is open for as long as the store says so, and is not asked again.
    Answered,
}

impl Asking {
    fn asked(&self) -> MutexGuard<'_, BTreeMap<String, Asked>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Askers {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, place: (CallerId, TaskId)) -> Arc<Asking> {
        let mut table = self.lock();
        table.numbers += 1;
        let asking = Asking { number: table.numbers, asked: Mutex::default(), others: Notify::new() };
        let asking = Arc::new(asking);
        let others = table.askers.entry(place).or_default();
        for other in others.iter() {
            other.others.notify_one();
        }
        others.push(Arc::clone(&asking));
        asking
    }

    fn leave(&self, place: (CallerId, TaskId), number: u64) {
        let mut table = self.lock();
        let Some(others) = table.askers.get_mut(&place) else { return };
        others.retain(|other| other.number != number);
        for other in others.iter() {
            other.others.notify_one();
        }
        if others.is_empty() {
            table.askers.remove(&place);
        }
    }

    /// Of several who wait for the same, the newest asks.
    fn is_newest(&self, place: (CallerId, TaskId), number: u64) -> bool {
        self.lock()
            .askers
            .get(&place)
            .and_then(|askers| askers.last())
            .is_some_and(|last| last.number == number)
    }

    fn next_number(&self) -> u64 {
        let mut table = self.lock();
        table.numbers += 1;
        table.numbers
    }

    /// A question was answered by the response to this request, and need not be withdrawn.
    fn answered(&self, place: (CallerId, TaskId), id: &RequestId) {
        for asking in self.lock().askers.get(&place).into_iter().flatten() {
            for asked in asking.asked().values_mut() {
                if matches!(asked, Asked::Waits(waiting) if waiting == id) {
                    *asked = Asked::Answered;
                }
            }
        }
    }

    /// The answer to a question could not be stored, and it is asked again.
    fn lost(&self, place: (CallerId, TaskId), key: &str) {
        for asking in self.lock().askers.get(&place).into_iter().flatten() {
            asking.asked().remove(key);
            asking.others.notify_one();
        }
    }
}

/// Asks a client what a task wants to know, as long as it waits for the task.
pub(super) struct Asker<'a> {
    service: &'a TaskService,
    cx: &'a Context,
    task: TaskId,
    /// Where the answers come from; without a session there is nobody to ask.
    session: Option<(CallerId, Arc<Asking>)>,
}

impl<'a> Asker<'a> {
    pub(super) fn new(service: &'a TaskService, cx: &'a Context, task: TaskId) -> Self {
        let caller = cx.caller().id();
        let session =
            (caller.scope() == CallerScope::Session).then(|| (caller, service.askers.enter((caller, task))));
        Self { service, cx, task, session }
    }

    /// Asks what is open and was not asked, and withdraws what is open no longer.
    pub(super) async fn ask(&mut self, open: &InputRequests) {
        let Some((caller, asking)) = &self.session else { return };
        if !self.service.askers.is_newest((*caller, self.task), asking.number) {
            return self.withdraw();
        }
        let asked: Vec<String> = asking.asked().keys().cloned().collect();
        for gone in asked.iter().filter(|key| !open.contains_key(key)) {
            let asked = asking.asked().remove(gone);
            if let Some(Asked::Waits(id)) = asked {
                self.cancel(id);
            }
        }
        for (key, question) in open.iter().filter(|(key, _)| !asked.iter().any(|asked| asked == key)) {
            let Some(question) = self.prepare(key, question) else { continue };
            let number = self.service.askers.next_number();
            let id = RequestId::from(format!("t:{}:{}-{number}:{key}", self.task, self.service.node));
            let Ok(message) = write_question(&id, &question) else { continue };
            asking.asked().insert(key.to_owned(), Asked::Waits(id));
            if !self.cx.outbox().send_message(message).await {
                // The client is gone, which its transport notices.
                return;
            }
        }
    }

    /// The question as this client understands it; `None` when it cannot be asked.
    fn prepare(&self, key: &str, question: &InputRequest) -> Option<InputRequest> {
        if check_capability(self.cx, question).is_err() {
            tracing::debug!(task = ?self.task, key, "the client that waits for a task cannot be asked its question");
            return None;
        }
        let mut question = adapt_question(self.cx.0.version, question.clone())?;
        if let InputRequest::Elicit(ElicitRequestParams::Url(url)) = &mut question
            && url.elicitation_id.is_none()
        {
            url.elicitation_id = Some(Memory::idempotency_key(&self.task.to_string(), key));
        }
        relate_question(&mut question, &self.task.to_string());
        Some(question)
    }

    /// Tells the client that nothing of what it was asked is of interest any longer.
    pub(super) fn withdraw(&self) {
        let Some((_, asking)) = &self.session else { return };
        let asked = std::mem::take(&mut *asking.asked());
        for asked in asked.into_values() {
            if let Asked::Waits(id) = asked {
                self.cancel(id);
            }
        }
    }

    fn cancel(&self, id: RequestId) {
        let mut params = CancelledNotificationParams::new().request_id(id);
        relate(&mut params.meta, &self.task.to_string());
        if let Ok(message) = write_notification(&Method::Cancelled.into(), &params) {
            self.cx.outbox().push_message(message);
        }
    }

    /// Resolves when another one of the same client begins or ends to wait for the task.
    pub(super) async fn others_changed(&self) {
        match &self.session {
            Some((_, asking)) => asking.others.notified().await,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Asker<'_> {
    fn drop(&mut self) {
        self.withdraw();
        if let Some((caller, asking)) = &self.session {
            self.service.askers.leave((*caller, self.task), asking.number);
        }
    }
}

/// The task and the key of a question that a response answers; `None` if it answers something else.
fn question_of(id: &RequestId) -> Option<(TaskId, &str)> {
    let RequestId::Str(text) = id else { return None };
    let (task, rest) = text.strip_prefix("t:")?.split_once(':')?;
    let (_, key) = rest.split_once(':')?;
    Some((task.parse().ok()?, key))
}

/// Whether a response is to a question of a task.
pub(super) fn is_answer(response: &Response) -> bool {
    response.id.as_ref().is_some_and(|id| question_of(id).is_some())
}

/// Takes a response to a question of a task. When this is done, the answer is stored.
///
/// A client answers a question once, so an answer that cannot be stored at once is tried for some time. If that fails, or
/// this is dropped before, even if it was never polled, the question is asked again. In the place of an answer that can
/// never be stored, the task gets the error.
///
/// # Errors
/// When it is not stored.
pub(super) fn answer(
    service: Arc<TaskService>,
    owner: Owner,
    caller: CallerId,
    response: Response,
) -> impl Future<Output = Result<(), RpcError>> + Send + use<> {
    let Response { id, outcome, .. } = response;
    // A copy, so that not the whole message is kept until the answer is stored.
    let answer = outcome.map(|result| RawJson::parse(result.text()));
    // Made before the first poll, so that the question is asked again also if there is none.
    let storing = id.and_then(|id| Storing::new(Arc::clone(&service), caller, id));
    async move {
        let Some(mut storing) = storing else { return Ok(()) };
        let _busy = service.runs.busy();
        let task = storing.place.1;
        service.askers.answered(storing.place, &storing.id);
        let stored = match storing.entry(answer) {
            Ok(entry) => store(&service, &owner, &task, entry).await,
            Err(error) => Err(error),
        };
        match stored {
            // The same answer would come again, and be refused again.
            Err(error) if !is_retryable(&error) => {
                let refusal = storing.entry(Err(error.clone()))?;
                storing.stored = store(&service, &owner, &task, refusal).await.is_ok();
                Err(error)
            }
            stored => {
                storing.stored = stored.is_ok();
                stored
            }
        }
    }
}

/// An answer on its way to the store.
struct Storing {
    service: Arc<TaskService>,
    place: (CallerId, TaskId),
    key: String,
    id: RequestId,
    stored: bool,
}

impl Storing {
    /// Returns `None` if the response to this request does not answer a question of a task.
    fn new(service: Arc<TaskService>, caller: CallerId, id: RequestId) -> Option<Self> {
        let (task, key) = question_of(&id)?;
        let key = key.to_owned();
        Some(Self { service, place: (caller, task), key, id, stored: false })
    }

    /// Returns the entry of the journal for an answer.
    fn entry(&self, answer: Result<serde_json::Result<RawJson>, RpcError>) -> Result<Entry, RpcError> {
        let unfit = |error: serde_json::Error| {
            RpcError::invalid_params(format!("the answer cannot be kept: {error}"))
        };
        Ok(match answer {
            Ok(result) => Entry::answer(&*self.key, result.map_err(unfit)?),
            Err(error) => Entry::refusal(&*self.key, RawJson::of(&error).map_err(unfit)?),
        })
    }
}

impl Drop for Storing {
    fn drop(&mut self) {
        if !self.stored {
            self.service.askers.lost(self.place, &self.key);
        }
    }
}

/// Stores an answer, and tries again for some time if the store is out of reach.
async fn store(service: &TaskService, owner: &Owner, task: &TaskId, entry: Entry) -> Result<(), RpcError> {
    let until = Instant::now() + STORE_FOR;
    let mut pause = FIRST_PAUSE;
    loop {
        match service.answer(owner, task, vec![entry.clone()]).await {
            Ok(Some(answered)) if !answered.taken.is_empty() => return Ok(()),
            Ok(_) => {
                tracing::debug!(?task, "an answer came to a question that is not open");
                return Ok(());
            }
            Err(error) if is_retryable(&error) && Instant::now() + pause < until => {
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Returns whether a repetition may succeed.
fn is_retryable(error: &RpcError) -> bool {
    let data: Option<JsonObject> = error.data.as_ref().and_then(|data| data.decode().ok());
    data.is_some_and(|data| data.get("retry") == Some(&true.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CallerScope;

    #[test]
    fn the_id_of_a_question_names_its_task_and_key() {
        let task = TaskId::from_bytes([7; 24]);
        let id = RequestId::from(format!("t:{task}:AAAAAAAAAAA-12:a:b#2"));
        assert_eq!(question_of(&id), Some((task, "a:b#2")));
        for id in [7.into(), "t".into(), "t:".into(), "t:x:y:z".into(), format!("t:{task}:a").as_str().into()]
        {
            assert_eq!(question_of(&id), None, "{id:?}");
        }
    }

    #[test]
    fn the_newest_asks_and_the_one_before_goes_on_when_it_is_gone() {
        let askers = Askers::default();
        let place = (CallerId::new(CallerScope::Session), TaskId::from_bytes([7; 24]));
        let first = askers.enter(place);
        assert!(askers.is_newest(place, first.number));
        let second = askers.enter(place);
        assert!(!askers.is_newest(place, first.number) && askers.is_newest(place, second.number));
        askers.leave(place, second.number);
        assert!(askers.is_newest(place, first.number));
        askers.leave(place, first.number);
        assert!(askers.lock().askers.is_empty());
    }
}
