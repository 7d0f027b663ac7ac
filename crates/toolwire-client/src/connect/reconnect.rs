//! Making another connection when one is lost.

use std::{
    collections::VecDeque,
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::Duration,
};

use tokio::time::{Instant, sleep};
use toolwire_protocol::{Version, wire::Implementation};

use super::{Connection, Connector, EraChoice, FailedConnection, handshake::Handshake, handshake::Opening};
use crate::{
    client::Requester,
    error::{Error, ErrorKind},
    host::Host,
    link::{Ending, Inbox, Line},
    settings::Settings,
};

/// When to connect again to a server whose connection was lost, such as a child process that has died; see
/// [`ClientBuilder::reconnect`](crate::ClientBuilder::reconnect).
///
/// ```
/// use std::time::Duration;
/// use toolwire_client::{Client, Reconnect};
///
/// let patient = Reconnect::default().first_pause(Duration::from_secs(5));
/// let builder = Client::builder("demo", "1.0").reconnect(patient);
/// # let _ = builder;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reconnect {
    /// The pause before the first attempt, which doubles with each further one. Default half a second.
    pub first_pause: Duration,
    /// The longest pause. A connection that lasts as long counts as a good one: after it, the pauses begin anew.
    /// Default one minute.
    pub longest_pause: Duration,
    /// How often the server is started or connected to within one minute, the first time included. Default 5.
    pub starts_per_minute: usize,
}

impl Default for Reconnect {
    fn default() -> Self {
        Self {
            first_pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(60),
            starts_per_minute: 5,
        }
    }
}

impl Reconnect {
    /// Sets the pause before the first attempt.
    #[must_use]
    pub const fn first_pause(mut self, pause: Duration) -> Self {
        self.first_pause = pause;
        self
    }

    /// Sets the longest pause.
    #[must_use]
    pub const fn longest_pause(mut self, pause: Duration) -> Self {
        self.longest_pause = pause;
        self
    }

    /// Sets how often the server is started within one minute, the first time included; at least once.
    #[must_use]
    pub const fn starts_per_minute(mut self, starts: usize) -> Self {
        self.starts_per_minute = starts;
        self
    }
}

/// What became of a connection; see [`ClientBuilder::on_connection`](crate::ClientBuilder::on_connection).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionState {
    /// It was lost, for this reason, and another will be made.
    Lost(String),
    /// Another was made in the place of one that was lost.
    Restored,
    /// It is over for good, for this reason.
    Closed(String),
}

/// Everything that is needed to connect once more as it was done the first time.
pub(super) struct Reconnector<C> {
    pub(super) policy: Reconnect,
    pub(super) connector: C,
    pub(super) line: Arc<Line>,
    pub(super) host: Arc<Host>,
    pub(super) settings: Settings,
    pub(super) info: Implementation,
}

/// Why an attempt did not lead to a connection.
struct Attempt<C> {
    why: Error,
    /// For another attempt, if there can be one.
    again: Option<C>,
}

impl<C> Reconnector<C> {
    /// Replaces every connection that is lost, until there is to be no other.
    pub(super) async fn run<K>(self, version: Version, ids: super::Ids)
    where
        C: Connector<K>,
    {
        let Self { policy, connector, line, host, mut settings, info } = self;
        // A client cannot change its version while it is being used.
        settings.era = EraChoice::Version(version);
        let mut connector = Some(connector);
        let mut pauses = Pauses::new(policy);
        while let Some(why) = line.is_down().await {
            host.interrupted(&why);
            pauses.lost();
            let restored = loop {
                tokio::select! {
                    () = sleep(pauses.next()) => {}
                    () = line.is_closed() => return,
                }
                let Some(this) = connector.take() else { break Err("it cannot be made again".to_owned()) };
                pauses.start();
                let attempt = tokio::select! {
                    attempt = connect_again(this, &line, &host, &settings, &info, &ids) => attempt,
                    () = line.is_closed() => return,
                };
                match attempt {
                    Ok(again) => {
                        connector = again;
                        break Ok(());
                    }
                    Err(Attempt { why, .. }) if why.kind() == ErrorKind::NoCommonVersion => {
                        break Err(format!("the server is not what it was: {why}"));
                    }
                    Err(Attempt { why, again }) => {
                        tracing::debug!(error = ?why, "the connection could not be made again yet");
                        connector = again;
                        if connector.is_none() {
                            break Err(format!("it could not be made again: {why:?}"));
                        }
                    }
                }
            };
            match restored {
                Ok(()) => host.restored(),
                Err(reason) => {
                    let why = format!("{why}; {reason}");
                    // Unless somebody else has closed it, and told so.
                    if !matches!(line.close(&why), Ending::Before) {
                        host.closed(&why);
                    }
                    return;
                }
            }
        }
    }
}

/// Makes one connection, and gives what the next can be made with.
async fn connect_again<K, C: Connector<K>>(
    connector: C,
    line: &Arc<Line>,
    host: &Arc<Host>,
    settings: &Settings,
    info: &Implementation,
    ids: &super::Ids,
) -> Result<Option<C>, Attempt<C>> {
    let number = line.starting();
    let inbox = Inbox::replaceable(Arc::clone(host), Arc::clone(line), number);
    let made = connector.try_connect(inbox).await;
    let Connection { link, again, .. } = made
        .map_err(|FailedConnection { error, again }| Attempt { why: super::not_made(host, error), again })?;
    let requester = Requester::with_ids(Arc::clone(&link), Arc::clone(host), Arc::clone(ids));
    let handshake = Handshake { requester: &requester, settings, info };
    match handshake.open(Opening::first(settings.era, None)).await {
        Ok(_) if line.up(number, link) => Ok(again),
        Ok(_) => Err(Attempt { why: super::lost_at_once(), again }),
        Err(error) => Err(Attempt { why: error.into_error(), again }),
    }
}

/// When the next attempt may be made.
struct Pauses {
    policy: Reconnect,
    attempt: u32,
    /// The last starts, the oldest first; no more than are allowed within a minute.
    starts: VecDeque<Instant>,
}

impl Pauses {
    /// There was a first start just now.
    fn new(policy: Reconnect) -> Self {
        let mut pauses = Self { policy, attempt: 0, starts: VecDeque::new() };
        pauses.start();
        pauses
    }

    fn start(&mut self) {
        if self.starts.len() >= self.policy.starts_per_minute.max(1) {
            self.starts.pop_front();
        }
        self.starts.push_back(Instant::now());
    }

    /// A connection was lost that the last start had made.
    fn lost(&mut self) {
        if self.starts.back().is_some_and(|start| start.elapsed() >= self.policy.longest_pause) {
            self.attempt = 0;
        }
    }

    fn next(&mut self) -> Duration {
        let doubled = self.policy.first_pause.saturating_mul(2_u32.saturating_pow(self.attempt));
        self.attempt = self.attempt.saturating_add(1);
        let pause = jittered(doubled.min(self.policy.longest_pause));
        let full = self.starts.len() >= self.policy.starts_per_minute.max(1);
        match self.starts.front().filter(|_| full) {
            Some(oldest) => pause.max(Duration::from_secs(60).saturating_sub(oldest.elapsed())),
            None => pause,
        }
    }
}

/// Up to a quarter longer, so that many clients of one server do not come back at the same moment.
fn jittered(pause: Duration) -> Duration {
    let random = u32::try_from(RandomState::new().hash_one(0_u8) % 1024).unwrap_or_default();
    pause + (pause / 4 / 1024) * random
}
