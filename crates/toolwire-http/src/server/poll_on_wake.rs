//! Waiting for something that hardly ever happens, next to something that happens all the time.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

/// A future that is polled when it has asked for it, and not whenever the task is woken by something else.
///
/// A connection waits for its requests, and for the end of the server besides. To look for the end with every request takes
/// more than 300 instructions.
pub(crate) struct PollOnWake<F> {
    future: F,
    flag: Arc<WakeFlag>,
    /// The task that is woken with it.
    task: Option<Waker>,
}

#[derive(Default)]
struct WakeFlag {
    woken: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl<F> PollOnWake<F> {
    pub(crate) fn new(future: F) -> Self {
        Self { future, flag: Arc::default(), task: None }
    }
}

impl<F: Future + Unpin> Future for PollOnWake<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        if !this.task.as_ref().is_some_and(|known| known.will_wake(task.waker())) {
            this.task = Some(task.waker().clone());
            this.flag.task.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&this.task);
            this.flag.woken.store(true, Ordering::Release);
        }
        // Looking is cheaper than taking, and mostly enough.
        if !this.flag.woken.load(Ordering::Relaxed) || !this.flag.woken.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        let waker = Waker::from(Arc::clone(&this.flag));
        Pin::new(&mut this.future).poll(&mut Context::from_waker(&waker))
    }
}

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(task) = task {
            task.wake();
        }
    }
}

impl<F> fmt::Debug for PollOnWake<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PollOnWake").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, future::poll_fn, pin::pin};

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn it_is_polled_when_it_is_woken_and_not_otherwise() {
        let polls = Cell::new(0);
        let (send, mut receive) = oneshot::channel();
        let mut waiting = pin!(PollOnWake::new(poll_fn(|task| {
            polls.set(polls.get() + 1);
            Pin::new(&mut receive).poll(task)
        })));
        for _ in 0..5 {
            assert!(poll_fn(|task| Poll::Ready(waiting.as_mut().poll(task))).await.is_pending());
            tokio::task::yield_now().await;
        }
        assert_eq!(polls.get(), 1);
        let (done, received) = tokio::join!(async { send.send(7) }, waiting);
        assert_eq!((done, received), (Ok(()), Ok(7)));
        assert_eq!(polls.get(), 2);
    }

    #[tokio::test]
    async fn it_follows_to_another_task() {
        let (send, receive) = oneshot::channel();
        let mut waiting = PollOnWake::new(receive);
        assert!(Pin::new(&mut waiting).poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let elsewhere = tokio::spawn(waiting);
        tokio::task::yield_now().await;
        send.send(7).unwrap();
        assert_eq!(elsewhere.await.unwrap(), Ok(7));
    }
}
