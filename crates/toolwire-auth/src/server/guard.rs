//! The guard: from the head of a request to whoever has sent it.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::SystemTime,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, request::Parts};
use toolwire_http::server::{Admission, Denied, Documents, Guard, Lacking, PeerAddr};
use toolwire_server::{Principal, Scopes};

use super::{
    challenge::{Challenges, Fault, unavailable},
    credentials::{self, Credentials, Malformed},
    dpop::Proofs,
    metadata::Metadata,
    tokens::Tokens,
    verify::{
        Expiry, Invalid, LEEWAY, MAX_SEEN_AGE, PresentedToken, Scheme, TokenCache, Unavailable, Verified,
        Verify, VerifyError, verified,
    },
};
use crate::{Issuer, clock::Clock, dpop::ProofError};

/// Lets in those who have a token for this server. Made by [`ResourceServer`](super::ResourceServer); clones are the same
/// guard.
///
/// Whatever a verifier says, a token counts only if its issuer, its audience and its expiry are right. Verified tokens are
/// remembered for a minute.
#[derive(Clone, Debug)]
pub struct ResourceGuard(Arc<Inner>);

pub(super) struct Inner {
    pub(super) resource: String,
    pub(super) issuers: Vec<IssuerEntry>,
    pub(super) challenges: Challenges,
    pub(super) metadata: Metadata,
    pub(super) proofs: Option<Proofs>,
    pub(super) optional: bool,
    pub(super) clock: Arc<dyn Clock>,
    /// By what is said in `Authorization`, so that a header that was read once is not read again.
    pub(super) seen: TokenCache<VerifiedToken>,
}

/// An issuer and what verifies its tokens.
pub(super) struct IssuerEntry {
    pub(super) issuer: Issuer,
    pub(super) verifier: Box<dyn Verify>,
    /// Tokens of this issuer, kept once there is a [`Downstream`](super::Downstream) that exchanges them there.
    pub(super) tokens: OnceLock<Tokens>,
}

/// What is known of a token that is valid.
#[derive(Clone, Debug)]
pub(super) struct VerifiedToken {
    pub(super) principal: Principal,
    /// The position of the issuer that made it.
    issuer: usize,
    /// How it was presented.
    scheme: Scheme,
    /// The thumbprint of the key that the token is bound to.
    pub(super) key: Option<Arc<str>>,
}

/// Why a token does not let anybody in.
pub(super) enum Refusal {
    Verify(VerifyError),
    Proof(ProofError),
}

impl From<ProofError> for Refusal {
    fn from(error: ProofError) -> Self {
        Self::Proof(error)
    }
}

impl ResourceGuard {
    pub(super) fn new(inner: Inner) -> Self {
        Self(Arc::new(inner))
    }

    /// Gets what the first token would have to wait for: keys and metadata of the issuers.
    ///
    /// # Errors
    /// When an issuer does not answer as it should. The guard works all the same, and tries again with the next token.
    pub async fn warm_up(&self) -> Result<(), Unavailable> {
        for entry in &self.0.issuers {
            entry.verifier.warm_up().await?;
        }
        Ok(())
    }

    /// The paths of the metadata, each with a service that answers there, for routers that send only one path to the
    /// endpoint.
    ///
    /// With [`optional`](super::ResourceServer::optional), the endpoint needs
    /// [`peer_addr`](toolwire_http::server::HttpBuilder::peer_addr) as well: it refuses callers of which nothing is known.
    ///
    /// ```
    /// # use toolwire_auth::server::{Invalid, PresentedToken, ResourceServer, Verified};
    /// # use toolwire_http::server::HttpService;
    /// # fn app(mcp: HttpService) -> Result<axum::Router, Box<dyn std::error::Error>> {
    /// # let guard = ResourceServer::new("https://files.example/mcp", "https://login.example")
    /// #     .verify(|_: PresentedToken| async { Err::<Verified, _>(Invalid::new("never")) }).build()?;
    /// let mut app = axum::Router::new().route_service("/mcp", mcp);
    /// for (path, metadata) in guard.metadata_routes() {
    ///     app = app.route_service(&path, metadata);
    /// }
    /// # Ok(app)
    /// # }
    /// ```
    pub fn metadata_routes(&self) -> impl Iterator<Item = (String, Documents)> {
        let documents = Documents::new(self.clone());
        self.0.metadata.paths().iter().map(move |path| (path.clone(), documents.clone()))
    }

    pub(super) fn inner(&self) -> &Inner {
        &self.0
    }
}

impl Guard for ResourceGuard {
    fn resource(&self) -> &str {
        &self.0.resource
    }

    fn scopes(&self) -> &Scopes {
        &self.0.challenges.scopes
    }

    fn document(&self, path: &str) -> Option<Response<Bytes>> {
        self.0.metadata.document(path)
    }

    fn admit<'a>(&'a self, parts: &mut Parts) -> Admission<'a> {
        let inner = &*self.0;
        let Credentials { authorization, proof } = match credentials::take(parts) {
            Ok(credentials) => credentials,
            Err(malformed) => return inner.malformed(malformed),
        };
        let Some(header) = authorization else { return inner.nobody() };
        let now = inner.clock.now();
        let known = inner.seen.get(header.as_bytes(), now);
        // Whoever exchanges tokens needs the token itself.
        if let Some(known) = &known
            && !inner.needs_proof(known)
            && inner.tokens_of(known).is_none()
        {
            return Admission::admitted(Some(known.principal.clone()));
        }
        let peer = parts.extensions.get::<PeerAddr>().map(|peer| peer.caller());
        let token = match credentials::token(&header, peer) {
            Ok(Some(token)) => token,
            Ok(None) => return inner.nobody(),
            Err(malformed) => return inner.malformed(malformed),
        };
        let method = parts.method.clone();
        Admission::Pending(Box::pin(async move {
            inner.identify(&header, &token, known, &method, proof.as_ref(), now).await.map(Some)
        }))
    }

    fn challenge(&self, lacking: &Lacking<'_>) -> Denied {
        let (challenges, needs) = (&self.0.challenges, lacking.lack.needs());
        match lacking.principal {
            None => challenges.nobody(needs),
            Some(who) if lacking.names_all => {
                let both = needs.union(who.scopes());
                challenges.insufficient(both.as_ref().unwrap_or(needs))
            }
            Some(_) => challenges.insufficient(needs),
        }
    }

    fn now(&self) -> SystemTime {
        self.0.clock.now()
    }

    fn answered(&self, headers: &mut HeaderMap) {
        if let Some(proofs) = &self.0.proofs {
            proofs.give_nonce(headers, self.0.clock.now());
        }
    }
}

impl Inner {
    /// The answer to a request that two readers could take for different ones.
    fn malformed(&self, malformed: Malformed) -> Admission<'static> {
        tracing::debug!(why = malformed.0, "the credentials of a request are malformed");
        Admission::denied(self.challenges.malformed(malformed.0))
    }

    /// The answer to a request without a token.
    fn nobody(&self) -> Admission<'static> {
        if self.optional {
            Admission::admitted(None)
        } else {
            Admission::denied(self.challenges.nobody(&Scopes::new()))
        }
    }

    /// Says who a token stands for, or what its client is told instead.
    async fn identify(
        &self,
        header: &HeaderValue,
        token: &PresentedToken,
        known: Option<VerifiedToken>,
        method: &Method,
        proof: Option<&HeaderValue>,
        now: SystemTime,
    ) -> Result<Principal, Box<Denied>> {
        let identified = async {
            let known = match known {
                Some(known) => known,
                None => self.verify(header, token, now).await.map_err(Refusal::Verify)?,
            };
            self.prove(token, &known, method, proof, now).await?;
            Ok(self.let_in(token, known, now))
        };
        identified.await.map_err(|refusal| Box::new(self.denied(&refusal)))
    }

    fn let_in(&self, token: &PresentedToken, known: VerifiedToken, now: SystemTime) -> Principal {
        if let Some(tokens) = self.tokens_of(&known) {
            tokens.keep(&known.principal, token, now);
        }
        known.principal
    }

    /// Returns where the tokens of the issuer that made this one are kept, if they are.
    fn tokens_of(&self, known: &VerifiedToken) -> Option<&Tokens> {
        self.issuers.get(known.issuer)?.tokens.get()
    }

    /// Has a token verified by those who may know it, and checks what they say.
    async fn verify(
        &self,
        header: &HeaderValue,
        token: &PresentedToken,
        now: SystemTime,
    ) -> Result<VerifiedToken, VerifyError> {
        let mut refused = VerifyError::Invalid(Invalid::new("it is of no issuer that is known here"));
        for (position, entry) in self.candidates(token) {
            let verified = verified(&*entry.verifier, token, now).await;
            let accept =
                |verified| self.accept(position, entry, token.scheme(), verified, now).map_err(Into::into);
            match verified.and_then(accept) {
                Ok((known, until)) => {
                    self.seen.put(header.as_bytes(), known.clone(), until, now);
                    return Ok(known);
                }
                // That one issuer does not answer must not become a refusal: the token may be one of its own.
                Err(VerifyError::Invalid(_)) if matches!(refused, VerifyError::Unavailable(_)) => {}
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    /// The issuers that a token may be of, with their positions. One that certainly is of an issuer, or names one that is
    /// known here, is shown to no other: whoever is asked about a token can use it.
    fn candidates(&self, token: &PresentedToken) -> Vec<(usize, &IssuerEntry)> {
        let issuers = || self.issuers.iter().enumerate();
        if self.issuers.len() == 1 {
            return issuers().collect();
        }
        if let Some(maker) = issuers().find(|(_, entry)| entry.verifier.knows(token)) {
            return vec![maker];
        }
        if let Some(claimed) = token.claimed_issuer() {
            let is_named = |(_, entry): &(usize, &IssuerEntry)| {
                entry.verifier.accepts_issuer(entry.issuer.as_str(), &claimed)
            };
            let named: Vec<_> = issuers().filter(is_named).collect();
            if !named.is_empty() {
                return named;
            }
        }
        issuers().filter(|(_, entry)| entry.verifier.may_know(token)).collect()
    }

    /// Checks issuer, audience and expiry, whatever the verifier has done.
    fn accept(
        &self,
        position: usize,
        entry: &IssuerEntry,
        scheme: Scheme,
        verified: Verified,
        now: SystemTime,
    ) -> Result<(VerifiedToken, SystemTime), Invalid> {
        let configured = entry.issuer.as_str();
        let issuer = verified.issuer.as_deref().unwrap_or(configured);
        if !entry.verifier.accepts_issuer(configured, issuer) {
            return Err(Invalid::new("it is of another issuer"));
        }
        if !verified.audience.includes(&self.resource, entry.verifier.audiences()) {
            return Err(Invalid::new("it is for another audience"));
        }
        let (expires_at, until) = match verified.expiry {
            Expiry::At(expiry) if expiry.checked_add(LEEWAY).is_none_or(|end| end <= now) => {
                return Err(Invalid::new("it has expired"));
            }
            Expiry::At(expiry) => (Some(expiry), expiry + LEEWAY),
            Expiry::Unknown => (None, now + MAX_SEEN_AGE),
        };
        if verified.subject.is_empty() {
            return Err(Invalid::new("it is of nobody"));
        }
        let scopes = Scopes::of(&verified.scopes)
            .map_err(|error| Invalid::new(format!("its scopes cannot be read: {error}")))?;
        let of = if verified.is_client { Principal::client } else { Principal::builder };
        let mut principal = of(verified.subject).issuer(issuer).scopes(scopes).claims(verified.claims);
        if let Some(client) = verified.client_id {
            principal = principal.client_id(client);
        }
        if let Some(expiry) = expires_at {
            principal = principal.expires_at(expiry);
        }
        let key = verified.key.map(Into::into);
        Ok((VerifiedToken { principal: principal.build(), issuer: position, scheme, key }, until))
    }

    /// Whether a token counts only with a proof, or does not count as it was presented.
    fn needs_proof(&self, known: &VerifiedToken) -> bool {
        known.key.is_some()
            || known.scheme == Scheme::Dpop
            || self.proofs.as_ref().is_some_and(|proofs| proofs.required)
    }

    async fn prove(
        &self,
        token: &PresentedToken,
        known: &VerifiedToken,
        method: &Method,
        proof: Option<&HeaderValue>,
        now: SystemTime,
    ) -> Result<(), Refusal> {
        if !self.needs_proof(known) {
            return Ok(());
        }
        let invalid = |why| Err(Refusal::Verify(Invalid::new(why).into()));
        let Some(proofs) = &self.proofs else {
            return invalid("it is bound to a key, and nobody here checks proofs");
        };
        if known.key.is_some() && token.scheme() == Scheme::Bearer {
            return invalid("it is bound to a key, and was sent as if it were not");
        }
        if known.key.is_none() && token.scheme() == Scheme::Bearer {
            return invalid("it is not bound to a key, and has to be");
        }
        proofs.check(token, known, method.as_str(), proof, now).await
    }

    /// What a client is told. Which check has failed is for the log.
    fn denied(&self, refusal: &Refusal) -> Denied {
        match refusal {
            Refusal::Verify(VerifyError::Invalid(why)) => {
                tracing::debug!(%why, "a token was refused");
                self.challenges.invalid_token()
            }
            Refusal::Verify(VerifyError::Unavailable(why)) => {
                // Whoever has tried has told it, too, and louder.
                tracing::debug!(%why, "a token cannot be verified now");
                unavailable(why)
            }
            Refusal::Proof(why) => {
                tracing::debug!(%why, "a proof was refused");
                let nonce = matches!(why, ProofError::UseNonce);
                self.challenges.proof(if nonce { Fault::UseNonce } else { Fault::InvalidProof })
            }
        }
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let issuers: Vec<&Issuer> = self.issuers.iter().map(|entry| &entry.issuer).collect();
        f.debug_struct("ResourceGuard")
            .field("resource", &self.resource)
            .field("issuers", &issuers)
            .field("optional", &self.optional)
            .finish_non_exhaustive()
    }
}
