//! Describing a server that takes tokens.

use std::{
    error, fmt,
    sync::{Arc, OnceLock},
};

use toolwire_server::Scopes;

use super::{
    Dpop, ResourceGuard,
    challenge::Challenges,
    guard::{Inner, IssuerEntry},
    metadata::{Contents, Metadata},
    verify::{Setting, TokenCache, Verify},
};
use crate::{
    Endpoint, Issuer,
    clock::{Clock, SystemClock},
    jose::Algorithm,
};

/// How many issuers a server may have.
const MAX_ISSUERS: usize = 16;

/// A server that takes tokens, being described.
#[must_use]
pub struct ResourceServer {
    resource: String,
    issuers: Vec<(String, Option<Box<dyn Verify>>)>,
    scopes: Vec<String>,
    name: Option<String>,
    dpop: Option<Dpop>,
    optional: bool,
    clock: Arc<dyn Clock>,
}

impl ResourceServer {
    /// A server that clients know by the URL `resource`, and that takes tokens of `issuer`. Both are compared byte for
    /// byte with what tokens say: a slash more is somebody else.
    pub fn new(resource: impl Into<String>, issuer: impl Into<String>) -> Self {
        Self {
            resource: resource.into(),
            issuers: vec![(issuer.into(), None)],
            scopes: Vec::new(),
            name: None,
            dpop: None,
            optional: false,
            clock: Arc::new(SystemClock),
        }
    }

    /// How the tokens of the first issuer are verified.
    pub fn verify(mut self, verifier: impl Verify) -> Self {
        if let Some((_, first)) = self.issuers.first_mut() {
            *first = Some(Box::new(verifier));
        }
        self
    }

    /// Takes tokens of another issuer as well, each with a verifier of its own. A token that names one of the issuers, or
    /// that one verifier [knows](Verify::knows) for certain, is shown to that verifier alone; one that does not say whose
    /// it is, to the verifiers in the order in which they were added.
    pub fn issuer(mut self, issuer: impl Into<String>, verifier: impl Verify) -> Self {
        self.issuers.push((issuer.into(), Some(Box::new(verifier))));
        self
    }

    /// The scopes that every request needs, and that a first login asks for. Default: none.
    pub fn scopes<T: Into<String>>(mut self, scopes: impl IntoIterator<Item = T>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// The name of the server for people, in its metadata.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Takes, or asks for, tokens that are bound to a key of the client.
    pub fn dpop(mut self, dpop: Dpop) -> Self {
        self.dpop = Some(dpop);
        self
    }

    /// Lets requests without a token pass as those of nobody. Routes that need somebody, or scopes, answer them with 401.
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// The clock by which tokens expire. Default: that of the system.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// The guard. Nothing is looked up yet: keys are fetched with the first token, or by
    /// [`warm_up`](ResourceGuard::warm_up).
    ///
    /// # Errors
    /// When the resource is not an `https` URL (or `http` on this machine) without a fragment, an issuer is not a URL or
    /// has no verifier, a scope is not one, or a verifier cannot be used for this.
    pub fn build(self) -> Result<ResourceGuard, GuardError> {
        let invalid = |what: String| GuardError(what);
        Endpoint::parse(&self.resource)
            .map_err(|error| invalid(format!("the resource {:?} {error}", self.resource)))?;
        let scopes = Scopes::of(&self.scopes).map_err(|error| invalid(error.to_string()))?;
        // Clients that want to stay logged in ask for it by themselves; it is not a right here.
        if scopes.contains("offline_access") {
            return Err(invalid(
                "offline_access is between a client and its issuer; a server cannot need it".into(),
            ));
        }
        if self.issuers.len() > MAX_ISSUERS {
            return Err(invalid(format!("there are more than {MAX_ISSUERS} issuers")));
        }
        let proofs = match self.dpop {
            Some(dpop) => Some(dpop.checks(&self.resource).ok_or_else(|| {
                invalid(format!("no proof of possession can be for the resource {:?}", self.resource))
            })?),
            None => None,
        };
        let issuers = issuers(self.issuers, &self.resource)?;
        let prefix = prefix(&issuers, &scopes)?;
        let mut challenges = Challenges {
            metadata: String::new(),
            scopes,
            prefix,
            algorithms: proofs.as_ref().map(|proofs| names(&proofs.algorithms).join(" ")),
            bound_only: proofs.as_ref().is_some_and(|proofs| proofs.required),
        };
        let metadata = Metadata::new(&Contents {
            resource: &self.resource,
            issuers: issuers.iter().map(|entry| entry.issuer.as_str()).collect(),
            scopes: challenges.asked_for(&challenges.scopes),
            name: self.name.as_deref(),
            dpop: proofs.as_ref().map(|proofs| (names(&proofs.algorithms), proofs.required)),
        });
        challenges.metadata.clone_from(&metadata.url);
        Ok(ResourceGuard::new(Inner {
            resource: self.resource,
            issuers,
            challenges,
            metadata,
            proofs,
            optional: self.optional,
            clock: self.clock,
            seen: TokenCache::new(),
        }))
    }
}

/// What scopes begin with where clients ask for them. A challenge names them once, so all issuers have to agree.
fn prefix(issuers: &[IssuerEntry], scopes: &Scopes) -> Result<String, GuardError> {
    let mut prefixes = issuers.iter().map(|entry| entry.verifier.scope_prefix());
    let prefix = prefixes.next().unwrap_or_default();
    if prefixes.any(|other| other != prefix) {
        return Err(GuardError("the issuers have different prefixes of scopes".to_owned()));
    }
    let asked_for = scopes.iter().chain(["x"]).map(|scope| format!("{prefix}{scope}"));
    Scopes::of(asked_for).map_err(|error| GuardError(format!("with the prefix {prefix:?}, {error}")))?;
    Ok(prefix.to_owned())
}

fn names(algorithms: &[Algorithm]) -> Vec<&'static str> {
    algorithms.iter().map(|algorithm| algorithm.name()).collect()
}

fn issuers(
    described: Vec<(String, Option<Box<dyn Verify>>)>,
    resource: &str,
) -> Result<Vec<IssuerEntry>, GuardError> {
    let mut entries = Vec::<IssuerEntry>::new();
    for (text, verifier) in described {
        let issuer =
            Issuer::parse(&text).map_err(|error| GuardError(format!("the issuer {text:?} {error}")))?;
        if entries.iter().any(|entry| entry.issuer == issuer) {
            return Err(GuardError(format!("the issuer {text:?} is named twice")));
        }
        let mut verifier = verifier.ok_or_else(|| {
            GuardError(format!("nothing verifies the tokens of {text:?}; name what does with verify(..)"))
        })?;
        verifier
            .prepare(&Setting::new(resource, issuer.as_str()))
            .map_err(|error| GuardError(format!("the tokens of {text:?} cannot be verified: {error}")))?;
        entries.push(IssuerEntry { issuer, verifier, tokens: OnceLock::new() });
    }
    Ok(entries)
}

impl fmt::Debug for ResourceServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let issuers: Vec<&str> = self.issuers.iter().map(|(issuer, _)| issuer.as_str()).collect();
        f.debug_struct("ResourceServer")
            .field("resource", &self.resource)
            .field("issuers", &issuers)
            .finish_non_exhaustive()
    }
}

/// Why there is no guard.
#[derive(Clone, PartialEq, Eq)]
pub struct GuardError(String);

/// The text of the error, because `main` shows an error this way.
impl fmt::Debug for GuardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for GuardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl error::Error for GuardError {}
