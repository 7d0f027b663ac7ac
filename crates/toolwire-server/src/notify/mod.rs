//! Telling clients that something has changed: one way to say it, whichever era listens.
//!
//! What is kept for a subscriber is a set of facts, not a queue of events: "the tools have changed" is true
//! once, however often it was said. So a slow reader owes at most one message per fact, and of what lies below the URI that
//! it has subscribed to at most [`UPDATES`] before all of it becomes one fact. Only notifications of one's own are queued,
//! as nothing is known of what they mean.

mod custom;
mod reader;
mod tasks;

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use serde::{Serialize, ser::Error as _};
use tokio::sync::Notify;
use toolwire_protocol::{
    Method,
    envelope::write_notification,
    wire::{Meta, NotificationParams, ResourceUpdatedNotificationParams, SubscriptionFilter},
};
use toolwire_store::TaskId;

use crate::Principal;

pub(crate) use custom::Custom;
pub use custom::NotifyError;
pub(crate) use reader::Reader;
pub(crate) use tasks::TaskFilter;

/// How many changes wait for one subscriber until it is no longer told which resources below its URI have changed, only
/// that some have. Otherwise one who subscribes to everything and reads nothing would be kept everything for.
const UPDATES: usize = 256;

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

    /// Sends a notification of one's own to everybody who wants it: all legacy sessions, and modern listeners whose
    /// filter has its name with the value `true` and who have declared an extension of the same vendor. Says to how
    /// many.
    ///
    /// It is not kept for a subscriber for whom 64 of them, or 256 KiB, wait already.
    ///
    /// ```
    /// use toolwire_server::Server;
    ///
    /// let server = Server::builder("demo", "1.0").build().unwrap();
    /// let params = serde_json::json!({ "load": 0.7 });
    /// assert_eq!(server.notify().custom("acme/load", &params), Ok(0));
    /// assert!(server.notify().custom("notifications/load", &params).is_err());
    /// ```
    ///
    /// # Errors
    /// When the name is one of the protocol, or the parameters are not an object.
    pub fn custom<P: Serialize + ?Sized>(&self, method: &str, params: &P) -> Result<usize, NotifyError> {
        let custom = Custom::new(method, params)?;
        Ok(self.tell(|subscriber| subscriber.offer_custom(&custom)))
    }

    /// What clients want to hear of now, all of them together: nobody need look for changes of anything else.
    pub fn wanted(&self) -> Wanted {
        let mut wanted = Wanted::default();
        self.tell(|subscriber| {
            subscriber.update(|filter| wanted.add(filter));
            true
        });
        wanted
    }

    /// How many subscribers there are: legacy sessions and `subscriptions/listen` requests.
    pub fn subscribers(&self) -> usize {
        let subscribers = self.0.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        subscribers.iter().filter(|subscriber| subscriber.strong_count() > 0).count()
    }

    fn publish(&self, change: &Change) {
        self.tell(|subscriber| subscriber.offer(change));
    }

    /// Tells all subscribers, and says how many of them took it.
    fn tell(&self, mut tell: impl FnMut(&Subscriber) -> bool) -> usize {
        let mut subscribers = self.0.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = 0;
        subscribers.retain(|subscriber| match subscriber.upgrade() {
            Some(subscriber) => {
                taken += usize::from(tell(&subscriber));
                true
            }
            None => false,
        });
        taken
    }

    pub(crate) fn subscribe(&self, filter: Filter) -> Arc<Subscriber> {
        let subscriber = Arc::new(Subscriber {
            filter: Mutex::new(filter),
            pending: Mutex::default(),
            custom: Mutex::default(),
            reader: Mutex::default(),
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

/// What clients want to hear of; see [`Notifier::wanted`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wanted {
    /// Changes of the list of tools.
    pub tools: bool,
    /// Changes of the list of prompts.
    pub prompts: bool,
    /// Changes of the lists of resources and templates.
    pub resources: bool,
    /// The resources that are subscribed to. A subscription covers what lies below its URI.
    pub uris: BTreeSet<String>,
    /// Notifications of one's own, by name. Legacy sessions do not name any, and get them all.
    pub custom: BTreeSet<String>,
}

impl Wanted {
    fn add(&mut self, filter: &Filter) {
        self.tools |= filter.tools;
        self.prompts |= filter.prompts;
        self.resources |= filter.resources;
        self.uris.extend(filter.uris.iter().cloned());
        if let CustomFilter::Named(names) = &filter.custom {
            self.custom.extend(names.iter().cloned());
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
    /// A task, which whoever hears of it has to look at: there is nothing to tell before.
    Task(TaskId),
    Custom(Custom),
}

impl Change {
    /// The notification that tells a client of it, with `_meta` where that is wanted.
    pub(crate) fn message(self, meta: Option<Meta>) -> serde_json::Result<Bytes> {
        let method = match self {
            Self::Tools => Method::ToolListChanged,
            Self::Prompts => Method::PromptListChanged,
            Self::Resources => Method::ResourceListChanged,
            Self::Custom(custom) => return custom.message(meta),
            Self::Task(_) => return Err(serde_json::Error::custom("a task has to be looked at first")),
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
    pub(crate) custom: CustomFilter,
    pub(crate) tasks: TaskFilter,
}

/// Which notifications of a server's own a subscriber wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CustomFilter {
    All,
    Named(BTreeSet<String>),
}

impl Default for CustomFilter {
    fn default() -> Self {
        Self::Named(BTreeSet::new())
    }
}

impl Filter {
    /// What a legacy client gets without asking.
    pub(crate) fn unsolicited() -> Self {
        Self {
            tools: true,
            prompts: true,
            resources: true,
            uris: BTreeSet::new(),
            custom: CustomFilter::All,
            tasks: TaskFilter::default(),
        }
    }

    pub(crate) fn of(wanted: &SubscriptionFilter) -> Self {
        let on = |flag: Option<bool>| flag == Some(true);
        Self {
            tools: on(wanted.tools_list_changed),
            prompts: on(wanted.prompts_list_changed),
            resources: on(wanted.resources_list_changed),
            uris: wanted.resource_subscriptions.iter().flatten().cloned().collect(),
            custom: CustomFilter::Named(wanted.extra.iter().map(|(name, _)| name.to_owned()).collect()),
            tasks: TaskFilter::default(),
        }
    }

    fn wants_custom(&self, method: &str) -> bool {
        match &self.custom {
            CustomFilter::All => true,
            CustomFilter::Named(names) => names.contains(method),
        }
    }

    /// What is subscribed to and covers a resource: itself, or what lies above it.
    fn covering(&self, uri: &str) -> Option<&String> {
        self.uris.get(uri).or_else(|| self.uris.iter().find(|parent| is_below(uri, parent)))
    }

    fn wants(&self, change: &Change) -> bool {
        match change {
            Change::Tools => self.tools,
            Change::Prompts => self.prompts,
            Change::Resources => self.resources,
            Change::Updated(uri) => self.covering(uri).is_some(),
            Change::Custom(custom) => self.wants_custom(custom.method()),
            Change::Task(id) => self.tasks.has(id),
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
    custom: Mutex<custom::Waiting>,
    reader: Mutex<Option<Reader>>,
    changed: Notify,
    notifier: Notifier,
}

impl Subscriber {
    /// Says whether the subscriber will hear of it.
    fn offer(&self, change: &Change) -> bool {
        self.offer_if(change, |_| false)
    }

    /// The same for a change that the subscriber may want for another reason, too.
    fn offer_if(&self, change: &Change, wanted: impl FnOnce(&mut Filter) -> bool) -> bool {
        if !self.update(|filter| filter.wants(change) || wanted(filter)) {
            return false;
        }
        let change = match change {
            Change::Updated(uri) if self.is_full() => {
                // What is hidden is not told in other words either.
                let above = if self.conceals(change) { None } else { self.above(uri) };
                let Some(above) = above else { return false };
                Change::Updated(above)
            }
            // Whoever does not read hears of it when it asks.
            Change::Task(_) if self.is_full() => return false,
            change => change.clone(),
        };
        self.pending().insert(change);
        self.changed.notify_one();
        true
    }

    fn is_full(&self) -> bool {
        self.pending().len() >= UPDATES
    }

    fn above(&self, uri: &str) -> Option<String> {
        self.update(|filter| filter.covering(uri).cloned())
    }

    fn pending(&self) -> MutexGuard<'_, BTreeSet<Change>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says for whom changes are read.
    pub(crate) fn read_by(&self, reader: Reader) {
        *self.reader.lock().unwrap_or_else(PoisonError::into_inner) = Some(reader);
    }

    /// For whom changes are read, if that is known.
    pub(crate) fn principal(&self) -> Option<Principal> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.principal().cloned()
    }

    /// Whether the change is of something that does not exist for whoever reads.
    fn conceals(&self, change: &Change) -> bool {
        let Change::Updated(uri) = change else { return false };
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner).clone();
        reader.is_some_and(|reader| reader.conceals(uri))
    }

    fn offer_custom(&self, custom: &Custom) -> bool {
        if !self.update(|filter| filter.wants_custom(custom.method())) {
            return false;
        }
        let taken = self.custom.lock().unwrap_or_else(PoisonError::into_inner).push(custom);
        if taken {
            self.changed.notify_one();
        } else {
            tracing::debug!(method = custom.method(), "a subscriber is slow; a notification was dropped");
        }
        taken
    }

    /// Changes what the subscriber wants.
    pub(crate) fn update<T>(&self, change: impl FnOnce(&mut Filter) -> T) -> T {
        change(&mut self.filter.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The next change; `None` when the server shuts down.
    pub(crate) async fn next(&self) -> Option<Change> {
        loop {
            let change = self.pending().pop_first();
            if let Some(change) = change {
                if self.conceals(&change) {
                    continue;
                }
                return Some(change);
            }
            if let Some(custom) = self.custom.lock().unwrap_or_else(PoisonError::into_inner).pop() {
                return Some(Change::Custom(custom));
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

    #[tokio::test]
    async fn one_who_subscribes_to_everything_and_reads_nothing_is_not_kept_everything_for() {
        let notifier = Notifier::default();
        let subscriber = notifier.subscribe(Filter {
            uris: ["db://rows".to_owned(), "db://rows/100000".to_owned()].into(),
            ..Filter::default()
        });
        for row in 0..100_000 {
            notifier.resource_updated(format!("db://rows/{row}"));
        }
        notifier.resource_updated("db://rows/100000");
        assert!(subscriber.pending().len() <= UPDATES + 2);
        notifier.close();
        let mut heard = Vec::new();
        while let Some(change) = subscriber.next().await {
            heard.push(change);
        }
        // What it has named itself is told by name, and of the rest that something has changed.
        assert!(heard.contains(&Change::Updated("db://rows".into())));
        assert!(heard.contains(&Change::Updated("db://rows/100000".into())));
    }

    #[tokio::test]
    async fn what_is_hidden_is_not_told_by_what_lies_above_it() {
        let hidden = crate::template("db://rows/{x}", || async { "x" }).visible_to(|_| false);
        let server = crate::Server::builder("t", "1").template(hidden).build().unwrap();
        let filter = Filter { uris: ["db://rows".to_owned()].into(), ..Filter::default() };
        let subscriber = server.notify().subscribe(filter);
        subscriber.read_by(Reader::new(&server, None));
        for row in 0..2 * UPDATES {
            server.notify().resource_updated(format!("db://rows/{row}"));
        }
        server.notify().close();
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
