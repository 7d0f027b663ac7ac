//! Why there is no credential.

use std::{error, fmt};

use super::{event::Step, scopes::Scopes, store::StoreErrorKind};
use crate::Endpoint;

/// A step of the chain that failed.
///
/// It has nothing of a response's body in it but the short codes and descriptions of OAuth, and no query of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthError {
    /// What happened.
    pub kind: AuthErrorKind,
    /// During which step.
    pub step: Step,
    /// The address that was asked, without its query.
    pub url: Option<String>,
    /// The same for people: what was found, and what to try.
    pub detail: String,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthErrorKind {
    /// The server does not say which issuers it trusts, and none was configured.
    NoResourceMetadata,
    /// The metadata are those of another server.
    ResourceMismatch,
    /// The metadata name no issuer that can be asked.
    NoIssuers,
    /// Metadata that are not valid, or not where they may be.
    MetadataRefused,
    /// Metadata or an authorization response of another issuer.
    IssuerMismatch,
    /// The issuer has no metadata.
    NoMetadata,
    /// The issuer does not say that it knows PKCE with S256.
    PkceUnsupported,
    /// No client is known to the issuer, and none can be registered.
    RegistrationImpossible,
    /// A client that belongs to one issuer would be sent to another.
    IssuerChanged,
    /// The issuer registers no such client.
    RegistrationRefused {
        /// The code of the refusal.
        error: String,
        /// What the issuer says about it, shortened.
        description: String,
    },
    /// An authorization response that belongs to no request of ours.
    StateMismatch,
    /// An authorization response that lacks something, or has something twice.
    ResponseInvalid,
    /// The person, or the issuer in their name, said no.
    Declined,
    /// The issuer refused the authorization request.
    AuthorizationRefused {
        /// The code of the refusal.
        error: String,
    },
    /// The code of a device was not confirmed in time.
    DeviceExpired,
    /// The grant (a code, a refresh token, an assertion) is not valid, or not any more.
    GrantRejected,
    /// The issuer does not know the client, or not for this.
    ClientRejected,
    /// The issuer does not give these scopes.
    ScopeRejected,
    /// The issuer does not give tokens for this resource.
    ResourceRejected,
    /// The token request was refused in another way.
    TokenRefused {
        /// The code of the refusal.
        error: String,
    },
    /// The answer of the token endpoint has no token that can be used.
    TokenInvalid,
    /// A token of another type than what was asked for.
    WrongTokenType,
    /// The server refused a token that was new.
    TokenRejected,
    /// The issuer or the server cannot be asked at the moment.
    Unavailable,
    /// Asking for these scopes again would change nothing.
    StepUpFutile,
    /// Too many authorizations for one request.
    StepUpLimit,
    /// Only a person can go on from here, and nobody may be asked now.
    LoginNeeded,
    /// The token lacks scopes, and nobody can be asked for them from here.
    ScopesNeeded {
        /// Those that are lacking.
        scopes: Scopes,
    },
    /// The issuer lets nobody log in with another device.
    DeviceUnsupported,
    /// What was given could not be kept.
    NotStored(StoreErrorKind),
    /// No port is free for the answer of the browser.
    LoopbackBusy,
    /// A key could not be made or used.
    KeyFailed,
    /// Something in the configuration contradicts itself or the protocol.
    Misconfigured,
    /// The flow was given an answer to a question that it had not asked.
    OutOfOrder,
}

impl AuthError {
    /// A failure of a step.
    pub fn new(kind: AuthErrorKind, step: Step, detail: impl Into<String>) -> Self {
        Self { kind, step, url: None, detail: detail.into() }
    }

    /// The same, at an address.
    #[must_use]
    pub fn at(mut self, url: &Endpoint) -> Self {
        self.url = Some(url.shown());
        self
    }

    /// Whether a new login can help, and nothing else.
    pub fn needs_login(&self) -> bool {
        use AuthErrorKind as Kind;
        match self.kind {
            Kind::LoginNeeded | Kind::ScopesNeeded { .. } | Kind::TokenRejected => true,
            Kind::GrantRejected
            | Kind::ClientRejected
            | Kind::ScopeRejected
            | Kind::ResourceRejected
            | Kind::WrongTokenType
            | Kind::TokenInvalid
            | Kind::TokenRefused { .. } => self.step == Step::Renewal,
            _ => false,
        }
    }

    /// Whether the same may work a little later, with everything that is stored left as it is.
    pub fn is_temporary(&self) -> bool {
        self.kind == AuthErrorKind::Unavailable
    }
}

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.step, self.detail)?;
        match &self.url {
            Some(url) => write!(f, " ({url})"),
            None => Ok(()),
        }
    }
}

impl error::Error for AuthError {}

/// What a peer wrote, so that it can be shown: visible ASCII and spaces, at most 200 of them.
pub(crate) fn visible(text: &str) -> String {
    const LONGEST: usize = 200;
    text.chars().map(|c| if matches!(c, ' '..='~') { c } else { '?' }).take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_peers_write_is_shown_harmlessly() {
        assert_eq!(visible("no\u{1b}[31m\r\n\u{202e}x"), "no?[31m???x");
        assert_eq!(visible(&"a".repeat(1_000)).len(), 200);
    }

    #[test]
    fn a_refusal_while_renewing_needs_a_login_and_a_fault_does_not() {
        let error = |kind, step| AuthError::new(kind, step, "");
        assert!(error(AuthErrorKind::GrantRejected, Step::Renewal).needs_login());
        assert!(error(AuthErrorKind::TokenRefused { error: "x".into() }, Step::Renewal).needs_login());
        assert!(!error(AuthErrorKind::GrantRejected, Step::Token).needs_login());
        let away = error(AuthErrorKind::Unavailable, Step::Renewal);
        assert!(!away.needs_login() && away.is_temporary());
    }

    #[test]
    fn an_error_shows_no_query() {
        let url = Endpoint::parse("https://a.example/token?marked").unwrap();
        let error = AuthError::new(AuthErrorKind::Unavailable, Step::Token, "status 503").at(&url);
        assert_eq!(error.to_string(), "asking for a token: status 503 (https://a.example/token)");
        assert!(!format!("{error:?}").contains("marked"));
    }
}
