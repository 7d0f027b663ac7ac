//! Making a connection: how to get one, and how to find out what the server speaks.

mod connector;
mod era_cache;
mod era_choice;
mod facts;
mod handshake;

use std::sync::Arc;

use toolwire_protocol::wire::{Implementation, LoggingLevel};

pub use connector::{Connection, Connector, kind};
pub use era_cache::{EraCache, Remembered};
pub use era_choice::EraChoice;
pub(crate) use facts::Facts;

use crate::{
    client::{Client, Requester},
    error::{Delivery, Error, ErrorKind},
    host::{Handlers, Host},
    link::Inbox,
    settings::Settings,
};
use handshake::{Handshake, HandshakeError, Opening};

/// Everything that a client brings to a connection.
pub(crate) struct Plan {
    pub(crate) info: Implementation,
    pub(crate) settings: Settings,
    pub(crate) handlers: Arc<Handlers>,
    pub(crate) eras: Option<Arc<EraCache>>,
}

/// Connects, and once more if the server did not survive the first message.
pub(crate) async fn connect<K, C: Connector<K>>(plan: Plan, connector: C) -> Result<Client, Error> {
    let mut elsewhere = None;
    let connected = attempt(plan, connector, &mut elsewhere).await;
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
    elsewhere: &mut Option<Error>,
) -> Result<Client, Error> {
    let Plan { info, settings, handlers, eras } = plan;
    let mut opening = None;
    let mut restarts = 0;
    let mut connector = connector;
    loop {
        let host = Arc::new(Host::new(Arc::clone(&handlers), &settings));
        let made = connector.connect(Inbox::new(Arc::clone(&host))).await.map_err(|error| {
            if let Some(observer) = host.observer() {
                observer.failed(format_args!("the connection could not be made: {error}"));
            }
            Error::new(ErrorKind::Connect, Delivery::NotSent, "the connection could not be made")
                .with_source(error)
        })?;
        let Connection { link, key, again, fallback } = made;
        let requester = Requester::new(link, host);
        let handshake = Handshake { requester: &requester, settings: &settings, info: &info };
        let remembered = eras.as_ref().zip(key.as_deref()).and_then(|(eras, key)| eras.get(key));
        let first = opening.is_none();
        let this = opening
            .take()
            .unwrap_or_else(|| Opening::first(settings.era, remembered.map(|remembered| remembered.version)));
        match handshake.open(this).await {
            Ok(mut session) => {
                let version = session.envelope.version();
                session.dies_on_discover = match this {
                    Opening::Initialize(_) => restarts > 0,
                    Opening::Remembered(_) => remembered.is_some_and(|remembered| {
                        // It was asked after all if it speaks something else now.
                        remembered.dies_on_discover && remembered.version == version
                    }),
                    Opening::Discover(_) => false,
                };
                if let Some((eras, key)) = eras.as_ref().zip(key) {
                    eras.remember(key, Remembered { version, dies_on_discover: session.dies_on_discover });
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
            Err(HandshakeError::Elsewhere(next, error)) => {
                let Some(other) = fallback.filter(|_| first) else { return Err(error) };
                *elsewhere = Some(error);
                connector = other;
                opening = Some(next);
            }
        }
    }
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
