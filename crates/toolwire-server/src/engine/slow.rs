//! Handlers that block.
//!
//! On a pipe a request is polled once where it was read, because most handlers are done then. One that blocks its
//! thread holds up everything behind it. So a route whose first poll took long twice is remembered, and gets a task
//! from then on. Twice, because the first call of a route also makes what is made once, like its schema.
//!
//! The time is that of the runtime: where that is paused, no poll takes any.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{
        PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;
use toolwire_protocol::Method;

use crate::Context;

/// A first poll that takes longer than this holds others up. Longer than a thread is kept waiting by a busy machine.
const SLOW_POLL: Duration = Duration::from_millis(20);

/// A method and, for `tools/call`, the tool.
type RouteKey = (Method, Option<Box<str>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Polls {
    SlowOnce,
    Slow,
}

/// How many first polls are timed, each of them.
const ALL_OF_THE_FIRST: u32 = 8;

/// Of how many that follow one is timed.
const ONE_IN: u32 = 16;

/// The routes whose first poll was slow. There are no more of them than there are methods and tools.
#[derive(Debug, Default)]
pub(crate) struct SlowRoutes {
    any: AtomicBool,
    polls: AtomicU32,
    routes: RwLock<HashMap<RouteKey, Polls>>,
}

fn sees_tool(cx: &Context) -> bool {
    let catalog = cx.server().catalog();
    cx.target().is_some_and(|name| catalog.tools.get(name, &cx.viewer()).is_some())
}

impl SlowRoutes {
    /// Whether the first poll of such a request was slow before.
    pub(crate) fn has(&self, cx: &Context) -> bool {
        if !self.any.load(Ordering::Relaxed) {
            return false;
        }
        let Some(method) = cx.method().known() else { return false };
        let tool = (method == Method::CallTool).then(|| cx.target().map(Into::into)).flatten();
        let routes = self.routes.read().unwrap_or_else(PoisonError::into_inner);
        let slow = routes.get(&(method, tool)) == Some(&Polls::Slow);
        // The order of answers must not tell that there is a tool which is hidden.
        slow && (method != Method::CallTool || sees_tool(cx))
    }

    /// Begins to take the time of a first poll: of each of the first, and of some of those that follow, because
    /// looking at the clock takes as long as a fiftieth of a request.
    pub(crate) fn start(&self) -> Option<Instant> {
        let poll = self.polls.fetch_add(1, Ordering::Relaxed);
        (poll < ALL_OF_THE_FIRST || poll.is_multiple_of(ONE_IN)).then(Instant::now)
    }

    /// Notes how long the first poll of a request took, if its time was taken.
    pub(crate) fn note(&self, cx: &Context, started: Option<Instant>) {
        if started.is_none_or(|started| started.elapsed() < SLOW_POLL) {
            return;
        }
        let Some(method) = cx.method().known() else { return };
        // Only the name of a tool that exists: a caller must not make the table grow.
        let tool = cx.0.tool.get().map(|route| route.tool.name.as_str().into());
        if method == Method::CallTool && tool.is_none() {
            return;
        }
        let mut routes = self.routes.write().unwrap_or_else(PoisonError::into_inner);
        match routes.entry((method, tool)) {
            Entry::Vacant(route) => {
                route.insert(Polls::SlowOnce);
            }
            Entry::Occupied(mut route) => {
                tracing::debug!(request = ?cx, "the first poll of a handler takes long; from now on it gets a task");
                route.insert(Polls::Slow);
                self.any.store(true, Ordering::Relaxed);
            }
        }
    }
}
