//! Telling clients that something has changed: one way to say it, whichever era listens.
//!
//! What is kept for a subscriber is a set of facts, not a queue of events: "the tools have changed" is true
//! once, however often it was said. So a slow reader owes at most one message per fact.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use tokio::sync::Notify;
use toolwire_protocol::{
    Method,
    envelope::write_notification,
    wire::{Meta, NotificationParams, ResourceUpdatedNotificationParams, SubscriptionFilter},
};

/// Tells clients about changes. Cheap to clone.
///
/// ```
/// use toolwire_server::{Server, resource};
///
/// let server = Server::builder("demo", "1.0").resource(resource("demo://x", || async { "x" })).build().unwrap();
/// server.notify().resource_updated("demo://x");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Notifier(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    subscribers: Mutex<Vec<Weak<Subscriber>>>,
    closed: AtomicBool,
}

impl Notifier {
    /// The list of tools has changed. Adding and removing tools says so by itself.
    pub fn tools_changed(&self) {
        self.publish(&Change::Tools);
    }

    /// The list of prompts has changed. Adding and removing prompts says so by itself.
    pub fn prompts_changed(&self) {
        self.publish(&Change::Prompts);
    }

    /// The list of resources or templates has changed. Adding and removing them says so by itself.
    pub fn resources_changed(&self) {
        self.publish(&Change::Resources);
    }

    /// The contents of a resource have changed.
    pub fn resource_updated(&self, uri: impl Into<String>) {
        self.publish(&Change::Updated(uri.into()));
    }

    /// How many subscribers there are: legacy sessions and `subscriptions/listen` requests.
    pub fn subscribers(&self) -> usize {
        let subscribers = self.0.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        subscribers.iter().filter(|subscriber| subscriber.strong_count() > 0).count()
    }

    fn publish(&self, change: &Change) {
        let mut subscribers = self.0.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        subscribers.retain(|subscriber| match subscriber.upgrade() {
            Some(subscriber) => {
                subscriber.offer(change);
                true
            }
            None => false,
        });
    }

    pub(crate) fn subscribe(&self, filter: Filter) -> Arc<Subscriber> {
        let subscriber = Arc::new(Subscriber {
            filter: Mutex::new(filter),
            pending: Mutex::default(),
            changed: Notify::new(),
            notifier: self.clone(),
        });
        let mut subscribers = self.0.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        // Those who are gone are taken out before the list grows, also where nothing is ever published.
        if subscribers.len() == subscribers.capacity() {
            subscribers.retain(|known| known.strong_count() > 0);
        }
        subscribers.push(Arc::downgrade(&subscriber));
        drop(subscribers);
        subscriber
    }

    /// Ends every subscription in an orderly way.
    pub(crate) fn close(&self) {
        self.0.closed.store(true, Ordering::Release);
        let subscribers = self.0.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        for subscriber in subscribers.iter().filter_map(Weak::upgrade) {
            subscriber.changed.notify_one();
        }
    }
}

/// Something that has changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    Tools,
    Prompts,
    Resources,
    Updated(String),
}

impl Change {
    /// The notification that tells a client of it, with `_meta` where that is wanted.
    pub(crate) fn message(self, meta: Option<Meta>) -> serde_json::Result<Bytes> {
        let method = match self {
            Self::Tools => Method::ToolListChanged,
            Self::Prompts => Method::PromptListChanged,
            Self::Resources => Method::ResourceListChanged,
            Self::Updated(uri) => {
                let mut params = ResourceUpdatedNotificationParams::new(uri);
                params.meta = meta;
                return write_notification(&Method::ResourceUpdated.into(), &params);
            }
        };
        let mut params = NotificationParams::new();
        params.meta = meta;
        write_notification(&method.into(), &params)
    }
}

/// What a subscriber wants to hear of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
    pub(crate) uris: BTreeSet<String>,
}

impl Filter {
    /// What a legacy client gets without asking.
    pub(crate) fn unsolicited() -> Self {
        Self { tools: true, prompts: true, resources: true, uris: BTreeSet::new() }
    }

    pub(crate) fn of(wanted: &SubscriptionFilter) -> Self {
        let on = |flag: Option<bool>| flag == Some(true);
        Self {
            tools: on(wanted.tools_list_changed),
            prompts: on(wanted.prompts_list_changed),
            resources: on(wanted.resources_list_changed),
            uris: wanted.resource_subscriptions.iter().flatten().cloned().collect(),
        }
    }

    fn wants(&self, change: &Change) -> bool {
        match change {
            Change::Tools => self.tools,
            Change::Prompts => self.prompts,
            Change::Resources => self.resources,
            Change::Updated(uri) => {
                self.uris.contains(uri) || self.uris.iter().any(|parent| is_below(uri, parent))
            }
        }
    }
}

/// A subscription covers what lies below its URI: a directory's files, a document's parts.
fn is_below(uri: &str, parent: &str) -> bool {
    uri.strip_prefix(parent).is_some_and(|rest| parent.ends_with('/') || rest.starts_with(['/', '#']))
}

/// One listener's unread changes.
#[derive(Debug)]
pub(crate) struct Subscriber {
    filter: Mutex<Filter>,
    pending: Mutex<BTreeSet<Change>>,
    changed: Notify,
    notifier: Notifier,
}

impl Subscriber {
    fn offer(&self, change: &Change) {
        if self.filter.lock().unwrap_or_else(PoisonError::into_inner).wants(change) {
            self.pending.lock().unwrap_or_else(PoisonError::into_inner).insert(change.clone());
            self.changed.notify_one();
        }
    }

    /// Changes what the subscriber wants.
    pub(crate) fn update<T>(&self, change: impl FnOnce(&mut Filter) -> T) -> T {
        change(&mut self.filter.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The next change; `None` when the server shuts down.
    pub(crate) async fn next(&self) -> Option<Change> {
        loop {
            if let Some(change) = self.pending.lock().unwrap_or_else(PoisonError::into_inner).pop_first() {
                return Some(change);
            }
            if self.notifier.0.closed.load(Ordering::Acquire) {
                return None;
            }
            self.changed.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_change_said_often_is_heard_once() {
        let notifier = Notifier::default();
        let subscriber = notifier.subscribe(Filter::unsolicited());
        for _ in 0..1000 {
            notifier.tools_changed();
        }
        notifier.resource_updated("a://not-subscribed");
        notifier.close();
        assert_eq!(subscriber.next().await, Some(Change::Tools));
        assert_eq!(subscriber.next().await, None);
    }

    #[tokio::test]
    async fn only_what_was_asked_for_is_heard() {
        let notifier = Notifier::default();
        let subscriber =
            notifier.subscribe(Filter { uris: ["f:///a".to_owned()].into(), ..Filter::default() });
        notifier.tools_changed();
        notifier.resource_updated("f:///b");
        notifier.resource_updated("f:///a/child");
        notifier.resource_updated("f:///ab");
        notifier.close();
        assert_eq!(subscriber.next().await, Some(Change::Updated("f:///a/child".into())));
        assert_eq!(subscriber.next().await, None);
    }

    #[test]
    fn a_subscriber_that_is_gone_costs_nothing() {
        let notifier = Notifier::default();
        drop(notifier.subscribe(Filter::unsolicited()));
        notifier.tools_changed();
        assert!(notifier.0.subscribers.lock().unwrap().is_empty());
        for _ in 0..10_000 {
            drop(notifier.subscribe(Filter::unsolicited()));
        }
        assert!(notifier.0.subscribers.lock().unwrap().len() < 10);
    }
}
