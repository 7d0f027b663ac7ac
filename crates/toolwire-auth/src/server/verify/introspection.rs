//! Asking the issuer what a token is (RFC 7662).

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Map, Value};
use toolwire_transport::BoxFuture;
use zeroize::Zeroizing;

use super::{
    Audience, Expiry, Invalid, PresentedToken, Setting, SettingError, TokenCache, Unavailable, Verified,
    Verify, VerifyError, asking::Asking, claims, turns::Turns,
};
use crate::{
    Endpoint, Secret,
    fetch::{Fetch, FetchErrorKind, NamedBy, Reach, Request, Response},
    metadata,
};

/// How long it is remembered that a token is not valid.
const REFUSAL_AGE: Duration = Duration::from_secs(5);

/// How many questions may be under way at once. Others wait for their turn.
const MAX_AT_ONCE: usize = 64;

/// The number of questions that may be about tokens from one place, so that a stranger with made-up ones leaves room for others.
const MAX_OF_PEER: usize = 8;

/// How long a token waits for its turn to be asked about.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// Verifies tokens by asking their issuer, for those that only the issuer understands.
///
/// ```no_run
/// use toolwire_auth::{Secret, server::Introspection};
///
/// let url = "https://login.example/introspect";
/// let verifier = Introspection::at(url, "files", Secret::env("FILES_SECRET")?).audience("api://files");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub struct Introspection {
    url: String,
    client_id: String,
    secret: Secret,
    audiences: Vec<String>,
    vouched: bool,
    asking: Asking,
    prepared: Option<Prepared>,
    turns: Turns,
    refused: TokenCache<Invalid>,
}

struct Prepared {
    endpoint: Endpoint,
    credentials: HeaderValue,
    issuer: String,
    resource: String,
    fetch: Arc<dyn Fetch>,
}

impl Introspection {
    /// Asks at this address, as this client.
    pub fn at(url: impl Into<String>, client_id: impl Into<String>, secret: Secret) -> Self {
        Self {
            url: url.into(),
            client_id: client_id.into(),
            secret,
            audiences: Vec::new(),
            vouched: false,
            asking: Asking::default(),
            prepared: None,
            turns: Turns::new(MAX_AT_ONCE, MAX_OF_PEER),
            refused: TokenCache::new(),
        }
    }

    /// Takes tokens for this audience as well as those for the resource itself. It is compared byte for byte.
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audiences.push(audience.into());
        self
    }

    /// Asks with this, for proxies and certificates of one's own.
    pub fn fetch(mut self, fetch: impl Fetch + 'static) -> Self {
        self.asking.with(fetch);
        self
    }

    /// What weakens a check.
    pub fn dangerous(self) -> DangerousIntrospection {
        DangerousIntrospection(self)
    }

    async fn check(&self, token: &PresentedToken, now: SystemTime) -> Result<Verified, VerifyError> {
        // The guard asks this, too, but not where there is one issuer alone.
        if !self.may_know(token) {
            return Err(Invalid::new("it names another issuer").into());
        }
        if let Some(refused) = self.refused.get(token.expose().as_bytes(), now) {
            return Err(refused.into());
        }
        let Some(prepared) = &self.prepared else {
            return Err(Unavailable::new("the verifier was not prepared by a guard").into());
        };
        let verdict = match self.ask(prepared, token).await {
            Ok(answer) => self.read(answer, prepared, now),
            Err(unavailable) => return Err(unavailable.into()),
        };
        verdict.map_err(|invalid| {
            self.refused.put(token.expose().as_bytes(), invalid.clone(), now + REFUSAL_AGE, now);
            invalid.into()
        })
    }

    async fn ask(
        &self,
        prepared: &Prepared,
        token: &PresentedToken,
    ) -> Result<Map<String, Value>, Unavailable> {
        let away = |why: String| {
            tracing::warn!(%why, "the issuer cannot be asked about a token");
            Unavailable::new(why)
        };
        // Whoever sends tokens faster than the issuer answers fills the queue, not the time of everybody behind it.
        let Ok(Some(_turn)) = tokio::time::timeout(MAX_WAIT, self.turns.take(token.peer())).await else {
            return Err(away("too many tokens wait to be introspected".to_owned()));
        };
        let fields = [("token", token.expose()), ("token_type_hint", "access_token")];
        let mut request = Request::form(prepared.endpoint.clone(), NamedBy::Application, fields);
        request.headers.insert(header::AUTHORIZATION, prepared.credentials.clone());
        let reach = Reach::of(prepared.endpoint.url());
        let response = prepared.fetch.fetch(request, &reach).await.map_err(|error| match error.kind {
            FetchErrorKind::TooLarge => away(format!("{} answers too much", prepared.endpoint)),
            _ => away(error.to_string()),
        })?;
        answer(&response).ok_or_else(|| {
            let status = response.status.as_u16();
            away(match response.status {
                StatusCode::OK => format!("{} does not answer with a JSON object", prepared.endpoint),
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                    format!(
                        "{} answered {status}: check the id and the secret of the client",
                        prepared.endpoint
                    )
                }
                _ => format!("{} answered {status}", prepared.endpoint),
            })
        })
    }

    /// What an answer says of the token, if that is valid.
    fn read(
        &self,
        answer: Map<String, Value>,
        prepared: &Prepared,
        now: SystemTime,
    ) -> Result<Verified, Invalid> {
        if answer.get("active") != Some(&Value::Bool(true)) {
            return Err(Invalid::new("its issuer says that it is not active"));
        }
        claims::is_access_token(&answer)?;
        let kind = claims::text(&answer, "token_type")?;
        if kind.is_some_and(|kind| !kind.eq_ignore_ascii_case("Bearer") && !kind.eq_ignore_ascii_case("DPoP"))
        {
            return Err(Invalid::new("it is not an access token: token_type says so"));
        }
        if claims::text(&answer, "iss")?.is_some_and(|issuer| issuer != prepared.issuer) {
            return Err(Invalid::new("it names another issuer"));
        }
        let expiry = claims::times(&answer, now)?.map_or(Expiry::Unknown, Expiry::At);
        let audience = match claims::audience(&answer, &prepared.resource, &self.audiences)? {
            Some(audience) => audience,
            None if self.vouched => {
                tracing::info!("a token without an audience was accepted, as configured");
                Audience::Vouched
            }
            None => return Err(Invalid::new("its issuer names no audience")),
        };
        let subject = claims::text(&answer, "sub")?.filter(|subject| !subject.is_empty());
        let scopes = claims::scopes(&answer, &["scope"])?;
        let bound = claims::bound_to(&answer)?.map(str::to_owned);
        let mut verified = Verified::of(subject, claims::client(&answer)?, audience, expiry)
            .ok_or_else(|| Invalid::new("its issuer names neither a subject nor a client"))?
            .scopes(scopes);
        verified.issuer = claims::text(&answer, "iss")?.map(str::to_owned);
        verified.key = bound;
        Ok(verified.claims(answer))
    }

    /// Basic, whose two parts are form-encoded first (RFC 6749, 2.3.1).
    fn credentials(&self) -> Result<HeaderValue, SettingError> {
        let encode = |text: &str| {
            Zeroizing::new(url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>())
        };
        let pair = Zeroizing::new(format!("{}:{}", *encode(&self.client_id), *encode(self.secret.expose())));
        let text = Zeroizing::new(format!("Basic {}", BASE64_STANDARD.encode(pair.as_bytes())));
        let mut value = HeaderValue::from_str(&text)
            .map_err(|_| SettingError::new("the secret of the client cannot be sent in a header"))?;
        value.set_sensitive(true);
        Ok(value)
    }
}

/// The answer, if it is one: anything else says nothing about the token.
fn answer(response: &Response) -> Option<Map<String, Value>> {
    if response.status != StatusCode::OK {
        return None;
    }
    metadata::object(&response.body)
}

impl Verify for Introspection {
    fn prepare(&mut self, setting: &Setting) -> Result<(), SettingError> {
        let (trusted, fetch) = self.asking.ready()?;
        let endpoint = Endpoint::parse_trusting(&self.url, &trusted)
            .map_err(|why| SettingError::new(format!("the address for introspection {why}")))?;
        self.prepared = Some(Prepared {
            endpoint,
            credentials: self.credentials()?,
            issuer: setting.issuer().to_owned(),
            resource: setting.resource().to_owned(),
            fetch,
        });
        Ok(())
    }

    /// A token that says that it is another issuer's must not be shown to this one, which could use it here.
    fn may_know(&self, token: &PresentedToken) -> bool {
        match (&self.prepared, token.claimed_issuer()) {
            (Some(prepared), Some(claimed)) => claimed == prepared.issuer,
            _ => true,
        }
    }

    fn verify<'a>(
        &'a self,
        token: &'a PresentedToken,
        now: SystemTime,
    ) -> BoxFuture<'a, Result<Verified, VerifyError>> {
        Box::pin(self.check(token, now))
    }

    fn audiences(&self) -> &[String] {
        &self.audiences
    }

    fn is_exchangeable(&self) -> bool {
        true
    }
}

/// What weakens a check of [`Introspection`].
#[must_use]
#[derive(Debug)]
pub struct DangerousIntrospection(Introspection);

impl DangerousIntrospection {
    /// Takes tokens of which no audience is said. Only for an issuer that calls tokens active for the server they are
    /// for, and for no other.
    pub fn audience_vouched(mut self) -> Introspection {
        self.0.vouched = true;
        self.0
    }

    /// Asks at this origin wherever it is, and without TLS if its URL says so.
    pub fn trust_origin(mut self, origin: impl Into<String>) -> Introspection {
        self.0.asking.trust(origin);
        self.0
    }
}

impl fmt::Debug for Introspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Introspection").field("client_id", &self.client_id).finish_non_exhaustive()
    }
}
