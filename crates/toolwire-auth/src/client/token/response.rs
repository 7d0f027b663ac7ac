//! The answer of a token endpoint.

use std::time::Duration;

use http::{HeaderMap, StatusCode};
use serde_json::{Map, Value};

use super::TokenType;
use crate::{
    Endpoint, Secret,
    client::{AuthError, AuthErrorKind, Step, discover, error::visible, scopes::Scopes},
    fetch::Response,
};

/// The longest token. It has to fit into a header.
pub const MAX_TOKEN_BYTES: usize = 16 * 1024;
/// The longest lifetime that counts; what is said to last longer is treated as lasting so long.
const MAX_LIFETIME: u64 = 10 * 365 * 24 * 3_600;

/// A token that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenSet {
    /// The access token: visible ASCII that fits into a header.
    pub access: Secret,
    /// How long it lasts, if the issuer says.
    pub expires_in: Option<Duration>,
    /// What it is renewed with.
    pub refresh: Option<Secret>,
    /// Its scopes, if the issuer says.
    pub scopes: Option<Scopes>,
}

/// Why no token was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The proof has to carry the nonce of this answer.
    UseNonce(Option<String>),
    /// The person has not decided yet.
    Pending,
    /// The person has not decided yet, and we ask too often.
    SlowDown,
    /// For this reason.
    Final(AuthErrorKind, String),
    /// Not now.
    Unavailable(String),
}

impl Refusal {
    /// The failure of a step.
    pub fn into_error(self, step: Step, url: &Endpoint) -> AuthError {
        let refused = |error: &str| AuthErrorKind::TokenRefused { error: error.to_owned() };
        let (kind, detail) = match self {
            Self::UseNonce(_) => {
                (refused("use_dpop_nonce"), "the issuer wants one nonce after the other".to_owned())
            }
            Self::Pending => (refused("authorization_pending"), "the issuer waits for a person".to_owned()),
            Self::SlowDown => (refused("slow_down"), "the issuer is asked too often".to_owned()),
            Self::Final(kind, detail) => (kind, detail),
            Self::Unavailable(detail) => (AuthErrorKind::Unavailable, detail),
        };
        AuthError::new(kind, step, detail).at(url)
    }
}

/// Judges an answer to a request for a token of a type.
pub fn accept(response: &Response, wanted: TokenType) -> Result<TokenSet, Refusal> {
    let document = document(response)?;
    match discover::text(&document, "token_type") {
        Ok(Some(kind)) if kind.eq_ignore_ascii_case(wanted.scheme()) => {}
        _ => {
            let detail = format!("the issuer gave no token of the type {wanted}, which was asked for");
            return Err(Refusal::Final(AuthErrorKind::WrongTokenType, detail));
        }
    }
    read(&document).map_err(|detail| Refusal::Final(AuthErrorKind::TokenInvalid, detail))
}

/// The document of an answer that is no refusal.
pub(crate) fn document(response: &Response) -> Result<Map<String, Value>, Refusal> {
    let status = response.status;
    if status.is_server_error()
        || matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS)
    {
        return Err(Refusal::Unavailable(format!("the issuer answers with status {}", status.as_u16())));
    }
    if status.is_redirection() {
        let detail = "the issuer answers with a redirect, which is not followed".to_owned();
        return Err(Refusal::Final(AuthErrorKind::TokenInvalid, detail));
    }
    let Some(document) = discover::object(&response.body) else {
        let detail = format!(
            "the answer with status {} is not a JSON object without duplicate names",
            status.as_u16()
        );
        return Err(Refusal::Unavailable(detail));
    };
    match discover::text(&document, "error") {
        Ok(None) if status.is_success() => Ok(document),
        Ok(Some(error)) => Err(refusal(error, &document, &response.headers)),
        _ => {
            let detail = format!("the issuer answers with status {} and no reason", status.as_u16());
            Err(Refusal::Final(AuthErrorKind::TokenRefused { error: String::new() }, detail))
        }
    }
}

fn refusal(error: &str, document: &Map<String, Value>, headers: &HeaderMap) -> Refusal {
    let description =
        discover::text(document, "error_description").ok().flatten().map(visible).unwrap_or_default();
    let error = visible(error);
    let detail = format!("the issuer answered {error} {description}").trim_end().to_owned();
    let kind = match error.as_str() {
        "use_dpop_nonce" => return Refusal::UseNonce(nonce(headers)),
        "authorization_pending" => return Refusal::Pending,
        "slow_down" => return Refusal::SlowDown,
        "temporarily_unavailable" | "server_error" => return Refusal::Unavailable(detail),
        "invalid_grant" => AuthErrorKind::GrantRejected,
        "invalid_client" | "unauthorized_client" => AuthErrorKind::ClientRejected,
        "invalid_scope" => AuthErrorKind::ScopeRejected,
        "invalid_target" => AuthErrorKind::ResourceRejected,
        "access_denied" => AuthErrorKind::Declined,
        "expired_token" => AuthErrorKind::DeviceExpired,
        _ => AuthErrorKind::TokenRefused { error },
    };
    Refusal::Final(kind, detail)
}

/// The nonce of an answer, if it has one that can be used.
pub fn nonce(headers: &HeaderMap) -> Option<String> {
    const LONGEST: usize = 1_024;
    let mut all = headers.get_all("dpop-nonce").iter();
    let nonce = all.next()?.to_str().ok()?;
    let usable = (1..=LONGEST).contains(&nonce.len()) && nonce.bytes().all(|byte| byte.is_ascii_graphic());
    (usable && all.next().is_none()).then(|| nonce.to_owned())
}

fn read(document: &Map<String, Value>) -> Result<TokenSet, String> {
    let access = discover::text(document, "access_token")?.ok_or("the answer has no \"access_token\"")?;
    let refresh = discover::text(document, "refresh_token")?.filter(|token| !token.is_empty());
    for token in [Some(access), refresh].into_iter().flatten() {
        if token.is_empty() || token.len() > MAX_TOKEN_BYTES {
            return Err(format!("a token is empty, or longer than {MAX_TOKEN_BYTES} bytes"));
        }
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("a token has characters that no token has".to_owned());
        }
    }
    let scopes = discover::text(document, "scope")?.filter(|text| !text.is_empty());
    Ok(TokenSet {
        access: access.into(),
        expires_in: seconds(document, "expires_in")?
            .map(|seconds| Duration::from_secs(seconds.min(MAX_LIFETIME))),
        refresh: refresh.map(Secret::from),
        scopes: scopes
            .map(|text| Scopes::parse_granted(text).ok_or("\"scope\" is not a list of scopes"))
            .transpose()?,
    })
}

/// A number of seconds, as a number or as digits.
pub(crate) fn seconds(document: &Map<String, Value>, name: &str) -> Result<Option<u64>, String> {
    let number = match document.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Number(number)) => number.as_u64(),
        Some(Value::String(text)) if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
        Some(_) => None,
    };
    number.map(Some).ok_or_else(|| format!("\"{name}\" is not a number of seconds"))
}
