//! An authorization server on this machine that gives out marked secrets, and repeats what it was sent when it refuses.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
    time::{SystemTime, UNIX_EPOCH},
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    response::Response,
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use toolwire_auth::jose::{Algorithm, PrivateKey};

use super::marks::{learn, secret};

/// How token requests are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// Refused with this code, and a description that repeats everything that was sent.
    Refuses(&'static str),
    /// The same with status 200.
    RefusesKindly,
    Status(u16),
    Html,
    /// Cuts the answer off.
    Short,
    Redirect,
    /// A token of another type, with characters that no token has, or far too long.
    WrongType,
    Control,
    Huge,
    Doubled,
}

pub(crate) struct Inner {
    pub(crate) fault: Fault,
    /// Who tokens are for.
    pub(crate) resource: String,
    /// Whether a device is confirmed.
    pub(crate) confirmed: bool,
    /// Whether tokens are such that only the issuer can read them.
    pub(crate) opaque: bool,
    pub(crate) seen: Vec<String>,
    key: PrivateKey,
    scopes: String,
    count: u64,
}

#[derive(Clone)]
pub(crate) struct Issuer {
    pub(crate) url: String,
    inner: Arc<Mutex<Inner>>,
}

impl Issuer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let inner = Inner {
            fault: Fault::None,
            resource: String::new(),
            confirmed: true,
            opaque: false,
            seen: Vec::new(),
            key: PrivateKey::generate(Algorithm::Es256).unwrap().kid("k1"),
            scopes: String::new(),
            count: 0,
        };
        let issuer = Self { url, inner: Arc::new(Mutex::new(inner)) };
        let app = Router::new().fallback(answer).with_state(issuer.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        issuer
    }

    pub(crate) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    /// Answers token requests like this from now on.
    pub(crate) fn set(&self, fault: Fault) {
        self.inner().fault = fault;
    }

    fn metadata(&self) -> Value {
        let at = |path: &str| format!("{}/{path}", self.url);
        json!({
            "issuer": self.url,
            "authorization_endpoint": at("authorize"),
            "token_endpoint": at("token"),
            "revocation_endpoint": at("revoke"),
            "registration_endpoint": at("register"),
            "device_authorization_endpoint": at("device"),
            "jwks_uri": at("jwks"),
            "code_challenge_methods_supported": ["S256"],
            "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials",
                "urn:ietf:params:oauth:grant-type:device_code", "urn:ietf:params:oauth:grant-type:jwt-bearer"],
            "token_endpoint_auth_methods_supported":
                ["private_key_jwt", "client_secret_basic", "client_secret_post"],
        })
    }
}

async fn answer(State(issuer): State<Issuer>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let query = pairs(parts.uri.query().unwrap_or_default().as_bytes());
    let header = |name: &str| parts.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let mut inner = issuer.inner();
    inner.seen.push(parts.uri.path().to_owned());
    match parts.uri.path() {
        "/.well-known/oauth-authorization-server" => json_of(200, &issuer.metadata()),
        "/jwks" => {
            let mut jwk = inner.key.public_key().to_jwk();
            jwk["kid"] = "k1".into();
            json_of(200, &json!({ "keys": [jwk] }))
        }
        "/register" => {
            let mut registered: Value = serde_json::from_slice(&body).unwrap();
            registered["client_id"] = "dynamic".into();
            registered["client_secret"] = secret("client").into();
            registered["token_endpoint_auth_method"] = "client_secret_basic".into();
            json_of(201, &registered)
        }
        "/authorize" => {
            inner.scopes = query.get("scope").cloned().unwrap_or_default();
            learn(&query["state"]);
            let mut to: url::Url = query["redirect_uri"].parse().unwrap();
            to.query_pairs_mut().append_pair("code", &secret("code")).append_pair("state", &query["state"]);
            Response::builder().status(302).header("location", to.as_str()).body(Body::empty()).unwrap()
        }
        "/device" => {
            inner.scopes = pairs(&body).get("scope").cloned().unwrap_or_default();
            json_of(
                200,
                &json!({
                    "device_code": secret("device"), "user_code": "ABCD-EFGH", "expires_in": 600, "interval": 1,
                    "verification_uri": format!("{}/activate", issuer.url),
                }),
            )
        }
        "/token" | "/exchange" => {
            inner.token(&issuer.url, &pairs(&body), header("authorization"), header("dpop").as_deref())
        }
        "/revoke" => Inner::refuse(400, "server_error", &pairs(&body), header("authorization")),
        "/introspect" => inner.introspect(&issuer.url, &pairs(&body), header("authorization")),
        _ => json_of(404, &json!({})),
    }
}

impl Inner {
    fn token(
        &mut self,
        issuer: &str,
        form: &HashMap<String, String>,
        authorization: Option<String>,
        proof: Option<&str>,
    ) -> Response {
        for name in ["code_verifier", "client_assertion", "assertion", "refresh_token", "subject_token"] {
            if let Some(value) = form.get(name) {
                learn(value);
            }
        }
        if let Some(proof) = proof {
            learn(proof);
        }
        if form["grant_type"].ends_with("device_code") && !self.confirmed {
            return Self::refuse(400, "authorization_pending", form, authorization);
        }
        match self.fault {
            Fault::Refuses(error) => return Self::refuse(400, error, form, authorization),
            Fault::RefusesKindly => return Self::refuse(200, "access_denied", form, authorization),
            Fault::Status(status) => return Self::refuse(status, "server_error", form, authorization),
            Fault::Html => return page(200, &format!("<html>{form:?} {authorization:?}")),
            Fault::Redirect => {
                let to = format!("{issuer}/elsewhere?{form:?}").replace(' ', "");
                let to: url::Url = to.parse().unwrap();
                return Response::builder()
                    .status(307)
                    .header("location", to.as_str())
                    .body(Body::empty())
                    .unwrap();
            }
            _ => {}
        }
        let (access, refresh) = (self.access(issuer, form, proof), secret(&format!("refresh{}", self.count)));
        learn(&access);
        let mut answer = json!({
            "access_token": access, "refresh_token": refresh, "expires_in": 600, "scope": self.scopes,
            "token_type": if proof.is_some() { "DPoP" } else { "Bearer" },
        });
        match self.fault {
            Fault::WrongType => answer["token_type"] = secret("type").into(),
            Fault::Control => answer["access_token"] = format!("{}\n", secret("access")).into(),
            Fault::Huge => answer["access_token"] = secret("access").repeat(1_000).into(),
            Fault::Short => return page(200, &answer.to_string()[..60]),
            Fault::Doubled => {
                let doubled = answer.to_string().replacen('{', "{\"access_token\":\"x\",", 1);
                return page(200, &doubled);
            }
            _ => {}
        }
        if form["grant_type"].ends_with("token-exchange") {
            answer["token_type"] = "Bearer".into();
            answer["issued_token_type"] = "urn:ietf:params:oauth:token-type:access_token".into();
        }
        json_of(200, &answer)
    }

    fn access(&mut self, issuer: &str, form: &HashMap<String, String>, proof: Option<&str>) -> String {
        self.count += 1;
        if self.opaque {
            return secret(&format!("access{}", self.count));
        }
        if let Some(scope) = form.get("scope") {
            self.scopes.clone_from(scope);
        }
        let mut claims = json!({
            "iss": issuer, "aud": self.resource, "sub": "alice", "client_id": "notes", "scope": self.scopes,
            "exp": now() + 600, "jti": self.count.to_string(),
        });
        if let Some(proof) = proof {
            claims["cnf"] = json!({ "jkt": thumbprint(proof) });
        }
        self.key.sign("at+jwt", &claims).unwrap()
    }

    fn introspect(
        &self,
        issuer: &str,
        form: &HashMap<String, String>,
        authorization: Option<String>,
    ) -> Response {
        match self.fault {
            Fault::None => json_of(
                200,
                &json!({
                    "active": form["token"].contains("access"), "iss": issuer, "aud": self.resource, "sub": "alice",
                    "scope": "files:read", "exp": now() + 600,
                }),
            ),
            Fault::Html => page(200, &format!("<html>{form:?}")),
            Fault::Status(status) => Self::refuse(status, "server_error", form, authorization),
            _ => Self::refuse(400, "invalid_client", form, authorization),
        }
    }

    /// Repeats everything that was sent, in every way that comes to mind.
    fn refuse(
        status: u16,
        error: &str,
        form: &HashMap<String, String>,
        authorization: Option<String>,
    ) -> Response {
        let basic = authorization.unwrap_or_default();
        let decoded = BASE64_STANDARD.decode(basic.trim_start_matches("Basic ")).unwrap_or_default();
        let pair = String::from_utf8(decoded).unwrap_or_default();
        let plain: String =
            url::form_urlencoded::parse(pair.as_bytes()).map(|(name, _)| name.into_owned()).collect();
        let sent: Vec<&String> = form.values().collect();
        for word in &sent {
            let description = format!("{word} is not valid, nor {basic}, {pair} or {plain}");
            // What is cut off after 200 characters must not be what is looked for.
            if status == 400 && word.contains("mArK3d") {
                return json_of(status, &json!({ "error": error, "error_description": description }));
            }
        }
        let description = format!("{basic} {pair} {plain} {sent:?}");
        json_of(status, &json!({ "error": error, "error_description": description }))
    }
}

/// The thumbprint of the key in a proof.
fn thumbprint(proof: &str) -> String {
    use base64::prelude::BASE64_URL_SAFE_NO_PAD;
    let header = BASE64_URL_SAFE_NO_PAD.decode(proof.split('.').next().unwrap()).unwrap();
    let header: Value = serde_json::from_slice(&header).unwrap();
    let keys = json!({ "keys": [header["jwk"]] }).to_string();
    toolwire_auth::jose::KeySet::parse(&keys).unwrap().keys()[0].thumbprint().to_string()
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn pairs(text: &[u8]) -> HashMap<String, String> {
    url::form_urlencoded::parse(text).into_owned().collect()
}

fn json_of(status: u16, value: &Value) -> Response {
    let builder = Response::builder().status(status).header("content-type", "application/json");
    builder.body(Body::from(value.to_string())).unwrap()
}

fn page(status: u16, text: &str) -> Response {
    Response::builder().status(status).body(Body::from(text.to_owned())).unwrap()
}
