//! Watching a server: who comes, who leaves, what is asked.

use std::{fmt, panic::AssertUnwindSafe, sync::Arc};

use crate::{Caller, CallerId, Context};

/// Somebody who watches a server; see [`ServerBuilder::observe`](crate::ServerBuilder::observe).
///
/// It is told what happens and can change nothing; what decides belongs into a [layer](crate::ServerBuilder::layer).
/// Its methods are called where messages are read, so they must return at once. A panic in one of them is logged and
/// goes no further.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use toolwire_server::{CallerId, Observer, Server};
///
/// #[derive(Default)]
/// struct Present(AtomicUsize);
///
/// impl Observer for Present {
///     fn connected(&self, _: CallerId) {
///         self.0.fetch_add(1, Ordering::Relaxed);
///     }
///
///     fn left(&self, _: CallerId) {
///         self.0.fetch_sub(1, Ordering::Relaxed);
///     }
/// }
///
/// let server = Server::builder("demo", "1.0").observe(Present::default()).build().unwrap();
/// ```
pub trait Observer: Send + Sync + 'static {
    /// A client has connected by a pipe or a socket. Nothing is known of it yet.
    fn connected(&self, id: CallerId) {
        let _ = id;
    }

    /// A client has shaken hands: a legacy session begins, on whatever transport, with an id of its own.
    fn session_started(&self, caller: &Caller) {
        let _ = caller;
    }

    /// A connection or a legacy session is over.
    fn left(&self, id: CallerId) {
        let _ = id;
    }

    /// A request was let in and is about to be served. What was refused before is not told.
    fn asked(&self, cx: &Context) {
        let _ = cx;
    }
}

/// All who watch.
#[derive(Clone, Default)]
pub(crate) struct Observers(Option<Arc<[Arc<dyn Observer>]>>);

impl Observers {
    pub(crate) fn new(observers: Vec<Arc<dyn Observer>>) -> Self {
        Self((!observers.is_empty()).then(|| observers.into()))
    }

    pub(crate) fn asked(&self, cx: &Context) {
        self.tell(|observer| observer.asked(cx));
    }

    /// Tells of a connection, and of its end when the presence is dropped.
    pub(crate) fn connection(&self, id: CallerId) -> Presence {
        self.tell(|observer| observer.connected(id));
        Presence { observers: self.clone(), id }
    }

    /// The same for a session.
    pub(crate) fn session(&self, caller: &Caller) -> Presence {
        self.tell(|observer| observer.session_started(caller));
        Presence { observers: self.clone(), id: caller.id() }
    }

    #[inline]
    fn tell(&self, tell: impl Fn(&dyn Observer)) {
        for observer in self.0.iter().flat_map(|all| all.iter()) {
            if std::panic::catch_unwind(AssertUnwindSafe(|| tell(&**observer))).is_err() {
                tracing::error!("an observer panicked");
            }
        }
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Observers({})", self.0.as_ref().map_or(0, |all| all.len()))
    }
}

/// A connection or a session that observers know of.
#[derive(Debug)]
pub(crate) struct Presence {
    observers: Observers,
    id: CallerId,
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.observers.tell(|observer| observer.left(self.id));
    }
}
