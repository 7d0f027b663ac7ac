//! The credential of one server, shared by all links to it.

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use http::HeaderMap;
use tokio::{sync::OnceCell, time::Instant};

use super::{
    AuthError, Event, Notice, Step, Verdict,
    builder::{Config, Means},
    renew::{LoginAttempt, login_needed},
    scopes::{Operation, Scopes, StepUps},
    skew::Skew,
    store::{Key, Record},
    token::Credential,
};
use crate::{
    Endpoint,
    fetch::{self, Fetch, FetchError, Reach, Request, Response},
};

/// The first pause after an issuer could not be asked; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The difference from the clock of the server up to which proofs are dated by ours.
const TOLERATED_SKEW: Duration = Duration::from_secs(5);
/// The most by which proofs are dated otherwise: a server must not be able to collect them for later.
const MAX_SKEW: Duration = Duration::from_secs(5 * 60);

/// One server, and what is known of the credential for it.
pub(super) struct Server {
    pub(super) config: Arc<Config>,
    pub(super) endpoint: Endpoint,
    pub(super) key: Key,
    fetch: Arc<dyn Fetch>,
    pub(super) reach: Reach,
    state: Mutex<State>,
    loaded: OnceCell<()>,
    identity: AtomicU64,
}

#[derive(Default)]
struct State {
    held: Option<CurrentCredential>,
    serial: u64,
    attempt: Weak<LoginAttempt>,
    step_ups: StepUps,
    /// The last nonce that the server gave for proofs.
    nonce: Option<String>,
    /// The difference of its clock from ours, by the last refusal of a proof, unless a proof that was dated so was refused.
    skew: Skew,
    pause: Option<Pause>,
    /// The number of logouts so far.
    logouts: u64,
}

/// The state of the store for a server.
pub(super) enum Stored {
    /// Nothing: there was no login, or a logout since.
    Nothing,
    /// Something that cannot be read or used at the moment.
    Unusable,
    /// A credential, and the generation of its record.
    Credential(Box<Credential>, u64),
}

/// Where a credential comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The store, where another process may have put it.
    Store,
    /// A renewal of the one in use, by this process.
    Renewal,
    /// A login of a person, by this process.
    Login,
}

/// The issuer could not be asked, and is not asked again for a while.
struct Pause {
    until: Instant,
    length: Duration,
    why: AuthError,
}

/// A credential that is in use.
#[derive(Clone)]
pub(super) struct CurrentCredential {
    pub(super) credential: Arc<Credential>,
    /// Which one it is in this process.
    pub(super) serial: u64,
    /// Which one it is in the store; 0 if it could not be stored.
    pub(super) generation: u64,
    /// True if the store has had this login, in this or an earlier renewal: where it has none now, there was a logout.
    pub(super) was_stored: bool,
}

impl CurrentCredential {
    /// A credential of the store that is not in use.
    pub(super) fn of_store(credential: Credential, generation: u64) -> Self {
        Self { credential: Arc::new(credential), serial: 0, generation, was_stored: true }
    }

    /// Returns whether the stored login replaces this one: it is of another login, or a later renewal.
    fn is_replaced_by(&self, stored: &Credential, generation: u64) -> bool {
        match self.generation {
            // It could not be stored, so what is there may be older.
            0 if !self.was_stored || stored.is_of_same_login(&self.credential) => {
                stored.received > self.credential.received
            }
            own => generation > own || !stored.is_of_same_login(&self.credential),
        }
    }
}

impl Server {
    pub(super) fn new(config: Arc<Config>, endpoint: Endpoint, fetch: Arc<dyn Fetch>) -> Self {
        Self {
            key: Key::credential(endpoint.as_str(), &config.account),
            reach: Reach::of(endpoint.url()),
            state: Mutex::default(),
            loaded: OnceCell::new(),
            identity: AtomicU64::new(0),
            config,
            endpoint,
            fetch,
        }
    }

    pub(super) fn identity(&self) -> u64 {
        self.identity.load(Ordering::Acquire)
    }

    pub(super) fn now(&self) -> SystemTime {
        self.config.clock.now()
    }

    /// Sends what a flow wants sent.
    pub(super) async fn send(&self, request: Request) -> Result<Response, FetchError> {
        fetch::send(&*self.fetch, request, &self.reach).await
    }

    pub(super) fn tell(&self, events: &[Event]) {
        for event in events {
            tracing::debug!(%event, "authorization");
            if let Some(on_event) = &self.config.on_event {
                on_event(event);
            }
        }
    }

    /// Tells something that went wrong with the store, and can be gone on without.
    pub(super) fn tell_store(&self, what: &str, error: &impl fmt::Display) {
        self.tell(&[Event::new(Step::Store, Verdict::Warning, "", format!("{what}: {error}"))]);
    }

    /// Whether a person has to be asked for a credential.
    pub(super) fn asks_a_person(&self) -> bool {
        matches!(self.config.means, Means::Person(_))
    }

    /// Whether there is a way to whoever decides.
    pub(super) fn has_way(&self) -> bool {
        !matches!(self.config.means, Means::Person(None))
    }

    /// The credential to use, from the store the first time.
    pub(super) async fn current(&self) -> Option<CurrentCredential> {
        self.loaded
            .get_or_init(|| async {
                let logouts = self.logouts();
                if let Stored::Credential(credential, generation) = self.stored().await {
                    // Refused only after a logout, which leaves nothing to use.
                    let _ = self.adopt(*credential, generation, true, Origin::Store, logouts);
                }
            })
            .await;
        self.lock().held.clone()
    }

    /// The record of the server.
    pub(super) async fn record(&self) -> Option<Record> {
        let loaded = self.config.store.load(&self.key).await;
        loaded.unwrap_or_else(|error| {
            self.tell_store("the stored credential cannot be used", &error);
            None
        })
    }

    /// The credential in the store.
    pub(super) async fn stored(&self) -> Stored {
        let loaded = self.config.store.load(&self.key).await;
        let record = match loaded {
            Ok(record) => record.filter(Record::has_credential),
            Err(error) => {
                self.tell_store("the stored credential cannot be used", &error);
                return Stored::Unusable;
            }
        };
        let Some(record) = record else { return Stored::Nothing };
        match record.credential(&self.config.settings.dangerous.trusted) {
            // A record of another server under our key would be somebody's mischief.
            Ok(credential) if credential.server == self.endpoint.as_str() => {
                Stored::Credential(Box::new(credential), record.generation())
            }
            Ok(_) => Stored::Unusable,
            Err(error) => {
                self.tell_store("the stored credential cannot be used", &error);
                Stored::Unusable
            }
        }
    }

    /// Uses what another process has stored, if that can be used at once and is not what was used already.
    pub(super) async fn news(&self) -> Option<CurrentCredential> {
        let logouts = self.logouts();
        let Stored::Credential(stored, generation) = self.stored().await else { return None };
        let held = self.held();
        let is_new = held.as_ref().is_none_or(|held| {
            held.credential.access != stored.access && held.is_replaced_by(&stored, generation)
        });
        if !is_new || stored.is_due(self.now()) {
            return None;
        }
        self.adopt(*stored, generation, true, Origin::Store, logouts).ok()
    }

    /// The credential to renew, if there is one: that of the store, where a later login counts more than the one in use
    /// and a logout ends both.
    pub(super) async fn to_renew(&self) -> Option<CurrentCredential> {
        let (held, stored) = (self.held(), self.stored().await);
        let stays = |held: &CurrentCredential| match &stored {
            Stored::Nothing => !held.was_stored,
            Stored::Unusable => true,
            Stored::Credential(stored, generation) => !held.is_replaced_by(stored, *generation),
        };
        if held.as_ref().is_some_and(stays) {
            return held;
        }
        if let Stored::Credential(stored, generation) = stored {
            return Some(CurrentCredential::of_store(*stored, generation));
        }
        self.forget();
        None
    }

    /// The credential that is in use, without a look at the store.
    pub(super) fn held(&self) -> Option<CurrentCredential> {
        self.lock().held.clone()
    }

    /// Uses another credential from now on, unless there was a logout since there were `logouts`, which only a login
    /// outlives.
    pub(super) fn adopt(
        &self,
        credential: Credential,
        generation: u64,
        was_stored: bool,
        origin: Origin,
        logouts: u64,
    ) -> Result<CurrentCredential, AuthError> {
        let mut state = self.lock();
        if origin != Origin::Login && state.logouts != logouts {
            return Err(logged_out());
        }
        let same = state.held.as_ref().is_some_and(|held| {
            let held = &held.credential;
            let continues = match origin {
                Origin::Store => held.lineage.is_some() && held.is_of_same_login(&credential),
                Origin::Renewal => held.is_of_same_login(&credential),
                Origin::Login => false,
            };
            continues && held.issuer == credential.issuer && held.granted == credential.granted
        });
        state.serial += 1;
        state.pause = None;
        let (credential, serial) = (Arc::new(credential), state.serial);
        let held = CurrentCredential { credential, serial, generation, was_stored };
        state.held = Some(held.clone());
        drop(state);
        if !same {
            self.identity.fetch_add(1, Ordering::AcqRel);
        }
        Ok(held)
    }

    /// The number of logouts so far.
    pub(super) fn logouts(&self) -> u64 {
        self.lock().logouts
    }

    /// Ends the login in this process: what is in use is not used again.
    pub(super) fn forget(&self) {
        let mut state = self.lock();
        state.logouts += 1;
        (state.nonce, state.pause) = (None, None);
        if state.held.take().is_some() {
            self.identity.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// The refresh token was refused for good.
    pub(super) fn forget_refresh(&self, rejected: &crate::Secret) {
        let mut state = self.lock();
        if let Some(held) = &mut state.held
            && held.credential.refresh.as_ref() == Some(rejected)
        {
            let mut credential = (*held.credential).clone();
            credential.refresh = None;
            held.credential = Arc::new(credential);
        }
    }

    /// Notes that the issuer could not be asked.
    pub(super) fn failed(&self, why: &AuthError) {
        if !why.is_temporary() {
            return;
        }
        let mut state = self.lock();
        let length = state.pause.as_ref().map_or(FIRST_PAUSE, |pause| (pause.length * 2).min(LONGEST_PAUSE));
        state.pause = Some(Pause { until: Instant::now() + length, length, why: why.clone() });
    }

    /// Why the issuer is not asked at the moment.
    pub(super) fn paused(&self) -> Option<AuthError> {
        let state = self.lock();
        state.pause.as_ref().filter(|pause| Instant::now() < pause.until).map(|pause| pause.why.clone())
    }

    /// What to ask for when these scopes are lacking.
    pub(super) fn more_scopes(
        &self,
        operation: &Operation,
        challenged: &Scopes,
    ) -> Result<Scopes, AuthError> {
        let mut state = self.lock();
        let (requested, granted) = match &state.held {
            Some(held) => (held.credential.requested.clone(), held.credential.granted.clone()),
            None => (Scopes::none(), Scopes::none()),
        };
        state.step_ups.more(operation, challenged, &requested, &granted)
    }

    pub(super) fn set_nonce(&self, nonce: String) {
        self.lock().nonce = Some(nonce);
    }

    /// The last nonce that the server gave for proofs, and how its clock differs from ours.
    pub(super) fn nonce_and_skew(&self) -> (Option<String>, Skew) {
        let state = self.lock();
        (state.nonce.clone(), state.skew)
    }

    /// Learns the time from the headers of a server that refused a proof, and returns whether proofs are dated otherwise from now
    /// on than the refused one, by this refusal or by that of another request.
    pub(super) fn learn_time(&self, headers: &HeaderMap, refused: Skew) -> bool {
        let now = self.now();
        let learned = Skew::of(headers, now, TOLERATED_SKEW, MAX_SKEW);
        let mut state = self.lock();
        let news = learned.filter(|skew| skew.differs_from(state.skew, now, TOLERATED_SKEW));
        state.skew = news.unwrap_or(state.skew);
        let skew = state.skew;
        drop(state);
        if news.is_some_and(|skew| skew != Skew::None) {
            let detail = "the clock of the server and ours differ; proofs are dated by that of the server, up to five minutes";
            let event = Event::new(Step::Use, Verdict::Warning, "RFC 9449, 11.1", detail);
            self.tell(&[event.notice(Notice::ClockWrong)]);
        }
        skew.differs_from(refused, now, TOLERATED_SKEW)
    }

    /// Dates proofs by our own clock again.
    pub(super) fn forget_time(&self) {
        self.lock().skew = Skew::None;
    }

    /// The attempt that is under way, or the one that `start` makes.
    pub(super) fn attempt(&self, start: impl FnOnce() -> Arc<LoginAttempt>) -> Arc<LoginAttempt> {
        let mut state = self.lock();
        if let Some(running) = state.attempt.upgrade().filter(|attempt| !attempt.is_over()) {
            return running;
        }
        let started = start();
        state.attempt = Arc::downgrade(&started);
        started
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here leaves a half-changed state behind when it panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn logged_out() -> AuthError {
    login_needed("there was a logout")
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}
