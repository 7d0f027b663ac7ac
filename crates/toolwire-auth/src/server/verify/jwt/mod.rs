//! Tokens that say for themselves who they stand for (RFC 9068, and what came before it).

mod check;

use std::{fmt, time::SystemTime};

use toolwire_transport::BoxFuture;

use super::{
    PresentedToken, Setting, SettingError, Unavailable, Verified, Verify, VerifyError,
    asking::Asking,
    jwks::{KeyLocation, Keys},
};
use crate::{
    Endpoint, Issuer, Origins,
    fetch::Fetch,
    jose::{Algorithm, KeySet, PublicKey},
};

/// Verifies signed tokens (JWT) with the keys of their issuer.
///
/// A token has to name the issuer and, as its audience, the server or one that was configured, byte for byte; it has
/// an expiry that has not passed, and a subject or a client. Unless its type is `at+jwt` it has to name a client, by
/// `client_id`, `azp`, `cid` or `appid`: otherwise it may be an ID token.
///
/// ```
/// use toolwire_auth::{jose::Algorithm, server::Jwt};
///
/// let entra = Jwt::discovered()
///     .audience("api://files")
///     .algorithms([Algorithm::Rs256])
///     .token_issuer("https://sts.windows.net/4a5b/")
///     .subject_claim("oid")
///     .scope_claims(["roles"])
///     .scope_prefix("api://files/");
/// ```
#[must_use]
#[derive(Debug)]
pub struct Jwt {
    configured: ConfiguredKeys,
    audiences: Vec<String>,
    algorithms: Vec<Algorithm>,
    issuers: Vec<TokenIssuer>,
    subject: Option<String>,
    scopes: Vec<String>,
    scope_prefix: String,
    strict_type: bool,
    without_client: bool,
    clients: Vec<String>,
    asking: Asking,
    prepared: Option<Prepared>,
}

/// Where the keys are, in the words of the application.
enum ConfiguredKeys {
    Discovered,
    At(String),
    Keys(String),
}

/// What tokens may name as their issuer.
#[derive(Clone, Debug)]
struct TokenIssuer {
    text: String,
    /// A claim that has to say the same as a part of the text.
    claim: Option<(String, String)>,
}

#[derive(Debug)]
struct Prepared {
    resource: String,
    keys: Keys,
}

impl Jwt {
    /// Finds the keys by the metadata of the issuer.
    pub fn discovered() -> Self {
        Self::new(ConfiguredKeys::Discovered)
    }

    /// Gets the keys from this address.
    pub fn at(url: impl Into<String>) -> Self {
        Self::new(ConfiguredKeys::At(url.into()))
    }

    /// Uses these keys, a JWK set in JSON, and no network.
    pub fn keys(jwks: impl Into<String>) -> Self {
        Self::new(ConfiguredKeys::Keys(jwks.into()))
    }

    fn new(configured: ConfiguredKeys) -> Self {
        Self {
            configured,
            audiences: Vec::new(),
            algorithms: Algorithm::ALL.to_vec(),
            issuers: Vec::new(),
            subject: None,
            scopes: vec!["scope".to_owned(), "scp".to_owned()],
            scope_prefix: String::new(),
            strict_type: false,
            without_client: false,
            clients: Vec::new(),
            asking: Asking::default(),
            prepared: None,
        }
    }

    /// Takes tokens for this audience as well as those for the resource itself. It is compared byte for byte.
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audiences.push(audience.into());
        self
    }

    /// Takes these algorithms only. Default: all there are, none of which is symmetric.
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = Algorithm>) -> Self {
        self.algorithms = algorithms.into_iter().collect();
        self
    }

    /// Takes tokens that name this issuer instead of the one that was configured, for those whose tokens carry another
    /// name than their metadata. Said more than once, any of them will do.
    pub fn token_issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuers.push(TokenIssuer { text: issuer.into(), claim: None });
        self
    }

    /// Takes tokens of these tenants, whose issuers follow a pattern with the name of one claim in it:
    /// `https://login.example/{tid}/v2.0`. That claim has to say the same as the issuer.
    ///
    /// A pattern without exactly one such name, or without tenants, is an error when the guard is built.
    pub fn token_issuers<T: Into<String>>(
        mut self,
        pattern: &str,
        tenants: impl IntoIterator<Item = T>,
    ) -> Self {
        let parts = pattern.split_once('{').and_then(|(before, rest)| {
            let (claim, after) = rest.split_once('}')?;
            (!claim.is_empty() && !after.contains(['{', '}'])).then_some((before, claim, after))
        });
        let before = self.issuers.len();
        if let Some((start, claim, end)) = parts {
            self.issuers.extend(tenants.into_iter().map(Into::into).map(|tenant| TokenIssuer {
                text: format!("{start}{tenant}{end}"),
                claim: Some((claim.to_owned(), tenant)),
            }));
        }
        if self.issuers.len() == before {
            // No token can name it, and `prepare` tells.
            self.issuers.push(TokenIssuer { text: String::new(), claim: None });
        }
        self
    }

    /// Takes the subject from this claim. Default: `sub`, or the client for tokens that stand for nobody else.
    pub fn subject_claim(mut self, name: impl Into<String>) -> Self {
        self.subject = Some(name.into());
        self
    }

    /// Takes scopes from these claims, too. Default: `scope` and `scp`.
    pub fn scope_claims<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.scopes.extend(names.into_iter().map(Into::into));
        self
    }

    /// What scopes begin with where they are asked for, in challenges and metadata, and not in tokens.
    pub fn scope_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.scope_prefix = prefix.into();
        self
    }

    /// Takes only tokens that say that they are access tokens: of the type `at+jwt`.
    pub fn strict_type(mut self) -> Self {
        self.strict_type = true;
        self
    }

    /// Fetches keys with this, for proxies and certificates of one's own.
    pub fn fetch(mut self, fetch: impl Fetch + 'static) -> Self {
        self.asking.with(fetch);
        self
    }

    /// What weakens a check.
    pub fn dangerous(self) -> DangerousJwt {
        DangerousJwt(self)
    }

    fn prepared(&self) -> Result<&Prepared, VerifyError> {
        // The guard prepares what it uses.
        self.prepared
            .as_ref()
            .ok_or_else(|| Unavailable::new("the verifier was not prepared by a guard").into())
    }

    fn location(&self, setting: &Setting, trusted: &Origins) -> Result<KeyLocation, SettingError> {
        match &self.configured {
            ConfiguredKeys::Discovered => {
                let issuer = Issuer::parse(setting.issuer())
                    .map_err(|why| SettingError::new(format!("the issuer {:?} {why}", setting.issuer())))?;
                Endpoint::parse_trusting(issuer.as_str(), trusted)
                    .map_err(|why| SettingError::new(format!("the issuer {issuer} {why}")))?;
                Ok(KeyLocation::Discovered(issuer))
            }
            ConfiguredKeys::At(url) => Endpoint::parse_trusting(url, trusted)
                .map(KeyLocation::At)
                .map_err(|why| SettingError::new(format!("the address of the keys {why}"))),
            ConfiguredKeys::Keys(text) => {
                let keys =
                    KeySet::parse(text).map_err(|why| SettingError::new(format!("the keys: {why}")))?;
                let fits = |key: &PublicKey| self.algorithms.iter().any(|algorithm| key.fits(*algorithm));
                if keys.keys().iter().any(fits) {
                    Ok(KeyLocation::Fixed(keys))
                } else {
                    Err(SettingError::new("none of the keys fits an algorithm that is accepted"))
                }
            }
        }
    }
}

impl Verify for Jwt {
    fn prepare(&mut self, setting: &Setting) -> Result<(), SettingError> {
        if self.algorithms.is_empty() {
            return Err(SettingError::new("no algorithm is accepted"));
        }
        if self.issuers.is_empty() {
            self.issuers.push(TokenIssuer { text: setting.issuer().to_owned(), claim: None });
        }
        if self.issuers.iter().any(|issuer| issuer.text.is_empty()) {
            return Err(SettingError::new(
                "an issuer of tokens is empty, or a pattern has not exactly one {claim} and a list of tenants",
            ));
        }
        let (trusted, fetch) = self.asking.ready()?;
        let location = self.location(setting, &trusted)?;
        let keys = Keys::new(location, fetch, trusted);
        self.prepared = Some(Prepared { resource: setting.resource().to_owned(), keys });
        Ok(())
    }

    fn may_know(&self, token: &PresentedToken) -> bool {
        token.claimed_issuer().is_some_and(|claimed| self.issuers.iter().any(|known| known.text == claimed))
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

    fn accepts_issuer(&self, _: &str, found: &str) -> bool {
        self.issuers.iter().any(|known| known.text == found)
    }

    fn scope_prefix(&self) -> &str {
        &self.scope_prefix
    }

    fn warm_up(&self) -> BoxFuture<'_, Result<(), Unavailable>> {
        Box::pin(async {
            match &self.prepared {
                Some(prepared) => prepared.keys.warm_up(SystemTime::now()).await,
                None => Err(Unavailable::new("the verifier was not prepared by a guard")),
            }
        })
    }
}

/// What weakens a check of [`Jwt`], each for one issuer that leaves no other way.
#[must_use]
#[derive(Debug)]
pub struct DangerousJwt(Jwt);

impl DangerousJwt {
    /// Takes tokens that name no audience if they were given to one of these clients. Any server that the same client
    /// uses can then use its tokens here.
    pub fn audience_by_client<T: Into<String>>(mut self, clients: impl IntoIterator<Item = T>) -> Jwt {
        self.0.clients.extend(clients.into_iter().map(Into::into));
        self.0
    }

    /// Takes tokens that neither have the type `at+jwt` nor name a client. Where a client of the issuer has an id that is
    /// an audience of this server, its ID tokens can then be used here.
    pub fn without_client(mut self) -> Jwt {
        self.0.without_client = true;
        self.0
    }

    /// Fetches from this origin wherever it is, and without TLS if its URL says so.
    pub fn trust_origin(mut self, origin: impl Into<String>) -> Jwt {
        self.0.asking.trust(origin);
        self.0
    }
}

impl fmt::Debug for ConfiguredKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Discovered => "Discovered",
            Self::At(_) => "At",
            Self::Keys(_) => "Keys",
        })
    }
}
