//! Where the keys of an issuer are, and fetching them from there.

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use http::{HeaderMap, StatusCode, header};
use serde_json::Value;
use url::Url;

use super::{MAX_FRESH, MIN_FRESH};
use crate::{
    Endpoint, Issuer, Origins,
    fetch::{Fetch, NamedBy, Reach, Request, Response, Zone},
    jose::KeySet,
    metadata,
};

/// Where the keys of an issuer are.
#[derive(Clone)]
pub(in crate::server::verify) enum KeyLocation {
    /// Here.
    Fixed(KeySet),
    /// At this address.
    At(Endpoint),
    /// Where the metadata of the issuer say.
    Discovered(Issuer),
}

/// A source of keys, and what is needed to fetch them.
pub(super) struct KeySource {
    location: KeyLocation,
    fetch: Arc<dyn Fetch>,
    trusted: Origins,
    /// How far inside the network the issuer may lead.
    reach: Reach,
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

impl KeySource {
    pub(super) fn new(location: KeyLocation, fetch: Arc<dyn Fetch>, trusted: Origins) -> Self {
        let url = match &location {
            KeyLocation::Fixed(_) => None,
            KeyLocation::At(place) => Some(place.url().clone()),
            KeyLocation::Discovered(issuer) => Url::parse(issuer.as_str()).ok(),
        };
        // Of an issuer without an address nothing is fetched.
        let reach = url.map_or_else(|| Reach::within(Zone::Public), |url| Reach::of(&url));
        Self { location, fetch, trusted, reach }
    }

    /// Whether the keys are those that were given.
    pub(super) const fn is_fixed(&self) -> bool {
        matches!(self.location, KeyLocation::Fixed(_))
    }

    /// The keys, and for how long they are fresh.
    pub(super) async fn fetch_keys(&self) -> Result<(KeySet, Duration), Cow<'static, str>> {
        let (place, named_by) = match &self.location {
            KeyLocation::Fixed(keys) => return Ok((keys.clone(), MAX_FRESH)),
            KeyLocation::At(place) => (place.clone(), NamedBy::Application),
            KeyLocation::Discovered(issuer) => (self.discover(issuer).await?, NamedBy::Peer),
        };
        let response = self.get(place.clone(), named_by).await?;
        if response.status != StatusCode::OK {
            return Err(format!("{place} answered {} instead of keys", response.status.as_u16()).into());
        }
        let text = std::str::from_utf8(&response.body)
            .map_err(|_| format!("{place} has no set of keys: it is not text"))?;
        let keys = KeySet::parse(text).map_err(|why| format!("{place} has no set of keys: {why}"))?;
        if keys.is_empty() {
            return Err(format!("{place} has no key that can be used here").into());
        }
        Ok((keys, freshness(&response.headers)))
    }

    /// Where the metadata of the issuer say that its keys are.
    async fn discover(&self, issuer: &Issuer) -> Result<Endpoint, Cow<'static, str>> {
        let mut failure = Failure::Nothing;
        let places = metadata::places(issuer, &self.trusted)
            .map_err(|why| format!("the issuer {issuer} cannot be asked, since it {why}"))?;
        for place in places {
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
            let document = metadata::object(&response.body).filter(|_| response.status == StatusCode::OK);
            let Some(document) = document else { continue };
            let text = |name: &str| document.get(name).and_then(Value::as_str);
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

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.location {
            KeyLocation::Fixed(keys) => write!(f, "{} keys", keys.keys().len()),
            KeyLocation::At(place) => place.fmt(f),
            KeyLocation::Discovered(issuer) => issuer.fmt(f),
        }
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
            freshness(&values.collect()).as_secs()
        };
        assert_eq!(fresh(&[]), 300);
        assert_eq!(fresh(&["no-store"]), 300);
        assert_eq!(fresh(&["max-age=0"]), 300);
        assert_eq!(fresh(&["public, Max-Age=3600, must-revalidate"]), 3_600);
        assert_eq!(fresh(&["max-age=99999999999"]), 86_400);
        assert_eq!(fresh(&["max-age=-1"]), 300);
        assert_eq!(fresh(&["max-age=x"]), 300);
    }
}
