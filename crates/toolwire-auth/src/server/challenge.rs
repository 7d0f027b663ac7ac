//! What a client is told that is not let in: what it takes, and where to get that.

use http::{HeaderMap, HeaderValue, StatusCode, header};
use toolwire_http::server::Denied;
use toolwire_server::Scopes;

use super::verify::Unavailable;
use crate::challenge::Challenge;

/// What every challenge of a server says.
#[derive(Debug)]
pub(super) struct Challenges {
    /// Where the metadata are.
    pub(super) metadata: String,
    /// What every request needs.
    pub(super) scopes: Scopes,
    /// What scopes begin with where they are asked for, though not in tokens.
    pub(super) prefix: String,
    /// The algorithms of proofs, where they are taken.
    pub(super) algorithms: Option<String>,
    /// Whether a token without a proof is refused.
    pub(super) bound_only: bool,
}

/// The `error` of a challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    InvalidToken,
    InsufficientScope,
    InvalidRequest,
    InvalidProof,
    UseNonce,
}

impl Fault {
    const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidToken => "invalid_token",
            Self::InsufficientScope => "insufficient_scope",
            Self::InvalidRequest => "invalid_request",
            Self::InvalidProof => "invalid_dpop_proof",
            Self::UseNonce => "use_dpop_nonce",
        }
    }

    /// Whether it is about proofs alone.
    const fn is_of_proofs(self) -> bool {
        matches!(self, Self::InvalidProof | Self::UseNonce)
    }
}

impl Challenges {
    /// Nobody has said who sends the request.
    pub(super) fn nobody(&self, needs: &Scopes) -> Denied {
        let message = "this server needs a token; the challenge says where to get one";
        self.denied(StatusCode::UNAUTHORIZED, None, needs, message)
    }

    /// The token is not valid. Why not is for the log alone.
    pub(super) fn invalid_token(&self) -> Denied {
        let message = "the token is not valid here, or not any longer";
        self.denied(StatusCode::UNAUTHORIZED, Some(Fault::InvalidToken), &Scopes::new(), message)
    }

    /// The token is valid, and does not allow this.
    pub(super) fn insufficient(&self, needs: &Scopes) -> Denied {
        let message = "the token does not allow this; the challenge says which scopes do";
        self.denied(StatusCode::FORBIDDEN, Some(Fault::InsufficientScope), needs, message)
    }

    /// The request is not understood.
    pub(super) fn malformed(&self, why: &'static str) -> Denied {
        self.denied(StatusCode::BAD_REQUEST, Some(Fault::InvalidRequest), &Scopes::new(), why)
    }

    /// The proof is not valid, or lacks a nonce.
    pub(super) fn proof(&self, fault: Fault) -> Denied {
        let message = "the proof that comes with the token is not valid";
        self.denied(StatusCode::UNAUTHORIZED, Some(fault), &Scopes::new(), message)
    }

    fn denied(
        &self,
        status: StatusCode,
        fault: Option<Fault>,
        needs: &Scopes,
        message: &'static str,
    ) -> Denied {
        let mut denied = Denied::new(status, message);
        // A set that would be too large names at least what this operation needs.
        let scopes = self.scopes.union(needs).unwrap_or_else(|_| needs.clone());
        if !self.bound_only {
            let fault = fault.map(|fault| if fault.is_of_proofs() { Fault::InvalidToken } else { fault });
            append(&mut denied.headers, &self.challenge("Bearer", fault, &scopes));
        }
        if let Some(algorithms) = &self.algorithms {
            append(&mut denied.headers, &self.challenge("DPoP", fault, &scopes).with("algs", algorithms));
        }
        denied
    }

    fn challenge(&self, scheme: &str, fault: Option<Fault>, scopes: &Scopes) -> Challenge {
        let mut challenge = Challenge::new(scheme);
        if let Some(fault) = fault {
            challenge = challenge.with("error", fault.as_str());
        }
        challenge = challenge.with("resource_metadata", &self.metadata);
        if !scopes.is_empty() {
            challenge = challenge.with("scope", self.asked_for(scopes).join(" "));
        }
        challenge
    }

    /// Scopes as clients have to ask for them.
    pub(super) fn asked_for(&self, scopes: &Scopes) -> Vec<String> {
        scopes.iter().map(|scope| format!("{}{scope}", self.prefix)).collect()
    }
}

/// Nobody can be asked now whether a token is valid. Not 401: no client should drop a token for that.
pub(super) fn unavailable(unavailable: &Unavailable) -> Denied {
    let mut denied =
        Denied::new(StatusCode::SERVICE_UNAVAILABLE, "the token cannot be checked now; try again later");
    denied.headers.insert(header::RETRY_AFTER, unavailable.delay().as_secs().max(1).into());
    denied
}

fn append(headers: &mut HeaderMap, challenge: &Challenge) {
    // Everything in it was checked when the guard was built; a scheme alone is a challenge as well.
    let value = challenge.to_header_value().unwrap_or(HeaderValue::from_static("Bearer"));
    headers.append(header::WWW_AUTHENTICATE, value);
}
