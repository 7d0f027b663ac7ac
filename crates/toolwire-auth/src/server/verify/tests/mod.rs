mod introspection;
mod jwt;
mod keys;

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::*;
use crate::{
    fetch::{BoxFuture as FetchFuture, Fetch, FetchError, FetchErrorKind, Reach, Request, Response},
    jose::{Algorithm, PrivateKey},
};

const NOW: u64 = 1_800_000_000;
const RESOURCE: &str = "https://files.example/mcp";
const ISSUER: &str = "https://login.example";
const KEYS: &str = "https://login.example/keys";

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

fn now() -> SystemTime {
    at(NOW)
}

fn presented(text: &str) -> PresentedToken {
    PresentedToken::new(Scheme::Bearer, text)
}

fn key() -> PrivateKey {
    PrivateKey::generate(Algorithm::Es256).unwrap().kid("one")
}

/// A set with the public halves of these keys.
fn set(keys: &[&PrivateKey]) -> Value {
    let jwk = |key: &&PrivateKey| {
        let mut jwk = key.public_key().to_jwk();
        if let Some(kid) = key.public_key().kid() {
            jwk["kid"] = json!(kid);
        }
        jwk
    };
    json!({ "keys": keys.iter().map(jwk).collect::<Vec<_>>() })
}

/// Claims of a good token with some changed; a null takes one away.
fn claims(changes: &[(&str, Value)]) -> Map<String, Value> {
    let good = json!({
        "iss": ISSUER, "aud": RESOURCE, "sub": "ada", "client_id": "notes",
        "exp": NOW + 300, "iat": NOW, "scope": "files:read files:write",
    });
    let Value::Object(mut claims) = good else { unreachable!() };
    for (name, value) in changes {
        match value {
            Value::Null => claims.remove(*name),
            value => claims.insert((*name).to_owned(), value.clone()),
        };
    }
    claims
}

fn prepared<V: Verify>(mut verifier: V) -> V {
    verifier.prepare(&Setting::new(RESOURCE, ISSUER)).unwrap();
    verifier
}

/// The reason why a token was refused.
fn reason(verdict: Result<Verified, VerifyError>) -> String {
    match verdict {
        Err(VerifyError::Invalid(invalid)) => invalid.to_string(),
        other => panic!("{other:?}"),
    }
}

/// What answers at addresses, and notes which were asked. What has no answer is away.
#[derive(Clone, Default)]
struct Web(Arc<Mutex<Pages>>);

#[derive(Default)]
struct Pages {
    pages: HashMap<String, Response>,
    asked: Vec<Request>,
}

impl Web {
    fn page(self, url: &str, document: &Value) -> Self {
        self.set(url, Response::json(StatusCode::OK, document));
        self
    }

    fn set(&self, url: &str, response: Response) {
        self.0.lock().unwrap().pages.insert(url.to_owned(), response);
    }

    fn take_down(&self, url: &str) {
        self.0.lock().unwrap().pages.remove(url);
    }

    fn asked(&self) -> Vec<String> {
        self.0.lock().unwrap().asked.iter().map(|request| request.url.as_str().to_owned()).collect()
    }

    fn times_asked(&self, url: &str) -> usize {
        self.asked().iter().filter(|asked| *asked == url).count()
    }

    fn last(&self) -> Request {
        self.0.lock().unwrap().asked.last().unwrap().clone()
    }
}

impl Fetch for Web {
    fn fetch<'a>(&'a self, request: Request, _: &'a Reach) -> FetchFuture<'a, Result<Response, FetchError>> {
        Box::pin(async move {
            let answer = {
                let mut web = self.0.lock().unwrap();
                let answer = web.pages.get(request.url.as_str()).cloned();
                web.asked.push(request);
                answer
            };
            // As the network does, so that others run in the meantime.
            tokio::task::yield_now().await;
            answer.ok_or_else(|| FetchError::new(FetchErrorKind::Network, "nobody answers"))
        })
    }
}

impl fmt::Debug for Web {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Web")
    }
}

/// Counts what is logged as a warning.
#[derive(Clone, Default)]
struct Warnings(Arc<AtomicUsize>);

impl Warnings {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::WARN
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}
