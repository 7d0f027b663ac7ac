//! From a grant to a token, and from a token to the next.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};

use super::{
    Change,
    find::login_needed,
    state::{Answer, Call, Ready, State, Target, Turned, Why},
    steps::{Turn, out_of_order},
};
use crate::{
    client::{
        AuthError, AuthErrorKind, Event, Step, Verdict,
        register::{self, Registration, Source},
        scopes::OFFLINE_ACCESS,
        token::{self, Credential, Grant, GrantKind, KnownEndpoints, Refusal, TokenRequest, TokenSet},
    },
    fetch::{FetchErrorKind, Request, Response},
};

/// The most nonces that one token request follows.
pub(super) const MAX_NONCES: u8 = 2;

impl Turn<'_> {
    pub(super) fn call(&self, ready: Ready, grant: Grant, kind: GrantKind) -> Call {
        let Ready { resource, metadata, client, scopes, dpop, nonce } = ready;
        let stored = self.plan.stored.credential.as_ref();
        let before = stored.filter(|stored| stored.issuer.is_or_differs_by_a_slash(&metadata.issuer));
        let requested = before.map_or_else(|| scopes.clone(), |before| before.requested.union(&scopes));
        Call {
            grant,
            kind,
            named_by: metadata.named_by(&metadata.token),
            issuer: metadata.issuer,
            client,
            resource,
            scopes: Some(scopes),
            requested,
            dpop,
            nonce,
            nonces: 0,
            endpoint: metadata.token,
            revocation: metadata.revocation,
            found: self.env.now,
        }
    }

    /// Whether there is something to renew the stored credential with.
    pub(super) fn can_renew(&self) -> bool {
        self.plan.stored.credential.as_ref().is_some_and(|stored| stored.refresh.is_some())
    }

    /// Renews with the client, resource and scopes that the credential was made with, where it was made.
    pub(super) fn renew(mut self, target: Option<Target>) -> Turned {
        let Some(stored) = self.plan.stored.credential.clone() else { return Err(out_of_order()) };
        let Some(refresh) = stored.refresh.clone() else { return Err(out_of_order()) };
        self.course.renewed = true;
        let call = Call {
            grant: Grant::Refresh(refresh),
            kind: stored.grant,
            issuer: stored.issuer.clone(),
            client: register::recorded(&self.plan, &stored.client),
            resource: stored.resource.clone(),
            scopes: Some(stored.granted.clone()),
            requested: stored.requested.clone(),
            dpop: stored.dpop.clone(),
            nonce: None,
            nonces: 0,
            endpoint: stored.endpoints.token.clone(),
            revocation: stored.endpoints.revocation.clone(),
            found: stored.endpoints.found,
            named_by: stored.endpoints.named_by,
        };
        self.request_token(call, target)
    }

    pub(super) fn token_request(&self, call: &Call) -> Result<Request, AuthError> {
        TokenRequest {
            endpoint: &call.endpoint,
            named_by: call.named_by,
            issuer: &call.issuer,
            client: &call.client,
            resource: call.resource.as_ref(),
            scopes: call.scopes.as_ref(),
            dpop: call.dpop.as_ref().map(|key| (key, call.nonce.as_deref())),
            now: self.issuers_now(),
            entropy: &self.env.entropy,
        }
        .build(&call.grant)
    }

    pub(super) fn request_token(self, call: Call, target: Option<Target>) -> Turned {
        let request = self.token_request(&call)?;
        self.send(State::Token { call: Box::new(call), target }, request)
    }

    pub(super) fn token_answered(
        mut self,
        mut call: Call,
        target: Option<Target>,
        answer: Answer<'_>,
    ) -> Turned {
        let response = answer.map_err(|error| {
            let kind = match error.kind {
                FetchErrorKind::Forbidden => AuthErrorKind::MetadataRefused,
                _ => AuthErrorKind::Unavailable,
            };
            AuthError::new(kind, call.step(), error.detail.clone()).at(&call.endpoint)
        })?;
        self.note_time(response);
        match token::accept(response, call.wanted()) {
            Ok(set) => self.granted(call, set, response),
            Err(Refusal::UseNonce(Some(nonce)))
                if call.dpop.is_some() && call.nonces < MAX_NONCES && call.nonce.as_ref() != Some(&nonce) =>
            {
                self.tell(
                    call.step(),
                    Verdict::Next,
                    "RFC 9449, 8",
                    "the issuer wants its nonce in the proof",
                );
                (call.nonce, call.nonces) = (Some(nonce), call.nonces + 1);
                self.request_token(call, target)
            }
            Err(refusal) => {
                let error = refusal.into_error(call.step(), &call.endpoint);
                self.token_refused(call, target, error)
            }
        }
    }

    fn token_refused(mut self, mut call: Call, target: Option<Target>, error: AuthError) -> Turned {
        if error.is_temporary() {
            return Err(error);
        }
        if error.kind == AuthErrorKind::ScopeRejected && call.is_renewal() && call.scopes.is_some() {
            self.tell(
                Step::Renewal,
                Verdict::Next,
                "RFC 6749, 6",
                "the issuer does not want to be told the scopes",
            );
            call.scopes = None;
            return self.request_token(call, target);
        }
        let registration = &call.client.registration;
        let anew = match error.kind {
            AuthErrorKind::ClientRejected => self.may_start_over(registration),
            AuthErrorKind::ScopeRejected => self.may_register_for_more(registration),
            _ => false,
        };
        if anew {
            return self.start_over(call.client.registration);
        }
        match call.grant {
            Grant::Refresh(refresh) if error.kind == AuthErrorKind::GrantRejected => {
                self.events.push(Event::refused(&error, "RFC 6749, 5.2"));
                self.save(State::SaveRejected { target }, Change::RefreshRejected(refresh))
            }
            Grant::Refresh(_) if self.may_go_on() => {
                self.events.push(Event::refused(&error, "RFC 6749, 5.2"));
                self.log_in_again(target)
            }
            _ => Err(error),
        }
    }

    /// Whether a new grant can be obtained now: nobody has to be asked, or somebody may be.
    fn may_go_on(&self) -> bool {
        self.plan.may_ask || !self.plan.way.asks_a_person()
    }

    /// The renewal is over: begins a login, if one may begin.
    pub(super) fn log_in_again(self, target: Option<Target>) -> Turned {
        if !self.may_go_on() {
            return Err(login_needed());
        }
        match target {
            Some(target) => self.find_issuer(target),
            None => self.find_resource(),
        }
    }

    /// A client that the issuer made may be made once more, once.
    pub(super) fn may_start_over(&self, registration: &Registration) -> bool {
        registration.source == Source::Dynamic && !self.course.started_over && self.may_go_on()
    }

    /// Some issuers give a client no scopes but those it was registered with.
    pub(super) fn may_register_for_more(&self, registration: &Registration) -> bool {
        self.course.why == Why::Lack && self.may_start_over(registration)
    }

    pub(super) fn start_over(mut self, registration: Registration) -> Turned {
        self.tell(
            Step::Registration,
            Verdict::Next,
            "RFC 7591, 3",
            "the client is forgotten, and registered anew",
        );
        self.course.started_over = true;
        let other = |stored: &Registration| {
            stored.client_id != registration.client_id || stored.issuer != registration.issuer
        };
        self.plan.stored.registrations.retain(other);
        self.save(State::SaveForgotten, Change::Forgotten(registration))
    }

    fn granted(mut self, call: Call, set: TokenSet, response: &Response) -> Turned {
        let event = Event::new(call.step(), Verdict::Fine, "OAuth 2.1, 3.2.3", "the issuer gave a token");
        self.events.push(event.at(&call.endpoint).answered(response.status));
        let before = self.plan.stored.credential.clone();
        let old_refresh = match &call.grant {
            Grant::Refresh(token) => Some(token.clone()),
            _ => None,
        };
        let (is_person, is_renewal) = (self.plan.way.asks_a_person(), call.is_renewal());
        let asked = call.scopes.clone().or_else(|| before.as_ref().map(|before| before.granted.clone()));
        let wanted_offline = asked.as_ref().is_some_and(|scopes| scopes.contains(OFFLINE_ACCESS));
        let refresh = set.refresh.filter(|_| is_person).or(old_refresh);
        if wanted_offline && refresh.is_none() {
            let detail = "the issuer gave no refresh token though it was asked for one; some give one only after \
                          consent (prompt=consent, toolwire login --consent)";
            self.tell(Step::Token, Verdict::Warning, "MCP, refresh tokens", detail);
        }
        let lineage = match &before {
            // A renewal belongs to the login it began with, and so does every token of a client that acts for itself.
            Some(before) if is_renewal || (!is_person && before.issuer == call.issuer) => {
                before.lineage.clone()
            }
            _ => Some(BASE64_URL_SAFE_NO_PAD.encode(&self.env.entropy[..16])),
        };
        let credential = Credential {
            server: self.plan.server.as_str().to_owned(),
            resource: call.resource,
            issuer: call.issuer,
            client: call.client.registration,
            grant: call.kind,
            requested: call.requested,
            granted: set.scopes.or(asked).unwrap_or_default(),
            access: set.access,
            kind: if call.dpop.is_some() { token::TokenType::Dpop } else { token::TokenType::Bearer },
            expires: set.expires_in.and_then(|lasts| self.env.now.checked_add(lasts)),
            received: self.env.now,
            refresh,
            dpop: call.dpop,
            endpoints: KnownEndpoints {
                token: call.endpoint,
                revocation: call.revocation,
                found: call.found,
                named_by: call.named_by,
            },
            lineage,
        };
        let credential = Box::new(credential);
        let change = Change::Granted(credential.clone());
        self.save(State::SaveCredential { credential }, change)
    }
}
