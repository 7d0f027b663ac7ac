//! The keys of an issuer: where they are, and for how long they are believed.

use std::{
    borrow::Cow,
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use http::{HeaderMap, StatusCode, header};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use toolwire_protocol::RawJson;

use super::{Invalid, Unavailable, VerifyError};
use crate::{
    Endpoint, Issuer, Origins,
    fetch::{Fetch, NamedBy, Reach, Request, Response},
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

/// How long it is remembered that a key is unknown. An issuer may sign with a key a little before it tells.
const UNKNOWN_AGE: Duration = MIN_FRESH;

/// How many keys are remembered as unknown.
const MAX_UNKNOWN: usize = 256;

/// Where the keys of an issuer are.
#[derive(Clone)]
pub(super) enum Source {
    /// Here.
    Fixed(KeySet),
    /// At this address.
    At(Endpoint),
    /// Where the metadata of the issuer say.
    Discovered(Issuer),
}

/// The keys of one issuer.
pub(super) struct Keys {
    source: Source,
    fetch: Arc<dyn Fetch>,
    trusted: Origins,
    reach: Reach,
    state: Mutex<State>,
    /// Held by the one who fetches.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    held: Option<Held>,
    /// When keys were last asked for, whatever came of it, and why there were none.
    tried: Option<SystemTime>,
    failure: Option<Cow<'static, str>>,
    /// Digests of names that no key had, and when.
    unknown: VecDeque<([u8; 32], SystemTime)>,
}

#[derive(Clone)]
struct Held {
    keys: Arc<KeySet>,
    /// `None` for keys that were given.
    fresh_until: Option<SystemTime>,
}

/// Why no metadata were found. What is greater says more.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Failure {
    Nothing,
    Away(Cow<'static, str>),
    Unfit(String),
}

impl Failure {
    /// Keeps what says most, and of two that say as much the first.
    fn was(&mut self, other: Self) {
        if std::mem::discriminant(self) != std::mem::discriminant(&other) && other > *self {
            *self = other;
        }
    }
}

impl Keys {
    pub(super) fn new(source: Source, fetch: Arc<dyn Fetch>, trusted: Origins) -> Self {
        let (held, reach) = match &source {
            Source::Fixed(keys) => (Some(Held { keys: Arc::new(keys.clone()), fresh_until: None }), None),
            Source::At(place) => (None, Some(Reach::of(place.url()))),
            Source::Discovered(issuer) => {
                (None, url::Url::parse(issuer.as_str()).ok().map(|url| Reach::of(&url)))
            }
        };
        // Nothing is fetched where nothing is known about who names it.
        let reach = reach.unwrap_or_else(|| Reach::within(crate::fetch::Zone::Public));
        let state = Mutex::new(State { held, ..State::default() });
        Self { source, fetch, trusted, reach, state, fetching: tokio::sync::Mutex::new(()) }
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
        if kid.is_some_and(|kid| keys.has_kid(kid)) || matches!(self.source, Source::Fixed(_)) {
            return Err(invalid(JwsError::NoKey));
        }
        let name = Sha256::digest(kid.unwrap_or_default()).into();
        if self.lock().is_unknown(&name, now) {
            return Err(invalid(JwsError::NoKey));
        }
        let Some(keys) = self.renewed(&keys, now).await? else { return Err(invalid(JwsError::NoKey)) };
        keys.verify(token).map_err(|error| {
            if error == JwsError::NoKey || kid.is_none() {
                self.lock().remember_unknown(name, now);
            }
            invalid(error)
        })
    }

    /// The keys, fetched if there are none or they are not fresh. Stale ones do while others fetch, or the issuer does
    /// not answer.
    async fn current(&self, now: SystemTime) -> Result<Arc<KeySet>, Unavailable> {
        let held = self.lock().held.clone();
        let Some(held) = held.filter(|held| held.serves(now)) else {
            let _fetching = self.fetching.lock().await;
            // Somebody else may have fetched them in the meantime.
            if let Some(held) = self.lock().held.clone().filter(|held| held.serves(now)) {
                return Ok(held.keys);
            }
            return self.fetch_now(now).await;
        };
        if held.is_fresh(now) {
            return Ok(held.keys);
        }
        let Ok(_fetching) = self.fetching.try_lock() else { return Ok(held.keys) };
        match self.fetch_now(now).await {
            Ok(keys) => Ok(keys),
            Err(why) => {
                tracing::warn!(%why, "the keys of the issuer cannot be renewed, so old ones are used");
                Ok(held.keys)
            }
        }
    }

    /// Newer keys than these, for a token that names one that is not among them. They are fetched at most once in
    /// [`FETCH_PAUSE`]; until then there are none.
    async fn renewed(
        &self,
        known: &Arc<KeySet>,
        now: SystemTime,
    ) -> Result<Option<Arc<KeySet>>, Unavailable> {
        let _fetching = self.fetching.lock().await;
        let (held, failure) = {
            let state = self.lock();
            (state.held.clone(), state.paused(now).then(|| state.failure.clone()))
        };
        match held {
            Some(held) if !Arc::ptr_eq(&held.keys, known) => return Ok(Some(held.keys)),
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
        let fetched = self.fetch_keys().await;
        let mut state = self.lock();
        state.tried = Some(now);
        match fetched {
            Ok((keys, fresh)) => {
                let keys = Arc::new(keys);
                state.held = Some(Held { keys: Arc::clone(&keys), fresh_until: Some(now + fresh) });
                state.failure = None;
                Ok(keys)
            }
            Err(why) => {
                tracing::warn!(%why, "the keys of the issuer cannot be fetched");
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

    async fn fetch_keys(&self) -> Result<(KeySet, Duration), Cow<'static, str>> {
        let (place, named_by) = match &self.source {
            Source::Fixed(keys) => return Ok((keys.clone(), MAX_FRESH)),
            Source::At(place) => (place.clone(), NamedBy::Application),
            Source::Discovered(issuer) => (self.discover(issuer).await?, NamedBy::Peer),
        };
        let response = self.get(place.clone(), named_by).await?;
        if response.status != StatusCode::OK {
            return Err(format!("{place} answered {} instead of keys", response.status.as_u16()).into());
        }
        let text = std::str::from_utf8(&response.body).unwrap_or_default();
        let keys = KeySet::parse(text).map_err(|why| format!("{place} has no set of keys: {why}"))?;
        if keys.is_empty() {
            return Err(format!("{place} has no key that can be used here").into());
        }
        Ok((keys, freshness(&response.headers)))
    }

    /// Where the metadata of the issuer say that its keys are.
    async fn discover(&self, issuer: &Issuer) -> Result<Endpoint, Cow<'static, str>> {
        let mut failure = Failure::Nothing;
        for place in places(issuer) {
            let place = Endpoint::parse_trusting(&place, &self.trusted)
                .map_err(|why| format!("the issuer {issuer} cannot be asked, since it {why}"))?;
            let response = match self.get(place.clone(), NamedBy::Application).await {
                Ok(response) => response,
                Err(why) => {
                    failure.was(Failure::Away(why));
                    continue;
                }
            };
            if response.status.is_server_error() {
                failure.was(Failure::Away(format!("{place} answered {}", response.status.as_u16()).into()));
            }
            // What is not metadata rules out itself.
            let metadata = object(&response.body).filter(|_| response.status == StatusCode::OK);
            let Some(metadata) = metadata else { continue };
            let text = |name: &str| metadata.get(name).and_then(Value::as_str);
            match (text("issuer"), text("jwks_uri")) {
                (Some(found), _) if found != issuer.as_str() => failure.was(Failure::Unfit(format!(
                    "the issuer was configured as {issuer}, and {place} is about {found:?}: configure it as it names \
                     itself"
                ))),
                (Some(_), Some(keys)) => {
                    return Endpoint::parse_trusting(keys, &self.trusted)
                        .map_err(|why| format!("the address of the keys that {place} names {why}").into());
                }
                (Some(_), None) => failure.was(Failure::Unfit(format!("{place} does not say where the keys are"))),
                (None, _) => {}
            }
        }
        Err(match failure {
            Failure::Nothing => format!("the issuer {issuer} has no metadata").into(),
            Failure::Away(why) => why,
            Failure::Unfit(why) => why.into(),
        })
    }

    async fn get(&self, place: Endpoint, named_by: NamedBy) -> Result<Response, Cow<'static, str>> {
        let fetched = self.fetch.fetch(Request::get(place, named_by), &self.reach).await;
        fetched.map_err(|why| why.to_string().into())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
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

    fn is_unknown(&mut self, name: &[u8; 32], now: SystemTime) -> bool {
        while self.unknown.front().is_some_and(|(_, since)| now >= *since + UNKNOWN_AGE) {
            self.unknown.pop_front();
        }
        self.unknown.iter().any(|(known, _)| known == name)
    }

    fn remember_unknown(&mut self, name: [u8; 32], now: SystemTime) {
        if self.unknown.len() == MAX_UNKNOWN {
            self.unknown.pop_front();
        }
        self.unknown.push_back((name, now));
    }
}

fn invalid(error: JwsError) -> VerifyError {
    Invalid::new(error.to_string()).into()
}

fn object(body: &[u8]) -> Option<Map<String, Value>> {
    RawJson::parse(std::str::from_utf8(body).ok()?).ok()?.decode().ok()
}

/// Where the metadata of an issuer may be (RFC 8414, and OpenID Connect): never the root for one with a path.
fn places(issuer: &Issuer) -> Vec<String> {
    let text = issuer.as_str();
    let after_scheme = text.find("://").map_or(0, |at| at + 3);
    let path_at =
        text.get(after_scheme..).and_then(|rest| rest.find('/')).map_or(text.len(), |at| after_scheme + at);
    let (origin, path) = text.split_at(path_at);
    let path = path.strip_suffix('/').unwrap_or(path);
    let mut places = vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        places.push(format!("{origin}{path}/.well-known/openid-configuration"));
    }
    places
}

/// How long an answer may be kept: `max-age`, within bounds.
fn freshness(headers: &HeaderMap) -> Duration {
    let mut seconds = None;
    for value in headers.get_all(header::CACHE_CONTROL) {
        for directive in value.to_str().unwrap_or_default().split(',') {
            if let Some((name, value)) = directive.split_once('=')
                && name.trim().eq_ignore_ascii_case("max-age")
                && let Ok(value) = value.trim().trim_matches('"').parse::<u64>()
            {
                // Of several, the one that asks for the most care.
                seconds = Some(seconds.map_or(value, |least: u64| least.min(value)));
            }
        }
    }
    Duration::from_secs(seconds.unwrap_or_default()).clamp(MIN_FRESH, MAX_FRESH)
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match &self.source {
            Source::Fixed(keys) => format!("{} keys", keys.keys().len()),
            Source::At(place) => place.to_string(),
            Source::Discovered(issuer) => issuer.to_string(),
        };
        f.debug_tuple("Keys").field(&place).finish()
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn keys_are_fresh_within_bounds() {
        let fresh = |values: &[&'static str]| {
            let values = values.iter().map(|value| (header::CACHE_CONTROL, HeaderValue::from_static(value)));
            freshness(&HeaderMap::from_iter(values)).as_secs()
        };
        assert_eq!(fresh(&[]), 300);
        assert_eq!(fresh(&["no-store"]), 300);
        assert_eq!(fresh(&["max-age=0"]), 300);
        assert_eq!(fresh(&["public, Max-Age=3600, must-revalidate"]), 3_600);
        assert_eq!(fresh(&["max-age=99999999999"]), 86_400);
        assert_eq!(fresh(&["max-age=-1"]), 300);
        assert_eq!(fresh(&["max-age=x"]), 300);
    }

    #[test]
    fn metadata_are_looked_for_in_the_order_of_the_specification() {
        let places = |text: &str| places(&Issuer::parse(text).unwrap());
        for root in ["https://a.example", "https://a.example/"] {
            assert_eq!(
                places(root),
                [
                    "https://a.example/.well-known/oauth-authorization-server",
                    "https://a.example/.well-known/openid-configuration"
                ]
            );
        }
        assert_eq!(
            places("https://a.example:8443/t/1"),
            [
                "https://a.example:8443/.well-known/oauth-authorization-server/t/1",
                "https://a.example:8443/.well-known/openid-configuration/t/1",
                "https://a.example:8443/t/1/.well-known/openid-configuration"
            ]
        );
    }

    #[test]
    fn unknown_names_are_forgotten_and_bounded() {
        let (mut state, now) = (State::default(), SystemTime::UNIX_EPOCH);
        for number in 0..2 * MAX_UNKNOWN {
            state.remember_unknown(Sha256::digest(number.to_be_bytes()).into(), now);
        }
        assert_eq!(state.unknown.len(), MAX_UNKNOWN);
        let last = Sha256::digest((2 * MAX_UNKNOWN - 1).to_be_bytes()).into();
        assert!(state.is_unknown(&last, now));
        assert!(!state.is_unknown(&last, now + UNKNOWN_AGE));
        assert!(state.unknown.is_empty());
    }
}
