//! What tokens and introspection say alike.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};

use super::{Audience, Invalid, LEEWAY};

/// The end of the year 9999: what is later is no time but a mistake.
const LAST_SECOND: f64 = 253_402_300_799.0;

/// The names under which issuers tell the client.
const CLIENT: [&str; 4] = ["client_id", "azp", "cid", "appid"];

/// A text that may be absent.
pub(super) fn text<'c>(
    claims: &'c Map<String, Value>,
    name: &'static str,
) -> Result<Option<&'c str>, Invalid> {
    match claims.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Invalid::new(format!("the claim {name} is not text"))),
    }
}

/// A text, or a list of texts.
fn texts(claims: &Map<String, Value>, name: &str) -> Result<Option<Vec<String>>, Invalid> {
    let wrong = || Invalid::new(format!("the claim {name} is neither text nor a list of texts"));
    match claims.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(vec![text.clone()])),
        Some(Value::Array(items)) => {
            let texts = items.iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong));
            texts.collect::<Result<_, _>>().map(Some)
        }
        Some(_) => Err(wrong()),
    }
}

/// Whom a token is for, if it says so. One that is for others alone is refused.
pub(super) fn audience(
    claims: &Map<String, Value>,
    resource: &str,
    others: &[String],
) -> Result<Option<Audience>, Invalid> {
    let Some(audience) = texts(claims, "aud")?.map(Audience::Is) else { return Ok(None) };
    if audience.includes(resource, others) {
        Ok(Some(audience))
    } else {
        Err(Invalid::new("it is for another audience"))
    }
}

/// The client that a token was given to.
pub(super) fn client(claims: &Map<String, Value>) -> Result<Option<&str>, Invalid> {
    for name in CLIENT {
        if let Some(client) = text(claims, name)?.filter(|client| !client.is_empty()) {
            return Ok(Some(client));
        }
    }
    Ok(None)
}

/// Scopes in these claims, each a text with spaces between them or a list.
pub(super) fn scopes(claims: &Map<String, Value>, names: &[impl AsRef<str>]) -> Result<Vec<String>, Invalid> {
    let mut scopes = Vec::new();
    for name in names {
        match claims.get(name.as_ref()) {
            Some(Value::String(text)) => {
                scopes.extend(text.split(' ').filter(|it| !it.is_empty()).map(str::to_owned));
            }
            _ => scopes.extend(texts(claims, name.as_ref())?.unwrap_or_default()),
        }
    }
    Ok(scopes)
}

/// A time in seconds since 1970.
pub(super) fn time(claims: &Map<String, Value>, name: &'static str) -> Result<Option<SystemTime>, Invalid> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    let seconds = value.as_f64().filter(|seconds| (0.0..=LAST_SECOND).contains(seconds));
    let since = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    match since.and_then(|since| UNIX_EPOCH.checked_add(since)) {
        Some(time) => Ok(Some(time)),
        None => Err(Invalid::new(format!("the claim {name} is not a time"))),
    }
}

/// Checks the times of a token, as far as it has them, and gives its end.
pub(super) fn times(claims: &Map<String, Value>, now: SystemTime) -> Result<Option<SystemTime>, Invalid> {
    let expires = time(claims, "exp")?;
    if expires.is_some_and(|expires| now >= expires + LEEWAY) {
        return Err(Invalid::new("the token has expired"));
    }
    for name in ["nbf", "iat"] {
        if time(claims, name)?.is_some_and(|time| time > now + LEEWAY) {
            return Err(Invalid::new(format!("the token is not valid yet: {name} is in the future")));
        }
    }
    Ok(expires)
}

/// The key that a token is bound to. One that is bound in a way that cannot be checked here is refused.
pub(super) fn bound_to(claims: &Map<String, Value>) -> Result<Option<&str>, Invalid> {
    match claims.get("cnf") {
        None => Ok(None),
        Some(Value::Object(confirmation)) if confirmation.len() == 1 => match confirmation.get("jkt") {
            Some(Value::String(thumbprint)) => Ok(Some(thumbprint)),
            _ => Err(Invalid::new("the token is bound to a key in a way that cannot be checked")),
        },
        Some(_) => Err(Invalid::new("the token is bound to a key in a way that cannot be checked")),
    }
}

/// Refuses what is another kind of token by what only those have.
pub(super) fn is_access_token(claims: &Map<String, Value>) -> Result<(), Invalid> {
    // Not `nonce`: older versions of Keycloak put it into access tokens.
    for name in ["at_hash", "c_hash", "events"] {
        if claims.contains_key(name) {
            return Err(Invalid::new(format!("it is not an access token: it has the claim {name}")));
        }
    }
    if text(claims, "token_use")?.is_some_and(|purpose| purpose != "access") {
        return Err(Invalid::new("it is not an access token: token_use says so"));
    }
    if text(claims, "typ")?.is_some_and(|kind| matches!(kind, "ID" | "Refresh" | "Offline" | "Logout")) {
        return Err(Invalid::new("it is not an access token: its claim typ says so"));
    }
    Ok(())
}
