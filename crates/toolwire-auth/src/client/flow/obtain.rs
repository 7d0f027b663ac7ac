//! From a client to a token.

use super::{
    Audience, Change, Effect, Way,
    find::login_needed,
    steps::{Answer, Call, Ready, State, Target, Turn, Turned, Why, out_of_order},
};
use crate::{
    Endpoint, Secret,
    client::{
        AuthError, AuthErrorKind, Event, Step, Verdict,
        authorize::{self, Authorization, Callback, Pending},
        device::{self, Again, Waiting},
        discover::{
            issuer::{Found, Search},
            unreachable,
        },
        register::{self, Registration, Source},
        scopes::OFFLINE_ACCESS,
        token::{self, Credential, Grant, GrantKind, KnownEndpoints, Refusal, TokenRequest, TokenSet},
    },
    fetch::{FetchErrorKind, Request, Response},
};

/// The most nonces that one token request follows.
const MAX_NONCES: u8 = 2;

impl Turn<'_> {
    /// Everything is settled: asks whoever has to agree.
    pub(super) fn ask(mut self, ready: Box<Ready>) -> Turned {
        match self.plan.way.clone() {
            Way::Browser(redirects) => self.browse(ready, &redirects.used),
            Way::Device => {
                let Some(endpoint) = &ready.metadata.device else { return Err(out_of_order()) };
                let request = self.device_request(&ready, endpoint)?;
                self.send(State::DeviceAsk { ready }, request)
            }
            Way::ClientCredentials => {
                let call = self.call(*ready, Grant::ClientCredentials, GrantKind::ClientCredentials);
                self.request_token(call, None)
            }
            Way::Workload => {
                let audience = Audience::Workload(ready.metadata.issuer.clone());
                self.wait(State::Assertion { ready }, Effect::Assert(audience))
            }
            Way::Enterprise(idp) => {
                self.tell(
                    Step::Exchange,
                    Verdict::Fine,
                    "MCP, enterprise-managed authorization",
                    "the identity provider is asked",
                );
                self.wait(State::Assertion { ready }, Effect::Assert(Audience::Identity(idp.issuer)))
            }
        }
    }

    fn browse(self, ready: Box<Ready>, used: &str) -> Turned {
        let (Some(endpoint), Some(redirect)) =
            (&ready.metadata.authorization, ready.client.registration.redirect(used))
        else {
            return Err(out_of_order());
        };
        let thumbprint = ready.dpop.as_ref().map(token::DpopKey::thumbprint);
        let request = Authorization {
            endpoint,
            issuer: &ready.metadata.issuer,
            iss_parameter: ready.metadata.iss_parameter,
            client_id: &ready.client.registration.client_id,
            redirect: &redirect,
            scopes: &ready.scopes,
            resource: ready.resource.as_ref(),
            consent: self.plan.consent,
            dpop_thumbprint: thumbprint.as_deref(),
            more: &self.plan.authorize_params,
        };
        let (url, pending) = authorize::begin(&request, &self.env.entropy);
        let detail = format!("a person is asked for the scopes \"{}\"", ready.scopes);
        self.events
            .push(Event::new(Step::Authorization, Verdict::Fine, "OAuth 2.1, 4.1.1", detail).at(endpoint));
        self.wait(State::Ask { pending, ready }, Effect::Browse(url))
    }

    pub(super) fn called_back(mut self, pending: Pending, ready: Box<Ready>, callback: &Callback) -> Turned {
        let code = match pending.finish(callback) {
            Ok(code) => code,
            Err(error) => {
                let scope = matches!(&error.kind, AuthErrorKind::AuthorizationRefused { error } if error == "invalid_scope");
                if scope && self.may_register_for_more(&ready.client.registration) {
                    return self.start_over(ready.client.registration);
                }
                return Err(error);
            }
        };
        self.tell(
            Step::Authorization,
            Verdict::Fine,
            "RFC 9207, 2.4",
            "the response is from the issuer that was asked",
        );
        let call = self.call(*ready, Grant::Code(code), GrantKind::AuthorizationCode);
        self.request_token(call, None)
    }

    fn device_request(&self, ready: &Ready, endpoint: &Endpoint) -> Result<Request, AuthError> {
        TokenRequest {
            endpoint,
            named_by: ready.metadata.named_by(endpoint),
            issuer: &ready.metadata.issuer,
            client: &ready.client,
            resource: ready.resource.as_ref(),
            scopes: Some(&ready.scopes),
            dpop: None,
            now: self.issuers_now(),
            entropy: &self.env.entropy,
        }
        .device()
    }

    pub(super) fn device_answered(mut self, ready: Box<Ready>, answer: Answer<'_>) -> Turned {
        let Some(endpoint) = ready.metadata.device.clone() else { return Err(out_of_order()) };
        let response = answer.map_err(|error| unreachable(error, Step::Device, &endpoint))?;
        self.note_time(response);
        let (code, waiting) = match device::accept(response, &endpoint, self.env.now) {
            Err(error)
                if error.kind == AuthErrorKind::ClientRejected
                    && self.may_start_over(&ready.client.registration) =>
            {
                return self.start_over(ready.client.registration);
            }
            accepted => accepted?,
        };
        self.events.push(
            Event::new(Step::Device, Verdict::Fine, "RFC 8628, 3.2", "a person is shown a code")
                .at(&endpoint),
        );
        self.wait(State::DeviceShow { waiting, ready }, Effect::ShowCode(code))
    }

    pub(super) fn poll(self, waiting: Waiting, ready: Box<Ready>) -> Turned {
        let again = Ready {
            resource: ready.resource.clone(),
            metadata: ready.metadata.clone(),
            client: ready.client.clone(),
            scopes: ready.scopes.clone(),
            dpop: ready.dpop.clone(),
        };
        let call = self.call(again, Grant::Device(waiting.code.clone()), GrantKind::Device);
        let request = self.token_request(&call)?;
        self.send(State::DevicePoll { waiting, call: Box::new(call), ready }, request)
    }

    pub(super) fn device_polled(
        mut self,
        mut waiting: Waiting,
        mut call: Call,
        ready: Box<Ready>,
        answer: Answer<'_>,
    ) -> Turned {
        let why = match answer {
            Err(error) if error.kind == FetchErrorKind::Forbidden => {
                return Err(unreachable(error, Step::Device, &call.endpoint));
            }
            Err(_) => Again::Fault,
            Ok(response) => match token::accept(response, call.wanted()) {
                Ok(_) => return self.token_answered(call, None, Ok(response)),
                Err(Refusal::Pending) => Again::Pending,
                Err(Refusal::SlowDown) => Again::SlowDown,
                Err(Refusal::Unavailable(_)) => Again::Fault,
                Err(Refusal::UseNonce(nonce)) if nonce.is_some() && call.nonces < MAX_NONCES => {
                    (call.nonce, call.nonces) = (nonce, call.nonces + 1);
                    let request = self.token_request(&call)?;
                    return self.send(State::DevicePoll { waiting, call: Box::new(call), ready }, request);
                }
                Err(refusal) => return Err(refusal.into_error(Step::Device, &call.endpoint)),
            },
        };
        if let Ok(response) = answer {
            self.note_time(response);
        }
        let pause = waiting.again(why, self.env.now)?;
        self.wait(State::DeviceWait { waiting, ready }, Effect::Wait(pause))
    }

    pub(super) fn asserted(self, ready: Box<Ready>, assertion: Secret) -> Turned {
        match &self.plan.way {
            Way::Enterprise(idp) => {
                let issuer = idp.issuer.clone();
                self.find_idp(issuer, assertion, ready)
            }
            _ => {
                let call = self.call(*ready, Grant::JwtBearer(assertion), GrantKind::Workload);
                self.request_token(call, None)
            }
        }
    }

    pub(super) fn idp_answered(
        self,
        search: Search,
        subject: Secret,
        ready: Box<Ready>,
        answer: Answer<'_>,
    ) -> Turned {
        match search.answer(answer, self.events)? {
            Found::Ask(search, request) => self.send(State::FindIdp { search, subject, ready }, request),
            Found::Nothing(error) => Err(error),
            Found::Metadata(idp) => {
                let Way::Enterprise(plan) = &self.plan.way else { return Err(out_of_order()) };
                let request = token::exchange_request(
                    &idp.token,
                    idp.named_by(&idp.token),
                    &plan.client_id,
                    &subject,
                    plan.subject,
                    &ready.metadata.issuer,
                    ready.resource.as_ref(),
                    &ready.scopes,
                );
                self.send(State::IdpExchange { endpoint: idp.token, ready }, request)
            }
        }
    }

    pub(super) fn exchanged(self, endpoint: &Endpoint, ready: Box<Ready>, answer: Answer<'_>) -> Turned {
        let response = answer.map_err(|error| unreachable(error, Step::Exchange, endpoint))?;
        let assertion = token::accept_exchange(response)
            .map_err(|refusal| refusal.into_error(Step::Exchange, endpoint))?;
        self.events.push(
            Event::new(
                Step::Exchange,
                Verdict::Fine,
                "RFC 8693, 2.2",
                "the identity provider gave an assertion",
            )
            .at(endpoint),
        );
        let call = self.call(*ready, Grant::JwtBearer(assertion), GrantKind::Enterprise);
        self.request_token(call, None)
    }

    fn call(&self, ready: Ready, grant: Grant, kind: GrantKind) -> Call {
        let Ready { resource, metadata, client, scopes, dpop } = ready;
        let before = self.plan.stored.credential.as_ref().filter(|stored| stored.issuer == metadata.issuer);
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
            nonce: None,
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

    fn token_request(&self, call: &Call) -> Result<Request, AuthError> {
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

    fn request_token(self, call: Call, target: Option<Target>) -> Turned {
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
    fn may_start_over(&self, registration: &Registration) -> bool {
        registration.source == Source::Dynamic && !self.course.started_over && self.may_go_on()
    }

    /// Some issuers give a client no scopes but those it was registered with.
    fn may_register_for_more(&self, registration: &Registration) -> bool {
        self.course.why == Why::Lack && self.may_start_over(registration)
    }

    fn start_over(mut self, registration: Registration) -> Turned {
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
        let is_person = self.plan.way.asks_a_person();
        let asked = call.scopes.clone().or_else(|| before.as_ref().map(|before| before.granted.clone()));
        let wanted_offline = asked.as_ref().is_some_and(|scopes| scopes.contains(OFFLINE_ACCESS));
        let refresh = set.refresh.filter(|_| is_person).or(old_refresh);
        if wanted_offline && refresh.is_none() {
            let detail = "the issuer gave no refresh token though it was asked for one; some give one only after \
                          consent (prompt=consent, toolwire login --consent)";
            self.tell(Step::Token, Verdict::Warning, "MCP, refresh tokens", detail);
        }
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
        };
        let credential = Box::new(credential);
        let change = Change::Granted(credential.clone());
        self.save(State::SaveCredential { credential }, change)
    }
}
