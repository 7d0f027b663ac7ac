//! From the server to its issuer.

use super::{
    state::{Answer, Ready, State, Target, Turned, Why},
    steps::Turn,
};
use crate::{
    Issuer, Resource, Secret,
    client::{
        AuthError, AuthErrorKind, Event, Step, Verdict,
        discover::{
            early,
            issuer::{Found, Search, ServerMetadata, Terms},
            resource::{self, Next, Place, ResourceMetadata},
            unreachable,
        },
    },
    fetch::{NamedBy, Request},
};

/// The most issuers that are asked for metadata.
const MAX_ISSUERS: usize = 3;

impl Turn<'_> {
    pub(super) fn find_resource(mut self) -> Turned {
        let server = &self.plan.server;
        let mut left =
            resource::places(server, self.course.challenge.as_ref(), &self.plan.settings.dangerous.trusted)?;
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
        let next =
            resource::accept(asked, &self.plan.server, self.plan.settings.resource.as_ref(), response)?;
        let (verdict, detail) = match &next {
            Next::Found(found) if resource::is_broader(&found.resource, &self.plan.server) => (
                Verdict::Warning,
                "these are the metadata of a resource above this server, and tokens are for all of it",
            ),
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
        let issuers = if let Some(pinned) = &self.plan.settings.issuer {
            vec![pinned.clone()]
        } else {
            let spelled = |listed| self.plan.spelled(listed);
            self.ordered(&metadata.issuers.iter().map(spelled).collect::<Vec<_>>())
        };
        if issuers.is_empty() {
            let detail = "the metadata of the server name no issuer that can be asked; set the issuer";
            return Err(AuthError::new(AuthErrorKind::NoIssuers, Step::Resource, detail));
        }
        let resource = self.plan.settings.resource.clone().unwrap_or_else(|| metadata.resource.clone());
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
        let resource = self.plan.settings.resource.clone().unwrap_or(server);
        if let Some(pinned) = self.plan.settings.issuer.clone() {
            let detail = "the server has no metadata; the configured issuer is asked";
            self.tell(Step::Resource, Verdict::Warning, "RFC 9728, 3", detail);
            return self.target_found(Target {
                resource,
                issuers: vec![pinned],
                metadata: None,
                early: false,
            });
        }
        let early = early::issuer(&self.plan.server).filter(|_| self.plan.settings.allow_2025_03_26);
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
            .is_some_and(|stored| self.plan.lists(&target.issuers, &stored.issuer));
        let renew = self.course.why == Why::Refused && !self.course.renewed && stays && self.can_renew();
        if renew { self.renew(Some(target)) } else { self.find_issuer(target) }
    }

    /// One with a credential comes first, then one with a configured client.
    fn ordered(&self, listed: &[Issuer]) -> Vec<Issuer> {
        let stored = self.plan.stored.credential.as_ref().map(|credential| &credential.issuer);
        let has_client = |issuer: &&Issuer| {
            let of_client = |known: &str| self.plan.means(known, issuer);
            self.plan.settings.clients.iter().any(|client| client.issuer.as_deref().is_some_and(of_client))
        };
        let is_stored =
            |issuer: &&Issuer| stored.is_some_and(|stored| self.plan.means(stored.as_str(), issuer));
        let first = listed.iter().filter(is_stored);
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
        if let Some(fixed) =
            self.plan.settings.endpoints.iter().find(|fixed| self.plan.means(fixed.issuer.as_str(), &issuer))
        {
            let (authorization, token) = (fixed.authorization.clone(), fixed.token.clone());
            let issuer = fixed.issuer.clone();
            let metadata = ServerMetadata::bare(issuer, authorization, token, NamedBy::Application);
            return self.identify(target, Box::new(metadata));
        }
        let named_by = self.named_by(&issuer);
        let renamed = self.renamed(&target, &issuer);
        let (search, request) = Search::begin(issuer, self.terms(named_by))?;
        self.send(State::FindIssuer { search: search.or(renamed), target, left }, request)
    }

    /// Returns an issuer as the server lists it now, if only the store spells it with a final slash more or less: it may have
    /// been renamed since. A spelling of the application is the only one that counts.
    fn renamed(&self, target: &Target, issuer: &Issuer) -> Option<Issuer> {
        let listed = &target.metadata.as_ref()?.issuers;
        if listed.contains(issuer) || self.plan.configures(issuer) {
            return None;
        }
        listed.iter().find(|listed| listed.differs_by_a_slash(issuer)).cloned()
    }

    /// Whether the application named an issuer, or only a peer did.
    fn named_by(&self, issuer: &Issuer) -> NamedBy {
        let of_client = |known: &str| self.plan.means(known, issuer);
        let configured =
            self.plan.settings.clients.iter().any(|client| client.issuer.as_deref().is_some_and(of_client));
        let ours = self.plan.settings.issuer.as_ref() == Some(issuer) || configured;
        if ours { NamedBy::Application } else { NamedBy::Peer }
    }

    fn terms(&self, named_by: NamedBy) -> Terms {
        Terms {
            strict: !self.plan.settings.dangerous.ignore_issuer_slash,
            named_by,
            trusted: self.plan.settings.dangerous.trusted.clone(),
        }
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
            Found::Ask(search, request) => {
                self.send(State::FindIssuer { search: *search, target, left }, request)
            }
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
    pub(super) fn find_idp(self, issuer: Issuer, subject: Secret, ready: Box<Ready>) -> Turned {
        let (search, request) = Search::begin(issuer, self.terms(NamedBy::Application))?;
        self.send(State::FindIdp { search, subject, ready }, request)
    }
}

pub(super) fn login_needed() -> AuthError {
    let detail = "a person has to log in, and nobody may be asked now";
    AuthError::new(AuthErrorKind::LoginNeeded, Step::Authorization, detail)
}
