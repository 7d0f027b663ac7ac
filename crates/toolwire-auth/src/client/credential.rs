//! The credential of one server, shared by all links to it.

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use tokio::{sync::OnceCell, time::Instant};

use super::{
    AuthError, Event, Step, Verdict,
    builder::{Config, Means},
    renew::LoginAttempt,
    scopes::{Operation, Scopes, StepUps},
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
    pause: Option<Pause>,
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
    /// Which one it is in the store.
    pub(super) generation: u64,
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
                if let Some((credential, generation)) = self.stored().await {
                    self.adopt(credential, generation, false);
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

    /// The credential in the store, and its generation.
    pub(super) async fn stored(&self) -> Option<(Credential, u64)> {
        let record = self.record().await.filter(Record::has_credential)?;
        match record.credential(&self.config.settings.dangerous.trusted) {
            // A record of another server under our key would be somebody's mischief.
            Ok(credential) if credential.server == self.endpoint.as_str() => {
                Some((credential, record.generation()))
            }
            Ok(_) => None,
            Err(error) => {
                self.tell_store("the stored credential cannot be used", &error);
                None
            }
        }
    }

    /// The credential that is in use, without a look at the store.
    pub(super) fn held(&self) -> Option<CurrentCredential> {
        self.lock().held.clone()
    }

    /// Uses another credential from now on. `new_grant` says that somebody was asked for it.
    pub(super) fn adopt(
        &self,
        credential: Credential,
        generation: u64,
        new_grant: bool,
    ) -> CurrentCredential {
        let mut state = self.lock();
        let same = state.held.as_ref().is_some_and(|held| {
            held.credential.issuer == credential.issuer && held.credential.granted == credential.granted
        });
        state.serial += 1;
        state.pause = None;
        let held = CurrentCredential { credential: Arc::new(credential), serial: state.serial, generation };
        state.held = Some(held.clone());
        drop(state);
        if new_grant || !same {
            self.identity.fetch_add(1, Ordering::AcqRel);
        }
        held
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

    pub(super) fn nonce(&self) -> Option<String> {
        self.lock().nonce.clone()
    }

    pub(super) fn set_nonce(&self, nonce: String) {
        self.lock().nonce = Some(nonce);
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

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}
