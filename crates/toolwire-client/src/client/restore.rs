//! After a session was lost and replaced: the new one is told what the old one knew.
//!
//! Making the new session is the link's work. Here the log level and the watched resources are set again, and
//! listeners learn that they may have missed something.

use std::sync::Mutex;

use tokio::time::sleep;
use toolwire_protocol::{
    Method,
    wire::{LoggingLevel, SubscribeRequestParams, UnsubscribeRequestParams},
};

use super::{Client, Options, WeakClient};
use crate::{
    error::Error,
    lock::lock,
    settings::{MAX_RESTORE_ATTEMPTS, pause},
};

/// What a session knows beside the watched resources, and whether somebody is telling it to a new one.
#[derive(Debug, Default)]
pub(crate) struct Restoration {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    client: Option<WeakClient>,
    log_level: Option<LoggingLevel>,
    running: bool,
    /// The session was replaced again while the last one was being told.
    again: bool,
}

impl Restoration {
    /// Says who speaks to new sessions.
    pub(super) fn by(&self, client: WeakClient) {
        lock(&self.state).client = Some(client);
    }

    /// Who speaks to the server, while there is somebody.
    pub(crate) fn client(&self) -> Option<Client> {
        lock(&self.state).client.as_ref()?.upgrade()
    }

    /// Remembers a level that the server has agreed to.
    pub(super) fn keep_log_level(&self, level: LoggingLevel) {
        lock(&self.state).log_level = Some(level);
    }

    /// There is a new session. Before there is a client, there is nothing to tell it.
    pub(crate) fn begin(&self) {
        let client = {
            let mut state = lock(&self.state);
            let Some(client) = state.client.clone() else { return };
            if state.running {
                state.again = true;
                return;
            }
            state.running = true;
            client
        };
        tokio::spawn(restore(client));
    }

    /// Whether everything that is to be told has been told; if so, the next session begins anew.
    fn is_done(&self, told: bool, last: bool) -> bool {
        let mut state = lock(&self.state);
        let again = std::mem::take(&mut state.again) || !told;
        let done = last || !again;
        state.running = !done;
        done
    }
}

/// Tells a new session everything; with growing pauses once more if that did not work, or if that session was
/// lost as well. A server that loses every session must not keep us busy for ever.
async fn restore(client: WeakClient) {
    for attempt in 0..MAX_RESTORE_ATTEMPTS {
        let Some(told) = tell(&client).await else { return };
        let last = attempt + 1 == MAX_RESTORE_ATTEMPTS;
        let Some(client) = client.upgrade() else { return };
        if client.host().restoration.is_done(told, last) {
            return;
        }
        drop(client);
        sleep(pause(attempt)).await;
    }
}

/// Tells a new session everything once, and says whether it heard; `None` when the client is gone or
/// closed.
///
/// The client is only held for one request at a time, so that it can be dropped in between.
async fn tell(client: &WeakClient) -> Option<bool> {
    let (level, uris) = {
        let client = client.upgrade().filter(|client| !client.host().hub.is_closed())?;
        let level = lock(&client.host().restoration.state).log_level;
        (level, client.host().hub.watched())
    };
    let mut told = true;
    if let Some(level) = level {
        told &= heard(Method::SetLevel, client.upgrade()?.set_log_level(level).await);
    }
    for uri in uris {
        told &= heard(Method::Subscribe, client.upgrade()?.watch_again(uri).await);
    }
    // Only now, because what changes from here on is told.
    client.upgrade()?.host().hub.resync();
    Some(told)
}

/// Whether the server has answered; a refusal is an answer, and asking again would not change it.
fn heard(method: Method, outcome: Result<(), Error>) -> bool {
    let Err(error) = outcome else { return true };
    tracing::warn!(%error, method = method.as_str(), "a new session does not have what the lost one had");
    error.rpc().is_some()
}

impl Client {
    /// Asks for a resource that was watched in the lost session, if anybody is still interested.
    async fn watch_again(&self, uri: String) -> Result<(), Error> {
        let hub = &self.host().hub;
        if !hub.is_watched(&uri) {
            return Ok(());
        }
        let params = SubscribeRequestParams::new(uri.clone());
        self.ask_once(Method::Subscribe, &params, Options::default()).await?;
        if !hub.is_watched(&uri) {
            // The last listener has gone in the meantime, and its message may have been overtaken.
            let params = UnsubscribeRequestParams::new(uri);
            self.ask_once(Method::Unsubscribe, &params, Options::default()).await?;
        }
        Ok(())
    }
}
