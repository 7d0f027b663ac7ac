//! Streams: when a response becomes one, what is on it, and how it is resumed.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use http::StatusCode;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use toolwire_http::server::{Body, EventLog, LoggedEvent, Principal, SessionId, StreamKey};
use toolwire_protocol::framing::sse::SseDecoder;
use toolwire_server::{Server, resource};
use toolwire_transport::BoxFuture;

use crate::legacy_kit::*;

const TALK: [&str; 4] = ["message 1", "message 2", "message 3", "talked"];
const CHANGED: &str = "notifications/tools/list_changed";

#[tokio::test]
async fn a_message_before_the_answer_makes_the_response_a_stream() {
    let (service, _) = service();
    let peer = Peer::connect(&service, NEWEST).await;
    let response = peer.call(1, "talk").await;
    assert_eq!(response.headers()["cache-control"], "no-store");
    assert_eq!(response.headers()["x-accel-buffering"], "no");
    let mut stream = Events::of(response);
    let priming = stream.next().await.unwrap();
    assert_eq!((priming.data.as_str(), priming.retry), ("", Some(Duration::from_secs(1))));
    assert!(priming.id.is_some());
    assert_eq!(gists(&stream.rest().await), TALK);
}

#[tokio::test]
async fn older_clients_get_ids_but_no_event_without_a_message() {
    let (service, _) = service();
    for version in ["2025-03-26", "2025-06-18"] {
        let peer = Peer::connect(&service, version).await;
        let mut stream = Events::of(peer.call(1, "talk").await);
        let first = stream.next().await.unwrap();
        assert!(first.id.is_some() && first.retry.is_none() && first.data.contains("message 1"), "{first:?}");
        assert_eq!(gists(&stream.rest().await), TALK[1..]);
        // Nor are they sent away: they would not come back.
        assert_eq!(gist(&json_body(peer.call(2, "poll").await).await), "cannot be resumed");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_takes_long_becomes_a_stream_that_is_kept_alive() {
    let (service, gate) = service();
    let peer = Peer::connect(&service, NEWEST).await;
    let started = tokio::time::Instant::now();
    let response = peer.call(1, "wait").await;
    assert_eq!(started.elapsed(), Duration::from_secs(5));
    let mut body = response.into_body();
    let mut text = String::new();
    for _ in 0..3 {
        let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
        text += std::str::from_utf8(&frame).unwrap();
    }
    assert_eq!(text.matches(": keep-alive\n\n").count(), 2, "{text}");
    gate.open();
    let rest = body.collect().await.unwrap().to_bytes();
    assert!(std::str::from_utf8(&rest).unwrap().contains("waited"));
}

#[tokio::test]
async fn a_client_that_takes_only_json_gets_only_the_answer() {
    let (service, _) = service();
    let peer = Peer::connect(&service, NEWEST).await;
    let only = |accept: &'static str| {
        let peer = peer.clone();
        async move {
            let mut request = http::Request::post("/mcp")
                .header("host", "127.0.0.1")
                .header("content-type", "application/json")
                .header("accept", accept)
                .header("mcp-session-id", peer.session.as_deref().unwrap())
                .body(http_body_util::Full::new(Bytes::from(call(1, "talk").to_string())))
                .unwrap();
            request.headers_mut().insert("mcp-protocol-version", NEWEST.parse().unwrap());
            tower_service::Service::call(&mut peer.service.clone(), request).await.unwrap()
        }
    };
    assert_eq!(gist(&json_body(only("application/json").await).await), "talked");
    assert_eq!(gists(&Events::of(only("text/event-stream").await).rest().await), TALK);
}

#[tokio::test]
async fn each_message_is_on_one_stream() {
    let (server, gate, _) = server();
    let service = crate::unaddressed(server.clone());
    let peer = Peer::connect(&service, NEWEST).await;
    let mut standalone = Events::of(peer.get(None).await);
    let mut one = Events::of(peer.call(1, "talk_and_wait").await);
    let mut two = Events::of(peer.call(2, "talk").await);
    server.notify().tools_changed();
    assert_eq!(gist(&standalone.message().await.unwrap()), CHANGED);
    gate.open();
    assert_eq!(gists(&one.rest().await), ["before", "after", "talked and waited"]);
    assert_eq!(gists(&two.rest().await), TALK);
    // Nothing else has come on the standalone stream.
    server.notify().resources_changed();
    assert_eq!(gist(&standalone.message().await.unwrap()), "notifications/resources/list_changed");
}

#[tokio::test]
async fn changes_wait_for_a_stream_each_kind_once() {
    let (server, ..) = server();
    let service = crate::unaddressed(server.clone());
    let peer = Peer::connect(&service, NEWEST).await;
    for _ in 0..1000 {
        server.notify().tools_changed();
    }
    let mut standalone = Events::of(peer.get(None).await);
    assert_eq!(gist(&standalone.message().await.unwrap()), CHANGED);
    server.notify().prompts_changed();
    assert_eq!(gist(&standalone.message().await.unwrap()), "notifications/prompts/list_changed");
    // While nobody reads, they wait again.
    drop(standalone);
    tokio::task::yield_now().await;
    for _ in 0..1000 {
        server.notify().tools_changed();
    }
    let mut standalone = Events::of(peer.get(None).await);
    assert_eq!(gist(&standalone.message().await.unwrap()), CHANGED);
    server.notify().prompts_changed();
    assert_eq!(gist(&standalone.message().await.unwrap()), "notifications/prompts/list_changed");
}

#[tokio::test]
async fn the_newest_get_wins() {
    let (server, ..) = server();
    let service = crate::unaddressed(server.clone());
    let peer = Peer::connect(&service, NEWEST).await;
    let mut older = Events::of(peer.get(None).await);
    server.notify().tools_changed();
    assert_eq!(gist(&older.message().await.unwrap()), CHANGED);
    let mut newer = Events::of(peer.get(None).await);
    assert!(older.next().await.is_none());
    drop(older);
    server.notify().prompts_changed();
    assert_eq!(gist(&newer.message().await.unwrap()), "notifications/prompts/list_changed");
}

#[tokio::test]
async fn the_standalone_stream_is_resumed_where_it_was_cut() {
    let (server, ..) = server();
    let service = crate::unaddressed(server.clone());
    let peer = Peer::connect(&service, NEWEST).await;
    let mut standalone = Events::of(peer.get(None).await);
    server.notify().tools_changed();
    assert_eq!(gist(&standalone.message().await.unwrap()), CHANGED);
    let id = standalone.last_event_id();
    server.notify().prompts_changed();
    assert_eq!(gist(&standalone.message().await.unwrap()), "notifications/prompts/list_changed");
    drop(standalone);
    // The client has seen the first one only.
    let mut resumed = Events::of(peer.get(Some(&id)).await);
    assert_eq!(gist(&resumed.message().await.unwrap()), "notifications/prompts/list_changed");
    server.notify().resources_changed();
    assert_eq!(gist(&resumed.message().await.unwrap()), "notifications/resources/list_changed");
}

#[tokio::test]
async fn a_handler_can_send_the_client_away_and_it_gets_its_answer_later() {
    let (service, gate) = service();
    let peer = Peer::connect(&service, NEWEST).await;
    let mut stream = Events::of(peer.call(1, "poll").await);
    let priming = stream.next().await.unwrap();
    assert!(priming.data.is_empty() && priming.retry.is_some());
    assert!(stream.next().await.is_none(), "the stream ends without an answer");
    let id = priming.id.unwrap();
    // It may come before the answer, and be cut off, and come again.
    let mut early = Events::of(peer.get(Some(&id)).await);
    assert!(early.next().await.unwrap().data.is_empty());
    drop(early);
    let mut again = Events::of(peer.get(Some(&id)).await);
    gate.open();
    assert_eq!(gists(&again.rest().await), ["polled"]);
    // Or after it.
    assert_eq!(gists(&Events::of(peer.get(Some(&id)).await).rest().await), ["polled"]);
}

#[tokio::test]
async fn only_the_stream_that_was_cut_is_replayed() {
    let (service, gate) = service();
    let peer = Peer::connect(&service, NEWEST).await;
    let mut one = Events::of(peer.call(1, "talk_and_wait").await);
    assert_eq!(gist(&one.message().await.unwrap()), "before");
    let id = one.last_event_id();
    assert_eq!(gists(&Events::of(peer.call(2, "talk").await).rest().await), TALK);
    drop(one);
    gate.open();
    assert_eq!(gists(&Events::of(peer.get(Some(&id)).await).rest().await), ["after", "talked and waited"]);
}

#[tokio::test]
async fn what_cannot_be_resumed_is_a_bad_request() {
    let (service, _) = service();
    let peer = Peer::connect(&service, NEWEST).await;
    let mut stream = Events::of(peer.call(1, "talk").await);
    stream.rest().await;
    let last = stream.last_event_id();
    for unknown in ["", "nonsense", "7-0", "1-99", "0-1", "1"] {
        assert_eq!(peer.get(Some(unknown)).await.status(), StatusCode::BAD_REQUEST, "{unknown}");
    }
    // Another session has no such event.
    let other = Peer::connect(&service, NEWEST).await;
    assert_eq!(other.get(Some(&last)).await.status(), StatusCode::BAD_REQUEST);
    // The session itself is as good as before.
    assert_eq!(peer.call(2, "echo").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_client_that_has_everything_is_told_not_to_come_back() {
    let (service, _) = service();
    let peer = Peer::connect(&service, NEWEST).await;
    // All there is, with the answer.
    let mut answered = Events::of(peer.call(1, "talk").await);
    answered.rest().await;
    // All there is, without one: the request was cancelled.
    let mut given_up = Events::of(peer.call(2, "talk_and_wait").await);
    assert_eq!(gist(&given_up.message().await.unwrap()), "before");
    peer.post(&cancelled(2)).await;
    assert!(given_up.rest().await.is_empty());
    for stream in [answered, given_up] {
        let response = peer.get(Some(&stream.last_event_id())).await;
        assert_eq!(response.status(), StatusCode::NO_CONTENT);
        assert!(bytes(response).await.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_finished_stream_can_be_resumed_for_a_while() {
    let (service, _) = service();
    let peer = Peer::connect(&service, NEWEST).await;
    let mut stream = Events::of(peer.call(1, "talk").await);
    let id = stream.next().await.unwrap().id.unwrap();
    drop(stream);
    // Its task may still be writing; reading to the end waits for it.
    assert_eq!(gists(&Events::of(peer.get(Some(&id)).await).rest().await), TALK);
    tokio::time::advance(Duration::from_secs(299)).await;
    assert_eq!(gists(&Events::of(peer.get(Some(&id)).await).rest().await), TALK);
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(peer.get(Some(&id)).await.status(), StatusCode::BAD_REQUEST);
}

/// What a client has when its connection breaks after so many bytes.
struct Cut {
    messages: Vec<Value>,
    last_event_id: Option<String>,
    /// Whether the body was shorter than that.
    complete: bool,
}

async fn read_until(mut body: Body, bytes: usize) -> Cut {
    let mut decoder = SseDecoder::new(1 << 20);
    let (mut messages, mut left) = (Vec::new(), bytes);
    while left > 0 {
        let Some(frame) = body.frame().await else { break };
        let mut chunk = frame.unwrap().into_data().unwrap();
        chunk.truncate(left);
        left -= chunk.len();
        while let Some(event) = decoder.decode(&mut chunk).unwrap() {
            if !event.data.is_empty() {
                messages.push(serde_json::from_str(&event.data).unwrap());
            }
        }
    }
    Cut { messages, last_event_id: decoder.last_event_id().map(ToOwned::to_owned), complete: left > 0 }
}

#[tokio::test]
async fn a_finished_stream_cut_at_any_byte_loses_and_repeats_nothing() {
    let (service, _) = service();
    let peer = Peer::connect(&service, NEWEST).await;
    let mut id = 0;
    for bytes in 0.. {
        id += 1;
        let first = read_until(peer.call(id, "talk").await.into_body(), bytes).await;
        if first.complete {
            assert_eq!(gists(&first.messages), TALK);
            assert!(bytes > 400, "a stream of only {bytes} bytes was cut");
            return;
        }
        let Some(last) = first.last_event_id else {
            assert!(bytes < 32, "no id after {bytes} bytes");
            continue;
        };
        let rest = Events::resumed(peer.get(Some(&last)).await).rest().await;
        assert_eq!(gists(&[first.messages, rest].concat()), TALK, "cut after {bytes} bytes");
    }
}

#[tokio::test(start_paused = true)]
async fn a_running_stream_cut_twice_at_any_byte_loses_and_repeats_nothing() {
    let (service, gate) = service();
    let peer = Peer::connect(&service, NEWEST).await;
    let expected = ["before", "after", "talked and waited"];
    let mut id = 0;
    for (first, second) in
        (33..150).flat_map(|first| [(first, 1), (first, 40), (first, 120), (first, 10_000)])
    {
        id += 1;
        let cut = read_until(peer.call(id, "talk_and_wait").await.into_body(), first).await;
        let mut messages = cut.messages;
        let mut last = cut.last_event_id.unwrap();
        let resumed = peer.get(Some(&last)).await.into_body();
        gate.open();
        let cut = read_until(resumed, second).await;
        messages.extend(cut.messages);
        last = cut.last_event_id.unwrap_or(last);
        messages.extend(Events::resumed(peer.get(Some(&last)).await).rest().await);
        assert_eq!(gists(&messages), expected, "cut after {first} and {second} bytes");
    }
}

#[tokio::test]
async fn the_server_shutting_down_ends_the_standalone_stream() {
    let (server, ..) = server();
    let service = crate::unaddressed(server.clone());
    let peer = Peer::connect(&service, NEWEST).await;
    let mut standalone = Events::of(peer.get(None).await);
    assert!(standalone.next().await.unwrap().data.is_empty());
    server.shutdown();
    assert!(standalone.next().await.is_none());
}

/// A log that takes its time, and fails.
#[derive(Debug)]
struct Unreliable(Arc<Semaphore>);

impl EventLog for Unreliable {
    fn append<'a>(&'a self, _: &'a StreamKey, _: LoggedEvent) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async {
            self.0.acquire().await.unwrap().forget();
            Err(io::Error::other("full"))
        })
    }

    fn after<'a>(&'a self, _: &'a StreamKey, _: u64) -> BoxFuture<'a, io::Result<Vec<LoggedEvent>>> {
        Box::pin(async { Err(io::Error::other("gone")) })
    }

    fn end_stream(&self, _: &StreamKey) {}

    fn forget(&self, _: &SessionId) {}

    fn sweep(&self) {}
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_before_it_is_logged_and_everything_is_when_that_fails() {
    let log = Unreliable(Arc::new(Semaphore::new(0)));
    let slowly = Arc::clone(&log.0);
    let (service, _) = service_with(|http| http.event_log(log));
    let peer = Peer::connect(&service, NEWEST).await;
    let mut stream = Events::of(peer.call(1, "talk").await);
    let id = stream.next().await.unwrap().id.unwrap();
    for expected in TALK {
        let silence = tokio::time::timeout(Duration::from_secs(2), stream.next()).await;
        assert!(silence.is_err(), "{silence:?}");
        slowly.add_permits(1);
        assert_eq!(gist(&stream.message().await.unwrap()), expected);
    }
    assert!(stream.next().await.is_none());
    assert_eq!(peer.get(Some(&id)).await.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn news_is_for_whoever_reads_and_not_for_whoever_has_subscribed() {
    let server = Server::builder("mail", "1")
        .resource(resource("mail://1", || async { "secret" }).scopes(["mail"]))
        .resource(resource("news://1", || async { "news" }))
        .build()
        .unwrap();
    let ada = |scopes: &str| Some(Principal::builder("ada").scopes(scopes.parse().unwrap()).build());
    let mut peer = Peer::stranger(&crate::unaddressed(server.clone()));
    peer.principal = ada("mail");
    peer.initialize(NEWEST).await;
    peer.initialized().await;
    for (id, uri) in [(1, "mail://1"), (2, "news://1")] {
        let subscribe =
            json!({"jsonrpc": "2.0", "id": id, "method": "resources/subscribe", "params": {"uri": uri}});
        assert!(json_body(peer.post(&subscribe).await).await["result"].is_object());
    }
    // The same user comes back with a token that allows less.
    for (scopes, heard) in [("", "news://1"), ("mail", "mail://1")] {
        peer.principal = ada(scopes);
        let mut events = Events::of(peer.get(None).await);
        server.notify().resource_updated("mail://1");
        server.notify().resource_updated("news://1");
        assert_eq!(events.message().await.unwrap()["params"]["uri"], heard);
    }
}
