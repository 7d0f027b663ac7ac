//! Who a token stands for: the seam between the guard and whatever knows the tokens of an issuer.
//!
//! A [`Verify`] says what a token is; whether that is enough is decided by the guard, which checks issuer, audience and
//! expiry once more. So a verifier that forgets one of them cannot open the server: a [`Verified`] cannot be made without
//! saying which audience and which expiry were found.

mod asking;
mod claims;
mod error;
mod introspection;
mod jwks;
mod jwt;
mod panics;
mod static_keys;
mod token_cache;
mod turns;

#[cfg(test)]
mod tests;

use std::{
    fmt,
    future::Future,
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime},
};

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use toolwire_server::CallerKey;
use toolwire_transport::BoxFuture;
use zeroize::Zeroizing;

use crate::jose::Compact;

pub use self::{
    error::{Invalid, SettingError, Unavailable, VerifyError},
    introspection::{DangerousIntrospection, Introspection},
    jwks::{FETCH_PAUSE, MAX_FRESH, MAX_STALE, MIN_FRESH},
    jwt::{DangerousJwt, Jwt},
    static_keys::{MAX_STATIC_KEYS, StaticKeys, StaticKeysError},
    token_cache::MAX_SEEN_AGE,
};

pub(crate) use self::{panics::verified, token_cache::TokenCache};

/// How far the clocks of an issuer and of this server may be apart.
pub const LEEWAY: Duration = toolwire_http::server::LEEWAY;

/// Finds out who a token stands for.
///
/// `Jwt`, `Introspection` and `StaticKeys` do; for tokens that
/// only their issuer understands, any function from a [`PresentedToken`] to a future does as well:
///
/// ```
/// use toolwire_auth::server::{Audience, Expiry, Invalid, PresentedToken, Verified, Verify};
///
/// fn verifier() -> impl Verify {
///     |token: PresentedToken| async move {
///         if token.expose() != "swordfish" {
///             return Err(Invalid::new("not the token of the house"));
///         }
///         Ok(Verified::new("alice", Audience::Vouched, Expiry::Unknown).scopes(["files:read"]))
///     }
/// }
/// ```
pub trait Verify: Send + Sync + 'static {
    /// Is told once, when the guard is built, what it is used for.
    ///
    /// # Errors
    /// When it cannot be used for that.
    fn prepare(&mut self, setting: &Setting) -> Result<(), SettingError> {
        _ = setting;
        Ok(())
    }

    /// Whether a token may be one of this verifier's issuer, by what it says of itself without any proof. Asked only
    /// where there are several issuers, to find the one whose keys count. Without a better answer: yes.
    fn may_know(&self, token: &PresentedToken) -> bool {
        _ = token;
        true
    }

    /// Returns whether a token is certainly one of this verifier's issuer, as far as that can be said here and at once.
    /// Then no other verifier sees it. Without a better answer: no.
    fn knows(&self, token: &PresentedToken) -> bool {
        _ = token;
        false
    }

    /// Returns whether the tokens were given out by the token endpoint of an authorization server, so that a
    /// [`Downstream`](super::Downstream) may show them there. Without a better answer: no.
    fn is_exchangeable(&self) -> bool {
        false
    }

    /// Says who a token stands for at the time `now`.
    fn verify<'a>(
        &'a self,
        token: &'a PresentedToken,
        now: SystemTime,
    ) -> BoxFuture<'a, Result<Verified, VerifyError>>;

    /// Audiences that were configured here, and that count as the resource does.
    fn audiences(&self) -> &[String] {
        &[]
    }

    /// Whether tokens of the issuer that was configured may name `found` as theirs. Without a better answer: only if
    /// both are the same text.
    fn accepts_issuer(&self, configured: &str, found: &str) -> bool {
        configured == found
    }

    /// What scopes begin with where they are asked for, in challenges and metadata, and not in tokens.
    #[expect(clippy::unnecessary_literal_bound, reason = "other verifiers have one of their own")]
    fn scope_prefix(&self) -> &str {
        ""
    }

    /// Gets what the first token would have to wait for.
    fn warm_up(&self) -> BoxFuture<'_, Result<(), Unavailable>> {
        Box::pin(async { Ok(()) })
    }
}

impl<F, Fut, E> Verify for F
where
    F: Fn(PresentedToken) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Verified, E>> + Send + 'static,
    E: Into<VerifyError> + 'static,
{
    fn verify<'a>(
        &'a self,
        token: &'a PresentedToken,
        _: SystemTime,
    ) -> BoxFuture<'a, Result<Verified, VerifyError>> {
        let verifying = self(token.clone());
        Box::pin(async {
            verifying.await.map_err(Into::into).inspect_err(|error| {
                if let VerifyError::Unavailable(why) = error {
                    tracing::warn!(%why, "a token cannot be verified now");
                }
            })
        })
    }
}

/// What a verifier is used for.
#[derive(Clone, Debug)]
pub struct Setting {
    resource: Arc<str>,
    issuer: Arc<str>,
}

impl Setting {
    pub(crate) fn new(resource: &str, issuer: &str) -> Self {
        Self { resource: resource.into(), issuer: issuer.into() }
    }

    /// The identifier of the server that is protected, as it was configured.
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// The identifier of the issuer whose tokens are to be verified, as it was configured.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }
}

/// A token that came with a request. Clones are cheap, and `Debug` shows nothing of it.
#[derive(Clone)]
pub struct PresentedToken(Arc<Presented>);

struct Presented {
    text: Zeroizing<String>,
    /// Made when it is first asked for.
    digest: OnceLock<[u8; 32]>,
    scheme: Scheme,
    /// Where it came from, if that is known.
    peer: Option<CallerKey>,
}

/// How a token was presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the two schemes that exist")]
pub enum Scheme {
    /// Whoever has it may use it (RFC 6750).
    Bearer,
    /// Only with a proof that the client holds a key (RFC 9449).
    Dpop,
}

impl PresentedToken {
    /// A token as it was presented.
    pub fn new(scheme: Scheme, text: impl Into<String>) -> Self {
        Self::from_peer(scheme, text, None)
    }

    /// A token as it was presented, and where it came from.
    pub(crate) fn from_peer(scheme: Scheme, text: impl Into<String>, peer: Option<CallerKey>) -> Self {
        let text = Zeroizing::new(text.into());
        Self(Arc::new(Presented { text, digest: OnceLock::new(), scheme, peer }))
    }

    /// The token itself. It is a secret: it must not be logged, kept or sent anywhere but to its issuer.
    pub fn expose(&self) -> &str {
        &self.0.text
    }

    /// Its SHA-256, under which something may be remembered about it.
    pub fn digest(&self) -> &[u8; 32] {
        self.0.digest.get_or_init(|| Sha256::digest(self.0.text.as_bytes()).into())
    }

    /// The issuer that it names, if it is one that says so (JWT). Nothing proves that yet.
    pub(crate) fn claimed_issuer(&self) -> Option<String> {
        Compact::parse(self.expose()).ok()?.claimed_issuer()
    }

    /// Returns where it came from, if that is known.
    pub(crate) fn peer(&self) -> Option<&CallerKey> {
        self.0.peer.as_ref()
    }

    /// How it was presented.
    pub fn scheme(&self) -> Scheme {
        self.0.scheme
    }
}

impl fmt::Debug for PresentedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PresentedToken").field("scheme", &self.0.scheme).finish_non_exhaustive()
    }
}

/// Which servers a token was found to be for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a verifier has to say one of these")]
pub enum Audience {
    /// These, as the token or its issuer names them. One of them has to be this server, byte for byte.
    Is(Vec<String>),
    /// Tokens of this issuer name none, and the issuer itself has said that this one is ours.
    Vouched,
}

impl Audience {
    /// The one that is named.
    pub fn is(audience: impl Into<String>) -> Self {
        Self::Is(vec![audience.into()])
    }

    /// Whether this server is among them, as `resource` or as another audience that was configured.
    pub(crate) fn includes(&self, resource: &str, others: &[String]) -> bool {
        match self {
            Self::Is(named) => named.iter().any(|one| one == resource || others.contains(one)),
            Self::Vouched => true,
        }
    }
}

/// Until when a token was found to be valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a verifier has to say one of these")]
pub enum Expiry {
    /// Until this time.
    At(SystemTime),
    /// Tokens of this issuer do not say. The issuer is asked again with a request that comes a minute later; streams that
    /// were opened before end after an hour.
    Unknown,
}

/// What was found out about a token that is genuine. Whether it is good enough is up to the guard.
#[derive(Clone, Debug)]
pub struct Verified {
    pub(crate) subject: String,
    pub(crate) is_client: bool,
    pub(crate) audience: Audience,
    pub(crate) expiry: Expiry,
    pub(crate) issuer: Option<String>,
    pub(crate) client_id: Option<String>,
    pub(crate) scopes: Vec<String>,
    pub(crate) claims: Map<String, Value>,
    pub(crate) key: Option<String>,
}

impl Verified {
    /// A token of `subject`.
    pub fn new(subject: impl Into<String>, audience: Audience, expiry: Expiry) -> Self {
        Self {
            subject: subject.into(),
            is_client: false,
            audience,
            expiry,
            issuer: None,
            client_id: None,
            scopes: Vec::new(),
            claims: Map::new(),
            key: None,
        }
    }

    /// A token of a client that stands for no user. Its subject is its id, and it is not the user of that name.
    pub fn client(client_id: impl Into<String>, audience: Audience, expiry: Expiry) -> Self {
        let client_id = client_id.into();
        Self { is_client: true, ..Self::new(client_id.clone(), audience, expiry).client_id(client_id) }
    }

    /// A token of a user by a client, or, without a user, of the client itself; `None` without both.
    pub(crate) fn of(
        subject: Option<&str>,
        client: Option<&str>,
        audience: Audience,
        expiry: Expiry,
    ) -> Option<Self> {
        match (subject, client) {
            (Some(subject), Some(client)) => Some(Self::new(subject, audience, expiry).client_id(client)),
            (Some(subject), None) => Some(Self::new(subject, audience, expiry)),
            (None, Some(client)) => Some(Self::client(client, audience, expiry)),
            (None, None) => None,
        }
    }

    /// The issuer that the token names. Without it, the token is one of the issuer that was configured.
    #[must_use]
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = Some(issuer.into());
        self
    }

    /// The client that the token was given to.
    #[must_use]
    pub fn client_id(mut self, client_id: impl Into<String>) -> Self {
        self.client_id = Some(client_id.into());
        self
    }

    /// What the token allows.
    #[must_use]
    pub fn scopes<T: Into<String>>(mut self, scopes: impl IntoIterator<Item = T>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// What else is said about the subject, for handlers.
    #[must_use]
    pub fn claims(mut self, claims: Map<String, Value>) -> Self {
        self.claims = claims;
        self
    }

    /// The thumbprint (RFC 7638) of the key that the token is bound to: `cnf.jkt`. Such a token is refused without a proof.
    #[must_use]
    pub fn bound_to(mut self, thumbprint: impl Into<String>) -> Self {
        self.key = Some(thumbprint.into());
        self
    }
}
