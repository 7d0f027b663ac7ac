//! From the server to the issuer, and to the client that asks it.

use super::{
    Change, Dpop, Way,
    steps::{Answer, Ready, State, Target, Turn, Turned, Why},
};
use crate::{
    Issuer, Resource,
    client::{
        AuthError, AuthErrorKind, Event, Step, Verdict,
        discover::{
            early,
            issuer::{Found, Search, ServerMetadata, Terms},
            resource::{self, Next, Place, ResourceMetadata},
            unreachable,
        },
        register::{self, Identity, Refused},
        scopes::{self, Scopes},
        token::DpopKey,
    },
    fetch::{NamedBy, Request},
};

/// The most issuers that are asked for metadata.
const MAX_ISSUERS: usize = 3;

impl Turn<'_> {
    pub(super) fn find_resource(mut self) -> Turned {
        let server = &self.plan.server;
        let mut left =
            resource::places(server, self.course.challenge.as_ref(), &self.plan.dangerous.trusted)?;
        if left.iter().any(|place| !place.url.same_origin(server)) {
            let detail = "the challenge names metadata on another origin than the server's";
            self.tell(Step::Challenge, Verdict::Warning, "RFC 9728, 5.1", detail);
        }
        let asked = left.remove(0);
        let request = Request::get(asked.url.clone(), NamedBy::Peer);
        self.send(State::FindResource { asked, left, mismatch: None }, request)
    }

    pub(super) fn resource_answered(
        self,
        asked: &Place,
        mut left: Vec<Place>,
        mut mismatch: Option<AuthError>,
        answer: Answer<'_>,
    ) -> Turned {
        let response = answer.map_err(|error| unreachable(error, Step::Resource, &asked.url))?;
        let next = resource::accept(asked, &self.plan.server, self.plan.resource.as_ref(), response)?;
        let (verdict, detail) = match &next {
            Next::Found(_) => (Verdict::Fine, "these are the metadata"),
            Next::Absent(why) => (Verdict::Next, *why),
            Next::Mismatch(_) => (Verdict::Next, "these are the metadata of another server"),
        };
        let request = Request::get(asked.url.clone(), NamedBy::Peer);
        let event = Event::new(Step::Resource, verdict, "RFC 9728, 3", detail);
        self.events.push(event.about(&request).answered(response.status));
        match next {
            Next::Found(metadata) => return self.resource_found(metadata),
            Next::Mismatch(error) => mismatch = Some(error),
            Next::Absent(_) => {}
        }
        if left.is_empty() {
            return self.no_resource(mismatch);
        }
        let asked = left.remove(0);
        let request = Request::get(asked.url.clone(), NamedBy::Peer);
        self.send(State::FindResource { asked, left, mismatch }, request)
    }

    fn resource_found(self, metadata: ResourceMetadata) -> Turned {
        let issuers = match &self.plan.issuer {
            Some(pinned) => vec![pinned.clone()],
            None => self.ordered(&metadata.issuers),
        };
        if issuers.is_empty() {
            let detail = "the metadata of the server name no issuer that can be asked; set the issuer";
            return Err(AuthError::new(AuthErrorKind::NoIssuers, Step::Resource, detail));
        }
        let resource = self.plan.resource.clone().unwrap_or_else(|| metadata.resource.clone());
        self.target_found(Target { resource, issuers, metadata: Some(metadata), early: false })
    }

    /// No metadata anywhere: the application knows the issuer, or the server is an early one.
    fn no_resource(mut self, mismatch: Option<AuthError>) -> Turned {
        if let Some(error) = mismatch {
            return Err(error);
        }
        let server = Resource::parse(self.plan.server.as_str()).map_err(|why| {
            let detail = format!("the address of the server {why}");
            AuthError::new(AuthErrorKind::Misconfigured, Step::Resource, detail)
        })?;
        let resource = self.plan.resource.clone().unwrap_or(server);
        if let Some(pinned) = self.plan.issuer.clone() {
            let detail = "the server has no metadata; the configured issuer is asked";
            self.tell(Step::Resource, Verdict::Warning, "RFC 9728, 3", detail);
            return self.target_found(Target {
                resource,
                issuers: vec![pinned],
                metadata: None,
                early: false,
            });
        }
        let early = early::issuer(&self.plan.server).filter(|_| self.plan.allow_2025_03_26);
        if let Some(issuer) = early {
            let detail = "the server has no metadata, and is taken for one of 2025-03-26";
            self.tell(Step::Resource, Verdict::Warning, "MCP 2025-03-26", detail);
            return self.target_found(Target {
                resource,
                issuers: vec![issuer],
                metadata: None,
                early: true,
            });
        }
        let detail = "the server does not say where to log in: it has no metadata; set the issuer";
        Err(AuthError::new(AuthErrorKind::NoResourceMetadata, Step::Resource, detail).at(&self.plan.server))
    }

    fn target_found(self, target: Target) -> Turned {
        let stays = self
            .plan
            .stored
            .credential
            .as_ref()
            .is_some_and(|stored| target.issuers.contains(&stored.issuer));
        let renew = self.course.why == Why::Refused && !self.course.renewed && stays && self.can_renew();
        if renew { self.renew(Some(target)) } else { self.find_issuer(target) }
    }

    /// One with a credential comes first, then one with a configured client.
    fn ordered(&self, listed: &[Issuer]) -> Vec<Issuer> {
        let stored = self.plan.stored.credential.as_ref().map(|credential| &credential.issuer);
        let has_client = |issuer: &&Issuer| {
            self.plan.clients.iter().any(|client| client.issuer.as_deref() == Some(issuer.as_str()))
        };
        let first = listed.iter().filter(|issuer| Some(*issuer) == stored);
        let ordered = first.chain(listed.iter().filter(has_client)).chain(listed);
        let mut issuers: Vec<Issuer> = Vec::new();
        for issuer in ordered {
            if issuers.len() < MAX_ISSUERS && !issuers.contains(issuer) {
                issuers.push(issuer.clone());
            }
        }
        issuers
    }

    pub(super) fn find_issuer(self, target: Target) -> Turned {
        let left = target.issuers.clone();
        self.next_issuer(target, left)
    }

    fn next_issuer(self, target: Target, mut left: Vec<Issuer>) -> Turned {
        let issuer = left.remove(0);
        if let Some(fixed) = self.plan.endpoints.iter().find(|fixed| fixed.issuer == issuer) {
            let (authorization, token) = (fixed.authorization.clone(), fixed.token.clone());
            let metadata = ServerMetadata::bare(issuer, authorization, token, NamedBy::Application);
            return self.identify(target, Box::new(metadata));
        }
        let named_by = self.named_by(&issuer);
        let (search, request) = Search::begin(issuer, self.terms(named_by))?;
        self.send(State::FindIssuer { search, target, left }, request)
    }

    /// Whether the application named an issuer, or only a peer did.
    fn named_by(&self, issuer: &Issuer) -> NamedBy {
        let configured =
            self.plan.clients.iter().any(|client| client.issuer.as_deref() == Some(issuer.as_str()));
        let ours = self.plan.issuer.as_ref() == Some(issuer) || configured;
        if ours { NamedBy::Application } else { NamedBy::Peer }
    }

    fn terms(&self, named_by: NamedBy) -> Terms {
        Terms { strict: self.plan.strict_issuer, named_by, trusted: self.plan.dangerous.trusted.clone() }
    }

    pub(super) fn issuer_answered(
        mut self,
        search: Search,
        target: Target,
        left: Vec<Issuer>,
        answer: Answer<'_>,
    ) -> Turned {
        if let Ok(response) = answer {
            self.note_time(response);
        }
        let issuer = search.issuer().clone();
        match search.answer(answer, self.events)? {
            Found::Ask(search, request) => self.send(State::FindIssuer { search, target, left }, request),
            Found::Metadata(metadata) => self.identify(target, metadata),
            Found::Nothing(_) if target.early => {
                let metadata = early::metadata(&self.plan.server, issuer);
                self.identify(target, Box::new(metadata))
            }
            Found::Nothing(_) if !left.is_empty() => self.next_issuer(target, left),
            Found::Nothing(error) => Err(error),
        }
    }

    /// Finds the identity provider of a company, which the application named.
    pub(super) fn find_idp(self, issuer: Issuer, subject: crate::Secret, ready: Box<Ready>) -> Turned {
        let (search, request) = Search::begin(issuer, self.terms(NamedBy::Application))?;
        self.send(State::FindIdp { search, subject, ready }, request)
    }

    fn identify(mut self, target: Target, metadata: Box<ServerMetadata>) -> Turned {
        if self.plan.way.asks_a_person() && !self.plan.may_ask {
            return Err(login_needed());
        }
        self.check_offers(&metadata)?;
        let scopes = self.wanted_scopes(&target, &metadata);
        let dpop = self.dpop_key(&target, &metadata)?;
        match register::choose(&self.plan, &metadata, self.env.now)? {
            Identity::Known { client, bind } => {
                let detail = format!("the client {} asks", client.registration.client_id);
                self.tell(Step::Identity, Verdict::Fine, "MCP, client registration", detail);
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
        let omitted = self.plan.dangerous.omit_resource.contains(&metadata.issuer);
        let resource = Some(target.resource).filter(|_| !omitted);
        Ready { resource, metadata, client, scopes, dpop }
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
            Way::Browser(_) => match &metadata.code_challenge_methods {
                Some(methods) if methods.iter().any(|method| method == "S256") => Ok(()),
                None if self.plan.dangerous.assume_pkce.contains(&metadata.issuer) => {
                    let detail = "the issuer does not say that it knows PKCE; the application says so";
                    self.tell(Step::Issuer, Verdict::Warning, "OAuth 2.1, 7.5.2", detail);
                    Ok(())
                }
                Some(_) => lacks(AuthErrorKind::PkceUnsupported, "does not know PKCE with S256"),
                None => lacks(
                    AuthErrorKind::PkceUnsupported,
                    "does not say that it knows PKCE; if it does, assume it for this issuer (assume_pkce)",
                ),
            },
            Way::Device if metadata.device.is_none() => {
                lacks(AuthErrorKind::MetadataRefused, "has no device endpoint; log in with a browser")
            }
            _ => Ok(()),
        }
    }

    fn wanted_scopes(&self, target: &Target, metadata: &ServerMetadata) -> Scopes {
        let person = self.plan.way.asks_a_person();
        match &self.course.ask {
            Some(ask) if person => scopes::with_offline_access(ask.clone(), &metadata.scopes),
            Some(ask) => ask.clone(),
            None => scopes::first(
                self.course.challenge.as_ref(),
                target.metadata.as_ref().and_then(|metadata| metadata.scopes.as_ref()),
                &self.plan.scopes,
                &metadata.scopes,
                person,
            ),
        }
    }

    /// A key for the token, if it is to be bound to one.
    fn dpop_key(&self, target: &Target, metadata: &ServerMetadata) -> Result<Option<DpopKey>, AuthError> {
        let required = target.metadata.as_ref().is_some_and(|metadata| metadata.dpop_required);
        let wanted = match self.plan.dpop {
            Dpop::Always => true,
            Dpop::WhenAsked => required || self.course.dpop_challenged,
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
        let Some(endpoint) = &metadata.registration else { return Err(super::steps::out_of_order()) };
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
        let Some(endpoint) = metadata.registration.clone() else { return Err(super::steps::out_of_order()) };
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
        let detail = format!(
            "the issuer made the client {}",
            crate::client::error::visible(&client.registration.client_id)
        );
        self.tell(Step::Registration, Verdict::Fine, "RFC 7591, 3", detail);
        let change = Change::Registered(client.registration.clone());
        let ready = Box::new(self.ready(target, *metadata, client, scopes, dpop));
        self.save(State::SaveClient { ready }, change)
    }
}

pub(super) fn login_needed() -> AuthError {
    let detail = "a person has to log in, and nobody may be asked now";
    AuthError::new(AuthErrorKind::LoginNeeded, Step::Authorization, detail)
}
