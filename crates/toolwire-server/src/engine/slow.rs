//! Handlers that block.
//!
//! On a pipe a request is polled once where it was read, because most handlers are done then. One that blocks its
//! thread holds up everything behind it. So a route whose first poll took long is remembered, and gets a task from
//! then on.

use std::{
    collections::HashSet,
    sync::{
        PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use toolwire_protocol::Method;

use crate::Context;

/// A first poll that takes longer than this holds others up. Longer than a thread is kept waiting by a busy machine.
const SLOW_POLL: Duration = Duration::from_millis(20);

/// The routes whose first poll was slow. There are no more of them than there are methods and tools.
#[derive(Debug, Default)]
pub(crate) struct SlowRoutes {
    any: AtomicBool,
    routes: RwLock<HashSet<(Method, Option<Box<str>>)>>,
}

impl SlowRoutes {
    /// Whether the first poll of such a request was slow before.
    pub(crate) fn has(&self, cx: &Context) -> bool {
        if !self.any.load(Ordering::Relaxed) {
            return false;
        }
        let Some(method) = cx.method().known() else { return false };
        let tool = (method == Method::CallTool).then(|| cx.target().map(Into::into)).flatten();
        self.routes.read().unwrap_or_else(PoisonError::into_inner).contains(&(method, tool))
    }

    /// Notes how long the first poll of a request took.
    pub(crate) fn note(&self, cx: &Context, started: Instant) {
        if started.elapsed() < SLOW_POLL {
            return;
        }
        let Some(method) = cx.method().known() else { return };
        // Only the name of a tool that exists: a caller must not make the table grow.
        let tool = cx.0.tool.get().map(|route| route.tool.name.as_str().into());
        if method == Method::CallTool && tool.is_none() {
            return;
        }
        tracing::debug!(request = ?cx, "the first poll of a handler took long; from now on it gets a task");
        self.routes.write().unwrap_or_else(PoisonError::into_inner).insert((method, tool));
        self.any.store(true, Ordering::Relaxed);
    }
}
