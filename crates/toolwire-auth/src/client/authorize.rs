//! Asking a person in a browser: the request, and the response that comes back.

use std::{collections::HashSet, fmt};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use sha2::{Digest, Sha256};

use super::{AuthError, AuthErrorKind, Step, error::visible, scopes::Scopes};
use crate::{Endpoint, Issuer, Resource, Secret, fetch::NamedBy};

/// The longest response of a browser.
pub const MAX_CALLBACK_BYTES: usize = 8 * 1024;

/// Parameters that the protocol uses. The application adds none of them, and those in the query of the endpoint are
/// replaced or dropped.
pub const PROTOCOL_PARAMETERS: [&str; 13] = [
    "response_type",
    "response_mode",
    "client_id",
    "redirect_uri",
    "scope",
    "state",
    "resource",
    "code_challenge",
    "code_challenge_method",
    "dpop_jkt",
    "request",
    "request_uri",
    "code",
];

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Authorization<'a> {
    /// Where people are asked.
    pub endpoint: &'a Endpoint,
    /// Who asks them.
    pub issuer: &'a Issuer,
    /// Whether every response of that issuer says from whom it is.
    pub iss_parameter: bool,
    /// The client.
    pub client_id: &'a str,
    /// Where the browser goes with the response.
    pub redirect: &'a str,
    /// The scopes.
    pub scopes: &'a Scopes,
    /// What the token is for.
    pub resource: Option<&'a Resource>,
    /// Whether consent is asked for even if it was given before.
    pub consent: bool,
    /// The thumbprint of the key that the token is to be bound to.
    pub dpop_thumbprint: Option<&'a str>,
    /// More parameters.
    pub more: &'a [(String, String)],
    /// Who named the endpoint.
    pub named_by: NamedBy,
}

/// The page to show, which only the person may see whole: it has the state in it.
#[derive(Clone)]
pub struct AuthorizationUrl {
    url: Endpoint,
    redirect: String,
    state: Secret,
    named_by: NamedBy,
}

impl AuthorizationUrl {
    /// The page, and who named it.
    pub(crate) const fn page(&self) -> (&Endpoint, NamedBy) {
        (&self.url, self.named_by)
    }

    /// The whole URL, `https` or on this machine, for one argument of a browser.
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// Where the browser goes with the response.
    pub fn redirect(&self) -> &str {
        &self.redirect
    }

    /// Whether a response belongs to this request. Others are nobody's, and the right one may still come.
    pub fn is_answered_by(&self, callback: &Callback) -> bool {
        callback.has_state(&self.state)
    }
}

impl fmt::Debug for AuthorizationUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AuthorizationUrl({})", self.url)
    }
}

/// What the browser brought back: the query of the redirect.
#[derive(Clone, PartialEq, Eq)]
pub struct Callback(Vec<(String, Secret)>);

impl Callback {
    /// Reads a query, without its question mark. `None` if it is too long.
    pub fn from_query(query: &str) -> Option<Self> {
        let pairs = || url::form_urlencoded::parse(query.as_bytes());
        (query.len() <= MAX_CALLBACK_BYTES)
            .then(|| Self(pairs().map(|(name, value)| (name.into(), Secret::from(value.as_ref()))).collect()))
    }

    /// Reads a whole URL, as a person copies it.
    pub fn from_url(url: &str) -> Option<Self> {
        let (_, query) = url.trim().split_once('?')?;
        Self::from_query(query.split('#').next().unwrap_or(query))
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &Secret> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value)
    }

    fn get(&self, name: &str) -> Option<&Secret> {
        self.all(name).next()
    }

    /// Whether it has one state, and this one.
    fn has_state(&self, state: &Secret) -> bool {
        let mut states = self.all("state");
        states.next().is_some_and(|given| given == state) && states.next().is_none()
    }

    fn has_duplicates(&self) -> bool {
        let mut names = HashSet::new();
        self.0.iter().any(|(name, _)| !names.insert(name))
    }
}

impl fmt::Debug for Callback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callback(..)")
    }
}

/// A request that was made and not answered yet.
#[derive(Clone, Debug)]
pub struct Pending {
    state: Secret,
    verifier: Secret,
    issuer: Issuer,
    iss_parameter: bool,
    redirect: String,
}

/// A code, and what has to be sent with it.
#[derive(Clone, Debug)]
pub struct Code {
    /// The code.
    pub code: Secret,
    /// What proves that the request was ours (PKCE).
    pub verifier: Secret,
    /// The redirect of the request.
    pub redirect: String,
}

/// Makes a request with a new state and a new proof of its own.
pub fn begin(request: &Authorization<'_>, entropy: &[u8; 64]) -> (AuthorizationUrl, Pending) {
    let verifier = BASE64_URL_SAFE_NO_PAD.encode(&entropy[..32]);
    let state = BASE64_URL_SAFE_NO_PAD.encode(&entropy[32..56]);
    let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
    let scope = request.scopes.to_string();
    let mut parameters = vec![
        ("response_type", "code"),
        ("client_id", request.client_id),
        ("redirect_uri", request.redirect),
        ("state", &state),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
    ];
    let resource = request.resource.map(|resource| ("resource", resource.as_str()));
    parameters.extend(Some(("scope", scope.as_str())).filter(|_| !request.scopes.is_empty()));
    parameters.extend(resource);
    parameters.extend(request.dpop_thumbprint.map(|thumbprint| ("dpop_jkt", thumbprint)));
    parameters.extend(Some(("prompt", "consent")).filter(|_| request.consent));
    parameters.extend(request.more.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    let url = request.endpoint.with_query_instead_of(&parameters, &PROTOCOL_PARAMETERS);
    let redirect = request.redirect.to_owned();
    let state = Secret::from(state);
    let pending = Pending {
        state: state.clone(),
        verifier: verifier.into(),
        issuer: request.issuer.clone(),
        iss_parameter: request.iss_parameter,
        redirect: redirect.clone(),
    };
    (AuthorizationUrl { url, redirect, state, named_by: request.named_by }, pending)
}

impl Pending {
    /// Judges the response, in an order that matters: whose it is, from whom it is, and only then what it says.
    pub fn finish(self, callback: &Callback) -> Result<Code, AuthError> {
        let fail = |kind, detail: String| Err(AuthError::new(kind, Step::Authorization, detail));
        if !callback.has_state(&self.state) {
            let detail =
                "the response does not belong to the request: its state is missing or another".to_owned();
            return fail(AuthErrorKind::StateMismatch, detail);
        }
        if callback.has_duplicates() {
            return fail(AuthErrorKind::ResponseInvalid, "the response has a parameter twice".to_owned());
        }
        match callback.get("iss").map(|iss| Issuer::parse(iss.expose())) {
            Some(Ok(iss)) if iss == self.issuer => {}
            Some(_) => {
                let detail = format!("the response is not from {}, who was asked", self.issuer);
                return fail(AuthErrorKind::IssuerMismatch, detail);
            }
            None if self.iss_parameter => {
                let detail =
                    format!("the response does not say that it is from {}, who always says so", self.issuer);
                return fail(AuthErrorKind::IssuerMismatch, detail);
            }
            None => {}
        }
        if let Some(error) = callback.get("error") {
            let (error, description) = (
                visible(error.expose()),
                callback.get("error_description").map(|text| visible(text.expose())),
            );
            let detail = format!("the issuer answered {error} {}", description.unwrap_or_default());
            let kind = if error == "access_denied" {
                AuthErrorKind::Declined
            } else {
                AuthErrorKind::AuthorizationRefused { error }
            };
            return fail(kind, detail.trim_end().to_owned());
        }
        match callback.get("code") {
            Some(code) if !code.is_empty() => {
                Ok(Code { code: code.clone(), verifier: self.verifier, redirect: self.redirect })
            }
            _ => fail(AuthErrorKind::ResponseInvalid, "the response has no code".to_owned()),
        }
    }
}
