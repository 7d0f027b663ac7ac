//! Revoking a token (RFC 7009).

use http::StatusCode;

use super::response::document;
use crate::{
    Endpoint,
    client::{AuthError, AuthErrorKind, Step},
    fetch::Response,
};

/// Which token is to be revoked, so that the issuer need not look for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "there are no other tokens to be revoked")]
pub enum TokenHint {
    /// What tokens are renewed with.
    Refresh,
    /// What is sent to the server.
    Access,
}

impl TokenHint {
    /// Its name in the request.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refresh => "refresh_token",
            Self::Access => "access_token",
        }
    }
}

/// Judges the answer to the revocation of a token. One that the issuer does not know is revoked as well.
pub fn accept_revocation(response: &Response, endpoint: &Endpoint) -> Result<(), AuthError> {
    if response.status == StatusCode::OK || response.status == StatusCode::NO_CONTENT {
        return Ok(());
    }
    if let Err(refusal) = document(response) {
        return Err(refusal.into_error(Step::Revocation, endpoint));
    }
    let detail = format!("the issuer answers with status {}", response.status.as_u16());
    Err(AuthError::new(AuthErrorKind::Unavailable, Step::Revocation, detail).at(endpoint))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_success_is_one() {
        let endpoint = Endpoint::parse("https://login.example/revoke").unwrap();
        let judged = |response| accept_revocation(&response, &endpoint).map_err(|error| error.kind);
        assert_eq!(judged(Response::empty(StatusCode::OK)), Ok(()));
        let refused = Response::json(StatusCode::BAD_REQUEST, &json!({"error": "invalid_client"}));
        assert_eq!(judged(refused), Err(AuthErrorKind::ClientRejected));
        for status in [StatusCode::SERVICE_UNAVAILABLE, StatusCode::NOT_FOUND, StatusCode::ACCEPTED] {
            assert!(judged(Response::empty(status)).is_err(), "{status}");
        }
    }
}
