//! What belongs to one session or one caller: its values, its identity, notifications of a server's own, observers.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};
use toolwire_server::{
    Caller, CallerId, CallerScope, Context, Extensions, Observer, Principal, Server, Session, tool,
};
use toolwire_transport::memory;

use crate::wire::{Wire, modern, request, until};

#[derive(Default)]
struct Count(AtomicUsize);

async fn count(Session(count): Session<Count>) -> String {
    (count.0.fetch_add(1, Ordering::Relaxed) + 1).to_string()
}

async fn maybe(count: Option<Session<Count>>) -> &'static str {
    if count.is_some() { "a session" } else { "no session" }
}

async fn step(cx: Context) -> Result<String, toolwire_server::NotifyError> {
    let sent = cx.notify_custom("acme/step", &json!({"step": 1}))?;
    Ok(format!("sent: {sent}"))
}

async fn level(caller: Caller) -> String {
    format!("{:?} {}", caller.log_level(), caller.raw_capabilities().text())
}

async fn scope(caller: Caller) -> String {
    format!("{:?}", caller.id())
}

fn server() -> Server {
    Server::builder("t", "1")
        .tool(tool("count", count))
        .tool(tool("maybe", maybe))
        .tool(tool("step", step))
        .tool(tool("level", level))
        .tool(tool("scope", scope))
        .build()
        .unwrap()
}

fn call(name: &str) -> Value {
    modern(1, "tools/call", json!({"name": name}))
}

fn old_call(name: &str) -> Value {
    request(1, "tools/call", json!({"name": name}))
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

/// A connection of somebody whom the transport knows.
fn identified(server: &Server, name: &str) -> Wire {
    let (ours, theirs) = memory::pair();
    let mut extensions = Extensions::default();
    extensions.insert(Principal::new(name));
    let server = server.clone();
    tokio::spawn(async move { server.serve_with(theirs, extensions).await });
    Wire::over(ours)
}

#[tokio::test]
async fn a_legacy_session_has_values_of_its_own() {
    let server = server();
    let mut first = Wire::legacy(&server, "2025-11-25").await;
    let mut second = Wire::legacy(&server, "2024-11-05").await;
    assert_eq!(text(&first.ask(&old_call("count")).await), "1");
    assert_eq!(text(&first.ask(&old_call("count")).await), "2");
    assert_eq!(text(&second.ask(&old_call("count")).await), "1");
    assert_eq!(text(&second.ask(&old_call("maybe")).await), "a session");
}

#[tokio::test]
async fn requests_that_stand_alone_have_the_values_of_their_principal_or_none() {
    let server = server();
    let mut nobody = Wire::connect(&server);
    let answer = nobody.ask(&call("count")).await;
    let message = "requests stand alone here; return an id and take it as an argument";
    assert_eq!(answer["error"]["message"], message, "{answer}");
    assert_eq!(text(&nobody.ask(&call("maybe")).await), "no session");

    let (mut ann, mut ann_again, mut bob) =
        (identified(&server, "ann"), identified(&server, "ann"), identified(&server, "bob"));
    assert_eq!(text(&ann.ask(&call("count")).await), "1");
    assert_eq!(text(&ann_again.ask(&call("count")).await), "2");
    assert_eq!(text(&bob.ask(&call("count")).await), "1");
}

#[tokio::test]
async fn a_legacy_session_is_sent_notifications_of_ones_own() {
    let server = server();
    let mut wire = Wire::legacy(&server, "2025-11-25").await;
    let note = wire.ask(&old_call("step")).await;
    assert_eq!(note, json!({"jsonrpc": "2.0", "method": "acme/step", "params": {"step": 1}}));
    assert_eq!(text(&wire.receive().await), "sent: true");
    assert_eq!(server.notify().custom("acme/load", &json!({"load": 2})), Ok(1));
    let note = wire.receive().await;
    assert_eq!(note, json!({"jsonrpc": "2.0", "method": "acme/load", "params": {"load": 2}}));
}

fn declaring(mut request: Value, extension: &str) -> Value {
    request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({"extensions": {extension: {}}});
    request
}

#[tokio::test]
async fn a_modern_request_is_sent_only_what_it_declared() {
    let mut wire = Wire::connect(&server());
    assert_eq!(text(&wire.ask(&call("step")).await), "sent: false");
    assert_eq!(text(&wire.ask(&declaring(call("step"), "acmes/steps")).await), "sent: false");
    let note = wire.ask(&declaring(call("step"), "acme/steps")).await;
    assert_eq!(note["method"], "acme/step");
    assert_eq!(text(&wire.receive().await), "sent: true");
}

#[tokio::test]
async fn a_modern_listener_hears_what_its_filter_names() {
    let server = server();
    let mut wire = Wire::connect(&server);
    let filter = json!({"acme/load": true, "acme/off": false, "other/x": true, "notifications/x": true, "toolsListChanged": true});
    let listen = modern("l", "subscriptions/listen", json!({"notifications": filter}));
    let acknowledged = wire.ask(&declaring(listen, "acme/metrics")).await;
    let honoured = &acknowledged["params"]["notifications"];
    assert_eq!(*honoured, json!({"toolsListChanged": true, "acme/load": true}));
    let wanted = server.notify().wanted();
    assert!(wanted.tools && !wanted.prompts && wanted.custom.contains("acme/load"), "{wanted:?}");

    assert_eq!(server.notify().custom("acme/off", &json!({})), Ok(0));
    assert_eq!(server.notify().custom("other/x", &json!({})), Ok(0));
    assert_eq!(server.notify().custom("acme/load", &json!({"load": 3, "_meta": {"a": 1}})), Ok(1));
    let note = wire.receive().await;
    let meta = json!({"a": 1, "io.modelcontextprotocol/subscriptionId": "l"});
    let expected = json!({"jsonrpc": "2.0", "method": "acme/load", "params": {"load": 3, "_meta": meta}});
    assert_eq!(note, expected);
}

#[tokio::test]
async fn a_subscriber_who_reads_nothing_keeps_a_bounded_number() {
    let server = server();
    let _silent = Wire::legacy(&server, "2025-11-25").await;
    until(|| server.notify().custom("acme/x", &json!({})) == Ok(1)).await;
    // None of the tasks runs meanwhile: what is taken is what is kept.
    let kept = (0..10_000).filter(|_| server.notify().custom("acme/x", &json!({})) == Ok(1)).count();
    assert!((1..=64).contains(&kept), "{kept}");
}

#[tokio::test]
async fn the_caller_tells_its_level_and_what_it_declared() {
    let server = server();
    let mut old = Wire::legacy_with(&server, "2025-11-25", json!({"roots": {}, "acme": {"x": 1}})).await;
    assert_eq!(text(&old.ask(&old_call("level")).await), r#"Some(Info) {"roots":{},"acme":{"x":1}}"#);
    let mut new = Wire::connect(&server);
    let asked = declaring(call("level"), "acme/steps");
    assert_eq!(text(&new.ask(&asked).await), r#"None {"extensions":{"acme/steps":{}}}"#);
}

#[tokio::test]
async fn an_id_is_that_of_the_session_or_the_connection() {
    let server = server();
    let mut old = Wire::legacy(&server, "2025-11-25").await;
    let session = text(&old.ask(&old_call("scope")).await).to_owned();
    assert!(session.contains("Session"), "{session}");
    assert_eq!(text(&old.ask(&old_call("scope")).await), session);
    let (mut new, mut other) = (Wire::connect(&server), Wire::connect(&server));
    let connection = text(&new.ask(&call("scope")).await).to_owned();
    assert!(connection.contains("Connection"), "{connection}");
    assert_eq!(text(&new.ask(&call("scope")).await), connection);
    assert_ne!(text(&other.ask(&call("scope")).await), connection);
}

#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    fn note(&self, text: impl Into<String>) {
        self.0.lock().unwrap().push(text.into());
    }
}

impl Observer for Seen {
    fn connected(&self, id: CallerId) {
        assert_eq!(id.scope(), CallerScope::Connection);
        self.note("connected");
    }

    fn session_started(&self, caller: &Caller) {
        self.note(format!("{} has shaken hands", caller.info().unwrap().name));
    }

    fn left(&self, id: CallerId) {
        self.note(format!("a {:?} is over", id.scope()));
    }

    fn asked(&self, cx: &Context) {
        self.note(format!("{} {}", cx.method(), cx.target().unwrap_or_default()));
        panic!("observers disturb nobody");
    }
}

#[tokio::test]
async fn an_observer_is_told_who_comes_what_is_asked_and_who_leaves() {
    let seen = Seen::default();
    let server = Server::builder("t", "1").tool(tool("count", count)).observe(seen.clone()).build().unwrap();
    let (ours, theirs) = memory::pair();
    let serving = tokio::spawn({
        let server = server.clone();
        async move { server.serve(theirs).await }
    });
    let mut wire = Wire::over(ours);
    wire.handshake("2025-11-25", json!({})).await;
    assert_eq!(text(&wire.ask(&old_call("count")).await), "1");
    drop(wire);
    serving.await.unwrap().unwrap();
    let expected =
        ["connected", "t has shaken hands", "tools/call count", "a Connection is over", "a Session is over"];
    let mut seen = seen.0.lock().unwrap().clone();
    seen[3..].sort();
    assert_eq!(seen, expected);
}
