//! Telling clients that something has changed: one way to say it, whichever era listens.
//!
//! What is kept for a subscriber is a set of facts, not a queue of events: "the tools have changed" is true
//! once, however often it was said. So a slow reader owes at most one message per fact, and of what lies below the URI that
//! it has subscribed to at most [`UPDATES`](subscriber::UPDATES) before all of it becomes one fact. Only notifications of one's own are queued,
//! as nothing is known of what they mean.

mod custom;
mod filter;
mod reader;
mod subscriber;
mod tasks;

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use serde::Serialize;

pub(crate) use custom::Custom;
pub use custom::NotifyError;
pub(crate) use filter::{Change, CustomFilter, Filter};
pub(crate) use reader::Reader;
pub(crate) use subscriber::Subscriber;
pub(crate) use tasks::TaskFilter;

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
        let subscriber = Arc::new(Subscriber::new(filter, self.clone()));
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
            subscriber.wake();
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

#[cfg(test)]
mod tests {
    use super::{subscriber::UPDATES, *};

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
