//! The stream of changes, and how it is opened and kept open.

use std::{
    fmt,
    future::{IntoFuture, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_core::Stream;
use tokio::time::{Instant, sleep};
use toolwire_protocol::{
    ErrorCode, Method,
    wire::{
        SubscribeRequestParams, SubscriptionFilter, SubscriptionsListenRequestParams,
        UnsubscribeRequestParams,
    },
};
use toolwire_transport::BoxFuture;

use super::{Change, EndReason, hub::ChangeBox};
use crate::{
    client::{Client, InFlight, Options},
    error::{Delivery, Error, ErrorKind},
    settings::{LONGEST_RELISTEN_PAUSE, pause_up_to},
};

/// Says what to listen to; await it to begin. From [`Client::listen`].
#[derive(Clone, Debug)]
#[must_use = "nothing is listened to until it is awaited"]
pub struct ListenBuilder {
    client: Client,
    filter: SubscriptionFilter,
    relisten: bool,
}

impl ListenBuilder {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, filter: SubscriptionFilter::new(), relisten: true }
    }

    /// Listens to changes of the list of tools.
    pub fn tools(mut self) -> Self {
        self.filter.tools_list_changed = Some(true);
        self
    }

    /// Listens to changes of the list of prompts.
    pub fn prompts(mut self) -> Self {
        self.filter.prompts_list_changed = Some(true);
        self
    }

    /// Listens to changes of the list of resources.
    pub fn resources(mut self) -> Self {
        self.filter.resources_list_changed = Some(true);
        self
    }

    /// Listens to changes of one resource; call it again for another.
    pub fn resource(mut self, uri: impl Into<String>) -> Self {
        self.filter.resource_subscriptions.get_or_insert_default().push(uri.into());
        self
    }

    /// Whether a subscription that ends is renewed, as it is by default: whether it was lost, or ended in order by a
    /// server that is being restarted. It is asked for again, with pauses of up to a minute, until the connection is
    /// over; [`Change::Resync`] follows.
    pub const fn relisten(mut self, relisten: bool) -> Self {
        self.relisten = relisten;
        self
    }

    async fn open(self) -> Result<Listener, Error> {
        let Self { client, filter, relisten } = self;
        let Some(changes) = client.host().hub.open(filter.clone()) else {
            let text = format!("{} listeners are open already", client.settings().limits.listeners);
            return Err(Error::new(ErrorKind::Busy, Delivery::NotSent, text).with_limit("listeners"));
        };
        // From here on, whatever fails takes itself off the hub.
        let registration = Registration { client: client.clone(), changes };
        if client.facts().listen_requests {
            let (flight, honoured) = subscribe(&client, &filter, &registration.changes).await?;
            let driver = Box::pin(keep(client, filter, Arc::clone(&registration.changes), flight, relisten));
            Ok(Listener { driver: Some(driver), watching: Vec::new(), registration, honoured, done: false })
        } else {
            let watching = watch(&client, &filter).await?;
            let honoured = promised(&client, filter);
            Ok(Listener { driver: None, watching, registration, honoured, done: false })
        }
    }
}

impl IntoFuture for ListenBuilder {
    type Output = Result<Listener, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.open())
    }
}

/// A stream of changes, which ends after [`Change::Ended`].
///
/// Changes are marks and not a story: one that was not yet picked up is not repeated. Dropping the listener
/// ends the subscription. A modern subscription is only renewed while somebody polls the listener.
pub struct Listener {
    /// Keeps a subscription open.
    driver: Option<BoxFuture<'static, ()>>,
    /// The resources that the server was asked to watch.
    watching: Vec<Watch>,
    registration: Registration,
    honoured: SubscriptionFilter,
    done: bool,
}

impl Listener {
    /// Waits for the next change; `None` after the end.
    ///
    /// # Cancel safety
    /// A future that is dropped before it is ready has taken no change.
    pub async fn next(&mut self) -> Option<Change> {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// What the server agreed to tell: what was asked for, or less.
    pub const fn honoured(&self) -> &SubscriptionFilter {
        &self.honoured
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Change>> {
        if self.done {
            return Poll::Ready(None);
        }
        if let Some(driver) = &mut self.driver
            && driver.as_mut().poll(cx).is_ready()
        {
            self.driver = None;
        }
        let changes = &self.registration.changes;
        changes.poll_change(cx).map(|change| {
            self.done = matches!(change, Change::Ended(_));
            Some(change)
        })
    }
}

impl Stream for Listener {
    type Item = Change;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Change>> {
        self.poll(cx)
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener")
            .field("honoured", &self.honoured)
            .field("watching", &self.watching.len())
            .finish_non_exhaustive()
    }
}

/// Keeps a listener in the hub.
struct Registration {
    client: Client,
    changes: Arc<ChangeBox>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.client.host().hub.remove(&self.changes);
    }
}

/// Asks the server, and waits until it has agreed.
async fn subscribe(
    client: &Client,
    filter: &SubscriptionFilter,
    changes: &ChangeBox,
) -> Result<(InFlight, SubscriptionFilter), Error> {
    let params = SubscriptionsListenRequestParams::new(filter.clone());
    // The mark is set before the request leaves, so that no notification is missed.
    let mut flight = client.start(Method::Listen, &params, |id| changes.subscribe(id))?;
    let acknowledged = async {
        tokio::select! {
            biased;
            honoured = poll_fn(|cx| changes.poll_acknowledged(cx)) => Ok(honoured),
            ended = flight.finished() => Err(ended),
        }
    };
    let patience = client.settings().limits.request_timeout;
    match tokio::time::timeout(patience, acknowledged).await {
        Ok(Ok(Some(honoured))) => Ok((flight, honoured)),
        Ok(Err(Err(error))) => Err(client.explain(Method::Listen, error).await),
        Ok(Ok(None) | Err(Ok(_))) => {
            flight.forget();
            let text = "the server ended the subscription without acknowledging it";
            Err(Error::invalid_response(&Method::Listen.into(), text))
        }
        Err(_) => Err(Error::timeout(&Method::Listen.into(), patience)),
    }
}

/// Asks to be told of changes of one task, says so with `agreed` when the server will, and waits for the end of that.
///
/// # Errors
/// When the server will not: [`TaskGone`](ErrorKind::TaskGone) for this task, [`NotAdvertised`](ErrorKind::NotAdvertised)
/// for any.
pub(crate) async fn task_news(client: &Client, id: &str, agreed: impl FnOnce()) -> Result<(), Error> {
    let filter = SubscriptionFilter::new().task_ids(vec![id.to_owned()]);
    let Some(changes) = client.host().hub.open(filter.clone()) else {
        return Err(Error::new(ErrorKind::Busy, Delivery::NotSent, "too many listeners are open already"));
    };
    let registration = Registration { client: client.clone(), changes };
    let changes = &registration.changes;
    let subscribed = subscribe(client, &filter, changes).await;
    let (mut flight, honoured) =
        subscribed.map_err(|error| if is_final(&error) { no_news() } else { error })?;
    if !honoured.task_ids.iter().flatten().any(|honoured| honoured == id) {
        let text = "the server does not tell of changes of this task";
        return Err(Error::new(ErrorKind::TaskGone, Delivery::Rejected, text));
    }
    agreed();
    ended(client, changes, &mut flight).await;
    Ok(())
}

fn no_news() -> Error {
    Error::new(ErrorKind::NotAdvertised, Delivery::Rejected, "the server does not tell of changes of tasks")
}

/// Keeps a subscription open until the connection ends, or as long as the server likes if it is not to be renewed.
async fn keep(
    client: Client,
    filter: SubscriptionFilter,
    changes: Arc<ChangeBox>,
    mut flight: InFlight,
    relisten: bool,
) {
    let mut attempts = Attempts::default();
    loop {
        let began = Instant::now();
        let reason = ended(&client, &changes, &mut flight).await;
        if changes.has_ended() || !relisten {
            return changes.end(reason);
        }
        attempts.after(began.elapsed());
        match renew(&client, &filter, &changes, &mut attempts).await {
            Ok(renewed) => flight = renewed,
            Err(None) => return changes.end(reason),
            Err(Some(refused)) => return changes.end(EndReason::Lost(refused.to_string())),
        }
        // What changed in between is not known, so nothing that is stored can be trusted.
        client.host().with_cache(|cache, _| cache.clear());
        changes.resync();
    }
}

/// Waits for the end of a subscription.
async fn ended(client: &Client, changes: &ChangeBox, flight: &mut InFlight) -> EndReason {
    let ended = tokio::select! {
        biased;
        ended = flight.finished() => Some(ended),
        () = poll_fn(|cx| changes.poll_cancelled(cx)) => None,
    };
    match ended {
        Some(Ok(_)) => EndReason::Graceful,
        Some(Err(error)) => EndReason::Lost(client.explain(Method::Listen, error).await.to_string()),
        None => {
            flight.forget();
            EndReason::Lost("the server cancelled the subscription".to_owned())
        }
    }
}

/// Asks for the subscription again, with growing pauses, until the connection is over (`None`) or the server says that
/// there will never be another.
async fn renew(
    client: &Client,
    filter: &SubscriptionFilter,
    changes: &ChangeBox,
    attempts: &mut Attempts,
) -> Result<InFlight, Option<Error>> {
    loop {
        tokio::select! {
            () = sleep(attempts.pause()) => {}
            () = poll_fn(|cx| changes.poll_ended(cx)) => return Err(None),
        }
        match subscribe(client, filter, changes).await {
            Ok((flight, _)) => return Ok(flight),
            Err(_) if changes.has_ended() => return Err(None),
            Err(error) if is_final(&error) => return Err(Some(error)),
            Err(error) => tracing::debug!(%error, "the subscription could not be renewed yet"),
        }
    }
}

/// Whether asking again cannot help: the server that is there now has no subscriptions.
fn is_final(error: &Error) -> bool {
    let never = [ErrorCode::METHOD_NOT_FOUND, ErrorCode::UNSUPPORTED_PROTOCOL_VERSION];
    error.rpc().is_some_and(|error| never.contains(&error.code))
}

/// How often a subscription was asked for in a row. A server that ends each one at once is asked ever more seldom.
#[derive(Debug, Default)]
struct Attempts(u32);

impl Attempts {
    /// The last subscription has lasted so long.
    fn after(&mut self, lasted: Duration) {
        if lasted >= LONGEST_RELISTEN_PAUSE {
            self.0 = 0;
        }
    }

    /// How long to wait now.
    fn pause(&mut self) -> Duration {
        let pause = pause_up_to(self.0, LONGEST_RELISTEN_PAUSE);
        self.0 = self.0.saturating_add(1);
        pause
    }
}

/// Asks the server to watch the resources one by one.
async fn watch(client: &Client, filter: &SubscriptionFilter) -> Result<Vec<Watch>, Error> {
    let mut watching = Vec::new();
    for uri in filter.resource_subscriptions.iter().flatten() {
        client.check(Method::Subscribe)?;
        let first = client.host().hub.watch(uri);
        let watch = Watch { client: client.clone(), uri: uri.clone() };
        if first {
            let params = SubscribeRequestParams::new(uri.clone());
            client.ask_once(Method::Subscribe, &params, Options::default()).await?;
        }
        watching.push(watch);
    }
    Ok(watching)
}

/// What a server will tell of by itself, according to its capabilities.
fn promised(client: &Client, mut filter: SubscriptionFilter) -> SubscriptionFilter {
    let can = client.capabilities();
    let tools = can.tools.as_ref().and_then(|tools| tools.list_changed);
    let prompts = can.prompts.as_ref().and_then(|prompts| prompts.list_changed);
    let resources = can.resources.as_ref().and_then(|resources| resources.list_changed);
    filter.tools_list_changed = filter.tools_list_changed.and(tools);
    filter.prompts_list_changed = filter.prompts_list_changed.and(prompts);
    filter.resources_list_changed = filter.resources_list_changed.and(resources);
    filter
}

/// A resource that the server watches for us until this is dropped.
struct Watch {
    client: Client,
    uri: String,
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.client.host().hub.unwatch(&self.uri) {
            return;
        }
        let params = UnsubscribeRequestParams::new(std::mem::take(&mut self.uri));
        if let Ok(mut flight) = self.client.start(Method::Unsubscribe, &params, |_| ()) {
            // Whatever the server answers, nobody is interested.
            flight.forget();
        }
    }
}
