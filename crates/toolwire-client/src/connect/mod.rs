//! Making a connection: how to get one, and how to find out what the server speaks.

mod connector;
mod era_cache;
mod era_choice;
mod facts;
mod handshake;
mod reconnect;

use std::sync::{Arc, atomic::AtomicI64};

use toolwire_protocol::{
    Version,
    wire::{Implementation, LoggingLevel},
};

pub use connector::{Connection, Connector, FailedConnection, kind};
pub use era_cache::{EraCache, Remembered};
pub use era_choice::EraChoice;
pub(crate) use facts::Facts;
pub use reconnect::{ConnectionState, Reconnect};

use crate::{
    client::{Client, Requester},
    error::{Delivery, Error, ErrorKind},
    host::{Handlers, Host},
    link::{Ending, Inbox, Line, LinkError, LinkErrorKind, ReconnectingLink},
    settings::Settings,
};
use handshake::{Handshake, HandshakeError, Opening};
use reconnect::Reconnector;

/// Everything that a client brings to a connection.
pub(crate) struct Plan {
    pub(crate) info: Implementation,
    pub(crate) settings: Settings,
    pub(crate) handlers: Arc<Handlers>,
    pub(crate) eras: Option<Arc<EraCache>>,
}

/// Connects, and once more if the server did not survive the first message.
pub(crate) async fn connect<K, C: Connector<K>>(
    plan: Plan,
    connector: C,
    keep: Option<Keep<C>>,
) -> Result<Client, Error> {
    let mut elsewhere = None;
    let connected = attempt(plan, connector, keep, &mut elsewhere).await;
    connected.map_err(|error| match elsewhere {
        // The first error is about what the user asked for; other means were only our guess.
        Some(first) if error.kind() == ErrorKind::Connect => first.and_elsewhere(&error),
        // But the guess was right, and somebody who understands us had something against it.
        Some(first) => error.after(&first),
        None => error,
    })
}

/// Connects. `elsewhere` is why the server had to be reached by other means, if it was tried.
async fn attempt<K, C: Connector<K>>(
    plan: Plan,
    connector: C,
    keep: Option<Keep<C>>,
    elsewhere: &mut Option<Error>,
) -> Result<Client, Error> {
    let Plan { info, settings, handlers, eras } = plan;
    let mut opening = None;
    let mut restarts = 0;
    let mut connector = connector;
    loop {
        let host = Arc::new(Host::new(Arc::clone(&handlers), &settings));
        let line = keep.map(|keep| (keep, Arc::new(Line::new())));
        let inbox = match &line {
            Some((_, line)) => Inbox::replaceable(Arc::clone(&host), Arc::clone(line), line.starting()),
            None => Inbox::new(Arc::clone(&host)),
        };
        let made = connector.connect(inbox).await.map_err(|error| not_made(&host, error))?;
        let Connection { link, key, again, fallback } = made;
        let mut requester = Requester::new(link, host);
        let handshake = Handshake { requester: &requester, settings: &settings, info: &info };
        let remembered = eras.as_ref().zip(key.as_deref()).and_then(|(eras, key)| eras.get(key));
        let first = opening.is_none();
        let this = opening
            .take()
            .unwrap_or_else(|| Opening::first(settings.era, remembered.map(|remembered| remembered.version)));
        match handshake.open(this).await {
            Ok(mut session) => {
                let version = session.envelope.version();
                session.dies_on_discover = dies_on_discover(this, restarts > 0, remembered, version);
                if let Some((eras, key)) = eras.as_ref().zip(key) {
                    eras.remember(key, Remembered { version, dies_on_discover: session.dies_on_discover });
                }
                match (line, again) {
                    (Some((keep, line)), Some(connector)) => {
                        keep.hold(&mut requester, connector, line, &settings, &info, version);
                    }
                    (Some((_, line)), None) => stay_with(&line, &requester),
                    (None, _) => {}
                }
                let client = Client::new(requester, settings, session);
                ask_for_logs(&client).await;
                return Ok(client);
            }
            Err(HandshakeError::Failed(error)) => {
                if let Some((eras, key)) = eras.as_ref().zip(key) {
                    eras.forget(&key);
                }
                return Err(error);
            }
            Err(HandshakeError::Restart(next, error)) => {
                connector = again.filter(|_| restarts < MAX_RESTARTS).ok_or_else(|| match restarts {
                    0 => error.with_hint(START_AGAIN),
                    _ => error,
                })?;
                restarts += 1;
                opening = Some(next);
            }
            Err(HandshakeError::OtherTransport(next, error)) => {
                let Some(other) = fallback.filter(|_| first) else { return Err(error) };
                *elsewhere = Some(error);
                connector = other;
                opening = Some(next);
            }
        }
    }
}

/// Whether a server is known not to survive the first message of a modern client.
fn dies_on_discover(
    opening: Opening,
    restarted: bool,
    remembered: Option<Remembered>,
    version: Version,
) -> bool {
    match opening {
        Opening::Initialize(_) => restarted,
        // It was asked after all if it speaks something else now.
        Opening::Remembered(_) => {
            remembered.is_some_and(|remembered| remembered.dies_on_discover && remembered.version == version)
        }
        Opening::Discover(_) => false,
    }
}

/// How a client is kept connected.
///
/// Only a connector that is owned can be used again by a task, so whoever wants it brings the function for that kind of
/// connector.
pub(crate) struct Keep<C> {
    policy: Reconnect,
    start: fn(&mut Requester, Reconnector<C>, Version),
}

impl<C: 'static> Keep<C> {
    pub(crate) fn new<K: 'static>(policy: Reconnect) -> Self
    where
        C: Connector<K>,
    {
        Self { policy, start: keep_connected::<K, C> }
    }
}

impl<C> Keep<C> {
    /// Leaves a connection to the one who makes it again whenever it is lost.
    fn hold(
        self,
        requester: &mut Requester,
        connector: C,
        line: Arc<Line>,
        settings: &Settings,
        info: &Implementation,
        version: Version,
    ) {
        let (settings, info) = (settings.clone(), info.clone());
        let host = Arc::clone(&requester.host);
        let reconnector = Reconnector { policy: self.policy, connector, line, host, settings, info };
        (self.start)(requester, reconnector, version);
    }
}

impl<C> Clone for Keep<C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Keep<C> {}

/// The ids of requests, which are never used twice.
type Ids = Arc<AtomicI64>;

/// Puts a link into the place of the one that was made, which replaces that whenever it is lost.
fn keep_connected<K: 'static, C: Connector<K> + 'static>(
    requester: &mut Requester,
    reconnector: Reconnector<C>,
    version: Version,
) {
    let (line, host) = (Arc::clone(&reconnector.line), Arc::clone(&reconnector.host));
    let first = Arc::clone(&requester.link);
    let family = first.family();
    // If it was lost already, the task will notice.
    line.up(1, first);
    let task = tokio::spawn(reconnector.run::<K>(version, requester.ids()));
    requester.link = Arc::new(ReconnectingLink::new(family, line, host, task.into()));
}

/// There cannot be another connection than this one, so when it is lost it is over.
fn stay_with(line: &Line, requester: &Requester) {
    let alive = line.up(1, Arc::clone(&requester.link));
    let why = "the server closed the connection";
    if matches!(line.close(why), Ending::Lost) || !alive {
        requester.host.closed(why);
    }
}

fn not_made(host: &Host, error: std::io::Error) -> Error {
    if let Some(observer) = host.observer() {
        observer.failed(format_args!("the connection could not be made: {error}"));
    }
    let failed = Error::new(ErrorKind::Connect, Delivery::NotSent, "the connection could not be made");
    let refused = error.get_ref().and_then(|inner| inner.downcast_ref::<LinkError>());
    match refused.map(|refused| &refused.kind) {
        Some(LinkErrorKind::Status(status, _)) => failed.with_status(*status).with_source(error),
        _ => failed.with_source(error),
    }
}

fn lost_at_once() -> Error {
    Error::new(ErrorKind::Closed, Delivery::NotSent, "the connection was lost as soon as it was made")
}

/// How often a server is started again: once because it is not what it was the last time, and once because it did not
/// survive being asked what it is.
const MAX_RESTARTS: usize = 2;

/// What to do about a server that does not survive the first message.
const START_AGAIN: &str = "if it is an old server that cannot handle a request for its version, pin the legacy era \
                           or connect with a closure that starts it again";

/// Tells the server which log messages to send, where that is not said with each request.
async fn ask_for_logs(client: &Client) {
    let level: Option<LoggingLevel> = client.settings().log_level;
    let once = client.facts().log_level_is_set && client.capabilities().logging.is_some();
    if let Some(level) = level.filter(|_| once)
        && let Err(error) = client.set_log_level(level).await
    {
        tracing::warn!(%error, "the server refused the log level");
    }
}
