//! Wakes: a hint that something has changed.

use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Waker},
};

use futures_core::Stream;

use crate::{LogKey, Op, SessionKey, TaskId};

/// Carries wakes between nodes.
///
/// A wake says only that it is worth to look. It comes after the write that it is about is visible; it may come twice,
/// and it may be lost. So whoever waits for one also looks every now and then. When wakes may have been lost, listeners
/// are told so by a [`Wake::Gap`] before any other.
///
/// Stores wake by themselves when they are written to.
pub trait Bus: fmt::Debug + Send + Sync {
    /// Wakes all who listen, on every node.
    fn wake<'a>(&'a self, topics: &'a [Topic]) -> Op<'a, ()>;

    /// The wakes from now on.
    fn listen(&self) -> Wakes;
}

/// What has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Topic {
    /// A task can be claimed.
    Ready,
    /// A task has changed, or is gone.
    Task {
        /// Which one.
        id: TaskId,
        /// The session that it was created in, so that the node which holds its stream can tell.
        session: Option<SessionKey>,
    },
    /// A log has changed.
    Log(LogKey),
    /// A session has changed, or is gone.
    Session(SessionKey),
}

/// What a listener is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "either something is known, or not")]
pub enum Wake {
    /// This has changed.
    Topic(Topic),
    /// Wakes were lost: anything may have changed.
    Gap,
}

/// The wakes that a listener is told, until the bus is gone. A [`Stream`].
///
/// Whoever does not keep up loses them, and is told so by a [`Wake::Gap`].
pub struct Wakes(Pin<Box<dyn Stream<Item = Wake> + Send>>);

impl Wakes {
    /// Wakes that come from elsewhere.
    pub fn new(stream: impl Stream<Item = Wake> + Send + 'static) -> Self {
        Self(Box::pin(stream))
    }

    /// The next one; `None` when the bus is gone. May be dropped at any time without losing one.
    pub async fn next(&mut self) -> Option<Wake> {
        std::future::poll_fn(|cx| self.0.as_mut().poll_next(cx)).await
    }
}

impl Stream for Wakes {
    type Item = Wake;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Wake>> {
        self.0.as_mut().poll_next(cx)
    }
}

impl fmt::Debug for Wakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wakes").finish_non_exhaustive()
    }
}

/// Tells wakes to the listeners of one process. What every bus needs at its end.
///
/// ```
/// use toolwire_store::{Hub, Topic, Wake};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let hub = Hub::new();
/// let mut wakes = hub.listen();
/// hub.send(&[Topic::Ready]);
/// assert_eq!(wakes.next().await, Some(Wake::Topic(Topic::Ready)));
/// drop(hub);
/// assert_eq!(wakes.next().await, None);
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Hub(Arc<Listeners>);

#[derive(Default)]
struct Listeners(Mutex<Vec<Weak<Mutex<Queue>>>>);

#[derive(Default)]
struct Queue {
    wakes: VecDeque<Topic>,
    gap: bool,
    closed: bool,
    waker: Option<Waker>,
}

/// How many wakes wait for one listener. When there are more, all of them become a gap.
const WAITING: usize = 1024;

/// How many of the last wakes are compared with a new one, which is dropped if it is among them.
const COMPARED: usize = 8;

impl Hub {
    /// One without listeners.
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells all listeners. Never waits.
    pub fn send(&self, topics: &[Topic]) {
        self.each(|queue| {
            for topic in topics {
                queue.push(*topic);
            }
        });
    }

    /// Tells all listeners that wakes were lost.
    pub fn gap(&self) {
        self.each(Queue::lose);
    }

    /// The wakes from now on.
    pub fn listen(&self) -> Wakes {
        let queue = Arc::new(Mutex::new(Queue::default()));
        let mut listeners = lock(&self.0.0);
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.push(Arc::downgrade(&queue));
        Wakes::new(Listening(queue))
    }

    fn each(&self, mut tell: impl FnMut(&mut Queue)) {
        self.0.each(&mut tell);
    }
}

impl Listeners {
    fn each(&self, tell: &mut dyn FnMut(&mut Queue)) {
        let mut wakers = Vec::new();
        for listener in lock(&self.0).iter().filter_map(Weak::upgrade) {
            let mut queue = lock(&listener);
            tell(&mut queue);
            wakers.extend(queue.waker.take());
        }
        // Without any lock: a waker may run whatever it likes.
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Listeners {
    fn drop(&mut self) {
        self.each(&mut |queue| queue.closed = true);
    }
}

impl Queue {
    fn push(&mut self, topic: Topic) {
        if self.wakes.iter().rev().take(COMPARED).any(|waiting| *waiting == topic) {
            return;
        }
        if self.wakes.len() >= WAITING {
            self.lose();
        } else {
            self.wakes.push_back(topic);
        }
    }

    /// A gap says all that the wakes before it said.
    fn lose(&mut self) {
        self.wakes.clear();
        self.gap = true;
    }

    fn pop(&mut self) -> Option<Wake> {
        if std::mem::take(&mut self.gap) {
            return Some(Wake::Gap);
        }
        self.wakes.pop_front().map(Wake::Topic)
    }
}

struct Listening(Arc<Mutex<Queue>>);

impl Stream for Listening {
    type Item = Wake;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Wake>> {
        let mut queue = lock(&self.0);
        if let Some(wake) = queue.pop() {
            return Poll::Ready(Some(wake));
        }
        if queue.closed {
            return Poll::Ready(None);
        }
        if !queue.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            queue.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listeners = lock(&self.0.0).iter().filter(|listener| listener.strong_count() > 0).count();
        f.debug_struct("Hub").field("listeners", &listeners).finish()
    }
}

/// No code here panics while it holds a lock with the data half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(number: usize) -> Topic {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        Topic::Session(SessionKey::from_bytes(bytes))
    }

    #[tokio::test]
    async fn a_listener_that_does_not_keep_up_is_told_of_a_gap_first() {
        let hub = Hub::new();
        let mut slow = hub.listen();
        for number in 0..=WAITING {
            hub.send(&[session(number)]);
        }
        hub.send(&[Topic::Ready, Topic::Ready]);
        assert_eq!(slow.next().await, Some(Wake::Gap));
        assert_eq!(slow.next().await, Some(Wake::Topic(Topic::Ready)));
        hub.gap();
        hub.send(&[session(1)]);
        assert_eq!(slow.next().await, Some(Wake::Gap));
        assert_eq!(slow.next().await, Some(Wake::Topic(session(1))));
        drop(hub);
        assert_eq!(slow.next().await, None);
    }

    #[tokio::test]
    async fn listeners_that_are_gone_are_forgotten() {
        let hub = Hub::new();
        for _ in 0..100 {
            drop(hub.listen());
        }
        let mut wakes = hub.listen();
        assert_eq!(lock(&hub.0.0).len(), 1);
        let next = tokio::spawn(async move { wakes.next().await });
        tokio::task::yield_now().await;
        hub.send(&[Topic::Ready]);
        assert_eq!(next.await.unwrap(), Some(Wake::Topic(Topic::Ready)));
    }
}
