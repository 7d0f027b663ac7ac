//! Registering a new client (RFC 7591).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use super::client::{AuthMethod, Client, Registration, Source, by_name};
use crate::{
    Endpoint, Secret,
    client::{
        AuthError, AuthErrorKind, Step,
        discover::{self, issuer::ServerMetadata},
        error::visible,
        flow::{Plan, Way},
        scopes::Scopes,
    },
    fetch::{Request, Response},
};

const DEVICE: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// The longest identifier or secret that an issuer may give out.
const MAX_CLIENT_BYTES: usize = 4 * 1024;

/// Why an issuer made no client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It does not like the redirects.
    Redirect(AuthError),
    /// Anything else.
    Other(AuthError),
}

impl From<Refused> for AuthError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Redirect(error) | Refused::Other(error) => error,
        }
    }
}

/// Asks for a new client. `by_host_name` registers `localhost` instead of the address of this machine.
pub fn request(
    plan: &Plan,
    metadata: &ServerMetadata,
    endpoint: &Endpoint,
    scopes: &Scopes,
    dpop: bool,
    by_host_name: bool,
) -> Request {
    let redirects = redirects(&plan.way, metadata, by_host_name);
    let native =
        redirects.iter().all(|redirect| Endpoint::parse(redirect).is_ok_and(|url| url.is_loopback()));
    let mut grants = vec!["refresh_token"];
    let by_browser = matches!(plan.way, Way::Browser(_));
    if by_browser {
        grants.insert(0, "authorization_code");
    }
    if metadata.device.is_some() {
        grants.push(DEVICE);
    }
    let mut body = json!({
        "client_name": plan.settings.client_name,
        "application_type": if native { "native" } else { "web" },
        "redirect_uris": redirects,
        "grant_types": grants,
        "response_types": if by_browser { json!(["code"]) } else { json!([]) },
        "token_endpoint_auth_method": wanted_method(metadata).name(),
    });
    if !scopes.is_empty() {
        body["scope"] = scopes.to_string().into();
    }
    if dpop {
        body["dpop_bound_access_tokens"] = true.into();
    }
    Request::json(endpoint.clone(), metadata.named_by(endpoint), &body)
}

fn redirects(way: &Way, metadata: &ServerMetadata, by_host_name: bool) -> Vec<String> {
    let Way::Browser(redirects) = way else { return Vec::new() };
    let redirects = redirects.at(metadata);
    let named = |text: &String| by_name(text).filter(|_| by_host_name).unwrap_or_else(|| text.clone());
    let mut all: Vec<String> = redirects.registered.iter().map(named).collect();
    let used = named(&redirects.used);
    if !all.contains(&used) {
        all.push(used);
    }
    all
}

/// A client on somebody's machine keeps no secret, so it has none where the issuer can do without. Else it is told the way
/// that the issuer names first: issuers that name the form first may not read anything but a form, as those of the
/// Python SDK.
fn wanted_method(metadata: &ServerMetadata) -> AuthMethod {
    let offered = metadata.auth_methods.as_deref().unwrap_or_default();
    if offered.iter().any(|name| name == AuthMethod::None.name()) {
        return AuthMethod::None;
    }
    let secrets = [AuthMethod::ClientSecretBasic, AuthMethod::ClientSecretPost];
    let first = offered.iter().find_map(|name| secrets.into_iter().find(|method| method.name() == name));
    // An issuer that lists nothing takes a secret in a header (RFC 8414, 2).
    first.unwrap_or(AuthMethod::ClientSecretBasic)
}

/// Reads the answer of the registration endpoint.
pub fn accept(
    plan: &Plan,
    metadata: &ServerMetadata,
    by_host_name: bool,
    response: &Response,
    now: SystemTime,
) -> Result<Client, Refused> {
    let fail = |kind, detail: String| Refused::Other(AuthError::new(kind, Step::Registration, detail));
    let status = response.status;
    if status.is_server_error() || matches!(status.as_u16(), 408 | 429) {
        let detail = format!("the issuer answers with status {}", status.as_u16());
        return Err(fail(AuthErrorKind::Unavailable, detail));
    }
    let document = discover::object(&response.body);
    if !status.is_success() || document.as_ref().is_some_and(|document| document.contains_key("error")) {
        return Err(refusal(status, document.as_ref()));
    }
    let Some(document) = document else {
        let detail = "the answer is not a JSON object without duplicate names".to_owned();
        return Err(fail(AuthErrorKind::Unavailable, detail));
    };
    let registration = read(plan, metadata, by_host_name, &document, now)
        .map_err(|detail| fail(refused_kind("invalid_client_metadata", &detail), detail))?;
    Ok(Client { registration, key: None, audience: None })
}

fn read(
    plan: &Plan,
    metadata: &ServerMetadata,
    by_host_name: bool,
    document: &Map<String, Value>,
    now: SystemTime,
) -> Result<Registration, String> {
    let client_id = discover::text(document, "client_id")?.ok_or("the answer has no \"client_id\"")?;
    let secret = discover::text(document, "client_secret")?;
    for given in [Some(client_id), secret].into_iter().flatten() {
        if given.is_empty() || given.len() > MAX_CLIENT_BYTES || given.chars().any(char::is_control) {
            return Err("the identifier or secret of the client is not usable".to_owned());
        }
    }
    let method = match (discover::text(document, "token_endpoint_auth_method")?, secret) {
        // An issuer that gives no secret and says nothing wants none.
        (None, None) => AuthMethod::None,
        (None, Some(_)) => wanted_method(metadata),
        (Some(name), _) => {
            AuthMethod::from_name(name).ok_or("the client is to authenticate in an unknown way")?
        }
    };
    let secret = match method {
        AuthMethod::None => None,
        AuthMethod::PrivateKeyJwt => {
            return Err("the client is to authenticate by a key that it has not".to_owned());
        }
        _ => Some(Secret::from(
            secret.ok_or("the client is to authenticate by a secret that it was not given")?,
        )),
    };
    let secret_expires = match document.get("client_secret_expires_at") {
        None | Some(Value::Null) => None,
        Some(value) => match value.as_u64().ok_or("\"client_secret_expires_at\" is not a time")? {
            0 => None,
            seconds => Some(UNIX_EPOCH.checked_add(Duration::from_secs(seconds)).unwrap_or(now)),
        },
    };
    let sent = redirects(&plan.way, metadata, by_host_name);
    let redirects = discover::texts(document, "redirect_uris")?
        .filter(|known| !known.is_empty())
        .map_or(sent, |known| known.into_iter().map(str::to_owned).collect());
    let registration = Registration {
        issuer: metadata.issuer.clone(),
        client_id: client_id.to_owned(),
        source: Source::Dynamic,
        secret,
        secret_expires,
        method,
        redirects,
    };
    match &plan.way {
        Way::Browser(redirects) if registration.redirect(&redirects.at(metadata).used).is_none() => {
            Err("the issuer registered other redirects than those it was given".to_owned())
        }
        _ => Ok(registration),
    }
}

fn refused_kind(error: &str, description: &str) -> AuthErrorKind {
    AuthErrorKind::RegistrationRefused { error: visible(error), description: visible(description) }
}

fn refusal(status: http::StatusCode, document: Option<&Map<String, Value>>) -> Refused {
    let member =
        |name| document.and_then(|document| discover::text(document, name).ok().flatten()).map(visible);
    let code = member("error");
    let description = member("error_description").unwrap_or_default();
    let detail = match &code {
        Some(code) => format!("the issuer refused to register a client: {code} {description}"),
        None => format!("the issuer refused to register a client with status {}", status.as_u16()),
    };
    let is_redirect = code.as_deref() == Some("invalid_redirect_uri");
    let kind = refused_kind(&code.unwrap_or_default(), &description);
    let error = AuthError::new(kind, Step::Registration, detail.trim_end());
    if is_redirect { Refused::Redirect(error) } else { Refused::Other(error) }
}
