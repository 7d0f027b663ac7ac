//! The metadata of an issuer (RFC 8414, OpenID Connect Discovery): its endpoints, and what it offers.

use std::collections::VecDeque;

use serde_json::{Map, Value};

use super::{MAX_METADATA_BYTES, endpoint, flag, object, text, texts, unreachable};
use crate::{
    Endpoint, Issuer, Origins,
    client::{AuthError, AuthErrorKind, Event, Notice, Step, Verdict, scopes::Scopes},
    fetch::{FetchError, FetchErrorKind, NamedBy, Request, Response},
    metadata,
};

/// What an issuer says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerMetadata {
    /// Its identifier as it spells it: what `iss` is compared with, and the key of everything stored.
    pub issuer: Issuer,
    /// Where people are asked.
    pub authorization: Option<Endpoint>,
    /// Where tokens are given.
    pub token: Endpoint,
    /// Where clients are registered.
    pub registration: Option<Endpoint>,
    /// Where devices ask for a code.
    pub device: Option<Endpoint>,
    /// Where tokens are revoked.
    pub revocation: Option<Endpoint>,
    /// Its scopes, as far as it lists them.
    pub scopes: Scopes,
    /// The grants it knows, if it lists them.
    pub grants: Option<Vec<String>>,
    /// The methods of PKCE it knows, if it lists them.
    pub code_challenge_methods: Option<Vec<String>>,
    /// How clients may authenticate, if it lists that.
    pub auth_methods: Option<Vec<String>>,
    /// With which algorithms they may sign, if it lists that.
    pub auth_algorithms: Option<Vec<String>>,
    /// Whether every authorization response names the issuer.
    pub iss_parameter: bool,
    /// Whether the URL of a document is taken as a client.
    pub client_documents: bool,
    /// With which algorithms proofs may be signed, if it lists that.
    pub dpop_algorithms: Option<Vec<String>>,
    /// Who named the issuer.
    pub named_by: NamedBy,
}

impl ServerMetadata {
    /// Metadata with nothing but an identifier and two endpoints.
    pub fn bare(issuer: Issuer, authorization: Endpoint, token: Endpoint, named_by: NamedBy) -> Self {
        Self {
            issuer,
            authorization: Some(authorization),
            token,
            registration: None,
            device: None,
            revocation: None,
            scopes: Scopes::none(),
            grants: None,
            code_challenge_methods: None,
            auth_methods: None,
            auth_algorithms: None,
            iss_parameter: false,
            client_documents: false,
            dpop_algorithms: None,
            named_by,
        }
    }

    /// Who counts as having named one of its endpoints: an application that named an issuer has named what is on the
    /// issuer's own origin, and nothing else.
    pub fn named_by(&self, endpoint: &Endpoint) -> NamedBy {
        let issuer = Endpoint::parse_trusting(self.issuer.as_str(), &Origins::none());
        match (self.named_by, issuer) {
            (NamedBy::Application, Ok(issuer)) if issuer.same_origin(endpoint) => NamedBy::Application,
            _ => NamedBy::Peer,
        }
    }

    /// Returns whether a code may be meant for another issuer (RFC 9700, 4.4): the page that gives it is not on the site of the token
    /// endpoint it is sent to, and the answer does not say who gave it.
    pub(crate) fn may_be_mixed_up(&self) -> bool {
        !self.iss_parameter && self.authorization.as_ref().is_some_and(|page| !page.same_site(&self.token))
    }

    /// Whether it knows a grant; an issuer that lists none knows the code and nothing else.
    pub fn knows_grant(&self, grant: &str) -> bool {
        self.grants.as_ref().is_some_and(|grants| grants.iter().any(|known| known == grant))
    }
}

/// What an answer leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// These are the metadata.
    Found(Box<ServerMetadata>),
    /// There are none here.
    Absent,
    /// The issuer cannot answer at the moment.
    Unavailable,
    /// There are those of another issuer here.
    Mismatch,
}

/// The places to look at, in their order. The root of an issuer with a path is another issuer's.
pub fn places(issuer: &Issuer, trusted: &Origins) -> Result<Vec<Endpoint>, AuthError> {
    metadata::places(issuer, trusted).map_err(|why| {
        AuthError::new(AuthErrorKind::MetadataRefused, Step::Issuer, format!("the issuer {issuer} {why}"))
    })
}

/// How strictly, and in whose name, an issuer is asked.
#[derive(Clone, Debug)]
pub struct Terms {
    /// True if a final slash counts. That of an empty path never does.
    pub strict: bool,
    /// Who named the issuer.
    pub named_by: NamedBy,
    /// Origins that are trusted.
    pub trusted: Origins,
}

/// Judges the answer of a place.
pub fn accept(issuer: &Issuer, terms: &Terms, response: &Response) -> Result<Next, AuthError> {
    let status = response.status;
    if status.is_server_error() || matches!(status.as_u16(), 408 | 429) {
        return Ok(Next::Unavailable);
    }
    let Some(document) = object(&response.body).filter(|_| status.is_success()) else {
        return Ok(Next::Absent);
    };
    let Ok(Some(named)) = text(&document, "issuer") else { return Ok(Next::Absent) };
    let spelling = Issuer::parse(named).ok();
    let is_meant = |named: &Issuer| {
        named == issuer
            || named.differs_by_the_slash_of_an_empty_path(issuer)
            || (!terms.strict && named.differs_by_a_slash(issuer))
    };
    let Some(spelling) = spelling.filter(is_meant) else { return Ok(Next::Mismatch) };
    let refused = |detail: String| AuthError::new(AuthErrorKind::MetadataRefused, Step::Issuer, detail);
    read(&document, spelling, terms).map(|found| Next::Found(Box::new(found))).map_err(refused)
}

fn read(document: &Map<String, Value>, issuer: Issuer, terms: &Terms) -> Result<ServerMetadata, String> {
    let at = |name| endpoint(document, name, &terms.trusted);
    let names = |name| {
        let list = texts(document, name)?;
        Ok::<_, String>(list.map(|list| list.into_iter().map(str::to_owned).collect::<Vec<_>>()))
    };
    Ok(ServerMetadata {
        issuer,
        authorization: at("authorization_endpoint")?,
        token: at("token_endpoint")?.ok_or("the metadata have no \"token_endpoint\"")?,
        registration: at("registration_endpoint")?,
        device: at("device_authorization_endpoint")?,
        revocation: at("revocation_endpoint")?,
        scopes: texts(document, "scopes_supported")?.map(Scopes::lenient).unwrap_or_default(),
        grants: names("grant_types_supported")?,
        code_challenge_methods: names("code_challenge_methods_supported")?,
        auth_methods: names("token_endpoint_auth_methods_supported")?,
        auth_algorithms: names("token_endpoint_auth_signing_alg_values_supported")?,
        iss_parameter: flag(document, "authorization_response_iss_parameter_supported")?,
        client_documents: flag(document, "client_id_metadata_document_supported")?,
        dpop_algorithms: names("dpop_signing_alg_values_supported")?,
        named_by: terms.named_by,
    })
}

/// Asks one issuer, place by place.
#[derive(Clone, Debug)]
pub struct Search {
    issuer: Issuer,
    /// Another spelling that the metadata may have.
    renamed: Option<Issuer>,
    terms: Terms,
    asked: Endpoint,
    left: VecDeque<Endpoint>,
    mismatch: bool,
    answered: bool,
    /// Why the first place that cannot answer does not.
    away: Option<String>,
}

/// What a search wants next, or has found.
#[derive(Debug)]
pub enum Found {
    /// Go on with this request.
    Ask(Box<Search>, Request),
    /// These are the metadata.
    Metadata(Box<ServerMetadata>),
    /// The issuer has no metadata.
    Nothing(AuthError),
}

impl Search {
    /// Begins with the first place.
    pub fn begin(issuer: Issuer, terms: Terms) -> Result<(Self, Request), AuthError> {
        let mut left: VecDeque<_> = places(&issuer, &terms.trusted)?.into();
        let Some(asked) = left.pop_front() else {
            let detail = "the issuer has no well-known place";
            return Err(AuthError::new(AuthErrorKind::NoMetadata, Step::Issuer, detail));
        };
        let request = Request::get(asked.clone(), terms.named_by);
        let renamed = None;
        let search =
            Self { issuer, renamed, terms, asked, left, mismatch: false, answered: false, away: None };
        Ok((search, request))
    }

    /// Accepts metadata of another spelling of the issuer as well, which has the same places.
    #[must_use]
    pub(crate) fn or(mut self, renamed: Option<Issuer>) -> Self {
        self.renamed = renamed.filter(|renamed| renamed.differs_by_a_slash(&self.issuer));
        self
    }

    /// Judges the answer of a place, for each spelling of the issuer.
    fn accept(&self, response: &Response) -> Result<Next, AuthError> {
        let own = accept(&self.issuer, &self.terms, response)?;
        match &self.renamed {
            Some(renamed) if own == Next::Mismatch => accept(renamed, &self.terms, response),
            _ => Ok(own),
        }
    }

    /// The issuer that is asked.
    pub fn issuer(&self) -> &Issuer {
        &self.issuer
    }

    /// Judges an answer, or that none came.
    pub fn answer(
        mut self,
        answer: Result<&Response, &FetchError>,
        events: &mut Vec<Event>,
    ) -> Result<Found, AuthError> {
        let next = match answer {
            Ok(response) => self.accept(response).map_err(|error| error.at(&self.asked))?,
            Err(error) if error.kind == FetchErrorKind::Forbidden => {
                return Err(unreachable(error, Step::Issuer, &self.asked));
            }
            Err(_) => Next::Unavailable,
        };
        let by_a_slash = matches!(&next, Next::Found(found) if found.issuer != self.issuer);
        let away = match answer {
            Ok(response) => format!("status {}", response.status.as_u16()),
            Err(error) => error.detail.clone(),
        };
        let detail = match &next {
            Next::Found(_) if by_a_slash => {
                "these are the metadata, but their issuer differs by a final slash".to_owned()
            }
            Next::Found(_) => "these are the metadata".to_owned(),
            Next::Absent => "nothing is there".to_owned(),
            Next::Unavailable => format!("it cannot answer: {away}"),
            Next::Mismatch => "these are the metadata of another issuer".to_owned(),
        };
        let verdict = match &next {
            Next::Found(_) if by_a_slash => Verdict::Warning,
            Next::Found(_) => Verdict::Fine,
            _ => Verdict::Next,
        };
        let mut event = Event::new(Step::Issuer, verdict, "RFC 8414, 3", detail)
            .about(&Request::get(self.asked.clone(), self.terms.named_by));
        event.status = answer.ok().map(|response| response.status.as_u16());
        event.notice = by_a_slash.then_some(Notice::IssuerSlash);
        events.push(event);
        match next {
            Next::Found(found) => return Ok(Found::Metadata(found)),
            Next::Mismatch => (self.mismatch, self.answered) = (true, true),
            Next::Absent => self.answered = true,
            Next::Unavailable => {
                self.away.get_or_insert(away);
            }
        }
        match self.left.pop_front() {
            Some(place) => {
                self.asked = place.clone();
                let request = Request::get(place, self.terms.named_by);
                Ok(Found::Ask(Box::new(self), request))
            }
            None => self.exhausted(),
        }
    }

    fn exhausted(self) -> Result<Found, AuthError> {
        let fail = |kind, detail: String| AuthError::new(kind, Step::Issuer, detail).at(&self.asked);
        if self.mismatch {
            let detail = format!(
                "the metadata found for {} are those of another issuer; if a final slash is all that differs, set the issuer \
                 as it identifies itself",
                self.issuer
            );
            return Err(fail(AuthErrorKind::IssuerMismatch, detail));
        }
        if !self.answered {
            let why = self.away.as_deref().unwrap_or("nobody answers");
            let detail = format!("the issuer {} cannot be asked at the moment: {why}", self.issuer);
            return Err(fail(AuthErrorKind::Unavailable, detail));
        }
        let detail = format!(
            "the issuer {} has no metadata of at most {MAX_METADATA_BYTES} bytes at any of the well-known places; if it \
             is known to have none, set its endpoints",
            self.issuer
        );
        Ok(Found::Nothing(fail(AuthErrorKind::NoMetadata, detail)))
    }
}
