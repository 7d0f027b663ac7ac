//! Issuers that repeat what they were sent.
//!
//! What an issuer says about a refusal is shown to people and written into logs, and some say "the refresh token XYZ is
//! not valid". So what was secret in a request is taken out of the refusal before anybody reads it.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::header;
use serde_json::Value;

use super::{Fetch, FetchError, Reach, Request, Response};
use crate::{Secret, metadata};

/// Members of a form that nobody may see.
const SECRET_FIELDS: [&str; 9] = [
    "assertion",
    "client_assertion",
    "client_secret",
    "code",
    "code_verifier",
    "device_code",
    "refresh_token",
    "subject_token",
    "token",
];

/// What is shorter says nothing if it is shown, and is found in words by accident.
const SHORTEST: usize = 8;

/// What stands for a secret.
const HIDDEN: &str = "[hidden]";

/// Sends a request, and reads its answer: a refusal without the secrets of the request.
pub(crate) async fn send(fetch: &dyn Fetch, request: Request, reach: &Reach) -> Result<Response, FetchError> {
    let secrets = secrets(&request);
    let response = fetch.fetch(request, reach).await?;
    Ok(without(response, &secrets))
}

/// What is secret in a request: as it is, and as a form writes it.
fn secrets(request: &Request) -> Vec<Secret> {
    let mut found: Vec<Secret> = url::form_urlencoded::parse(&request.body)
        .filter(|(name, _)| SECRET_FIELDS.contains(&&**name))
        .map(|(_, value)| Secret::new(value))
        .collect();
    if let Some(basic) = request.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()) {
        let encoded = basic.trim_start_matches("Basic ");
        found.push(Secret::from(encoded));
        let pair = BASE64_STANDARD.decode(encoded).ok().and_then(|pair| String::from_utf8(pair).ok());
        if let Some((_, secret)) = pair.as_deref().and_then(|pair| pair.split_once(':')) {
            found.extend(url::form_urlencoded::parse(secret.as_bytes()).map(|(text, _)| Secret::new(text)));
        }
    }
    let as_form = |secret: &Secret| {
        Secret::new(url::form_urlencoded::byte_serialize(secret.expose().as_bytes()).collect::<String>())
    };
    found.retain(|secret| secret.expose().len() >= SHORTEST);
    let encoded: Vec<Secret> = found.iter().map(as_form).collect();
    found.extend(encoded);
    // The longest first, so that one that is a part of another does not hide just that part.
    found.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
    found
}

/// A refusal without these secrets. An answer with a token is left as it is: an issuer may give the same one again.
fn without(mut response: Response, secrets: &[Secret]) -> Response {
    let Some(mut document) = metadata::object(&response.body) else { return response };
    if !document.contains_key("error") || secrets.is_empty() {
        return response;
    }
    let mut changed = false;
    for text in document.values_mut() {
        let Value::String(text) = text else { continue };
        for secret in secrets {
            if text.contains(secret.expose()) {
                *text = text.replace(secret.expose(), HIDDEN);
                changed = true;
            }
        }
    }
    if changed {
        response.body = Value::Object(document).to_string().into();
    }
    response
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, StatusCode};
    use serde_json::json;

    use super::*;
    use crate::{Endpoint, fetch::NamedBy};

    fn request(fields: &[(&str, &str)]) -> Request {
        let url = Endpoint::parse("https://login.example/token").unwrap();
        Request::form(url, NamedBy::Peer, fields.iter().copied())
    }

    fn said(request: &Request, answer: &Value) -> Value {
        let response = Response::json(StatusCode::BAD_REQUEST, answer);
        serde_json::from_slice(&without(response, &secrets(request)).body).unwrap()
    }

    #[test]
    fn a_refusal_does_not_repeat_what_was_secret_in_its_request() {
        let mut request = request(&[
            ("grant_type", "refresh_token"),
            ("refresh_token", "marked/one"),
            ("scope", "files:read"),
        ]);
        let basic = BASE64_STANDARD.encode("notes:marked%2Fsecret");
        request
            .headers
            .insert(header::AUTHORIZATION, HeaderValue::from_str(&format!("Basic {basic}")).unwrap());
        let description = format!(
            "marked/one (marked%2Fone) of Basic {basic} with marked/secret is not valid for files:read"
        );
        let told = said(&request, &json!({ "error": "invalid_grant", "error_description": description }));
        assert_eq!(
            told,
            json!({
                "error": "invalid_grant",
                "error_description":
                    "[hidden] ([hidden]) of Basic [hidden] with [hidden] is not valid for files:read",
            })
        );
    }

    #[test]
    fn a_token_that_is_given_again_is_left_and_short_words_are_no_secrets() {
        let request = request(&[("refresh_token", "marked-one"), ("code", "in")]);
        let granted = json!({ "access_token": "a", "refresh_token": "marked-one" });
        assert_eq!(said(&request, &granted), granted);
        let refused = json!({ "error": "invalid_grant" });
        assert_eq!(said(&request, &refused), refused);
    }
}
