//! The keys of an issuer: where they are, and for how long they are believed.

mod source;

use std::{
    borrow::Cow,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

pub(super) use self::source::KeyLocation;
use self::source::KeySource;
use super::{Invalid, Unavailable, VerifyError};
use crate::{
    Origins,
    fetch::Fetch,
    jose::{Compact, JwsError, KeySet, Payload},
};

/// How long keys are fresh at least, whatever the issuer says, and if it says nothing.
pub const MIN_FRESH: Duration = Duration::from_secs(5 * 60);

/// How long keys are fresh at most, whatever the issuer says.
pub const MAX_FRESH: Duration = Duration::from_secs(24 * 60 * 60);

/// How long keys that are not fresh any more are used while their issuer does not answer.
pub const MAX_STALE: Duration = Duration::from_secs(24 * 60 * 60);

/// How much time there is between two fetches, whatever keys tokens name and however often a fetch fails.
pub const FETCH_PAUSE: Duration = Duration::from_secs(30);

/// The keys of one issuer.
pub(super) struct Keys {
    source: KeySource,
    state: Mutex<State>,
    /// CachedKeys by the one who fetches.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    cached: Option<CachedKeys>,
    /// When keys were last asked for, whatever came of it, and why there were none.
    tried: Option<SystemTime>,
    failure: Option<Cow<'static, str>>,
}

#[derive(Clone)]
struct CachedKeys {
    keys: Arc<KeySet>,
    /// `None` for keys that were given.
    fresh_until: Option<SystemTime>,
}

impl Keys {
    pub(super) fn new(location: KeyLocation, fetch: Arc<dyn Fetch>, trusted: Origins) -> Self {
        let given = match &location {
            KeyLocation::Fixed(keys) => Some(CachedKeys { keys: Arc::new(keys.clone()), fresh_until: None }),
            KeyLocation::At(_) | KeyLocation::Discovered(_) => None,
        };
        let state = Mutex::new(State { cached: given, ..State::default() });
        Self {
            source: KeySource::new(location, fetch, trusted),
            state,
            fetching: tokio::sync::Mutex::new(()),
        }
    }

    /// Gets the keys if there are none.
    pub(super) async fn warm_up(&self, now: SystemTime) -> Result<(), Unavailable> {
        self.current(now).await.map(drop)
    }

    /// Gives what a token says if it was signed with a key of the issuer.
    pub(super) async fn verify(&self, token: &Compact<'_>, now: SystemTime) -> Result<Payload, VerifyError> {
        let keys = self.current(now).await?;
        let kid = token.header().kid();
        match keys.verify(token) {
            Err(JwsError::NoKey) => {}
            // Nobody knows which key was meant, so it may be a new one.
            Err(JwsError::Signature) if kid.is_none() => {}
            verdict => return verdict.map_err(invalid),
        }
        // A key of that name is there, and cannot be used for this: others of the issuer change nothing about it.
        if kid.is_some_and(|kid| keys.has_kid(kid)) || self.source.is_fixed() {
            return Err(invalid(JwsError::NoKey));
        }
        // It is not remembered that nobody knows a key. The pause bounds the fetches, and a key that is asked for before
        // its time, which strangers can do, has to be found as soon as the issuer tells it.
        let Some(keys) = self.renewed(&keys, now).await? else { return Err(invalid(JwsError::NoKey)) };
        keys.verify(token).map_err(invalid)
    }

    /// The keys, fetched if there are none or they are not fresh. Stale ones do while others fetch, or the issuer does
    /// not answer.
    async fn current(&self, now: SystemTime) -> Result<Arc<KeySet>, Unavailable> {
        let cached = self.lock().cached.clone();
        let Some(cached) = cached.filter(|cached| cached.serves(now)) else {
            let _fetching = self.fetching.lock().await;
            // Somebody else may have fetched them in the meantime.
            if let Some(cached) = self.lock().cached.clone().filter(|cached| cached.serves(now)) {
                return Ok(cached.keys);
            }
            return self.fetch_now(now).await;
        };
        if cached.is_fresh(now) {
            return Ok(cached.keys);
        }
        let Ok(_fetching) = self.fetching.try_lock() else { return Ok(cached.keys) };
        Ok(self.fetch_now(now).await.unwrap_or(cached.keys))
    }

    /// Newer keys than these, for a token that names one that is not among them. They are fetched at most once in
    /// [`FETCH_PAUSE`]; until then there are none.
    async fn renewed(
        &self,
        known: &Arc<KeySet>,
        now: SystemTime,
    ) -> Result<Option<Arc<KeySet>>, Unavailable> {
        let _fetching = self.fetching.lock().await;
        let (cached, failure) = {
            let state = self.lock();
            (state.cached.clone(), state.paused(now).then(|| state.failure.clone()))
        };
        match cached {
            Some(cached) if !Arc::ptr_eq(&cached.keys, known) => return Ok(Some(cached.keys)),
            _ => {}
        }
        match failure {
            // Asked lately, and these are all the keys there are.
            Some(None) => Ok(None),
            // Asked lately, and nobody knows which keys there are now.
            Some(Some(why)) => Err(self.unavailable(why, now)),
            None => self.fetch_now(now).await.map(Some),
        }
    }

    /// Fetches the keys, by whoever holds the lock for that, unless that has failed a moment ago.
    async fn fetch_now(&self, now: SystemTime) -> Result<Arc<KeySet>, Unavailable> {
        let failure = {
            let state = self.lock();
            state.failure.clone().filter(|_| state.paused(now))
        };
        if let Some(why) = failure {
            return Err(self.unavailable(why, now));
        }
        let fetched = self.source.fetch_keys().await;
        let mut state = self.lock();
        state.tried = Some(now);
        match fetched {
            Ok((keys, fresh)) => {
                let keys = Arc::new(keys);
                state.cached = Some(CachedKeys { keys: Arc::clone(&keys), fresh_until: Some(now + fresh) });
                state.failure = None;
                Ok(keys)
            }
            Err(why) => {
                // Told once for each try, however many tokens come in between.
                let old_keys_used = state.cached.as_ref().is_some_and(|cached| cached.serves(now));
                tracing::warn!(%why, old_keys_used, "the keys of the issuer cannot be fetched");
                state.failure = Some(why.clone());
                drop(state);
                Err(self.unavailable(why, now))
            }
        }
    }

    fn unavailable(&self, why: Cow<'static, str>, now: SystemTime) -> Unavailable {
        let tried = self.lock().tried.unwrap_or(now);
        let left = (tried + FETCH_PAUSE).duration_since(now).unwrap_or_default();
        Unavailable::new(why).retry_after(left.clamp(Duration::from_secs(1), FETCH_PAUSE))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CachedKeys {
    fn is_fresh(&self, now: SystemTime) -> bool {
        self.fresh_until.is_none_or(|until| now < until)
    }

    /// Whether the keys can be used, if need be.
    fn serves(&self, now: SystemTime) -> bool {
        self.fresh_until.is_none_or(|until| now < until + MAX_STALE)
    }
}

impl State {
    /// Whether it is too early to ask again.
    fn paused(&self, now: SystemTime) -> bool {
        self.tried.is_some_and(|tried| now < tried + FETCH_PAUSE)
    }
}

fn invalid(error: JwsError) -> VerifyError {
    Invalid::new(error.to_string()).into()
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Keys").field(&self.source.to_string()).finish()
    }
}
