//! What happens on one connection: which requests are open, whether their answers are taken, and since when there was
//! nothing to do.
//!
//! The HTTP implementation has clocks for some of this as well, but to start one after each response, it goes through the
//! whole connection once more; and it has none for an HTTP/2 stream whose client leaves the window closed. Here nothing
//! is started and stopped for a request. It is only noted what happened when, and one timer for each connection looks
//! at that when it rings.

use std::{
    collections::BTreeMap,
    future::pending,
    ops::ControlFlow,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    task::AbortHandle,
    time::{Instant, sleep_until},
};

/// What is known of one connection. Clones are about the same one.
#[derive(Clone, Debug)]
pub(crate) struct Activity(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// How many requests have come and are not answered.
    open: usize,
    /// True if the client of an HTTP/1 connection has closed its side.
    half_closed: bool,
    /// True if the body of the last request is incomplete for that reason. HTTP/1 only, which has one at a time.
    broken_off: bool,
    /// Whether the peer has to take something before more can be written. That has a clock of its own.
    stalled: bool,
    /// When the last request was answered or the last stall ended, or else when the connection began.
    since: Instant,
    /// The open requests of HTTP/2, which can stall one by one.
    streams: BTreeMap<u64, Stream>,
    /// The number of the next of those.
    next: u64,
    /// The one that has come, until its task is known.
    newest: Option<u64>,
}

/// An open request of HTTP/2.
#[derive(Debug, Default)]
struct Stream {
    /// Since when the HTTP implementation has a piece of the response that it cannot send.
    waits: Option<Instant>,
    task: Option<AbortHandle>,
}

/// A request that is not answered yet, until this is dropped.
#[derive(Debug)]
pub(crate) struct OpenRequest {
    activity: Activity,
    stream: Option<u64>,
}

/// How long nothing may happen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// On a connection without open requests.
    pub(crate) idle: Duration,
    /// In one stream of HTTP/2, whose client takes nothing of a response.
    pub(crate) write: Duration,
}

impl Activity {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(State {
            open: 0,
            half_closed: false,
            broken_off: false,
            stalled: false,
            since: Instant::now(),
            streams: BTreeMap::new(),
            next: 0,
            newest: None,
        })))
    }

    /// A request of HTTP/1 has come.
    pub(crate) fn request(&self) -> OpenRequest {
        let mut state = self.lock();
        state.open += 1;
        state.broken_off = false;
        OpenRequest { activity: self.clone(), stream: None }
    }

    /// The client of an HTTP/1 connection has closed its side. Returns `true` while it may still wait for an answer, or for
    /// the rest of one that is `unwritten`: unless it broke off in the middle of a request.
    pub(crate) fn half_closed(&self, unwritten: bool) -> bool {
        let mut state = self.lock();
        state.half_closed = true;
        !state.broken_off && (unwritten || state.open > 0 && state.streams.is_empty())
    }

    /// The body of a request of HTTP/1 has nothing to give for now. Returns `true` once if it never will, because the client
    /// has closed its side: the HTTP implementation looks for the end only when it has handed over everything before it.
    pub(crate) fn body_waits(&self) -> bool {
        let mut state = self.lock();
        let news = state.half_closed && !state.broken_off;
        state.broken_off = state.half_closed;
        news
    }

    /// A request of HTTP/2 has come. [`Self::started`] says next which task serves it.
    pub(crate) fn stream(&self) -> OpenRequest {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.open += 1;
        state.streams.insert(number, Stream::default());
        state.newest = Some(number);
        OpenRequest { activity: self.clone(), stream: Some(number) }
    }

    /// Takes note of the task that serves the request that has just come.
    pub(crate) fn started(&self, task: AbortHandle) {
        let mut state = self.lock();
        let newest = state.newest.take();
        // It may be done already.
        if let Some(stream) = newest.and_then(|number| state.streams.get_mut(&number)) {
            stream.task = Some(task);
        }
    }

    /// Ends every request that is still open, because its connection is gone.
    pub(crate) fn end_streams(&self) {
        // Collected first: whatever a task drops comes back here.
        let tasks: Vec<_> =
            self.lock().streams.values_mut().filter_map(|stream| stream.task.take()).collect();
        for task in tasks {
            task.abort();
        }
    }

    /// Nothing can be written until the peer has taken something.
    pub(crate) fn stalled(&self) {
        self.lock().stalled = true;
    }

    /// The peer has taken something.
    pub(crate) fn resumed(&self) {
        let mut state = self.lock();
        state.stalled = false;
        state.since = Instant::now();
    }

    /// Resolves when there was no open request for too long. Until then, streams whose client takes nothing of them are
    /// reset one by one.
    pub(crate) async fn idle(&self, patience: Patience) {
        loop {
            match self.look(Instant::now(), patience) {
                ControlFlow::Break(()) => return,
                // Whatever happens meanwhile, nothing has to end sooner.
                ControlFlow::Continue(Some(next)) => sleep_until(next).await,
                ControlFlow::Continue(None) => return pending().await,
            }
        }
    }

    /// Says whether the connection has been idle for too long, or else when to look again.
    fn look(&self, now: Instant, patience: Patience) -> ControlFlow<(), Option<Instant>> {
        let mut state = self.lock();
        let since = if state.open > 0 || state.stalled { now } else { state.since };
        let mut next = since.checked_add(patience.idle);
        if next.is_some_and(|end| end <= now) {
            return ControlFlow::Break(());
        }
        // A stream that stalls right after this has to end no sooner than that.
        next = earlier(next, now.checked_add(patience.write));
        let mut stuck = Vec::new();
        for stream in state.streams.values_mut() {
            let Some(end) = stream.waits.and_then(|since| since.checked_add(patience.write)) else {
                continue;
            };
            if end <= now {
                stuck.extend(stream.task.take());
            } else {
                next = earlier(next, Some(end));
            }
        }
        drop(state);
        for task in stuck {
            tracing::debug!("a client takes nothing of a response; its stream is reset");
            task.abort();
        }
        ControlFlow::Continue(next)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

impl OpenRequest {
    /// Whether it is one of several on its connection, so that it can stall alone.
    pub(crate) fn is_stream(&self) -> bool {
        self.stream.is_some()
    }

    /// The HTTP implementation has taken a piece of the response, and asks for the next one when it has sent that.
    pub(crate) fn waits(&self) {
        self.note(Some(Instant::now()));
    }

    /// The HTTP implementation asks for the next piece.
    pub(crate) fn moves(&self) {
        self.note(None);
    }

    fn note(&self, waits: Option<Instant>) {
        let Some(number) = self.stream else { return };
        if let Some(stream) = self.activity.lock().streams.get_mut(&number) {
            stream.waits = waits;
        }
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let mut state = self.activity.lock();
        state.open -= 1;
        state.since = Instant::now();
        if let Some(number) = self.stream {
            state.streams.remove(&number);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{sleep, timeout};

    use super::*;

    const PATIENCE: Patience = Patience { idle: Duration::from_secs(30), write: Duration::from_secs(60) };
    const LONG: Duration = Duration::from_secs(1000);

    #[tokio::test(start_paused = true)]
    async fn it_is_idle_when_nothing_comes() {
        let start = Instant::now();
        Activity::new().idle(PATIENCE).await;
        assert_eq!(start.elapsed().as_secs(), 30);
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_begins_again_with_every_request() {
        let activity = Activity::new();
        let start = Instant::now();
        let requests = async {
            for number in 0..3 {
                sleep(Duration::from_secs(20)).await;
                drop(if number == 1 { activity.stream() } else { activity.request() });
            }
        };
        tokio::join!(requests, activity.idle(PATIENCE));
        assert_eq!(start.elapsed().as_secs(), 90);
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_not_idle_while_a_request_is_open_or_the_peer_does_not_read() {
        let activity = Activity::new();
        let open = activity.request();
        assert!(timeout(LONG, activity.idle(PATIENCE)).await.is_err());
        activity.stalled();
        drop(open);
        assert!(timeout(LONG, activity.idle(PATIENCE)).await.is_err());
        activity.resumed();
        let start = Instant::now();
        sleep(Duration::from_secs(10)).await;
        activity.idle(PATIENCE).await;
        assert_eq!(start.elapsed().as_secs(), 30);
    }

    #[tokio::test(start_paused = true)]
    async fn limits_without_an_end_never_end() {
        let activity = Activity::new();
        let open = activity.stream();
        let patience = Patience { idle: Duration::MAX, write: Duration::MAX };
        open.waits();
        assert!(timeout(LONG, activity.idle(patience)).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_waits_is_ended_and_the_others_go_on() {
        let activity = Activity::new();
        let serve = |request: OpenRequest| async move {
            let _request = request;
            pending::<()>().await;
        };
        let (stuck, lively) = (activity.stream(), activity.request());
        let start = Instant::now();
        stuck.waits();
        stuck.moves();
        sleep(Duration::from_secs(7)).await;
        stuck.waits();
        let task = tokio::spawn(serve(stuck));
        activity.started(task.abort_handle());
        let watching = tokio::spawn({
            let activity = activity.clone();
            async move { activity.idle(PATIENCE).await }
        });
        assert!(task.await.unwrap_err().is_cancelled());
        assert_eq!(start.elapsed().as_secs(), 67);
        assert_eq!(activity.lock().open, 1);
        sleep(LONG).await;
        drop(lively);
        let idle = Instant::now();
        watching.await.unwrap();
        assert!(idle.elapsed() <= PATIENCE.idle);
    }

    #[tokio::test]
    async fn the_end_of_a_connection_is_the_end_of_its_streams() {
        let activity = Activity::new();
        let request = activity.stream();
        let task = tokio::spawn(async move {
            let _request = request;
            pending::<()>().await;
        });
        activity.started(task.abort_handle());
        activity.end_streams();
        assert!(task.await.unwrap_err().is_cancelled());
        let state = activity.lock();
        assert_eq!((state.open, state.streams.len()), (0, 0));
    }

    #[tokio::test]
    async fn a_task_is_never_taken_for_that_of_another_request() {
        let activity = Activity::new();
        drop(activity.stream());
        let other = activity.stream();
        activity.lock().newest = Some(0);
        activity.started(tokio::spawn(pending::<()>()).abort_handle());
        assert!(activity.lock().streams.values().all(|stream| stream.task.is_none()));
        drop(other);
    }

    #[test]
    fn an_answer_is_owed_unless_the_request_broke_off() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _guard = runtime.enter();
        let activity = Activity::new();
        let open = activity.request();
        assert!(!activity.body_waits(), "it may still come");
        assert!(activity.half_closed(false));
        drop(open);
        assert!(!activity.half_closed(false));
        assert!(activity.half_closed(true));
        let open = activity.request();
        assert!(activity.half_closed(false));
        assert_eq!([(); 3].map(|()| activity.body_waits()), [true, false, false]);
        assert!(!activity.half_closed(false) && !activity.half_closed(true));
        drop(open);
        let _next = activity.request();
        assert!(activity.half_closed(false) && activity.body_waits(), "each request is a new one");
    }
}
