//! Gives requests their credentials, and decides what a refusal means.

use std::{mem, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use toolwire_http::client::authorize::{Attempt, Authorize, Hop, Purpose, Refusal, Unauthorized, Verdict};
use toolwire_protocol::Message;

use super::{
    AuthError, AuthErrorKind, Step,
    credential::{CurrentCredential, Server},
    flow::Cause,
    renew::{asked, login_needed, renewed},
    scopes::{Operation, Patience, Scopes},
    skew::Skew,
    token::{Credential, TokenType},
};
use crate::{
    Endpoint,
    challenge::{self, Challenge},
    fetch::BoxFuture,
};

const DPOP: HeaderName = HeaderName::from_static("dpop");
const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");
/// The longest nonce that is sent back.
const MAX_NONCE_BYTES: usize = 512;

/// Gives requests to one server their credentials.
#[derive(Debug)]
pub(super) struct Authorizer {
    server: Arc<Server>,
}

impl Authorizer {
    pub(super) const fn new(server: Arc<Server>) -> Self {
        Self { server }
    }
}

impl Authorize for Authorizer {
    fn attempt(&self, purpose: Purpose) -> Box<dyn Attempt> {
        Box::new(Try {
            server: Arc::clone(&self.server),
            purpose,
            patience: Patience::default(),
            used: None,
            given_up: 0,
            new_since: None,
            nonce: None,
            skew: Skew::None,
            redated: false,
            own_refused: false,
        })
    }

    fn identity(&self) -> u64 {
        self.server.identity()
    }
}

/// One request on its way.
struct Try {
    server: Arc<Server>,
    purpose: Purpose,
    patience: Patience,
    /// What it was sent with the last time.
    used: Option<CurrentCredential>,
    /// The serial of a credential that has ended and was not sent, because nothing renews it.
    given_up: u64,
    /// The first credential that was obtained for this very request.
    new_since: Option<u64>,
    /// The nonce that the server asked for the last time.
    nonce: Option<String>,
    /// The clock difference that its last proof was signed with. Other requests may have changed the shared one since.
    skew: Skew,
    /// True if a proof for this token was refused, so that the clock of the server was looked at.
    redated: bool,
    /// True if a proof for this token that was dated by our own clock was refused, or the last try with one is under way.
    own_refused: bool,
}

impl Attempt for Try {
    fn headers<'a>(&'a mut self, hop: Hop<'a>) -> BoxFuture<'a, Result<HeaderMap, Unauthorized>> {
        Box::pin(async move {
            let held = self.usable().await.map_err(unauthorized)?;
            let headers = match &held {
                Some(held) => self.signed(held, hop).map_err(unauthorized),
                None => Ok(HeaderMap::new()),
            };
            if self.used.as_ref().map(|used| used.serial) != held.as_ref().map(|held| held.serial) {
                // Nothing is known of proofs for another token.
                (self.redated, self.own_refused) = (false, false);
            }
            self.used = held;
            headers
        })
    }

    fn refused<'a>(
        &'a mut self,
        hop: Hop<'a>,
        refusal: Refusal,
    ) -> BoxFuture<'a, Result<Verdict, Unauthorized>> {
        Box::pin(async move {
            self.server.reach.learn(&refusal.reached);
            self.note_nonce(&refusal.headers);
            let challenges = challenge::parse(&refusal.headers);
            let judged = match refusal.status {
                StatusCode::UNAUTHORIZED => self.unauthorized(hop, challenges, &refusal.headers).await,
                _ => self.forbidden(hop, challenges).await,
            };
            judged.map_err(unauthorized)
        })
    }

    fn answered(&mut self, _hop: Hop<'_>, headers: &HeaderMap) {
        self.note_nonce(headers);
    }
}

fn unauthorized(error: AuthError) -> Unauthorized {
    use AuthErrorKind as Kind;

    let status = match error.kind {
        // Nobody knows what the server would say.
        Kind::Unavailable => None,
        // It is known who asks, and more than they have cannot be had.
        Kind::ScopeRejected | Kind::ScopesNeeded { .. } | Kind::StepUpFutile | Kind::StepUpLimit => {
            Some(StatusCode::FORBIDDEN)
        }
        _ => Some(StatusCode::UNAUTHORIZED),
    };
    let unauthorized = Unauthorized::new(error);
    match status {
        Some(status) => unauthorized.with_status(status),
        None => unauthorized,
    }
}

impl Try {
    /// The credential to send, renewed if it is about to end.
    async fn usable(&mut self) -> Result<Option<CurrentCredential>, AuthError> {
        let Some(held) = self.server.current().await else { return Ok(None) };
        let now = self.server.now();
        if !held.credential.is_due(now) {
            return Ok(Some(held));
        }
        let expired = held.credential.is_expired(now);
        let can_renew = held.credential.refresh.is_some() || !self.server.asks_a_person();
        let renewed = match self.server.paused() {
            Some(why) => Err(why),
            None if can_renew => {
                let may_ask = self.purpose == Purpose::Request;
                renewed(&self.server, Cause::Expired, Some(held.clone()), may_ask).await
            }
            None => Err(login_needed("the token has ended, and cannot be renewed")),
        };
        match renewed {
            Ok(held) => Ok(Some(held)),
            // It is good for as long as it lasts.
            Err(_) if !expired => Ok(Some(held)),
            Err(error) if error.is_temporary() || !self.server.asks_a_person() => Err(error),
            // The server says what it wants instead.
            Err(_) => {
                self.given_up = held.serial;
                Ok(None)
            }
        }
    }

    /// The headers of one sending.
    fn signed(&mut self, held: &CurrentCredential, hop: Hop<'_>) -> Result<HeaderMap, AuthError> {
        let credential = &held.credential;
        let mut headers = HeaderMap::new();
        let text =
            zeroize::Zeroizing::new(format!("{} {}", credential.kind.scheme(), credential.access.expose()));
        headers.insert(header::AUTHORIZATION, sensitive(&text)?);
        if let (TokenType::Dpop, Some(key)) = (credential.kind, &credential.dpop) {
            let trusted = &self.server.config.settings.dangerous.trusted;
            let url = Endpoint::parse_trusting(hop.url, trusted)
                .map_err(|why| AuthError::new(AuthErrorKind::KeyFailed, Step::Use, why.to_string()))?;
            let mut entropy = [0; 16];
            let filled = self.server.config.entropy.fill(&mut entropy);
            filled.map_err(|error| AuthError::new(AuthErrorKind::KeyFailed, Step::Use, error.to_string()))?;
            let (nonce, skew) = self.server.nonce_and_skew();
            self.skew = skew;
            let now = skew.applied_to(self.server.now());
            let access = Some(&credential.access);
            let proof = key.proof(hop.method.as_str(), &url, access, nonce.as_deref(), now, entropy)?;
            headers.insert(DPOP, sensitive(&proof)?);
        }
        Ok(headers)
    }

    /// The server does not know who sends it.
    async fn unauthorized(
        &mut self,
        hop: Hop<'_>,
        challenges: Vec<Challenge>,
        headers: &HeaderMap,
    ) -> Result<Verdict, AuthError> {
        let says = |error| challenges.iter().any(|challenge| challenge.error() == Some(error));
        let was_proved = self.used.as_ref().is_some_and(|held| held.credential.kind == TokenType::Dpop);
        let (wants_nonce, refuses_proof) = (says("use_dpop_nonce"), says("invalid_dpop_proof"));
        // A server that wants a nonce has not judged the date yet, and may do so next.
        if was_proved && wants_nonce {
            self.server.learn_time(headers, self.skew);
        }
        if wants_nonce
            && let Some(nonce) = nonce_of(headers)
            && self.nonce.as_deref() != Some(&nonce)
        {
            self.nonce = Some(nonce);
            return Ok(Verdict::Again);
        }
        if was_proved && refuses_proof && self.is_to_be_redated(headers) {
            return Ok(Verdict::Again);
        }
        let used = self.used.as_ref().map_or(self.given_up, |held| held.serial);
        let current = self.server.held();
        if current.as_ref().is_some_and(|current| current.serial > used) {
            return Ok(Verdict::Again);
        }
        // Many servers name all their scopes with every refusal, so that a token lacks some says little as long as it may
        // as well have ended. A new one is had first, and whoever is asked for it is asked for these scopes, too.
        if self.used.is_some() && self.new_since.is_some() {
            if self.lacks(&challenges) {
                return self.more(hop, challenges).await;
            }
            let detail = "the server refuses a token that was given a moment ago";
            return Err(AuthError::new(AuthErrorKind::TokenRejected, Step::Use, detail));
        }
        self.replace(Cause::Refused(challenges)).await
    }

    /// Returns whether a proof that was refused is worth another try with another date: the token may be good, and the date be all
    /// that is wrong. The clock of the server is tried once, and then ours, unless that was refused.
    fn is_to_be_redated(&mut self, headers: &HeaderMap) -> bool {
        self.own_refused |= self.skew == Skew::None;
        if !mem::replace(&mut self.redated, true) && self.server.learn_time(headers, self.skew) {
            return true;
        }
        // The date of the answer does not help; it may be that of a proxy.
        self.server.forget_time();
        !mem::replace(&mut self.own_refused, true)
    }

    /// The server knows who sends it, and does not allow it.
    async fn forbidden(&mut self, hop: Hop<'_>, challenges: Vec<Challenge>) -> Result<Verdict, AuthError> {
        let lacking = challenges.iter().any(|challenge| challenge.error() == Some("insufficient_scope"));
        if lacking { self.more(hop, challenges).await } else { Ok(Verdict::Stand) }
    }

    /// Whether the server wants scopes that the token does not have, and that were not asked for with it.
    fn lacks(&self, challenges: &[Challenge]) -> bool {
        let wanted = scopes_of(challenges);
        self.used.as_ref().is_some_and(|held| {
            let Credential { granted, requested, .. } = &*held.credential;
            // A token without known scopes says nothing.
            !granted.is_empty() && !granted.union(requested).covers(&wanted)
        })
    }

    /// Asks for more scopes.
    async fn more(&mut self, hop: Hop<'_>, challenges: Vec<Challenge>) -> Result<Verdict, AuthError> {
        let current = self.server.held();
        let newer = current.as_ref().zip(self.used.as_ref());
        if newer.is_some_and(|(current, used)| current.serial > used.serial) {
            return Ok(Verdict::Again);
        }
        if self.server.asks_a_person() && self.purpose == Purpose::Background {
            return Err(login_needed("more scopes are wanted"));
        }
        let wanted = scopes_of(&challenges);
        self.patience.step_up()?;
        let ask = self.server.more_scopes(&operation(hop), &wanted)?;
        if !self.server.has_way() {
            return Err(self.scopes_needed(&wanted));
        }
        self.patience.authorization()?;
        let cause = Cause::Lack(challenges, ask);
        let held = if self.server.asks_a_person() {
            asked(&self.server, cause, self.used.clone()).await?
        } else {
            renewed(&self.server, cause, self.used.clone(), true).await?
        };
        self.new_since.get_or_insert(held.serial);
        Ok(Verdict::Again)
    }

    /// More scopes are wanted, and nobody can be asked for them.
    fn scopes_needed(&self, wanted: &Scopes) -> AuthError {
        let granted = self.used.as_ref().map_or_else(Scopes::none, |held| held.credential.granted.clone());
        let lacking = wanted.iter().filter(|scope| !granted.contains(scope));
        let scopes = Scopes::new(lacking).unwrap_or_else(|| wanted.clone());
        let detail = format!("the token lacks the scopes \"{scopes}\"; log in again, and ask for them");
        AuthError::new(AuthErrorKind::ScopesNeeded { scopes }, Step::Use, detail)
    }

    /// Gets a credential in place of none, or of one that was refused.
    async fn replace(&mut self, cause: Cause) -> Result<Verdict, AuthError> {
        if let Some(why) = self.server.paused() {
            return Err(why);
        }
        let may_ask = self.purpose == Purpose::Request;
        let held = self.server.held();
        let can_renew = held.as_ref().is_some_and(|held| held.credential.refresh.is_some());
        let mut failed = None;
        if can_renew || !self.server.asks_a_person() {
            self.patience.authorization()?;
            match renewed(&self.server, cause.clone(), held.clone(), may_ask).await {
                Ok(held) => {
                    self.new_since.get_or_insert(held.serial);
                    return Ok(Verdict::Again);
                }
                Err(error) if !self.server.asks_a_person() || !error.needs_login() => return Err(error),
                Err(error) => failed = Some(error),
            }
        }
        if !may_ask || !self.server.has_way() {
            // Another process may have logged in.
            if let Some(held) = self.server.news().await {
                self.new_since.get_or_insert(held.serial);
                return Ok(Verdict::Again);
            }
            return Err(failed.unwrap_or_else(|| login_needed("the server asks for one")));
        }
        self.patience.authorization()?;
        let held = asked(&self.server, cause, self.server.held()).await?;
        self.new_since.get_or_insert(held.serial);
        Ok(Verdict::Again)
    }

    fn note_nonce(&self, headers: &HeaderMap) {
        if let Some(nonce) = nonce_of(headers) {
            self.server.set_nonce(nonce);
        }
    }
}

fn sensitive(text: &str) -> Result<HeaderValue, AuthError> {
    let invalid = |_| {
        let detail = "the token has characters that no header may have";
        AuthError::new(AuthErrorKind::TokenInvalid, Step::Use, detail)
    };
    let mut value = HeaderValue::try_from(text).map_err(invalid)?;
    value.set_sensitive(true);
    Ok(value)
}

fn nonce_of(headers: &HeaderMap) -> Option<String> {
    let nonce = headers.get(DPOP_NONCE)?.to_str().ok()?;
    (!nonce.is_empty() && nonce.len() <= MAX_NONCE_BYTES).then(|| nonce.to_owned())
}

/// The scopes that a server wants. Challenges whose scopes cannot be read are left out.
fn scopes_of(challenges: &[Challenge]) -> Scopes {
    let readable = challenges.iter().filter_map(|challenge| challenge.scope().and_then(Scopes::parse));
    readable.fold(Scopes::none(), |all, scopes| all.union(&scopes))
}

/// What a request is about, so that the same is not asked for in vain again.
fn operation(hop: Hop<'_>) -> Operation {
    let about = match Message::parse_and_peek(hop.body) {
        Ok((Message::Request(request), peek)) => {
            let name = peek.name.or(peek.uri).unwrap_or_default();
            format!("{} {name}", request.method)
        }
        Ok((Message::Notification(notification), _)) => notification.method.to_string(),
        _ => hop.method.to_string(),
    };
    Operation::new(about)
}
