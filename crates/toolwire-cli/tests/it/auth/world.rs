//! An issuer with switches for what goes wrong, and a server that asks for its tokens.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard},
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use toolwire::{
    Context, Principal, Server,
    auth::{
        jose::{Algorithm, PrivateKey},
        server::{Jwt, ResourceServer},
    },
    http::server::HttpService,
    tool,
};

use super::person;
use crate::{
    fake_web::{Asked, FakeWeb, response},
    home::Home,
    program::Ended,
};

/// What is in every secret that is not signed.
pub(crate) const MARK: &str = "mArK3d";

/// What the issuer does, and what it has seen.
pub(crate) struct State {
    /// How long tokens last, as the issuer says.
    pub(crate) lasts: u64,
    pub(crate) token_fault: Option<(&'static str, &'static str)>,
    pub(crate) revocation_fault: bool,
    pub(crate) device: bool,
    /// What devices are told before they are given a token, one after the other.
    pub(crate) device_answers: Vec<&'static str>,
    /// What is different in the answer to a device.
    pub(crate) device_code: Value,
    /// Whether the issuer says that it knows PKCE.
    pub(crate) tells_pkce: bool,
    /// Whether the issuer wants to be told what tokens are for.
    pub(crate) wants_resource: bool,
    /// Whether the next renewal is not answered. What it was sent stays good.
    pub(crate) hangs: bool,
    pub(crate) registration: bool,
    /// A secret that clients have to show.
    pub(crate) secret: Option<String>,
    pub(crate) refuses_refresh: bool,
    /// Every request but those for metadata.
    pub(crate) seen: Vec<String>,
    /// Everything that nobody may see.
    pub(crate) secrets: Vec<String>,
    /// Whom tokens are for.
    resource: String,
    key: Arc<PrivateKey>,
    refresh: HashSet<String>,
    scopes: String,
}

pub(crate) struct World {
    issuer: FakeWeb,
    state: Arc<Mutex<State>>,
    pub(crate) server: String,
    pub(crate) home: Home,
    browser: (String, TempDir),
    _running: tokio::runtime::Runtime,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with_issuer(None)
    }

    /// One whose issuer is known by another name than its address: somewhere behind a proxy.
    pub(crate) fn with_issuer(name: Option<&str>) -> Self {
        let key = Arc::new(PrivateKey::generate(Algorithm::Es256).unwrap().kid("k1"));
        let running =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = running.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let server = format!("http://{}/mcp", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State {
            lasts: 3600,
            token_fault: None,
            revocation_fault: false,
            device: false,
            device_answers: Vec::new(),
            device_code: json!({}),
            tells_pkce: true,
            wants_resource: true,
            hangs: false,
            registration: true,
            secret: None,
            refuses_refresh: false,
            seen: Vec::new(),
            secrets: Vec::new(),
            resource: server.clone(),
            key: Arc::clone(&key),
            refresh: HashSet::new(),
            scopes: String::new(),
        }));
        let answering = Arc::clone(&state);
        let issuer = FakeWeb::start(move |asked| answering.lock().unwrap().answer(asked));
        let mut jwk = key.public_key().to_jwk();
        jwk["kid"] = json!("k1");
        let name = name.map_or_else(|| issuer.url(""), str::to_owned);
        let guard = ResourceServer::new(&server, name)
            .verify(Jwt::keys(json!({ "keys": [jwk] }).to_string()))
            .scopes(["files:read"])
            .build()
            .unwrap();
        let whoami =
            |cx: Context| async move { cx.principal().map_or("nobody", Principal::subject).to_owned() };
        let files = Server::builder("files", "1.0")
            .tool(tool("whoami", whoami))
            .tool(tool("write", || async { "written" }).scopes(["files:write"]))
            .build()
            .unwrap();
        let service = HttpService::builder(files).guard(guard).websocket(true).build().unwrap();
        running.spawn(async move { service.serve(listener).await });
        let folder = tempfile::tempdir().unwrap();
        let browser = (person::browser(folder.path()), folder);
        Self { issuer, state, server, home: Home::new(), browser, _running: running }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The address of the issuer, and of the proxy to an issuer of another name.
    pub(crate) fn issuer(&self) -> String {
        self.issuer.url("")
    }

    /// The browser of somebody.
    pub(crate) fn browser(&self) -> &str {
        &self.browser.0
    }

    /// Runs the program as somebody with a browser, and makes sure that nothing secret gets out.
    pub(crate) fn run(&self, args: &[&str]) -> Ended {
        self.run_with(&[("BROWSER", &self.browser.0)], args)
    }

    pub(crate) fn run_with(&self, variables: &[(&str, &str)], args: &[&str]) -> Ended {
        let ended = self.home.run_with(variables, args);
        for told in [&ended.stdout, &ended.stderr] {
            self.assert_clean(told, &format!("{args:?}"));
        }
        ended
    }

    /// Logs in as a client that was registered by hand, whose redirect may have any port.
    pub(crate) fn log_in(&self, more: &[&str]) -> Ended {
        let words = ["login", &self.server, "--client", "by-hand", "--redirect", "http://127.0.0.1/callback"];
        self.run(&[&words[..], more].concat())
    }

    /// Nothing of any secret is in a text.
    pub(crate) fn assert_clean(&self, text: &str, where_from: &str) {
        for secret in &self.state().secrets {
            // A piece of a token is as bad as the whole of it. What all of them begin with says nothing.
            for piece in secret.as_bytes().chunks(12).skip(4).filter(|piece| piece.len() == 12) {
                let piece = std::str::from_utf8(piece).unwrap();
                assert!(!text.contains(piece), "{where_from} shows {piece} of {secret}\n{text}");
            }
        }
        assert!(!text.contains(MARK), "{where_from}\n{text}");
    }
}

impl State {
    fn answer(&mut self, asked: &Asked) -> Option<Vec<u8>> {
        let mut words = asked.line.split(' ');
        let (method, target) = (words.next().unwrap(), words.next().unwrap_or_default());
        let host = asked
            .head
            .lines()
            .find_map(|line| line.to_lowercase().strip_prefix("host: ").map(str::to_owned))?;
        let origin = format!("http://{host}");
        // A proxy is told the whole address.
        let target = target.strip_prefix(&origin).unwrap_or(target);
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if !path.starts_with("/.well-known/") {
            self.seen.push(format!("{method} {path}"));
        }
        Some(match path {
            "/.well-known/oauth-authorization-server" => json_of("200 OK", &self.metadata(&origin)),
            "/register" => {
                let mut registered: Value = serde_json::from_str(&asked.body).unwrap();
                registered["client_id"] = "dynamic".into();
                json_of("201 Created", &registered)
            }
            "/authorize" => {
                let asked = pairs(query);
                assert_eq!(asked.get("resource"), self.wants_resource.then_some(&self.resource));
                self.scopes = asked.get("scope").cloned().unwrap_or_default();
                let code = self.secret("code");
                let location = format!("{}?code={code}&state={}", asked["redirect_uri"], asked["state"]);
                response("302 Found", &format!("Location: {location}\r\n"), "")
            }
            "/device" => {
                self.scopes = pairs(&asked.body).get("scope").cloned().unwrap_or_default();
                let code = self.secret("device");
                let mut answer = json!({
                    "device_code": code, "user_code": "ABCD-EFGH", "expires_in": 600, "interval": 1,
                    "verification_uri": format!("{origin}/activate"),
                });
                for (name, value) in self.device_code.as_object().unwrap() {
                    answer[name] = value.clone();
                }
                json_of("200 OK", &answer)
            }
            "/token" if self.hangs => {
                self.seen.push("hung".to_owned());
                return None;
            }
            "/token" => self.token(asked, &origin),
            "/revoke" if self.revocation_fault => response("503 Service Unavailable", "", ""),
            "/revoke" => {
                let form = pairs(&asked.body);
                self.refresh.remove(&form["token"]);
                self.seen.push(format!("revoked {}", form["token_type_hint"]));
                response("200 OK", "", "")
            }
            _ => response("404 Not Found", "", ""),
        })
    }

    fn metadata(&self, origin: &str) -> Value {
        let mut metadata = json!({
            "issuer": origin,
            "authorization_endpoint": format!("{origin}/authorize"),
            "token_endpoint": format!("{origin}/token"),
            "revocation_endpoint": format!("{origin}/revoke"),
            "code_challenge_methods_supported": ["S256"],
            "scopes_supported": ["files:read", "files:write", "offline_access"],
        });
        if self.registration {
            metadata["registration_endpoint"] = format!("{origin}/register").into();
            metadata["token_endpoint_auth_methods_supported"] = json!(["none", "client_secret_basic"]);
        }
        if !self.tells_pkce {
            metadata["code_challenge_methods_supported"] = Value::Null;
        }
        if self.device {
            metadata["device_authorization_endpoint"] = format!("{origin}/device").into();
        }
        metadata
    }

    fn token(&mut self, asked: &Asked, origin: &str) -> Vec<u8> {
        if let Some((status, body)) = self.token_fault {
            return response(status, "Content-Type: application/json\r\n", body);
        }
        let refused = |error: &str| json_of("400 Bad Request", &json!({ "error": error }));
        let authorized = asked.head.to_lowercase().contains("authorization: basic ");
        if self.secret.is_some() != authorized {
            return refused("invalid_client");
        }
        let form = pairs(&asked.body);
        self.seen.push(form["grant_type"].clone());
        assert_eq!(form.get("resource"), self.wants_resource.then_some(&self.resource));
        if form["grant_type"].ends_with("device_code") && !self.device_answers.is_empty() {
            return refused(self.device_answers.remove(0));
        }
        if form["grant_type"] == "refresh_token"
            && (self.refuses_refresh || !self.refresh.remove(&form["refresh_token"]))
        {
            return refused("invalid_grant");
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let access = self.key.sign(
            "at+jwt",
            &json!({
                "iss": origin, "aud": self.resource, "sub": "alice", "client_id": "x", "scope": self.scopes,
                "iat": now, "exp": now + 3600, "jti": self.secrets.len().to_string(),
            }),
        );
        let (access, refresh) = (access.unwrap(), self.secret("refresh"));
        self.secrets.push(access.clone());
        self.refresh.insert(refresh.clone());
        json_of(
            "200 OK",
            &json!({
                "access_token": access, "token_type": "Bearer", "refresh_token": refresh,
                "expires_in": self.lasts, "scope": self.scopes,
            }),
        )
    }

    /// A new secret.
    fn secret(&mut self, kind: &str) -> String {
        let secret = format!("{MARK}-{kind}-{}-{MARK}-{MARK}", self.secrets.len());
        self.secrets.push(secret.clone());
        secret
    }

    /// How often something was seen.
    pub(crate) fn count(&self, what: &str) -> usize {
        self.seen.iter().filter(|seen| *seen == what).count()
    }
}

pub(crate) fn json_of(status: &str, value: &Value) -> Vec<u8> {
    response(status, "Content-Type: application/json\r\n", &value.to_string())
}

fn pairs(text: &str) -> HashMap<String, String> {
    url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}
