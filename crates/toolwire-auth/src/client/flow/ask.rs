//! From a client to a grant: whoever has to agree is asked.

use super::{
    Audience, Effect, Redirects, Way,
    state::{Answer, Call, Ready, State, Turned},
    steps::{Turn, out_of_order},
    token::MAX_NONCES,
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
        register::Source,
        token::{self, Grant, GrantKind, Refusal, TokenRequest},
    },
    fetch::{FetchErrorKind, NamedBy, Request},
};

impl Turn<'_> {
    /// Everything is settled: asks whoever has to agree.
    pub(super) fn ask(mut self, ready: Box<Ready>) -> Turned {
        match self.plan.way.clone() {
            Way::Browser(redirects) => self.browse(ready, redirects),
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
                let audience = Audience {
                    issuer: ready.metadata.issuer.clone(),
                    token_endpoint: ready.metadata.token.clone(),
                };
                self.wait(State::Assertion { ready }, Effect::Assert(audience))
            }
            Way::Enterprise(idp) => {
                self.tell(
                    Step::Exchange,
                    Verdict::Fine,
                    "MCP, enterprise-managed authorization",
                    "the identity provider is asked",
                );
                self.wait(State::Assertion { ready }, Effect::Identify(idp.issuer))
            }
        }
    }

    fn browse(self, ready: Box<Ready>, redirects: Redirects) -> Turned {
        let registration = &ready.client.registration;
        let redirects =
            if registration.source == Source::Dynamic { redirects.at(&ready.metadata) } else { redirects };
        let (Some(endpoint), Some(redirect)) =
            (&ready.metadata.authorization, registration.redirect(&redirects.used))
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
            consent: self.plan.settings.consent,
            dpop_thumbprint: thumbprint.as_deref(),
            more: &self.plan.settings.authorize_params,
            named_by: ready.metadata.named_by(endpoint),
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
        self.tell(Step::Authorization, Verdict::Fine, "RFC 9207, 2.4", "the response belongs to the request");
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
        let (code, waiting) = match device::accept(
            response,
            &endpoint,
            &ready.metadata.issuer,
            &self.plan.server,
            self.env.now,
        ) {
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
        let pages = [Some(&code.verification_uri), code.verification_uri_complete.as_ref()];
        let foreign = |page: &Endpoint| ready.metadata.named_by(page) == NamedBy::Peer;
        let named_by =
            if pages.into_iter().flatten().any(foreign) { NamedBy::Peer } else { NamedBy::Application };
        self.wait(State::DeviceShow { waiting, ready }, Effect::ShowCode(code, named_by))
    }

    pub(super) fn poll(self, waiting: Waiting, ready: Box<Ready>) -> Turned {
        let again = Ready {
            resource: ready.resource.clone(),
            metadata: ready.metadata.clone(),
            client: ready.client.clone(),
            scopes: ready.scopes.clone(),
            dpop: ready.dpop.clone(),
            nonce: ready.nonce.clone(),
        };
        let call = self.call(again, Grant::Device(waiting.code.clone()), GrantKind::Device);
        let request = self.token_request(&call)?;
        self.send(State::DevicePoll { waiting, call: Box::new(call), ready }, request)
    }

    pub(super) fn device_polled(
        mut self,
        mut waiting: Waiting,
        mut call: Call,
        mut ready: Box<Ready>,
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
                    ready.nonce.clone_from(&nonce);
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
        if let Way::Enterprise(idp) = &self.plan.way {
            let issuer = idp.issuer.clone();
            return self.find_idp(issuer, assertion, ready);
        }
        let call = self.call(*ready, Grant::JwtBearer(assertion), GrantKind::Workload);
        self.request_token(call, None)
    }

    pub(super) fn idp_answered(
        self,
        search: Search,
        subject: Secret,
        ready: Box<Ready>,
        answer: Answer<'_>,
    ) -> Turned {
        match search.answer(answer, self.events)? {
            Found::Ask(search, request) => {
                self.send(State::FindIdp { search: *search, subject, ready }, request)
            }
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
}
