//! Following a task of the extension: looking at it, at the server's pace or when it says that something has changed, and
//! answering what is found there.

use std::{
    collections::HashSet,
    pin::pin,
    sync::atomic::{AtomicBool, Ordering},
};

use tokio::time::{Instant, sleep, sleep_until};
use toolwire_protocol::{
    Method, MethodName,
    wire::{InputRequests, InputResponses, TaskStatus},
};
use toolwire_transport::BoxFuture;

use super::{
    super::{
        handle::{Claims, TaskHandle},
        state::TaskState,
        trouble::Trouble,
        watchers::Watch,
    },
    Follow, Look, SAFETY_POLL, maybe,
};
use crate::{
    client::{CallOutcome, Client},
    error::{Delivery, Error, ErrorKind},
    host::HandlerClock,
    listen::task_news,
    settings::{LONGEST_RELISTEN_PAUSE, pause_up_to},
};

/// Questions that are being answered.
struct Answering<'a> {
    keys: Vec<String>,
    /// The keys of those that nobody can answer.
    future: Option<BoxFuture<'a, Result<Vec<String>, Error>>>,
}

impl Follow<'_> {
    pub(super) async fn modern(&mut self, thinking: &HandlerClock) -> Result<CallOutcome, Error> {
        let task = self.task;
        let client = task.client();
        let shortest = client.settings().limits.shortest_poll;
        let watch = client.host().watchers.watch(task.id());
        let told = AtomicBool::new(false);
        let mut pushes = pin!(pushes(client, task.id(), &watch, &told));
        let mut may_push = true;
        let mut looking: Look<'_> = None;
        let mut looked = Instant::now();
        let mut again = false;
        let mut answering = Answering { keys: Vec::new(), future: None };
        let mut unanswerable = HashSet::new();
        let mut trouble = Trouble::default();
        let working = task.last_task().is_some_and(|task| task.status == TaskStatus::Working);
        let mut due = if working { looked + self.interval() } else { looked };
        loop {
            tokio::select! {
                biased;
                state = maybe(&mut looking) => {
                    looking = None;
                    let now = Instant::now();
                    due = now + match state {
                        Ok(state) => {
                            trouble.over();
                            self.publish(&state);
                            if let Some(end) = self.end(&state) {
                                return end;
                            }
                            self.attend(&state, &mut answering, &unanswerable, thinking)?;
                            let safety = told.load(Ordering::Relaxed).then_some(SAFETY_POLL);
                            self.interval().max(safety.unwrap_or_default())
                        }
                        Err(error) => trouble.after(client, error)?,
                    };
                    if std::mem::take(&mut again) {
                        due = due.min(looked + shortest);
                    }
                }
                given = maybe(&mut answering.future) => {
                    answering.future = None;
                    unanswerable.extend(given?);
                    due = due.min(looked + shortest);
                }
                () = sleep_until(due), if looking.is_none() => {
                    looked = Instant::now();
                    looking = Some(Box::pin(task.get()));
                }
                news = watch.next() => {
                    self.progress(news.progress);
                    if news.changed && looking.is_some() {
                        again = true;
                    } else if news.changed {
                        due = due.min(looked + shortest);
                    }
                }
                () = &mut pushes, if may_push => may_push = false,
            }
        }
    }

    /// Answers what is asked and is not being answered. Questions that are not asked any more are left.
    fn attend<'t>(
        &self,
        state: &TaskState,
        answering: &mut Answering<'t>,
        unanswerable: &HashSet<String>,
        thinking: &'t HandlerClock,
    ) -> Result<(), Error>
    where
        Self: 't,
    {
        let none = InputRequests::new();
        let open = state.details().input_requests.as_ref().unwrap_or(&none);
        if answering.future.is_some() {
            let asked = answering.keys.iter().any(|key| open.get(key).is_some());
            if asked {
                return Ok(());
            }
            answering.future = None;
        }
        let keys: Vec<String> = open.iter().map(|(key, _)| key.to_owned()).collect();
        let claims = self.task.claim(keys.iter().filter(|key| !unanswerable.contains(*key)));
        if claims.keys.is_empty() {
            return Ok(());
        }
        self.task.count_questions(claims.keys.len())?;
        let mine: HashSet<&String> = claims.keys.iter().collect();
        let questions = open.iter().filter(|(key, _)| mine.contains(&(*key).to_owned()));
        let questions = questions.map(|(key, question)| (key.to_owned(), question.clone())).collect();
        answering.keys.clone_from(&claims.keys);
        answering.future = Some(Box::pin(give(self.task.clone(), questions, claims, self.strict, thinking)));
        Ok(())
    }
}

/// Answers questions, and sends the answers until the server has them. Returns those that cannot be answered.
async fn give(
    task: TaskHandle,
    questions: InputRequests,
    claims: Claims,
    strict: bool,
    thinking: &HandlerClock,
) -> Result<Vec<String>, Error> {
    let client = task.client();
    let answers = {
        let _running = thinking.begin(None);
        client.answer_each(questions, strict).await
    };
    let mut responses = InputResponses::new();
    let mut unanswerable = Vec::new();
    for (key, answer) in answers {
        match answer {
            Ok(answer) => _ = responses.insert(key, answer),
            Err(error) if strict => {
                let method = MethodName::from(Method::CallTool);
                let text =
                    format!("{method} needs an answer to {key:?} that this client cannot give: {error}");
                return Err(Error::new(ErrorKind::Unanswerable, Delivery::Rejected, text));
            }
            Err(error) => {
                tracing::debug!(%error, key, "no handler can answer a question of a task");
                unanswerable.push(key);
            }
        }
    }
    if !responses.is_empty() {
        let mut trouble = Trouble::default();
        // The server takes the first answer to a question, so repeating it does no harm.
        while let Err(error) = task.update(responses.clone()).await {
            sleep(trouble.after(client, error)?).await;
        }
    }
    claims.answered_but(&unanswerable);
    Ok(unanswerable)
}

/// Has the server tell of changes, if it will, and as long as the task is followed.
async fn pushes(client: &Client, id: &str, watch: &Watch, told: &AtomicBool) {
    let never = &client.host().no_task_news;
    let mut attempt = 0;
    while !never.load(Ordering::Relaxed) {
        let agreed = || {
            told.store(true, Ordering::Relaxed);
            // What changed before it agreed was not told.
            watch.wake();
        };
        let ended = task_news(client, id, agreed).await;
        told.store(false, Ordering::Relaxed);
        match ended {
            Ok(()) => watch.wake(),
            Err(error) if error.kind() == ErrorKind::NotAdvertised => never.store(true, Ordering::Relaxed),
            Err(error) if error.kind() == ErrorKind::TaskGone => return,
            Err(error) => tracing::debug!(%error, "the server cannot be asked to tell of a task"),
        }
        sleep(pause_up_to(attempt, LONGEST_RELISTEN_PAUSE)).await;
        attempt += 1;
    }
}
