//! Tokens for other servers, in the name of whoever is being served (RFC 8693).

use std::{
    collections::HashMap,
    error, fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderValue, header};
use serde::Deserialize;
use toolwire_server::{Principal, PrincipalKey, ScopeError, Scopes};
use url::Url;

use super::{ResourceGuard, guard::IssuerEntry, tokens::Tokens, verify::PresentedToken};
use crate::{
    Endpoint, Secret,
    fetch::{Fetch, Guarded, NamedBy, Reach, Request, Response, Zone, send},
};

const GRANT: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

/// How many tokens are remembered.
const MAX_CACHED: usize = 1_024;

/// How much of its time a token must have left to be used once more.
const MARGIN: Duration = Duration::from_secs(30);

/// How long a token may be, in bytes.
const MAX_TOKEN_BYTES: usize = 16 * 1024;

/// Gets tokens for other servers, in the name of those who are being served.
///
/// It is the one use that a token which came in has here: as the `subject_token` of an exchange at the issuer that made
/// it. It is never sent on, callers of other issuers have no token here, and there is no exchange for the server itself,
/// by its resource or by any audience that its verifiers take.
///
/// ```
/// use toolwire_auth::{Secret, server::{Downstream, ResourceGuard}};
/// use toolwire_server::Principal;
///
/// # fn describe(guard: &ResourceGuard) -> Result<Downstream, Box<dyn std::error::Error>> {
/// let (issuer, endpoint) = ("https://login.example", "https://login.example/token");
/// let downstream = Downstream::new(guard, issuer, endpoint, "files", Secret::env("FILES_SECRET")?)?;
/// # Ok(downstream)
/// # }
///
/// async fn calendar(downstream: &Downstream, who: &Principal) -> Result<Secret, Box<dyn std::error::Error>> {
///     Ok(downstream.token_for(who, "https://calendar.example", ["events:read"]).await?)
/// }
/// ```
pub struct Downstream {
    guard: ResourceGuard,
    /// The position of the issuer.
    issuer: usize,
    endpoint: Endpoint,
    client: Secret,
    fetch: Arc<dyn Fetch>,
    reach: Reach,
    cached: Mutex<HashMap<Wanted, (Secret, SystemTime)>>,
}

/// What a token was got for.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Wanted {
    who: PrincipalKey,
    /// What the one it was exchanged for allows.
    may: Scopes,
    resource: String,
    scopes: Scopes,
}

impl Downstream {
    /// Exchanges tokens of `issuer`, which is one of the guard's, at its token endpoint, as the client `client_id`. From
    /// now on the guard keeps the tokens of that issuer that it lets in, while they are valid.
    ///
    /// # Errors
    /// When the guard does not take tokens of that issuer, or they are not [exchangeable](super::Verify::is_exchangeable),
    /// or the endpoint is not an `https` URL (or `http` on this machine).
    #[expect(clippy::needless_pass_by_value, reason = "a secret is handed over, not shown")]
    pub fn new(
        guard: &ResourceGuard,
        issuer: &str,
        token_endpoint: &str,
        client_id: &str,
        secret: Secret,
    ) -> Result<Self, DownstreamError> {
        let (position, entry) = exchangeable(guard, issuer)?;
        let endpoint = Endpoint::parse(token_endpoint).map_err(|error| {
            DownstreamError::Setting(format!("the token endpoint {token_endpoint:?} {error}"))
        })?;
        entry.tokens.get_or_init(Tokens::default);
        Ok(Self {
            guard: guard.clone(),
            issuer: position,
            endpoint,
            client: basic(client_id, &secret),
            fetch: Arc::new(Guarded::new()),
            reach: Reach::within(Zone::Public),
            cached: Mutex::default(),
        })
    }

    /// How the issuer is asked. Default: over the network, with TLS.
    #[must_use]
    pub fn fetch(mut self, fetch: impl Fetch + 'static) -> Self {
        self.fetch = Arc::new(fetch);
        self
    }

    /// A token with which `resource` can be used in the name of `who`. It is remembered until it expires.
    ///
    /// A caller that was read from a [record](Principal::record), such as that of a task that is run again after it
    /// waited, has none, though the same user may be served with one just now.
    ///
    /// # Errors
    /// When it is for this very server, there is no token of this issuer to exchange, or the issuer refuses or does not
    /// answer.
    pub async fn token_for<S: AsRef<str>>(
        &self,
        who: &Principal,
        resource: &str,
        scopes: impl IntoIterator<Item = S>,
    ) -> Result<Secret, DownstreamError> {
        if self.is_own(resource)? {
            return Err(DownstreamError::OwnResource);
        }
        let scopes = Scopes::of(scopes).map_err(DownstreamError::Scopes)?;
        let (inner, now) = (self.guard.inner(), self.guard.inner().clock.now());
        // Asked first: what was got for somebody lasts no longer than they are known.
        let entry = inner.issuers.get(self.issuer).filter(|_| !who.is_restored());
        let kept = entry.and_then(|entry| entry.tokens.get()?.of(who, now));
        let subject = kept.ok_or(DownstreamError::NoToken)?;
        let may = who.scopes().clone();
        let wanted = Wanted { who: who.key(), may, resource: resource.to_owned(), scopes };
        if let Some((token, until)) = self.lock().get(&wanted)
            && *until > now
        {
            return Ok(token.clone());
        }
        let (token, lasts) = self.exchange(&subject, &wanted).await?;
        if let Some(until) = lasts.and_then(|lasts| now.checked_add(lasts.checked_sub(MARGIN)?)) {
            self.remember(wanted, token.clone(), until, now);
        }
        Ok(token)
    }

    /// Returns whether a resource is this server itself, by any of its names and however that is written.
    fn is_own(&self, resource: &str) -> Result<bool, DownstreamError> {
        let wanted = place(resource)
            .ok_or_else(|| DownstreamError::Setting(format!("the resource {resource:?} is not a URL")))?;
        let inner = self.guard.inner();
        let audiences = inner.issuers.iter().flat_map(|entry| entry.verifier.audiences());
        Ok(audiences.chain([&inner.resource]).any(|own| place(own).as_ref() == Some(&wanted)))
    }

    async fn exchange(
        &self,
        subject: &PresentedToken,
        wanted: &Wanted,
    ) -> Result<(Secret, Option<Duration>), DownstreamError> {
        let scope = wanted.scopes.to_string();
        let mut fields = vec![
            ("grant_type", GRANT),
            ("subject_token", subject.expose()),
            ("subject_token_type", ACCESS_TOKEN),
            ("requested_token_type", ACCESS_TOKEN),
            ("resource", &wanted.resource),
        ];
        if !scope.is_empty() {
            fields.push(("scope", &scope));
        }
        let mut request = Request::form(self.endpoint.clone(), NamedBy::Application, fields);
        let mut credentials = HeaderValue::try_from(self.client.expose())
            .map_err(|_| DownstreamError::Setting("the secret of the client cannot be sent".to_owned()))?;
        credentials.set_sensitive(true);
        request.headers.insert(header::AUTHORIZATION, credentials);
        let fetched = send(&*self.fetch, request, &self.reach).await;
        let response = fetched.map_err(|error| DownstreamError::Unavailable(error.to_string()))?;
        accept(&response)
    }

    fn remember(&self, wanted: Wanted, token: Secret, until: SystemTime, now: SystemTime) {
        let mut cached = self.lock();
        if cached.len() >= MAX_CACHED {
            cached.retain(|_, (_, until)| *until > now);
        }
        // Without room it is asked for again the next time.
        if cached.len() < MAX_CACHED || cached.contains_key(&wanted) {
            cached.insert(wanted, (token, until));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Wanted, (Secret, SystemTime)>> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the issuer of a guard whose tokens are to be exchanged, with its position.
fn exchangeable<'g>(
    guard: &'g ResourceGuard,
    issuer: &str,
) -> Result<(usize, &'g IssuerEntry), DownstreamError> {
    let mut issuers = guard.inner().issuers.iter().enumerate();
    let found = issuers.find(|(_, entry)| entry.issuer.as_str() == issuer);
    let why = match found {
        Some((position, entry)) if entry.verifier.is_exchangeable() => return Ok((position, entry)),
        Some(_) => "were not given out by an authorization server, and cannot be exchanged",
        None => "are not taken by the guard; name one of its issuers, byte for byte",
    };
    Err(DownstreamError::Setting(format!("tokens of {issuer:?} {why}")))
}

/// Returns the scheme, host, port and path of a URL of any scheme, without what can be written in more than one way.
fn place(text: &str) -> Option<(String, String, Option<u16>, String)> {
    let url = Url::parse(text).ok()?;
    let host = url.host_str().unwrap_or_default().trim_end_matches('.').to_ascii_lowercase();
    let path = url.path().trim_end_matches('/').to_owned();
    Some((url.scheme().to_owned(), host, url.port_or_known_default(), path))
}

/// Id and secret as RFC 6749, 2.3.1 wants them: form-encoded first.
fn basic(client_id: &str, secret: &Secret) -> Secret {
    let encode = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = Secret::new(format!("{}:{}", encode(client_id), encode(secret.expose())));
    Secret::new(format!("Basic {}", STANDARD.encode(pair.expose())))
}

#[derive(Deserialize)]
struct Granted {
    access_token: String,
    token_type: String,
    issued_token_type: Option<String>,
    expires_in: Option<u64>,
}

#[derive(Deserialize)]
struct Refused {
    error: String,
}

fn accept(response: &Response) -> Result<(Secret, Option<Duration>), DownstreamError> {
    let status = response.status.as_u16();
    if status >= 500 || status == 408 || status == 429 {
        return Err(DownstreamError::Unavailable(format!("the issuer answered with status {status}")));
    }
    if let Ok(Refused { error }) = serde_json::from_slice(&response.body) {
        let shown = error.chars().filter(char::is_ascii_graphic).take(100).collect();
        return Err(DownstreamError::Refused(shown));
    }
    let unreadable =
        || DownstreamError::Unavailable(format!("the answer with status {status} cannot be read"));
    if status != 200 {
        return Err(unreadable());
    }
    let granted: Granted = serde_json::from_slice(&response.body).map_err(|_| unreadable())?;
    let token = Secret::new(granted.access_token);
    let is_sendable = |byte: u8| byte.is_ascii_graphic();
    let fits = !token.is_empty() && token.expose().len() <= MAX_TOKEN_BYTES;
    let is_right = granted.token_type.eq_ignore_ascii_case("bearer")
        && granted.issued_token_type.is_none_or(|kind| kind == ACCESS_TOKEN);
    if !fits || !is_right || !token.expose().bytes().all(is_sendable) {
        return Err(DownstreamError::Refused("the issuer gave another kind of token".to_owned()));
    }
    Ok((token, granted.expires_in.map(Duration::from_secs)))
}

impl fmt::Debug for Downstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Downstream").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// Why there is no token for another server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DownstreamError {
    /// Something that was configured or asked for is not valid.
    Setting(String),
    /// What was asked for are not scopes.
    Scopes(ScopeError),
    /// The token would be for this server itself. Whoever asked wants to be mistaken for its caller.
    OwnResource,
    /// The guard has let nobody in with a token of this caller, it is of another issuer, or it has expired.
    NoToken,
    /// The issuer refuses, with this error of OAuth.
    Refused(String),
    /// The issuer cannot be asked now.
    Unavailable(String),
}

impl fmt::Display for DownstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting(what) => f.write_str(what),
            Self::Scopes(error) => error.fmt(f),
            Self::OwnResource => f.write_str("there is no exchange for a server's own resource"),
            Self::NoToken => {
                f.write_str(
                    "there is no token of this caller to exchange: it has to be served by the guard, with a token of \
                     this issuer",
                )
            }
            Self::Refused(error) => write!(f, "the issuer refused to exchange the token: {error}"),
            Self::Unavailable(why) => write!(f, "the issuer cannot be asked for a token now: {why}"),
        }
    }
}

impl error::Error for DownstreamError {}
