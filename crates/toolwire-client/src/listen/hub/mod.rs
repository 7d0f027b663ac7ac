//! Where changes arrive and listeners pick them up.
//!
//! A change is a state, not a story: a listener that is slow is told once that the tools have changed, however
//! often they did. So a listener holds at most one mark for each thing it listens to.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};

use toolwire_protocol::{RequestId, wire::SubscriptionFilter};

use super::{Change, EndReason};
use crate::{
    lock::lock,
    settings::MAX_WAITING_UPDATES,
    waiting::{Charge, Share, WaitingBytes},
};

/// All listeners of one connection.
#[derive(Debug)]
pub(crate) struct Hub {
    state: Mutex<HubState>,
    waiting_bytes: Arc<WaitingBytes>,
    /// How many listeners there may be.
    limit: usize,
}

#[derive(Debug, Default)]
struct HubState {
    boxes: Vec<Arc<ChangeBox>>,
    /// How many legacy listeners watch each resource.
    watched: HashMap<String, usize>,
    closed: Option<Box<str>>,
    /// Why the server cannot be heard for now.
    lost: Option<Box<str>>,
}

/// What one listener has not yet been told.
#[derive(Debug)]
pub(crate) struct ChangeBox {
    state: Mutex<BoxState>,
}

#[derive(Debug, Default)]
struct BoxState {
    /// The id of the listen request; `None` in the legacy era, where notifications have no such mark.
    tag: Option<RequestId>,
    filter: SubscriptionFilter,
    tools: bool,
    prompts: bool,
    resources: bool,
    updated: VecDeque<(String, Charge)>,
    resync: bool,
    acknowledged: Option<SubscriptionFilter>,
    cancelled: bool,
    end: Option<EndReason>,
    /// Woken by whatever happens: the listener, or whoever waits for the acknowledgement.
    waker: Option<Waker>,
}

impl Hub {
    pub(crate) fn new(waiting_bytes: Arc<WaitingBytes>, limit: usize) -> Self {
        Self { state: Mutex::default(), waiting_bytes, limit }
    }

    /// How many listeners there are.
    pub(crate) fn len(&self) -> usize {
        lock(&self.state).boxes.len()
    }

    /// Adds a listener, unless there are too many.
    pub(crate) fn open(&self, filter: SubscriptionFilter) -> Option<Arc<ChangeBox>> {
        let mut hub = lock(&self.state);
        if hub.boxes.len() >= self.limit {
            return None;
        }
        let closed = hub.closed.as_deref().map(|why| EndReason::Closed(why.to_owned()));
        let end = closed.or_else(|| hub.lost.as_deref().map(|why| EndReason::Lost(why.to_owned())));
        let state = Mutex::new(BoxState { filter, end, ..BoxState::default() });
        let changes = Arc::new(ChangeBox { state });
        hub.boxes.push(Arc::clone(&changes));
        Some(changes)
    }

    pub(crate) fn remove(&self, changes: &Arc<ChangeBox>) {
        lock(&self.state).boxes.retain(|other| !Arc::ptr_eq(other, changes));
    }

    /// Passes a change on to those who listen to it.
    pub(crate) fn publish(&self, tag: Option<&RequestId>, change: &Change) {
        self.each(|state| {
            let wanted = match (&state.tag, tag) {
                (Some(own), tag) => Some(own) == tag,
                (None, _) => state.wants(change),
            };
            wanted && state.put(change, &self.waiting_bytes)
        });
    }

    pub(crate) fn acknowledged(&self, tag: &RequestId, filter: &SubscriptionFilter) {
        self.each(|state| {
            let own = state.tag.as_ref() == Some(tag);
            if own {
                state.acknowledged = Some(agreed(&state.filter, filter));
            }
            own
        });
    }

    /// The server gave up a subscription.
    pub(crate) fn cancelled(&self, tag: &RequestId) {
        self.each(|state| {
            let own = state.tag.as_ref() == Some(tag);
            state.cancelled |= own;
            own
        });
    }

    /// The connection is over, and with it every listener.
    pub(crate) fn closed(&self, why: &str) {
        lock(&self.state).closed.get_or_insert_with(|| why.into());
        self.each(|state| {
            state.end.get_or_insert_with(|| EndReason::Closed(why.to_owned()));
            true
        });
    }

    /// The server cannot be heard any more, so every listener ends, and new ones are of no use.
    pub(crate) fn lost(&self, why: &str) {
        lock(&self.state).lost = Some(why.into());
        self.each(|state| {
            state.end.get_or_insert_with(|| EndReason::Lost(why.to_owned()));
            true
        });
    }

    /// The server can be heard again.
    pub(crate) fn found(&self) {
        lock(&self.state).lost = None;
    }

    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.state).closed.is_some()
    }

    /// Notes that one more listener watches `uri`, and says whether it is the first.
    pub(crate) fn watch(&self, uri: &str) -> bool {
        let mut hub = lock(&self.state);
        let count = hub.watched.entry(uri.to_owned()).or_default();
        *count += 1;
        *count == 1
    }

    /// Notes that one listener less watches `uri`, and says whether it was the last.
    pub(crate) fn unwatch(&self, uri: &str) -> bool {
        let mut hub = lock(&self.state);
        let Some(count) = hub.watched.get_mut(uri) else { return false };
        *count -= 1;
        let last = *count == 0;
        if last {
            hub.watched.remove(uri);
        }
        last
    }

    /// The resources that legacy listeners watch.
    pub(crate) fn watched(&self) -> Vec<String> {
        lock(&self.state).watched.keys().cloned().collect()
    }

    pub(crate) fn is_watched(&self, uri: &str) -> bool {
        lock(&self.state).watched.contains_key(uri)
    }

    /// Every listener may have missed something.
    pub(crate) fn resync(&self) {
        self.each(|state| !std::mem::replace(&mut state.resync, true));
    }

    /// Does something with every listener and wakes those for which it says `true`.
    fn each(&self, mut act: impl FnMut(&mut BoxState) -> bool) {
        let wakers: Vec<Waker> = {
            let hub = lock(&self.state);
            let woken = hub.boxes.iter().filter_map(|changes| {
                let mut state = lock(&changes.state);
                if act(&mut state) { state.waker.take() } else { None }
            });
            woken.collect()
        };
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl ChangeBox {
    /// From now on only notifications of this subscription count.
    pub(super) fn subscribe(&self, id: &RequestId) {
        let mut state = lock(&self.state);
        state.tag = Some(id.clone());
        state.acknowledged = None;
        state.cancelled = false;
    }

    pub(super) fn resync(&self) {
        lock(&self.state).resync = true;
    }

    /// Ends the subscription. That the server ended it in good order is known later than that the connection is
    /// over, but says more.
    pub(super) fn end(&self, reason: EndReason) {
        let mut state = lock(&self.state);
        if state.end.is_none() || matches!(reason, EndReason::Graceful) {
            state.end = Some(reason);
        }
    }

    /// Whether the connection or the subscription is over.
    pub(super) fn has_ended(&self) -> bool {
        lock(&self.state).end.is_some()
    }

    /// What the server agreed to; [`EndReason`] if it will not.
    pub(super) fn poll_acknowledged(&self, cx: &mut Context<'_>) -> Poll<Option<SubscriptionFilter>> {
        let mut state = lock(&self.state);
        if let Some(filter) = state.acknowledged.take() {
            return Poll::Ready(Some(filter));
        }
        if state.cancelled || state.end.is_some() {
            return Poll::Ready(None);
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Whether the server gave the subscription up.
    pub(super) fn poll_cancelled(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = lock(&self.state);
        if state.cancelled || state.end.is_some() {
            return Poll::Ready(());
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Whether the connection is over.
    pub(super) fn poll_ended(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = lock(&self.state);
        if state.end.is_some() {
            return Poll::Ready(());
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// The next change; after the end there is none.
    pub(super) fn poll_change(&self, cx: &mut Context<'_>) -> Poll<Change> {
        let mut state = lock(&self.state);
        if let Some(change) = state.take() {
            return Poll::Ready(change);
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl BoxState {
    /// Whether an unmarked notification is for this listener.
    fn wants(&self, change: &Change) -> bool {
        match change {
            Change::Tools => self.filter.tools_list_changed == Some(true),
            Change::Prompts => self.filter.prompts_list_changed == Some(true),
            Change::Resources => self.filter.resources_list_changed == Some(true),
            Change::Updated(uri) => {
                self.filter.resource_subscriptions.iter().flatten().any(|watched| covers(watched, uri))
            }
            Change::Resync | Change::Ended(_) => false,
        }
    }

    /// Notes a change and says whether it is news.
    fn put(&mut self, change: &Change, waiting_bytes: &Arc<WaitingBytes>) -> bool {
        match change {
            Change::Tools => !std::mem::replace(&mut self.tools, true),
            Change::Prompts => !std::mem::replace(&mut self.prompts, true),
            Change::Resources => !std::mem::replace(&mut self.resources, true),
            Change::Updated(uri) => {
                self.updated.iter().all(|(waiting, _)| waiting != uri) && self.put_updated(uri, waiting_bytes)
            }
            Change::Resync | Change::Ended(_) => false,
        }
    }

    fn put_updated(&mut self, uri: &str, waiting_bytes: &Arc<WaitingBytes>) -> bool {
        let room = self.updated.len() < MAX_WAITING_UPDATES;
        if let Some(charge) = waiting_bytes.guard(uri.len(), Share::Quarter).filter(|_| room) {
            self.updated.push_back((uri.to_owned(), charge));
        } else {
            // Too much to list: the listener has to look at everything anyway.
            self.updated.clear();
            self.resync = true;
        }
        true
    }

    fn take(&mut self) -> Option<Change> {
        if std::mem::take(&mut self.resync) {
            Some(Change::Resync)
        } else if std::mem::take(&mut self.tools) {
            Some(Change::Tools)
        } else if std::mem::take(&mut self.prompts) {
            Some(Change::Prompts)
        } else if std::mem::take(&mut self.resources) {
            Some(Change::Resources)
        } else if let Some((uri, _)) = self.updated.pop_front() {
            Some(Change::Updated(uri))
        } else {
            self.end.clone().map(Change::Ended)
        }
    }
}

/// What a server has agreed to: never more than it was asked for, whatever it says.
fn agreed(asked: &SubscriptionFilter, granted: &SubscriptionFilter) -> SubscriptionFilter {
    let both = |asked: Option<bool>, granted: Option<bool>| granted.filter(|granted| asked == Some(*granted));
    let mut agreed = SubscriptionFilter::new();
    agreed.tools_list_changed = both(asked.tools_list_changed, granted.tools_list_changed);
    agreed.prompts_list_changed = both(asked.prompts_list_changed, granted.prompts_list_changed);
    agreed.resources_list_changed = both(asked.resources_list_changed, granted.resources_list_changed);
    agreed.resource_subscriptions = granted.resource_subscriptions.as_ref().map(|granted| {
        let granted: HashSet<&String> = granted.iter().collect();
        asked.resource_subscriptions.iter().flatten().filter(|uri| granted.contains(uri)).cloned().collect()
    });
    agreed.task_ids = granted.task_ids.as_ref().map(|granted| {
        let granted: HashSet<&String> = granted.iter().collect();
        asked.task_ids.iter().flatten().filter(|id| granted.contains(id)).cloned().collect()
    });
    // What extensions have added to the filter, by name.
    for (name, value) in asked.extra.iter().filter(|(name, value)| granted.extra.get(name) == Some(value)) {
        agreed.extra.insert(name, value.clone());
    }
    agreed
}

/// Whether a change of `uri` concerns whoever watches `watched`: the resource itself, or a part of it.
fn covers(watched: &str, uri: &str) -> bool {
    uri.strip_prefix(watched)
        .is_some_and(|rest| rest.is_empty() || watched.ends_with('/') || rest.starts_with(['/', '#']))
}

#[cfg(test)]
mod tests;
