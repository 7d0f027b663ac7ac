//! Tokens: how they are asked for, and what comes back.

mod assertion;
mod bound;
mod exchange;
mod request;
mod response;
mod revoke;

use std::{
    fmt,
    time::{Duration, SystemTime},
};

pub(crate) use self::response::{document, seconds};
pub use self::{
    assertion::{ASSERTION_LIFETIME, client_assertion},
    bound::DpopKey,
    exchange::{SubjectKind, accept_exchange, exchange_request},
    request::{Grant, GrantKind, TokenRequest},
    response::{MAX_TOKEN_BYTES, Refusal, TokenSet, accept, nonce},
    revoke::{TokenHint, accept_revocation},
};
use super::{register::Registration, scopes::Scopes};
use crate::{Endpoint, Issuer, Resource, Secret, fetch::NamedBy};

/// How a token is presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenType {
    /// By itself.
    Bearer,
    /// Together with a proof that its key is at hand.
    Dpop,
}

impl TokenType {
    /// The scheme of the `Authorization` header.
    pub const fn scheme(self) -> &'static str {
        match self {
            Self::Bearer => "Bearer",
            Self::Dpop => "DPoP",
        }
    }
}

/// What a login ends with: a token, and everything that is needed to use and renew it.
#[derive(Clone, Debug)]
pub struct Credential {
    /// The address of the server, as it was configured.
    pub server: String,
    /// What the token is for; `None` where the issuer does not want to be told.
    pub resource: Option<Resource>,
    /// Who gave it, as its metadata spell it.
    pub issuer: Issuer,
    /// The client it was given to.
    pub client: Registration,
    /// By which grant.
    pub grant: GrantKind,
    /// All scopes that were ever asked for.
    pub requested: Scopes,
    /// The scopes that the token has.
    pub granted: Scopes,
    /// The access token.
    pub access: Secret,
    /// How it is presented.
    pub kind: TokenType,
    /// When it ends; `None` if the issuer does not say.
    pub expires: Option<SystemTime>,
    /// When it came, for the share of its lifetime that is left.
    pub received: SystemTime,
    /// What it is renewed with.
    pub refresh: Option<Secret>,
    /// The key that it is bound to.
    pub dpop: Option<DpopKey>,
    /// Where it is renewed and revoked.
    pub endpoints: KnownEndpoints,
    /// The random identifier of the login that it and its renewals come from; `None` if an earlier version stored it.
    pub lineage: Option<String>,
}

impl Credential {
    /// Returns whether both come from the same login.
    pub(crate) fn is_of_same_login(&self, other: &Self) -> bool {
        self.lineage == other.lineage
    }

    /// Whether it should be renewed before it is used: it is expired or in the last minute of its life, or the last
    /// tenth of that, if that is shorter.
    pub fn is_due(&self, now: SystemTime) -> bool {
        const MARGIN: Duration = Duration::from_secs(60);
        self.expires.is_some_and(|expires| {
            let lifetime = expires.duration_since(self.received).unwrap_or(Duration::ZERO);
            let margin = MARGIN.min(lifetime / 10);
            expires.checked_sub(margin).is_none_or(|due| due <= now)
        })
    }

    /// Whether it has come to its end.
    pub fn is_expired(&self, now: SystemTime) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

/// Endpoints as the metadata of the issuer named them when the credential was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownEndpoints {
    /// Where tokens are given.
    pub token: Endpoint,
    /// Where they are revoked.
    pub revocation: Option<Endpoint>,
    /// When the metadata were read.
    pub found: SystemTime,
    /// Who named the token endpoint.
    pub named_by: NamedBy,
}

impl fmt::Display for TokenType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.scheme())
    }
}
