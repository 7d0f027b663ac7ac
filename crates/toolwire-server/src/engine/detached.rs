//! A handler that goes on after its request was answered.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context as Task, Poll},
};

use toolwire_protocol::RpcError;

use super::Messages;
use crate::{Context, Reply, dispatch::Shielded, handler::Answer, outbox::Outbox};

/// A run of a handler that has left its request. As a future, it resolves to what the handler returns; dropping it stops
/// the handler.
///
/// The request can be answered, cancelled or lost with its connection; the run does not notice. The handler can no longer
/// ask, since nobody waits for it, and what it sends goes nowhere, unless it is to be [read](Self::with_messages). The
/// place of the request on the ledgers and its clock stay behind: whoever drives the run limits how many there are, and
/// for how long.
///
/// ```
/// use toolwire_server::{Context, Reply, Route, engine::DetachedRun};
/// # use toolwire_server::IntoToolOutput;
/// use tower_service::Service;
///
/// /// Starts the work and answers at once, as the service of a layer would do.
/// fn start(route: &mut Route, cx: Context) -> Reply {
///     let work = route.call(cx.clone());
///     tokio::spawn(DetachedRun::new(&cx, work));
///     "it has been started".into_tool_output().unwrap()
/// }
/// ```
#[must_use = "dropping it stops the handler"]
pub struct DetachedRun {
    cx: Context,
    /// `None` once it is done.
    work: Option<Shielded>,
}

impl DetachedRun {
    /// Takes `work`, which is what the handler of `cx` does, out of its request. It may have been polled before.
    pub fn new(cx: &Context, work: Pin<Box<dyn Future<Output = Result<Reply, RpcError>> + Send>>) -> Self {
        let outbox = Outbox::own(cx.0.ledger.clone());
        outbox.abandon();
        Self::sending(cx, work, outbox)
    }

    /// The same, with what the handler sends from now on, which ends with the run. It has to be read: a handler that
    /// must not lose a message waits for its reader.
    pub fn with_messages(
        cx: &Context,
        work: Pin<Box<dyn Future<Output = Result<Reply, RpcError>> + Send>>,
    ) -> (Self, Messages) {
        let run = Self::sending(cx, work, Outbox::own(cx.0.ledger.clone()));
        let messages = Messages::of(cx.outbox());
        (run, messages)
    }

    fn sending(cx: &Context, work: Answer, outbox: Outbox) -> Self {
        // A run that left before keeps what it has.
        cx.0.detached.get_or_init(|| Box::new(outbox));
        Self { cx: cx.clone(), work: Some(Shielded(work)) }
    }
}

impl Future for DetachedRun {
    type Output = Result<Reply, RpcError>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<Self::Output> {
        let Some(work) = &mut self.work else { return Poll::Pending };
        let result = std::task::ready!(Pin::new(work).poll(task));
        self.work = None;
        self.cx.outbox().close_own();
        Poll::Ready(result)
    }
}

impl Drop for DetachedRun {
    fn drop(&mut self) {
        if self.work.take().is_some() {
            // Tells tasks that the handler has started.
            self.cx.cancel().cancel();
            self.cx.outbox().abandon();
        }
    }
}

impl fmt::Debug for DetachedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DetachedRun").field(&self.cx).finish()
    }
}
