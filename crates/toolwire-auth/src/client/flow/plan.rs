//! What a flow is to do: the configuration of the application, and what is stored.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

use super::super::{
    discover::issuer::ServerMetadata,
    register::{ClientDocument, ClientId, Registration},
    scopes::Scopes,
    token::{Credential, SubjectKind},
};
use crate::{Endpoint, Issuer, Origins, Resource};

/// The length of what stands for an issuer in the path of a redirect, in bytes.
const ISSUER_PATH_BYTES: usize = 12;

/// What a flow is to do. All of it is decided before the flow begins.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server to log in to, as it was written.
    pub server: Endpoint,
    /// How the grant is obtained.
    pub way: Way,
    /// Whether a person may be asked now. If not, the flow ends with `LoginNeeded` where one would be.
    pub may_ask: bool,
    /// What the application wants, for this server as for all others.
    pub settings: Settings,
    /// What is stored.
    pub stored: Stored,
}

/// What the application wants, whichever server it logs in to.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name that people see in the consent screen.
    pub client_name: String,
    /// Clients that were registered by hand.
    pub clients: Vec<ClientId>,
    /// The URL of a document that describes the client.
    pub document: Option<ClientDocument>,
    /// The issuer, whatever the metadata of the server say.
    pub issuer: Option<Issuer>,
    /// The resource, whatever the metadata of the server say.
    pub resource: Option<Resource>,
    /// Endpoints of issuers without metadata.
    pub endpoints: Vec<FixedEndpoints>,
    /// Scopes that are asked for besides those that the server wants.
    pub scopes: Scopes,
    /// More parameters of the authorization request. None of them may be one of the protocol's.
    pub authorize_params: Vec<(String, String)>,
    /// Whether `prompt=consent` is sent.
    pub consent: bool,
    /// Whether tokens are bound to a key.
    pub dpop: Dpop,
    /// Whether servers of 2025-03-26 may be logged in to.
    pub allow_2025_03_26: bool,
    /// Whether stored registrations are ignored.
    pub fresh: bool,
    /// What is safe only if the application knows better.
    pub dangerous: Dangerous,
}

impl Settings {
    /// Nothing but defaults.
    pub fn new(client_name: impl Into<String>) -> Self {
        Self {
            client_name: client_name.into(),
            clients: Vec::new(),
            document: None,
            issuer: None,
            resource: None,
            endpoints: Vec::new(),
            scopes: Scopes::none(),
            authorize_params: Vec::new(),
            consent: false,
            dpop: Dpop::WhenAsked,
            allow_2025_03_26: false,
            fresh: false,
            dangerous: Dangerous::default(),
        }
    }
}

impl Settings {
    /// The issuer that a configured client belongs to: its own, or the only one that is asked.
    pub(crate) fn issuer_of<'a>(&'a self, client: &'a ClientId) -> Option<&'a str> {
        client.issuer.as_deref().or_else(|| self.issuer.as_ref().map(Issuer::as_str))
    }
}

impl Plan {
    /// A plan with nothing stored.
    pub fn new(server: Endpoint, settings: Settings, way: Way) -> Self {
        Self { server, way, may_ask: true, settings, stored: Stored::default() }
    }
}

impl Plan {
    /// Returns whether an issuer of the configuration or of the store is meant by one that was found: the same text, the slash of
    /// an empty path aside, or, where metadata may differ so as well, any final slash.
    pub(crate) fn means(&self, known: &str, found: &Issuer) -> bool {
        let by_a_slash = |known: Issuer| {
            known.differs_by_the_slash_of_an_empty_path(found)
                || (self.settings.dangerous.ignore_issuer_slash && known.differs_by_a_slash(found))
        };
        known == found.as_str() || Issuer::parse(known).is_ok_and(by_a_slash)
    }

    /// Returns a listed issuer as the application or the store spells it, where that differs by a final slash.
    pub(crate) fn spelled(&self, listed: &Issuer) -> Issuer {
        let clients = self.settings.clients.iter().filter_map(|client| client.issuer.as_deref());
        let endpoints = self.settings.endpoints.iter().map(|fixed| fixed.issuer.as_str());
        let stored = self.stored.credential.iter().map(|credential| credential.issuer.as_str());
        let known: Vec<_> =
            clients.chain(endpoints).chain(stored).filter_map(|known| Issuer::parse(known).ok()).collect();
        let ours = known.iter().find(|known| known.differs_by_a_slash(listed));
        ours.filter(|_| !known.contains(listed)).unwrap_or(listed).clone()
    }

    /// Whether one of some issuers is meant.
    pub(crate) fn lists(&self, known: &[Issuer], found: &Issuer) -> bool {
        known.iter().any(|known| self.means(known.as_str(), found))
    }

    /// Returns whether the application names an issuer in this very spelling.
    pub(crate) fn configures(&self, issuer: &Issuer) -> bool {
        let of_client = |client: &ClientId| client.issuer.as_deref() == Some(issuer.as_str());
        self.settings.issuer.as_ref() == Some(issuer)
            || self.settings.clients.iter().any(of_client)
            || self.settings.endpoints.iter().any(|fixed| fixed.issuer == *issuer)
    }
}

/// How a grant is obtained.
#[derive(Clone, Debug)]
pub enum Way {
    /// A person, in a browser.
    Browser(Redirects),
    /// A person, with another device (RFC 8628).
    Device,
    /// Nobody: the client asks for itself.
    ClientCredentials,
    /// An assertion of the platform that the client runs on (RFC 7523).
    Workload,
    /// An identity assertion of the company's identity provider.
    Enterprise(Idp),
}

impl Way {
    /// Whether a person is asked.
    pub const fn asks_a_person(&self) -> bool {
        matches!(self, Self::Browser(_) | Self::Device)
    }
}

/// Where the browser goes with the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Redirects {
    /// All that are registered, so that a registration outlives the port of today.
    pub registered: Vec<String>,
    /// The one that is listened on now.
    pub used: String,
    /// True if issuers may have paths of their own below them.
    per_issuer: bool,
}

impl Redirects {
    /// These redirects, the same for every issuer.
    pub fn new<T: Into<String>>(registered: impl IntoIterator<Item = T>, used: impl Into<String>) -> Self {
        let registered = registered.into_iter().map(Into::into).collect();
        Self { registered, used: used.into(), per_issuer: false }
    }

    /// No redirects, for a flow without a user.
    pub(crate) const fn none() -> Self {
        Self { registered: Vec::new(), used: String::new(), per_issuer: false }
    }

    /// Gives an issuer that registers the client and does not name itself in its answers a path of its own below them, so that
    /// no answer of another issuer is taken for one of it (RFC 9700, 4.4.2.2). Its answer comes to
    /// [`AuthorizationUrl::redirect`](super::super::authorize::AuthorizationUrl::redirect), and one that comes elsewhere has to be
    /// dropped by the [`Login`](super::super::login::Login).
    #[must_use]
    pub const fn per_issuer(mut self) -> Self {
        self.per_issuer = true;
        self
    }

    /// Returns those to register at an issuer.
    pub(crate) fn at(&self, metadata: &ServerMetadata) -> Self {
        if !self.per_issuer || metadata.iss_parameter {
            return self.clone();
        }
        let digest = Sha256::digest(metadata.issuer.as_str());
        let path = BASE64_URL_SAFE_NO_PAD.encode(&digest[..ISSUER_PATH_BYTES]);
        let below = |redirect: &String| format!("{redirect}/{path}");
        let registered = self.registered.iter().map(below).collect();
        Self { registered, used: below(&self.used), per_issuer: true }
    }
}

/// An identity provider, and the client that it knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idp {
    /// Its identifier.
    pub issuer: Issuer,
    /// The client.
    pub client_id: String,
    /// What it gives out at its login.
    pub subject: SubjectKind,
}

/// Endpoints of an issuer without metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedEndpoints {
    /// The issuer.
    pub issuer: Issuer,
    /// Where people are asked.
    pub authorization: Endpoint,
    /// Where tokens are given.
    pub token: Endpoint,
}

/// Whether tokens are bound to a key (RFC 9449).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dpop {
    /// If the challenge or the metadata of the server ask for it.
    #[default]
    WhenAsked,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What is safe only if the application knows better.
#[derive(Clone, Debug, Default)]
pub struct Dangerous {
    /// Origins that may be asked though a server named them, also by plain `http`.
    pub trusted: Origins,
    /// Issuers that know PKCE and do not say so.
    pub assume_pkce: Vec<Issuer>,
    /// Issuers that must not be told the resource.
    pub omit_resource: Vec<Issuer>,
    /// True if an issuer with a path may differ from its metadata by a final slash, as one without always may.
    pub ignore_issuer_slash: bool,
}

/// What was stored when the flow began.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    /// The credential of the server.
    pub credential: Option<Arc<Credential>>,
    /// Dynamic registrations, of any issuer.
    pub registrations: Vec<Registration>,
    /// The issuer that a public client without one was bound to when it was first used for this server.
    pub bound: Option<Issuer>,
}
