//! What HTTP itself says at an address: status, headers, and the beginning of the body.
//!
//! This is for finding out why a client cannot connect. It speaks no protocol beyond one `initialize`, follows no
//! redirects, and ends a session that it was given.

mod fault;
mod proxy;

use std::time::Duration;

use serde_json::json;
use toolwire::http::client::fetch::{Fetch, FetchError, Fetched, Fetcher};
use url::Url;

pub(crate) use fault::Fault;
pub(crate) use proxy::proxy;

use super::finding::shortened;
use crate::{target::Remote, waits};

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
    /// What the status means.
    pub(crate) reason: String,
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
        let mut lines = vec![format!("status: {} {}", self.status, self.reason).trim_end().to_owned()];
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
    let viewer = Viewer::new(patience);
    let mut here = viewer.post(&url, &remote.headers).await;
    // Clients follow a redirect that stays at the host: what is behind it counts.
    for _ in 0..MAX_REDIRECTS {
        let Some(next) = redirected(&url, &here) else { break };
        here = viewer.post(&next, &remote.headers).await;
    }
    let elsewhere = match &here {
        Look::Answer(answer) if answer.is_server() => None,
        Look::Answer(answer) if matches!(answer.status, 401 | 403 | 421 | 429 | 500..) => None,
        Look::Answer(answer) if answer.location.is_some() => None,
        Look::Answer(answer) if plain_on_tls(answer) => viewer.other_scheme(&url).await,
        Look::Answer(_) => viewer.other_path(&url, &remote.headers).await,
        Look::Nothing(Fault::Garbled(_) | Fault::NoAgreement(_)) => viewer.other_scheme(&url).await,
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
    match Viewer::new(patience).post(&other, &remote.headers).await {
        Look::Answer(answer) if answer.is_server() => Some(shown(&other)),
        _ => None,
    }
}

/// Looks at the address alone.
pub(crate) async fn look(remote: &Remote, patience: Duration) -> Option<Look> {
    let url = Url::parse(&remote.url).ok()?;
    Some(Viewer::new(patience).post(&url, &remote.headers).await)
}

/// Whether it is the complaint of a server that got plain HTTP on a port for TLS.
pub(crate) fn plain_on_tls(answer: &Answer) -> bool {
    let body = answer.body.to_ascii_lowercase();
    answer.status == 400 && body.contains("https") && body.contains("http request")
}

/// Looks at addresses.
struct Viewer {
    fetcher: Fetcher,
    patience: Duration,
}

impl Viewer {
    fn new(patience: Duration) -> Self {
        Self { fetcher: Fetcher::new(), patience: patience.min(waits::stretched(PATIENCE)) }
    }

    /// The same address with the other scheme, if something answers there. Headers stay here: they may be secrets.
    async fn other_scheme(&self, url: &Url) -> Option<String> {
        let port = url.port_or_known_default();
        let mut other = url.clone();
        other.set_scheme(if url.scheme() == "https" { "http" } else { "https" }).ok()?;
        other.set_port(port).ok()?;
        match self.post(&other, &[]).await {
            // Only who speaks TLS has certificates, and opinions about them.
            Look::Answer(_) | Look::Nothing(Fault::Certificate(..) | Fault::NoAgreement(_)) => {
                Some(shown(&other))
            }
            Look::Nothing(_) => None,
        }
    }

    async fn other_path(&self, url: &Url, headers: &[(String, String)]) -> Option<String> {
        for path in USUAL_PATHS {
            let mut other = url.clone();
            other.set_path(path);
            other.set_query(None);
            if other.path() == url.path() {
                continue;
            }
            let posted = self.post(&other, headers).await;
            if matches!(&posted, Look::Answer(answer) if answer.is_server()) {
                return Some(shown(&other));
            }
            if path == "/sse" && self.is_stream(&other, headers).await {
                return Some(shown(&other));
            }
        }
        None
    }

    /// Whether an event stream begins here, as in 2024-11-05.
    async fn is_stream(&self, url: &Url, headers: &[(String, String)]) -> bool {
        let request = Fetch::get(url.as_str()).header("accept", "text/event-stream").first_bytes(0);
        let Ok(response) = self.fetch(request, headers).await else { return false };
        response.status.is_success()
            && text(&response, "content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    async fn post(&self, url: &Url, headers: &[(String, String)]) -> Look {
        match knock(&self.fetcher, url.as_str(), headers, self.patience).await {
            Ok(response) => Look::Answer(answer(&response)),
            Err(error) => Look::Nothing(Fault::of(&error)),
        }
    }

    async fn fetch(&self, request: Fetch, headers: &[(String, String)]) -> Result<Fetched, FetchError> {
        self.fetcher.fetch(with(request, headers).timeout(self.patience)).await
    }
}

fn with(request: Fetch, headers: &[(String, String)]) -> Fetch {
    headers.iter().fold(request, |request, (name, value)| request.header(name, value))
}

/// Begins a conversation, and ends it at once if that worked.
pub(crate) async fn knock(
    fetcher: &Fetcher,
    url: &str,
    headers: &[(String, String)],
    patience: Duration,
) -> Result<Fetched, FetchError> {
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
    let request = Fetch::post(url, "application/json", message.to_string())
        .header("accept", "application/json, text/event-stream")
        .first_bytes(MAX_BODY);
    let response = fetcher.fetch(with(request, headers).timeout(patience)).await?;
    if let Some(session) = text(&response, SESSION) {
        let request = Fetch::delete(url).header(SESSION, &session);
        // Some servers end no sessions, and forget them by themselves.
        let _ = fetcher.fetch(with(request, headers).timeout(patience)).await;
    }
    Ok(response)
}

const SESSION: &str = "mcp-session-id";

fn answer(response: &Fetched) -> Answer {
    Answer {
        status: response.status.as_u16(),
        reason: response.status.canonical_reason().unwrap_or_default().to_owned(),
        content_type: text(response, "content-type"),
        challenge: text(response, "www-authenticate"),
        location: text(response, "location"),
        allow: text(response, "allow"),
        retry_after: text(response, "retry-after"),
        server: text(response, "server"),
        session: text(response, SESSION).is_some(),
        body: String::from_utf8_lossy(&response.body).into_owned(),
    }
}

fn text(response: &Fetched, name: &str) -> Option<String> {
    Some(shortened(response.headers.get(name)?.to_str().ok()?, MAX_HEADER))
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
