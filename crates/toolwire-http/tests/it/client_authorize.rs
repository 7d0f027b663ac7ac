//! Whatever gives requests their credentials: what it says of itself counts, and what it did not get is told.

use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use http::{HeaderMap, StatusCode, header};
use serde_json::{Value, json};
use toolwire_client::{Delivery, ErrorKind};
use toolwire_http::client::{
    Http,
    authorize::{Attempt, Authorization, Authorize, Hop, Purpose, Refusal, Unauthorized, Verdict},
    fetch::Fetcher,
};
use toolwire_transport::BoxFuture;

use crate::client_script::{Reply, Script, Seen, builder, discovered, said};

/// Somebody whom the server knows by a number, and nobody at all if it is zero.
#[derive(Clone, Debug, Default)]
struct Somebody(Arc<AtomicU64>);

impl Somebody {
    fn number(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

impl Authorization for Somebody {
    fn bind(&self, _: &str, _: Fetcher) -> Result<Arc<dyn Authorize>, Box<dyn Error + Send + Sync>> {
        Ok(Arc::new(self.clone()))
    }
}

impl Authorize for Somebody {
    fn attempt(&self, _: Purpose) -> Box<dyn Attempt> {
        Box::new(self.clone())
    }

    fn identity(&self) -> u64 {
        self.number()
    }
}

impl Attempt for Somebody {
    fn headers<'a>(&'a mut self, _: Hop<'a>) -> BoxFuture<'a, Result<HeaderMap, Unauthorized>> {
        Box::pin(async {
            if self.number() == 0 {
                let cause = std::io::Error::other("nobody may do this");
                return Err(Unauthorized::new(cause).with_status(StatusCode::FORBIDDEN));
            }
            let token = format!("Bearer {}", self.number()).parse().unwrap();
            Ok(HeaderMap::from_iter([(header::AUTHORIZATION, token)]))
        })
    }

    fn refused<'a>(&'a mut self, _: Hop<'a>, _: Refusal) -> BoxFuture<'a, Result<Verdict, Unauthorized>> {
        Box::pin(async { Ok(Verdict::Stand) })
    }

    fn answered(&mut self, _: Hop<'_>, _: &HeaderMap) {}
}

/// The one tool there is; its argument travels in another header for everybody.
fn tools_of(seen: &Seen) -> Reply {
    let header = format!("For-{}", seen.header("authorization").unwrap().replace("Bearer ", ""));
    let schema =
        json!({ "type": "object", "properties": { "region": { "type": "string", "x-mcp-header": header } } });
    cached(seen, "tools", &json!([{ "name": "weather", "inputSchema": schema }]), "private")
}

fn cached(seen: &Seen, what: &str, list: &Value, scope: &str) -> Reply {
    let result = json!({ what: list, "resultType": "complete", "ttlMs": 3_600_000, "cacheScope": scope });
    Reply::json(200, &seen.result(&result))
}

async fn server() -> Script {
    Script::start(|seen| match seen.what() {
        "server/discover" => discovered(seen),
        "tools/list" => tools_of(seen),
        "prompts/list" => cached(seen, "prompts", &json!([]), "public"),
        _ => Reply::json(200, &seen.result(&said("hello"))),
    })
    .await
}

fn http(script: &Script, somebody: &Somebody) -> Http {
    Http::builder(script.url()).auth(somebody.clone()).build().unwrap()
}

#[tokio::test]
async fn what_was_said_to_somebody_else_is_forgotten_and_what_is_for_everybody_is_kept() {
    let (script, somebody) = (server().await, Somebody::default());
    somebody.0.store(1, Ordering::SeqCst);
    let client = builder().connect(http(&script, &somebody)).await.unwrap();
    let ask = async || {
        client.all_tools().await.unwrap();
        client.all_prompts().await.unwrap();
        client.call("weather", json!({ "region": "Wien" })).await.unwrap();
        (script.all("tools/list").len(), script.all("prompts/list").len())
    };
    assert_eq!(ask().await, (1, 1));
    assert_eq!(ask().await, (1, 1), "both are kept");
    assert_eq!(script.all("tools/call")[1].header("mcp-param-for-1"), Some("Wien"));

    somebody.0.store(2, Ordering::SeqCst);
    // The first request of somebody else is what shows it.
    client.raw().request("resources/list", json!({})).await.ok();
    assert_eq!(ask().await, (2, 1), "only what is for everybody is kept");
    let call = script.all("tools/call").pop().unwrap();
    assert_eq!((call.header("mcp-param-for-1"), call.header("mcp-param-for-2")), (None, Some("Wien")));
}

#[tokio::test]
async fn a_call_of_somebody_else_does_not_use_the_headers_of_the_one_before() {
    let (script, somebody) = (server().await, Somebody::default());
    somebody.0.store(1, Ordering::SeqCst);
    let client = builder().connect(http(&script, &somebody)).await.unwrap();
    client.call("weather", json!({ "region": "Wien" })).await.unwrap();
    somebody.0.store(2, Ordering::SeqCst);
    client.raw().request("resources/list", json!({})).await.ok();
    client.call("weather", json!({ "region": "Wien" })).await.unwrap();
    let calls = script.all("tools/call");
    assert_eq!(calls[0].header("mcp-param-for-1"), Some("Wien"));
    assert_eq!(calls[1].header("mcp-param-for-1"), None);
    assert_eq!(calls[1].header("mcp-param-for-2"), Some("Wien"));
}

#[tokio::test]
async fn what_fails_before_it_is_sent_has_the_status_of_its_cause() {
    let (script, somebody) = (server().await, Somebody::default());
    somebody.0.store(1, Ordering::SeqCst);
    let client = builder().connect(http(&script, &somebody)).await.unwrap();
    somebody.0.store(0, Ordering::SeqCst);
    let error = client.call("weather", json!({})).await.unwrap_err();
    assert_eq!((error.status(), error.delivery()), (Some(403), Delivery::NotSent), "{error:?}");
    assert!(format!("{:?}", error.source()).contains("nobody may do this"), "{error:?}");
    assert!(script.all("tools/call").is_empty());
}

#[cfg(feature = "ws")]
#[tokio::test]
async fn a_websocket_that_is_refused_has_the_status_of_the_refusal() {
    use toolwire_http::client::WebSocket;

    for (status, hint) in [(401, ""), (403, ""), (404, "is the path right"), (503, "")] {
        let script = Script::start(move |_| {
            Reply::status(status).header("www-authenticate", "Bearer scope=\"files:read\"")
        })
        .await;
        let url = script.url().replacen("http", "ws", 1);
        let error = builder().connect(WebSocket::new(&url).unwrap()).await.unwrap_err();
        assert_eq!((error.kind(), error.status()), (ErrorKind::Connect, Some(status)), "{error:?}");
        let source = error.source().unwrap().to_string();
        assert!(source.contains("is no WebSocket") && source.contains(hint), "{source}");
    }
}
