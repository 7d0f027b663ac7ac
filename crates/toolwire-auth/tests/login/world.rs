//! A protected server and its issuer, with switches for what goes wrong.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard},
};

use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use toolwire_auth::{
    client::{
        AuthError, OAuth, OAuthBuilder,
        authorize::{AuthorizationUrl, Callback},
        flow::Redirects,
        login::{Declined, Login},
    },
    fetch::BoxFuture,
    jose::Compact,
};
use toolwire_http::client::{
    authorize::{Authorization as _, Authorize, Hop, Purpose, Refusal, Verdict},
    fetch::{Fetch, Fetcher},
};

/// What the server and the issuer do, and what they have seen.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// How long tokens last, in seconds.
    pub(crate) lasts: Option<u64>,
    /// What every token request is answered with, if not by the rules.
    pub(crate) token_fault: Option<(u16, &'static str)>,
    /// What every request is answered with, if not by the rules.
    pub(crate) server_fault: Option<(u16, String)>,
    /// The scopes that are named with every refusal.
    pub(crate) wanted: Option<&'static str>,
    /// The scopes that are given, whatever is asked for.
    pub(crate) grants: Option<&'static str>,
    /// What tokens are for, if not for the server of this world.
    pub(crate) resource: Option<String>,
    /// Whether tokens can be revoked.
    pub(crate) revokes: bool,
    /// Whether access tokens are good until they end, whoever revokes them.
    pub(crate) keeps_access: bool,
    /// True if redirects to an address instead of a name are refused.
    pub(crate) names_only: bool,
    /// The issuer that the server names, if not that of this world.
    pub(crate) issuer: Option<String>,
    pub(crate) scopes_asked: Vec<String>,
    seen: Seen,
    counter: u64,
    /// The tokens that are good, and their scopes.
    good: HashMap<String, String>,
    /// The thumbprints of the keys that tokens are bound to.
    bound: HashMap<String, String>,
    refresh: HashSet<String>,
    spent: HashSet<String>,
}

/// How often something happened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) asked: usize,
    pub(crate) renewals: usize,
    pub(crate) token_requests: usize,
    pub(crate) reused: bool,
    pub(crate) registrations: usize,
}

impl State {
    /// Returns whether a refresh token is good and was not used.
    pub(crate) fn can_renew(&self, token: &str) -> bool {
        self.refresh.contains(token)
    }

    /// The key that a token is bound to, if it is.
    pub(crate) fn key_of(&self, token: &str) -> Option<String> {
        self.bound.get(token).cloned()
    }

    /// What a token allows, if it is good.
    pub(crate) fn scopes_of(&self, token: &str) -> Option<String> {
        self.good.get(token).cloned()
    }
}

#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) port: u16,
    state: Arc<Mutex<State>>,
}

impl World {
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let world = Self { port, state: Arc::default() };
        let serving = world.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let world = serving.clone();
                tokio::spawn(async move { world.serve(stream).await });
            }
        });
        world
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(crate) fn seen(&self) -> Seen {
        self.state().seen
    }

    pub(crate) fn server(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// A client with a person who agrees to everything.
    pub(crate) fn oauth() -> OAuthBuilder {
        OAuth::builder("Test").login(Agreeing)
    }

    /// Forgets all access tokens.
    pub(crate) fn expire(&self) {
        self.state().good.clear();
    }

    /// Forgets all refresh tokens.
    pub(crate) fn revoke(&self) {
        self.state().refresh.clear();
    }

    async fn serve(&self, mut stream: TcpStream) {
        let mut seen = Vec::new();
        let (head, mut body) = loop {
            if let Some(end) = seen.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break (String::from_utf8_lossy(&seen[..end]).into_owned(), seen[end + 4..].to_vec());
            }
            if stream.read_buf(&mut seen).await.unwrap_or(0) == 0 {
                return;
            }
        };
        let header = |name: &str| {
            let lines = head.split("\r\n").skip(1).filter_map(|line| line.split_once(':'));
            lines
                .filter(|(key, _)| key.eq_ignore_ascii_case(name))
                .map(|(_, value)| value.trim().to_owned())
                .next()
        };
        let length: usize = header("content-length").map_or(0, |text| text.parse().unwrap());
        while body.len() < length {
            if stream.read_buf(&mut body).await.unwrap_or(0) == 0 {
                return;
            }
        }
        let target = head.split(' ').nth(1).unwrap().to_owned();
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let (status, headers, text) = match path {
            "/mcp" => self.mcp(header("authorization").as_deref()),
            "/.well-known/oauth-protected-resource/mcp" => {
                let issuer = self.state().issuer.clone().unwrap_or_else(|| self.origin());
                json_of(&json!({"resource": self.server(), "authorization_servers": [issuer]}))
            }
            "/.well-known/oauth-authorization-server" => self.metadata(),
            "/register" => self.register(&body),
            "/authorize" => self.authorize(query),
            "/token" => self.token(&body, header("dpop").as_deref()),
            "/revoke" => self.revocation(&body),
            _ => (404, String::new(), String::new()),
        };
        let answer = format!(
            "HTTP/1.1 {status} x\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{text}",
            text.len()
        );
        let _ = stream.write_all(answer.as_bytes()).await;
    }

    fn mcp(&self, authorization: Option<&str>) -> Answer {
        let state = self.state();
        if let Some((status, challenge)) = &state.server_fault {
            return (*status, format!("www-authenticate: {challenge}\r\n"), String::new());
        }
        let token = authorization.and_then(|text| text.strip_prefix("Bearer "));
        if token.is_some_and(|token| state.good.contains_key(token)) {
            return (200, String::new(), "fine".to_owned());
        }
        let place = format!("{}/.well-known/oauth-protected-resource/mcp", self.origin());
        let scope = state.wanted.map(|wanted| format!(", scope=\"{wanted}\"")).unwrap_or_default();
        (401, format!("www-authenticate: Bearer resource_metadata=\"{place}\"{scope}\r\n"), String::new())
    }

    fn metadata(&self) -> Answer {
        let origin = self.origin();
        json_of(&json!({
            "issuer": origin,
            "authorization_endpoint": format!("{origin}/authorize"),
            "token_endpoint": format!("{origin}/token"),
            "revocation_endpoint": self.state().revokes.then(|| format!("{origin}/revoke")),
            "registration_endpoint": format!("{origin}/register"),
            "code_challenge_methods_supported": ["S256"],
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": ["none"],
        }))
    }

    fn register(&self, body: &[u8]) -> Answer {
        self.state().seen.registrations += 1;
        let mut registered: Value = serde_json::from_slice(body).unwrap();
        let named = |redirect: &Value| redirect.as_str().unwrap().starts_with("http://localhost");
        if self.state().names_only && !registered["redirect_uris"].as_array().unwrap().iter().all(named) {
            let (_, headers, text) = json_of(&json!({"error": "invalid_redirect_uri"}));
            return (400, headers, text);
        }
        registered["client_id"] = "marked-client".into();
        let (_, headers, text) = json_of(&registered);
        (201, headers, text)
    }

    fn authorize(&self, query: &str) -> Answer {
        let asked = pairs(query.as_bytes());
        let mut state = self.state();
        state.seen.asked += 1;
        state.scopes_asked.push(asked.get("scope").cloned().unwrap_or_default());
        let location = format!("{}?code=marked-code&state={}", asked["redirect_uri"], asked["state"]);
        (302, format!("location: {location}\r\n"), String::new())
    }

    fn token(&self, body: &[u8], proof: Option<&str>) -> Answer {
        let form = pairs(body);
        let mut state = self.state();
        state.seen.token_requests += 1;
        if let Some((status, text)) = state.token_fault {
            return (status, "content-type: application/json\r\n".to_owned(), text.to_owned());
        }
        assert_eq!(form["resource"], state.resource.clone().unwrap_or_else(|| self.server()));
        let mut scopes = state.scopes_asked.last().cloned().unwrap_or_default();
        match form["grant_type"].as_str() {
            "refresh_token" => {
                state.seen.renewals += 1;
                let refresh = form["refresh_token"].clone();
                if state.spent.contains(&refresh) {
                    // Somebody has it who should not: the whole family ends.
                    state.seen.reused = true;
                    state.refresh.clear();
                    state.good.clear();
                }
                if !state.refresh.remove(&refresh) {
                    let (_, headers, text) = json_of(&json!({"error": "invalid_grant"}));
                    return (400, headers, text);
                }
                state.spent.insert(refresh);
            }
            "authorization_code" => assert_eq!(form["code"], "marked-code"),
            "client_credentials" => scopes.clone_from(&form["scope"]),
            other => panic!("{other}"),
        }
        state.counter += 1;
        let (access, refresh) =
            (format!("marked-access-{}", state.counter), format!("marked-refresh-{}", state.counter));
        state.good.insert(access.clone(), scopes);
        state.refresh.insert(refresh.clone());
        if let Some(proof) = proof {
            let key = Compact::parse(proof).unwrap().header().embedded_key().unwrap().unwrap();
            state.bound.insert(access.clone(), key.thumbprint().to_string());
        }
        let kind = if proof.is_some() { "DPoP" } else { "Bearer" };
        let mut answer = json!({"access_token": access, "token_type": kind, "refresh_token": refresh});
        if let Some(grants) = state.grants {
            answer["scope"] = grants.into();
        }
        if let Some(lasts) = state.lasts {
            answer["expires_in"] = lasts.into();
        }
        json_of(&answer)
    }
}

impl World {
    fn revocation(&self, body: &[u8]) -> Answer {
        let (form, mut state) = (pairs(body), self.state());
        if state.keeps_access && form["token_type_hint"] == "access_token" {
            let (_, headers, text) = json_of(&json!({"error": "unsupported_token_type"}));
            return (400, headers, text);
        }
        state.refresh.remove(&form["token"]);
        state.good.remove(&form["token"]);
        (200, String::new(), String::new())
    }
}

type Answer = (u16, String, String);

fn json_of(value: &Value) -> Answer {
    (200, "content-type: application/json\r\n".to_owned(), value.to_string())
}

fn pairs(text: &[u8]) -> HashMap<String, String> {
    url::form_urlencoded::parse(text).into_owned().collect()
}

/// A person whose browser goes where it is sent, and who agrees.
#[derive(Debug)]
pub(crate) struct Agreeing;

impl Login for Agreeing {
    fn prepare(&self) -> Result<Redirects, AuthError> {
        let used = "http://127.0.0.1:17853/callback".to_owned();
        Ok(Redirects::new([used.clone()], used))
    }

    fn ask(&self, url: AuthorizationUrl) -> BoxFuture<'_, Result<Callback, Declined>> {
        Box::pin(async move {
            let response = Fetcher::new().fetch(Fetch::get(url.as_str())).await.unwrap();
            let location = response.headers[http::header::LOCATION].to_str().unwrap();
            Ok(Callback::from_url(location).unwrap())
        })
    }
}

/// Somebody who never answers, and tells when they are not asked any more.
#[derive(Debug, Clone, Default)]
pub(crate) struct Silent(pub(crate) Arc<Mutex<Vec<&'static str>>>);

impl Login for Silent {
    fn prepare(&self) -> Result<Redirects, AuthError> {
        Agreeing.prepare()
    }

    fn ask(&self, _url: AuthorizationUrl) -> BoxFuture<'_, Result<Callback, Declined>> {
        self.0.lock().unwrap().push("asked");
        Box::pin(std::future::pending())
    }

    fn done(&self, _redirects: &Redirects) {
        self.0.lock().unwrap().push("done");
    }
}

/// What gives requests to the server their credentials.
pub(crate) fn bound(oauth: &OAuth, world: &World) -> Arc<dyn Authorize> {
    oauth.bind(&world.server(), Fetcher::new()).unwrap()
}

/// Why a request failed: the error itself.
pub(crate) fn cause(error: &toolwire_http::client::authorize::Unauthorized) -> &AuthError {
    error.cause().downcast_ref().unwrap()
}

/// Sends one request, as a link does, and gives back its status in the end.
pub(crate) async fn call(
    auth: &dyn Authorize,
    world: &World,
    purpose: Purpose,
) -> Result<u16, toolwire_http::client::authorize::Unauthorized> {
    let body = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}"#);
    let (url, mut attempt) = (world.server(), auth.attempt(purpose));
    for _ in 0..10 {
        let hop = Hop::new(&Method::POST, &url, &body);
        let headers = attempt.headers(hop).await?;
        let request = Fetch::post(&url, "application/json", body.clone()).headers(&headers);
        let response = Fetcher::new().fetch(request).await.unwrap();
        if !matches!(response.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            attempt.answered(hop, &response.headers);
            return Ok(response.status.as_u16());
        }
        let status = response.status;
        let refusal = Refusal::new(status, response.headers, response.reached);
        match attempt.refused(hop, refusal).await? {
            Verdict::Again => {}
            Verdict::Stand => return Ok(status.as_u16()),
        }
    }
    panic!("it is sent for ever");
}
