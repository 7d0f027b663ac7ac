//! How long a handler may take. The clock stands still while a person thinks about a question, and runs out early when
//! the server is shut down.

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
    end: End,
}

/// What becomes of a handler when the server is shut down.
enum End {
    /// It has not been.
    Awaited(Pin<Box<dyn Future<Output = ()> + Send>>),
    /// It was: the handler has until then, whatever it waits for.
    At(Instant),
}

/// Which limit a handler has met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overdue {
    Handler,
    Drain,
}

impl HandlerClock {
    pub(super) fn start(cx: &Context, limit: Duration) -> Self {
        let shutdown = cx.0.server.shutting_down().clone();
        let end = End::Awaited(Box::pin(async move { shutdown.cancelled().await }));
        Self { started: Instant::now(), limit, sleep: Box::pin(sleep(limit)), end }
    }

    /// Ready when the handler has worked for longer than it may, where waiting for answers is not work, or has had its
    /// time since the server was shut down.
    pub(super) fn poll_overdue(&mut self, cx: &Context, task: &mut Task<'_>) -> Poll<Overdue> {
        if let End::Awaited(shutdown) = &mut self.end
            && shutdown.as_mut().poll(task).is_ready()
        {
            let end = Instant::now() + cx.0.server.limits().drain_timeout;
            self.end = End::At(end);
            if end < self.sleep.deadline() {
                self.sleep.as_mut().reset(end);
            }
        }
        while self.sleep.as_mut().poll(task).is_ready() {
            let now = Instant::now();
            let end = match self.end {
                End::At(end) if end <= now => return Poll::Ready(Overdue::Drain),
                End::At(end) => Some(end),
                End::Awaited(_) => None,
            };
            let (waited, open) = cx.0.asking_time.get().map_or_else(Default::default, |it| it.waited(now));
            let due = self.started + self.limit + waited;
            if due <= now && !open {
                return Poll::Ready(Overdue::Handler);
            }
            let next = if open { due.max(now + RECHECK) } else { due };
            self.sleep.as_mut().reset(end.map_or(next, |end| end.min(next)));
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
