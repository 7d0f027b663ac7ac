//! Handlers that block.
//!
//! On a pipe a request is polled once where it was read, because most handlers are done then. One that blocks its
//! thread holds up everything behind it. So every first poll is timed, and a route whose first poll took long gets a
//! task for each call from the next one on. A machine may have stalled instead, so the route is polled where it was
//! read again once many of its calls in a row were quick.
//!
//! The time is that of the runtime: where that is paused, no poll takes any.

use std::{
    collections::HashMap,
    future::Future,
    pin::Pin,
    sync::{
        PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context as Task, Poll},
    time::Duration,
};

use tokio::time::Instant;
use toolwire_protocol::{Method, MethodName};

use super::{Call, Outcome};
use crate::Context;

/// A first poll that takes this long holds others up. Longer than a thread is kept waiting by a busy machine.
const SLOW_POLL: Duration = Duration::from_millis(20);

/// The number of first polls in a row that must be quick before a route is no longer slow.
const QUICK_POLLS: u32 = 1000;

/// The bit of all methods that are not of the protocol, which has fewer.
const CUSTOM_BIT: u32 = 63;
const _: () = assert!(Method::ALL.len() <= CUSTOM_BIT as usize);

/// A method and, for `tools/call`, the tool.
type RouteKey = (MethodName, Option<Box<str>>);

/// The routes whose first poll was slow. There are no more of them than there are methods and tools.
#[derive(Debug, Default)]
pub(crate) struct SlowRoutes {
    /// The methods that have any, each as a bit, which can be read without the lock.
    methods: AtomicU64,
    /// For each, the number of first polls since the last slow one.
    routes: RwLock<HashMap<RouteKey, u32>>,
}

fn key(cx: &Context) -> RouteKey {
    let tool = cx.target().filter(|_| cx.method().known() == Some(Method::CallTool));
    (cx.method().clone(), tool.map(Into::into))
}

/// Returns the bit of a method. Those that are not of the protocol share one.
fn bit(method: &MethodName) -> u64 {
    1 << method.known().map_or(CUSTOM_BIT, |method| method as u32)
}

/// Returns whether the request is for something that exists for its caller, so that callers neither make the table grow nor
/// learn from the order of answers that a tool is hidden from them.
fn exists(cx: &Context) -> bool {
    if cx.method().known() != Some(Method::CallTool) {
        return true;
    }
    let catalog = cx.server().catalog();
    cx.target().is_some_and(|name| catalog.tools.get(name, &cx.viewer()).is_some())
}

impl SlowRoutes {
    /// Returns whether the route of a request is slow.
    pub(crate) fn has(&self, cx: &Context) -> bool {
        if self.methods.load(Ordering::Relaxed) & bit(cx.method()) == 0 {
            return false;
        }
        let slow = self.routes.read().unwrap_or_else(PoisonError::into_inner).contains_key(&key(cx));
        slow && exists(cx)
    }

    /// Polls a call for the first time and notes whether that was slow, or quick on a route that is known to be slow.
    pub(crate) fn poll_first(&self, call: &mut Call, task: &mut Task<'_>, known: bool) -> Poll<Outcome> {
        let started = Instant::now();
        let polled = Pin::new(&mut *call).poll(task);
        let slow = started.elapsed() >= SLOW_POLL;
        if slow || known {
            self.note(call.context(), slow);
        }
        polled
    }

    fn note(&self, cx: &Context, slow: bool) {
        if !exists(cx) {
            return;
        }
        let key = key(cx);
        let mut routes = self.routes.write().unwrap_or_else(PoisonError::into_inner);
        if slow {
            tracing::debug!(request = ?cx, "the first poll of a handler took long; from now on it gets a task");
            routes.insert(key, 0);
        } else if let Some(quick) = routes.get_mut(&key) {
            *quick += 1;
            if *quick >= QUICK_POLLS {
                routes.remove(&key);
            }
        }
        let methods = routes.keys().fold(0, |methods, (method, _)| methods | bit(method));
        self.methods.store(methods, Ordering::Relaxed);
    }
}
