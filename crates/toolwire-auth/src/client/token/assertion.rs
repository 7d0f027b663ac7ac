//! What a client signs to show who it is (RFC 7523).

use std::time::{Duration, SystemTime};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::json;

use crate::{
    client::{AuthError, AuthErrorKind, Step},
    clock::unix_seconds,
    jose::PrivateKey,
};

/// How long an assertion is valid.
pub const ASSERTION_LIFETIME: Duration = Duration::from_secs(120);

/// Signs an assertion for one request: its `jti` is of `entropy`, which is used for nothing else.
pub fn client_assertion(
    key: &PrivateKey,
    client_id: &str,
    audience: &str,
    now: SystemTime,
    entropy: &[u8],
) -> Result<String, AuthError> {
    let issued = unix_seconds(now);
    let claims = json!({
        "iss": client_id,
        "sub": client_id,
        "aud": audience,
        "iat": issued,
        "exp": issued + ASSERTION_LIFETIME.as_secs(),
        "jti": BASE64_URL_SAFE_NO_PAD.encode(entropy),
    });
    key.sign("JWT", &claims)
        .map_err(|error| AuthError::new(AuthErrorKind::KeyFailed, Step::Token, error.to_string()))
}
