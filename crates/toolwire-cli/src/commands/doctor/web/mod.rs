//! What HTTP itself says at an address: status, headers, and the beginning of the body.
//!
//! This is for finding out why a client cannot connect. It speaks no protocol beyond one `initialize`, follows no
//! redirects, and ends a session that it was given.

mod fault;
mod proxy;

use std::time::Duration;

use reqwest::{Client, Response, Url, header, redirect::Policy};
use serde_json::json;

pub(crate) use fault::Fault;
pub(crate) use proxy::proxy;

use super::finding::shortened;
use crate::target::Remote;

/// How long one look may take at most.
const PATIENCE: Duration = Duration::from_secs(10);

/// How much of a body is looked at.
const MAX_BODY: usize = 4096;

/// How much of a header is kept.
const MAX_HEADER: usize = 300;

/// How many redirects are followed.
const MAX_REDIRECTS: usize = 3;

/// The paths where servers usually are.
const USUAL_PATHS: [&str; 3] = ["/mcp", "/sse", "/"];

/// What was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Web {
    /// At the address itself.
    pub(crate) here: Look,
    /// Another address of the same host that answers as a server would.
    pub(crate) elsewhere: Option<String>,
}

/// One look at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// It answered.
    Answer(Answer),
    /// It did not.
    Nothing(Fault),
}

/// An answer, as far as it helps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) content_type: Option<String>,
    pub(crate) challenge: Option<String>,
    pub(crate) location: Option<String>,
    pub(crate) allow: Option<String>,
    pub(crate) retry_after: Option<String>,
    pub(crate) server: Option<String>,
    /// Whether a session was begun.
    pub(crate) session: bool,
    pub(crate) body: String,
}

impl Answer {
    /// Whether it is a page for people.
    pub(crate) fn is_page(&self) -> bool {
        let start = self.body.trim_start().to_ascii_lowercase();
        self.content_type.as_deref().is_some_and(|kind| kind.starts_with("text/html"))
            || start.starts_with("<!doctype html")
            || start.starts_with("<html")
    }

    /// Whether a server of the protocol is there, be it one that wants to know who is calling.
    fn is_server(&self) -> bool {
        let kind = self.content_type.as_deref().unwrap_or_default();
        self.body.contains("\"jsonrpc\"")
            || (self.status == 200 && kind.starts_with("text/event-stream"))
            || (self.status == 401 && self.challenge.is_some())
    }

    /// Status and headers, for people.
    pub(crate) fn lines(&self) -> Vec<String> {
        let status = reqwest::StatusCode::from_u16(self.status).map(|status| status.to_string());
        let mut lines = vec![format!("status: {}", status.unwrap_or_else(|_| self.status.to_string()))];
        for (name, value) in [
            ("WWW-Authenticate", &self.challenge),
            ("Location", &self.location),
            ("Allow", &self.allow),
            ("Retry-After", &self.retry_after),
            ("Content-Type", &self.content_type),
            ("Server", &self.server),
        ] {
            lines.extend(value.iter().map(|value| format!("{name}: {value}")));
        }
        let body = self.body.trim();
        if !body.is_empty() && !self.is_page() {
            lines.push(format!("body: {}", shortened(body, 160)));
        }
        lines
    }
}

/// Looks at the address, and where that shows no server, at the usual other ones of the same host.
pub(crate) async fn examine(remote: &Remote, patience: Duration) -> Option<Web> {
    let url = Url::parse(&remote.url).ok()?;
    let client = client(&url, patience)?;
    let mut here = post(&client, url.clone(), &remote.headers).await;
    // Clients follow a redirect that stays at the host: what is behind it counts.
    for _ in 0..MAX_REDIRECTS {
        let Some(next) = redirected(&url, &here) else { break };
        here = post(&client, next, &remote.headers).await;
    }
    let elsewhere = match &here {
        Look::Answer(answer) if answer.is_server() => None,
        Look::Answer(answer) if matches!(answer.status, 401 | 403 | 421 | 429 | 500..) => None,
        Look::Answer(answer) if answer.location.is_some() => None,
        Look::Answer(answer) if plain_on_tls(answer) => other_scheme(&client, &url).await,
        Look::Answer(_) => other_path(&client, &url, &remote.headers).await,
        Look::Nothing(Fault::Garbled(_)) => other_scheme(&client, &url).await,
        Look::Nothing(_) => None,
    };
    Some(Web { here, elsewhere })
}

/// Where a request is sent on to, if that is at the same origin and keeps the method.
fn redirected(url: &Url, look: &Look) -> Option<Url> {
    let Look::Answer(answer) = look else { return None };
    let next = url.join(answer.location.as_deref()?).ok()?;
    (matches!(answer.status, 307 | 308) && next.origin() == url.origin()).then_some(next)
}

/// Where the same host has the newer transport, if the address is that of the older one.
pub(crate) async fn newer(remote: &Remote, patience: Duration) -> Option<String> {
    let url = Url::parse(&remote.url).ok()?;
    let mut other = url.clone();
    other.set_path("/mcp");
    other.set_query(None);
    if other.path() == url.path() {
        return None;
    }
    match post(&client(&url, patience)?, other.clone(), &remote.headers).await {
        Look::Answer(answer) if answer.is_server() => Some(shown(&other)),
        _ => None,
    }
}

/// Looks at the address alone.
pub(crate) async fn look(remote: &Remote, patience: Duration) -> Option<Look> {
    let url = Url::parse(&remote.url).ok()?;
    Some(post(&client(&url, patience)?, url, &remote.headers).await)
}

fn client(url: &Url, patience: Duration) -> Option<Client> {
    let client = Client::builder()
        .user_agent(concat!("toolwire/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none())
        .timeout(patience.min(PATIENCE));
    let client = if proxy::is_local(url) { client.no_proxy() } else { client };
    client.build().ok()
}

/// Whether it is the complaint of a server that got plain HTTP on a port for TLS.
pub(crate) fn plain_on_tls(answer: &Answer) -> bool {
    let body = answer.body.to_ascii_lowercase();
    answer.status == 400 && body.contains("https") && body.contains("http request")
}

/// The same address with the other scheme, if something answers there. Headers stay here: they may be secrets.
async fn other_scheme(client: &Client, url: &Url) -> Option<String> {
    let port = url.port_or_known_default();
    let mut other = url.clone();
    other.set_scheme(if url.scheme() == "https" { "http" } else { "https" }).ok()?;
    other.set_port(port).ok()?;
    match post(client, other.clone(), &[]).await {
        Look::Answer(_) | Look::Nothing(Fault::Certificate(_)) => Some(shown(&other)),
        // Only who speaks TLS has alerts.
        Look::Nothing(Fault::Garbled(why)) if why.contains("alert") => Some(shown(&other)),
        Look::Nothing(_) => None,
    }
}

async fn other_path(client: &Client, url: &Url, headers: &[(String, String)]) -> Option<String> {
    for path in USUAL_PATHS {
        let mut other = url.clone();
        other.set_path(path);
        other.set_query(None);
        if other.path() == url.path() {
            continue;
        }
        let posted = post(client, other.clone(), headers).await;
        if matches!(&posted, Look::Answer(answer) if answer.is_server()) {
            return Some(shown(&other));
        }
        if path == "/sse" && is_stream(client, other.clone(), headers).await {
            return Some(shown(&other));
        }
    }
    None
}

/// Whether an event stream begins here, as in 2024-11-05.
async fn is_stream(client: &Client, url: Url, headers: &[(String, String)]) -> bool {
    let request = with_headers(client.get(url).header(header::ACCEPT, "text/event-stream"), headers);
    let Ok(response) = request.send().await else { return false };
    response.status().is_success()
        && text(&response, &header::CONTENT_TYPE).is_some_and(|kind| kind.starts_with("text/event-stream"))
}

async fn post(client: &Client, url: Url, headers: &[(String, String)]) -> Look {
    let message = json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": toolwire::Version::LATEST_LEGACY,
            "capabilities": {},
            "clientInfo": { "name": "toolwire", "version": env!("CARGO_PKG_VERSION") },
        },
    });
    let request = client
        .post(url.clone())
        .header(header::ACCEPT, "application/json, text/event-stream")
        .header(header::CONTENT_TYPE, "application/json")
        .body(message.to_string());
    match with_headers(request, headers).send().await {
        Ok(response) => {
            let session = text(&response, &SESSION);
            let look = read(response, session.is_some()).await;
            if let Some(session) = session {
                let request = client.delete(url).header(&SESSION, session);
                // Some servers end no sessions, and forget them by themselves.
                let _ = with_headers(request, headers).send().await;
            }
            look
        }
        Err(error) => Look::Nothing(Fault::of(error)),
    }
}

const SESSION: header::HeaderName = header::HeaderName::from_static("mcp-session-id");

fn with_headers(
    mut request: reqwest::RequestBuilder,
    headers: &[(String, String)],
) -> reqwest::RequestBuilder {
    for (name, value) in headers {
        request = request.header(name, value);
    }
    request
}

async fn read(mut response: Response, session: bool) -> Look {
    let mut answer = Answer {
        status: response.status().as_u16(),
        content_type: text(&response, &header::CONTENT_TYPE),
        challenge: text(&response, &header::WWW_AUTHENTICATE),
        location: text(&response, &header::LOCATION),
        allow: text(&response, &header::ALLOW),
        retry_after: text(&response, &header::RETRY_AFTER),
        server: text(&response, &header::SERVER),
        session,
        body: String::new(),
    };
    let mut body = Vec::new();
    // A stream need not end: its first piece is enough.
    while let Ok(Ok(Some(chunk))) = tokio::time::timeout(PATIENCE, response.chunk()).await {
        body.extend_from_slice(chunk.get(..MAX_BODY).unwrap_or(&chunk));
        let is_stream =
            answer.content_type.as_deref().is_some_and(|kind| kind.starts_with("text/event-stream"));
        if body.len() >= MAX_BODY || is_stream {
            break;
        }
    }
    body.truncate(MAX_BODY);
    answer.body = String::from_utf8_lossy(&body).into_owned();
    Look::Answer(answer)
}

fn text(response: &Response, name: &header::HeaderName) -> Option<String> {
    Some(shortened(response.headers().get(name)?.to_str().ok()?, MAX_HEADER))
}

/// The address without credentials and query.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // Only addresses that cannot have credentials refuse this.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_servers_are_told_apart() {
        let answer = |status, kind: &str, body: &str| Answer {
            status,
            content_type: Some(kind.into()),
            body: body.into(),
            ..Answer::default()
        };
        assert!(answer(200, "text/html; charset=utf-8", "hello").is_page());
        assert!(answer(404, "text/plain", " <!DOCTYPE html><html>").is_page());
        assert!(!answer(404, "text/plain", "no").is_page());
        assert!(answer(400, "application/json", r#"{"jsonrpc":"2.0"}"#).is_server());
        assert!(answer(200, "text/event-stream", "").is_server());
        assert!(!answer(200, "application/json", "{}").is_server());
        let nginx = "<title>400 The plain HTTP request was sent to HTTPS port</title>";
        assert!(plain_on_tls(&answer(400, "text/html", nginx)));
    }

    #[test]
    fn what_is_shown_has_no_secrets() {
        let url = Url::parse("https://user:secret@host:1/path?key=secret#secret").unwrap();
        assert_eq!(shown(&url), "https://host:1/path");
    }
}
