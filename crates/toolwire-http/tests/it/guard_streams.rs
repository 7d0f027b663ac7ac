//! What stays open behind a guard: whose it is, and when it ends.

use std::time::Duration;

use http::{Response, StatusCode};
use serde_json::{Value, json};
use tokio::time::Instant;
use toolwire_http::server::{Body, HttpService};

use crate::{
    guard_kit::{guarded, modern, request, send},
    legacy_kit::{self, Events, Gate, NEWEST, gist, json_body},
};

/// A minute of leeway after the half minute that the key `alice-brief` is valid.
const BRIEFLY: Duration = Duration::from_secs(90);
const HOUR: Duration = Duration::from_secs(60 * 60);
/// The tolerance for tests that run slowly: keys expire by the clock of the system, which is not paused.
const SLACK: Duration = Duration::from_secs(30);

fn service() -> (HttpService, Gate) {
    let (server, gate, _) = legacy_kit::server();
    let service = guarded(server, |http| {
        #[cfg(feature = "sse2024")]
        let http = http.sse2024("/sse", "/messages");
        #[cfg(feature = "ws")]
        let http = http.websocket(true);
        http
    });
    (service, gate)
}

/// A legacy client that shows a key.
#[derive(Clone)]
struct Peer {
    service: HttpService,
    key: &'static str,
    session: String,
}

impl Peer {
    async fn connect(service: &HttpService, key: &'static str) -> Self {
        let mut peer = Self { service: service.clone(), key, session: String::new() };
        let response =
            send(service, request(Some(key), "POST", "/mcp"), &legacy_kit::initialize(NEWEST)).await;
        assert_eq!(response.status(), StatusCode::OK);
        peer.session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(peer.post(&note).await.status(), StatusCode::ACCEPTED);
        peer
    }

    /// The same session by somebody with another key.
    fn with(&self, key: &'static str) -> Self {
        Self { key, ..self.clone() }
    }

    async fn send(&self, method: &str, last_event: Option<&str>, body: &Value) -> Response<Body> {
        let mut request = request(Some(self.key), method, "/mcp")
            .header("mcp-session-id", &self.session)
            .header("mcp-protocol-version", NEWEST);
        if let Some(last) = last_event {
            request = request.header("last-event-id", last);
        }
        send(&self.service, request, body).await
    }

    async fn post(&self, body: &Value) -> Response<Body> {
        self.send("POST", None, body).await
    }
}

#[tokio::test]
async fn a_session_is_of_one_user_by_one_client_and_of_nobody_else() {
    let (service, gate) = service();
    let alice = Peer::connect(&service, "alice-1").await;
    let waiting = tokio::spawn({
        let alice = alice.clone();
        async move { alice.post(&legacy_kit::call(7, "poll")).await }
    });
    let mut events = Events::of(waiting.await.unwrap());
    events.next().await;
    let last = events.last_event_id();
    for key in ["bob-1", "alice-of-mail"] {
        let other = alice.with(key);
        assert_eq!(other.post(&legacy_kit::call(1, "echo")).await.status(), StatusCode::NOT_FOUND, "{key}");
        assert_eq!(other.send("GET", None, &Value::Null).await.status(), StatusCode::NOT_FOUND, "{key}");
        assert_eq!(
            other.send("GET", Some(&last), &Value::Null).await.status(),
            StatusCode::NOT_FOUND,
            "{key}"
        );
        assert_eq!(other.send("DELETE", None, &Value::Null).await.status(), StatusCode::NOT_FOUND, "{key}");
        let cancelled = other.post(&legacy_kit::cancelled(7)).await;
        assert_eq!(cancelled.status(), StatusCode::NOT_FOUND, "{key}");
    }
    // A key that was renewed is the same caller's.
    let renewed = alice.with("alice-2");
    assert_eq!(gist(&json_body(renewed.post(&legacy_kit::call(1, "echo")).await).await), "echo");
    gate.open();
    let mut resumed = Events::resumed(renewed.send("GET", Some(&last), &Value::Null).await);
    assert_eq!(gist(&resumed.message().await.unwrap()), "polled");
    assert_eq!(renewed.send("DELETE", None, &Value::Null).await.status(), StatusCode::NO_CONTENT);
}

async fn listen(service: &HttpService, key: &str) -> Events {
    let wanted = json!({ "notifications": { "toolsListChanged": true } });
    let mut events = Events::of(modern(service, Some(key), "subscriptions/listen", wanted).await);
    let acknowledged = events.message().await.unwrap();
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    events
}

#[tokio::test(start_paused = true)]
async fn a_subscription_ends_with_its_result_when_the_key_is_not_valid_any_longer() {
    let (service, _) = service();
    for (key, end) in [("alice-brief", BRIEFLY), ("alice-for-ever", HOUR)] {
        let started = Instant::now();
        let mut events = listen(&service, key).await;
        let last = events.message().await.unwrap();
        assert!(last["result"].is_object(), "{last}");
        assert_eq!(events.message().await, None);
        let lasted = started.elapsed();
        assert!(lasted <= end + Duration::from_secs(1) && lasted + SLACK >= end, "{key}: {lasted:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_stream_of_a_session_ends_with_the_key_and_the_session_goes_on() {
    let (service, gate) = service();
    let alice = Peer::connect(&service, "alice-brief").await;
    let started = Instant::now();
    let call = tokio::spawn({
        let alice = alice.clone();
        async move { alice.post(&legacy_kit::call(1, "wait")).await }
    });
    let mut stream = Events::of(alice.send("GET", None, &Value::Null).await);
    assert_eq!(stream.message().await, None);
    let lasted = started.elapsed();
    assert!(lasted <= BRIEFLY + Duration::from_secs(1) && lasted + SLACK >= BRIEFLY, "{lasted:?}");
    // What was under way is not cut off.
    gate.open();
    let mut answer = Events::of(call.await.unwrap());
    assert_eq!(gist(&answer.message().await.unwrap()), "waited");
    let renewed = alice.with("alice-1");
    assert_eq!(gist(&json_body(renewed.post(&legacy_kit::call(2, "echo")).await).await), "echo");
}

#[cfg(feature = "sse2024")]
mod sse2024 {
    use super::*;

    async fn open(service: &HttpService, key: &str) -> (Events, String) {
        let mut stream = Events::of(send(service, request(Some(key), "GET", "/sse"), &Value::Null).await);
        let place = stream.next().await.unwrap().data;
        let initialize = legacy_kit::initialize("2024-11-05");
        let response = send(service, request(Some(key), "POST", &place), &initialize).await;
        assert_eq!(response.status(), StatusCode::ACCEPTED);
        stream.message().await.unwrap();
        let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        send(service, request(Some(key), "POST", &place), &note).await;
        (stream, place)
    }

    #[tokio::test]
    async fn a_stream_of_2024_takes_messages_of_its_own_caller_alone() {
        let (service, _) = service();
        let (mut stream, place) = open(&service, "alice-1").await;
        for key in ["bob-1", "alice-of-mail"] {
            let post = send(&service, request(Some(key), "POST", &place), &legacy_kit::call(1, "echo")).await;
            assert_eq!(post.status(), StatusCode::NOT_FOUND, "{key}");
        }
        let post =
            send(&service, request(Some("alice-2"), "POST", &place), &legacy_kit::call(2, "echo")).await;
        assert_eq!(post.status(), StatusCode::ACCEPTED);
        assert_eq!(stream.message().await.unwrap()["id"], 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_of_2024_ends_with_the_key_and_a_call_under_way_is_answered_first() {
        let (service, gate) = service();
        let (mut stream, place) = open(&service, "alice-brief").await;
        let post =
            send(&service, request(Some("alice-1"), "POST", &place), &legacy_kit::call(1, "wait")).await;
        assert_eq!(post.status(), StatusCode::ACCEPTED);
        // Longer than connections are given that end for other reasons.
        tokio::time::sleep(BRIEFLY + Duration::from_secs(10)).await;
        let post =
            send(&service, request(Some("alice-1"), "POST", &place), &legacy_kit::call(2, "echo")).await;
        assert_eq!(post.status(), StatusCode::NOT_FOUND);
        gate.open();
        let answer = stream.message().await.unwrap();
        assert_eq!((&answer["id"], gist(&answer)), (&json!(1), "waited".to_owned()));
        assert_eq!(stream.message().await, None);
    }
}

#[cfg(feature = "ws")]
mod websocket {
    use futures_util::{SinkExt as _, StreamExt as _};
    use tokio::io::DuplexStream;
    use tokio_tungstenite::{
        WebSocketStream, client_async,
        tungstenite::{Message, client::IntoClientRequest as _},
    };

    use super::*;
    use crate::bare::enveloped;

    async fn open(service: &HttpService, key: &str) -> WebSocketStream<DuplexStream> {
        let (client, stream) = tokio::io::duplex(1 << 16);
        let service = service.clone();
        tokio::spawn(async move { service.serve_connection(stream).await });
        let mut request = "ws://files.example/mcp".into_client_request().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
        client_async(request, client).await.unwrap().0
    }

    async fn next(socket: &mut WebSocketStream<DuplexStream>) -> Option<Value> {
        loop {
            match socket.next().await {
                Some(Ok(Message::Text(text))) => return Some(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                Some(Ok(_)) => {}
            }
        }
    }

    fn ask(id: u64, method: &str, params: Value) -> Message {
        let mut message = enveloped(method, params);
        message["id"] = id.into();
        Message::text(message.to_string())
    }

    #[tokio::test(start_paused = true)]
    async fn a_websocket_is_closed_in_order_when_the_key_is_not_valid_any_longer() {
        let (service, gate) = service();
        let mut socket = open(&service, "alice-brief").await;
        let started = Instant::now();
        let wanted = json!({ "notifications": { "toolsListChanged": true } });
        socket.send(ask(1, "subscriptions/listen", wanted)).await.unwrap();
        assert_eq!(next(&mut socket).await.unwrap()["method"], "notifications/subscriptions/acknowledged");
        socket.send(ask(2, "tools/call", json!({ "name": "wait", "arguments": {} }))).await.unwrap();
        let ended = next(&mut socket).await.unwrap();
        assert_eq!(ended["id"], 1, "{ended}");
        assert!(ended["result"].is_object(), "{ended}");
        let lasted = started.elapsed();
        assert!(lasted <= BRIEFLY + Duration::from_secs(1) && lasted + SLACK >= BRIEFLY, "{lasted:?}");
        assert_eq!(next(&mut socket).await.unwrap()["method"], "notifications/cancelled");
        // Nothing more is taken; what was under way has its time.
        socket.send(ask(3, "tools/call", json!({ "name": "echo", "arguments": {} }))).await.unwrap();
        tokio::time::sleep(Duration::from_secs(10)).await;
        gate.open();
        let answer = next(&mut socket).await.unwrap();
        assert_eq!((&answer["id"], gist(&answer)), (&json!(2), "waited".to_owned()));
        assert_eq!(next(&mut socket).await, None);
    }
}
