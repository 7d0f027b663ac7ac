//! The client that asks, and what it asks for.

use super::{
    Change, Dpop, Way,
    find::login_needed,
    state::{Answer, Ready, State, Target, Turned},
    steps::{Turn, out_of_order},
};
use crate::client::{
    AuthError, AuthErrorKind, Step, Verdict,
    discover::{issuer::ServerMetadata, unreachable},
    error::visible,
    register::{self, Identity, Refused},
    scopes::{self, Scopes},
    token::DpopKey,
};

impl Turn<'_> {
    /// Chooses the client that asks, and registers one where that has to be.
    pub(super) fn identify(mut self, target: Target, metadata: Box<ServerMetadata>) -> Turned {
        if self.plan.way.asks_a_person() && !self.plan.may_ask {
            return Err(login_needed());
        }
        self.check_offers(&metadata)?;
        let scopes = self.wanted_scopes(&target, &metadata);
        let dpop = self.dpop_key(&target, &metadata)?;
        match register::choose(&self.plan, &metadata, self.env.now)? {
            Identity::Known { client, bind } => {
                let id = &client.registration.client_id;
                let (verdict, detail) = if bind {
                    let issuer = &metadata.issuer;
                    let detail =
                        format!("the client {id} has no issuer; the server names {issuer}, which is kept");
                    (Verdict::Warning, detail)
                } else {
                    (Verdict::Fine, format!("the client {id} asks"))
                };
                self.tell(Step::Identity, verdict, "MCP, client registration", detail);
                let (client_id, issuer) = (client.registration.client_id.clone(), metadata.issuer.clone());
                let ready = Box::new(self.ready(target, *metadata, client, scopes, dpop));
                if bind {
                    let change = Change::Bound { client_id, issuer };
                    return self.save(State::SaveClient { ready }, change);
                }
                self.ask(ready)
            }
            Identity::Dynamic => self.register(target, metadata, scopes, dpop, false),
        }
    }

    fn ready(
        &self,
        target: Target,
        metadata: ServerMetadata,
        client: register::Client,
        scopes: Scopes,
        dpop: Option<DpopKey>,
    ) -> Ready {
        let omitting = &self.plan.settings.dangerous.omit_resource;
        let omitted = omitting.iter().any(|known| known.is_or_differs_by_a_slash(&metadata.issuer));
        let resource = Some(target.resource).filter(|_| !omitted);
        Ready { resource, metadata, client, scopes, dpop, nonce: None }
    }

    /// Whether the issuer can do what is about to be asked of it.
    fn check_offers(&mut self, metadata: &ServerMetadata) -> Result<(), AuthError> {
        let lacks = |kind, what: &str| {
            let detail = format!("the issuer {} {what}", metadata.issuer);
            Err(AuthError::new(kind, Step::Issuer, detail))
        };
        match &self.plan.way {
            Way::Browser(_) if metadata.authorization.is_none() => {
                lacks(AuthErrorKind::MetadataRefused, "has no authorization endpoint")
            }
            Way::Browser(_) if metadata.may_be_mixed_up() => {
                let detail = "the page to log in at and the token endpoint are on two sites, and answers do not name the issuer";
                self.tell(Step::Issuer, Verdict::Warning, "RFC 9700, 4.4", detail);
                self.check_pkce(metadata)
            }
            Way::Browser(_) => self.check_pkce(metadata),
            Way::Device if metadata.device.is_none() => {
                lacks(AuthErrorKind::DeviceUnsupported, "has no device endpoint; log in with a browser")
            }
            _ => Ok(()),
        }
    }

    /// Returns whether the issuer says, or the application does, that codes are bound to a proof.
    fn check_pkce(&mut self, metadata: &ServerMetadata) -> Result<(), AuthError> {
        let lacks = |kind, what: &str| {
            let detail = format!("the issuer {} {what}", metadata.issuer);
            Err(AuthError::new(kind, Step::Issuer, detail))
        };
        let assumed = &self.plan.settings.dangerous.assume_pkce;
        match &metadata.code_challenge_methods {
            Some(methods) if methods.iter().any(|method| method == "S256") => Ok(()),
            None if assumed.iter().any(|known| known.is_or_differs_by_a_slash(&metadata.issuer)) => {
                let detail = "the issuer does not say that it knows PKCE; the application says so";
                self.tell(Step::Issuer, Verdict::Warning, "OAuth 2.1, 7.5.2", detail);
                Ok(())
            }
            Some(_) => lacks(AuthErrorKind::PkceUnsupported, "does not know PKCE with S256"),
            None => lacks(
                AuthErrorKind::PkceUnsupported,
                "does not say that it knows PKCE; if it does, assume it for this issuer (assume_pkce)",
            ),
        }
    }

    fn wanted_scopes(&self, target: &Target, metadata: &ServerMetadata) -> Scopes {
        let person = self.plan.way.asks_a_person();
        match &self.course.ask {
            Some(ask) if person => scopes::with_offline_access(ask, &metadata.scopes),
            Some(ask) => ask.clone(),
            None => {
                let first = scopes::first(
                    self.course.challenge.as_ref(),
                    target.metadata.as_ref().and_then(|metadata| metadata.scopes.as_ref()),
                    &self.plan.settings.scopes,
                    &metadata.scopes,
                    person,
                );
                // Who logs in again at the same issuer loses nothing of what was asked for before.
                let stored = self.plan.stored.credential.as_ref();
                match stored.filter(|stored| stored.issuer.is_or_differs_by_a_slash(&metadata.issuer)) {
                    Some(stored) => first.union(&stored.requested),
                    None => first,
                }
            }
        }
    }

    /// A key for the token, if it is to be bound to one.
    fn dpop_key(&self, target: &Target, metadata: &ServerMetadata) -> Result<Option<DpopKey>, AuthError> {
        let required = target.metadata.as_ref().is_some_and(|metadata| metadata.dpop_required);
        // What was bound to a key stays so, even where the server would take less.
        let was_bound = self.plan.stored.credential.as_ref().is_some_and(|stored| stored.dpop.is_some());
        let wanted = match self.plan.settings.dpop {
            Dpop::Always => true,
            Dpop::WhenAsked => required || self.course.dpop_challenged || was_bound,
            Dpop::Never => false,
        };
        if !wanted {
            return Ok(None);
        }
        let of_server = target.metadata.as_ref().and_then(|metadata| metadata.dpop_algorithms.as_deref());
        DpopKey::generate(&[metadata.dpop_algorithms.as_deref(), of_server]).map(Some)
    }

    fn register(
        self,
        target: Target,
        metadata: Box<ServerMetadata>,
        scopes: Scopes,
        dpop: Option<DpopKey>,
        by_name: bool,
    ) -> Turned {
        let Some(endpoint) = &metadata.registration else { return Err(out_of_order()) };
        let request = register::request(&self.plan, &metadata, endpoint, &scopes, dpop.is_some(), by_name);
        self.send(State::Register { target, metadata, scopes, dpop, by_name }, request)
    }

    pub(super) fn registered(
        mut self,
        target: Target,
        metadata: Box<ServerMetadata>,
        scopes: Scopes,
        dpop: Option<DpopKey>,
        by_name: bool,
        answer: Answer<'_>,
    ) -> Turned {
        let Some(endpoint) = metadata.registration.clone() else { return Err(out_of_order()) };
        let response = answer.map_err(|error| unreachable(error, Step::Registration, &endpoint))?;
        let client = match register::accept(&self.plan, &metadata, by_name, response, self.env.now) {
            Ok(client) => client,
            Err(Refused::Redirect(_)) if !by_name => {
                let detail =
                    "the issuer does not take the address of this machine as a redirect; its name is tried";
                self.tell(Step::Registration, Verdict::Next, "RFC 8252, 7.3", detail);
                return self.register(target, metadata, scopes, dpop, true);
            }
            Err(refused) => return Err(AuthError::from(refused).at(&endpoint)),
        };
        let detail = format!("the issuer made the client {}", visible(&client.registration.client_id));
        self.tell(Step::Registration, Verdict::Fine, "RFC 7591, 3", detail);
        let change = Change::Registered(client.registration.clone());
        let ready = Box::new(self.ready(target, *metadata, client, scopes, dpop));
        self.save(State::SaveClient { ready }, change)
    }
}
