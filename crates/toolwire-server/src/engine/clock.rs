//! How long a handler may take. The clock stands still while a person thinks about a question.

use std::{
    future::Future,
    pin::Pin,
    sync::{Mutex, PoisonError},
    task::{Context as Task, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep};

use crate::Context;

/// While a question is open, the clock is looked at no more often than this.
const RECHECK: Duration = Duration::from_secs(1);

/// Ends a handler that takes too long.
pub(super) struct HandlerClock {
    started: Instant,
    limit: Duration,
    sleep: Pin<Box<Sleep>>,
}

impl HandlerClock {
    pub(super) fn start(limit: Duration) -> Self {
        Self { started: Instant::now(), limit, sleep: Box::pin(sleep(limit)) }
    }

    /// Ready when the handler has worked for longer than it may; waiting for answers is not work.
    pub(super) fn poll_overdue(&mut self, cx: &Context, task: &mut Task<'_>) -> Poll<()> {
        while self.sleep.as_mut().poll(task).is_ready() {
            let now = Instant::now();
            let Some(asking) = cx.0.asking_time.get() else { return Poll::Ready(()) };
            let (waited, open) = asking.waited(now);
            let due = self.started + self.limit + waited;
            if due <= now && !open {
                return Poll::Ready(());
            }
            let next = if open { due.max(now + RECHECK) } else { due };
            self.sleep.as_mut().reset(next);
        }
        Poll::Pending
    }
}

/// For how long a request has waited for answers to its questions.
#[derive(Debug, Default)]
pub(crate) struct AskingTime(Mutex<Asking>);

#[derive(Debug, Default)]
struct Asking {
    open: usize,
    since: Option<Instant>,
    total: Duration,
}

impl AskingTime {
    fn change(&self, change: impl FnOnce(&mut Asking)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// How long, and whether a question is open now.
    fn waited(&self, now: Instant) -> (Duration, bool) {
        let asking = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let current = asking.since.map_or(Duration::ZERO, |since| now.duration_since(since));
        (asking.total + current, asking.open > 0)
    }
}

/// A question that is open, until this is dropped.
pub(crate) struct QuestionOpen<'a>(&'a AskingTime);

impl Context {
    /// Stops the handler's clock until the guard is dropped.
    pub(crate) fn question_opened(&self) -> QuestionOpen<'_> {
        let asking = self.0.asking_time.get_or_init(Box::default);
        asking.change(|asking| {
            asking.open += 1;
            asking.since.get_or_insert_with(Instant::now);
        });
        QuestionOpen(asking)
    }
}

impl Drop for QuestionOpen<'_> {
    fn drop(&mut self) {
        self.0.change(|asking| {
            asking.open -= 1;
            if asking.open == 0
                && let Some(since) = asking.since.take()
            {
                asking.total += since.elapsed();
            }
        });
    }
}
