//! How many sessions there are, and when they go.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde_json::json;
use tokio::time::advance;
use toolwire_protocol::Message;
use toolwire_server::{Extensions, Limits, Server, tool};
use toolwire_transport::ledger::Ceilings;

use super::{
    endpoint::{LegacyEndpoint, SessionLookup},
    id::EventId,
    sessions::EVICTABLE_AFTER,
};
use crate::server::{Body, HttpLimits, config::HttpConfig, edge::Head};

fn endpoint(limits: HttpLimits) -> LegacyEndpoint {
    endpoint_of(Limits::default(), limits)
}

fn endpoint_of(server: Limits, limits: HttpLimits) -> LegacyEndpoint {
    let server = Server::builder("test", "1.0").limits(server).tool(tool("echo", || async { "echo" }));
    let server = server.build().unwrap();
    LegacyEndpoint::new(server, Arc::new(HttpConfig { limits, ..HttpConfig::default() }), None)
}

fn few() -> HttpLimits {
    HttpLimits { sessions: 3, ..HttpLimits::default() }
}

/// Sends `initialize`.
fn initialize_response(endpoint: &LegacyEndpoint) -> Response<Body> {
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }});
    let message = Message::parse(&message.to_string().into()).unwrap();
    let Message::Request(request) = message else { panic!("not a request") };
    endpoint.initialize(&request, None, endpoint.server.ledger(), &Extensions::default())
}

/// Sends `initialize`; gives the headers of the new session, or the status.
fn initialize(endpoint: &LegacyEndpoint) -> Result<HeaderMap, StatusCode> {
    let response = initialize_response(endpoint);
    let mut headers = HeaderMap::new();
    match response.headers().get("mcp-session-id") {
        Some(id) => headers.insert("mcp-session-id", id.clone()),
        None => return Err(response.status()),
    };
    Ok(headers)
}

fn initialized(endpoint: &LegacyEndpoint) -> HeaderMap {
    let headers = initialize(endpoint).unwrap();
    find(endpoint, &headers).session().unwrap().session.set_initialized();
    headers
}

fn find(endpoint: &LegacyEndpoint, headers: &HeaderMap) -> SessionLookup {
    endpoint.find(Head::of(headers).session_id.bytes(), None)
}

async fn open_stream(endpoint: &LegacyEndpoint, headers: &HeaderMap) -> Response<Body> {
    let mut parts = http::Request::new(()).into_parts().0;
    parts.headers = headers.clone();
    endpoint.get(&Head::of(headers), &parts, None).await
}

fn is_known(endpoint: &LegacyEndpoint, headers: &HeaderMap) -> bool {
    find(endpoint, headers).session().is_some()
}

/// Lets the sweeper have its turn.
async fn settle() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_not_used_expires() {
    let endpoint = endpoint(HttpLimits::default());
    let headers = initialized(&endpoint);
    advance(Duration::from_secs(29 * 60)).await;
    assert!(is_known(&endpoint, &headers));
    // Being asked for has kept it.
    advance(Duration::from_secs(29 * 60)).await;
    assert!(is_known(&endpoint, &headers));
    advance(Duration::from_secs(30 * 60)).await;
    assert!(!is_known(&endpoint, &headers));
    assert_eq!(endpoint.sessions(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_is_not_finished_expires_sooner() {
    let limits = HttpLimits::default();
    let endpoint = endpoint(limits.clone());
    let headers = initialize(&endpoint).unwrap();
    advance(limits.session_handshake.mul_f64(0.9)).await;
    assert!(is_known(&endpoint, &headers));
    // Here being asked for does not help.
    advance(limits.session_handshake.mul_f64(0.1)).await;
    assert!(!is_known(&endpoint, &headers));
}

#[tokio::test(start_paused = true)]
async fn an_open_stream_keeps_its_session() {
    let endpoint = endpoint(HttpLimits::default());
    let headers = initialized(&endpoint);
    let response = open_stream(&endpoint, &headers).await;
    assert_eq!(response.status(), StatusCode::OK);
    advance(Duration::from_secs(60 * 60)).await;
    settle().await;
    assert_eq!(endpoint.sessions(), 1);
    drop(response);
    advance(Duration::from_secs(29 * 60)).await;
    settle().await;
    assert_eq!(endpoint.sessions(), 1);
    advance(Duration::from_secs(60)).await;
    settle().await;
    assert_eq!(endpoint.sessions(), 0);
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_sessions_that_never_come_back_are_bounded_and_go() {
    let limits = HttpLimits::default();
    let longest = limits.session_handshake + Duration::from_secs(10);
    let endpoint = endpoint(limits);
    for _ in 0..10_100 {
        initialize(&endpoint).unwrap();
    }
    assert_eq!(endpoint.sessions(), 10_000);
    // Nobody asks for anything; the sweeper does it alone.
    tokio::time::sleep(longest).await;
    assert_eq!(endpoint.sessions(), 0);
    // And it is there again for those who come later.
    initialize(&endpoint).unwrap();
    tokio::time::sleep(longest).await;
    assert_eq!(endpoint.sessions(), 0);
}

#[tokio::test(start_paused = true)]
async fn when_it_is_full_unfinished_handshakes_go_first() {
    let endpoint = endpoint(few());
    let (one, two) = (initialized(&endpoint), initialized(&endpoint));
    let unfinished = initialize(&endpoint).unwrap();
    let newest = initialize(&endpoint).unwrap();
    assert!(!is_known(&endpoint, &unfinished));
    for headers in [&one, &two, &newest] {
        assert!(is_known(&endpoint, headers));
    }
}

#[tokio::test(start_paused = true)]
async fn when_it_is_full_the_longest_idle_goes_but_none_that_is_in_use() {
    let endpoint = endpoint(few());
    let one = initialized(&endpoint);
    advance(Duration::from_secs(1)).await;
    let two = initialized(&endpoint);
    let three = initialized(&endpoint);
    assert_eq!(initialize(&endpoint), Err(StatusCode::SERVICE_UNAVAILABLE));
    let stream = open_stream(&endpoint, &one).await;
    advance(EVICTABLE_AFTER).await;
    assert!(is_known(&endpoint, &three));
    // The first has a stream, the third was just used.
    let newest = initialize(&endpoint).unwrap();
    assert!(!is_known(&endpoint, &two));
    for headers in [&one, &three, &newest] {
        assert!(is_known(&endpoint, headers));
    }
    drop(stream);
}

#[tokio::test(start_paused = true)]
async fn who_comes_back_to_life_does_not_make_room() {
    let endpoint = endpoint(few());
    let one = initialized(&endpoint);
    advance(Duration::from_secs(1)).await;
    let two = initialized(&endpoint);
    advance(Duration::from_secs(1)).await;
    let three = initialized(&endpoint);
    advance(EVICTABLE_AFTER).await;
    // All of them may go. The first one does, and the others are remembered for the next time.
    let four = initialized(&endpoint);
    assert!(!is_known(&endpoint, &one));
    assert!(is_known(&endpoint, &two), "which is a sign of life");
    let five = initialized(&endpoint);
    assert!(!is_known(&endpoint, &three));
    for headers in [&two, &four, &five] {
        assert!(is_known(&endpoint, headers));
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_says_when_to_come_back() {
    let endpoint = endpoint(HttpLimits { sessions: 0, ..HttpLimits::default() });
    let response = initialize_response(&endpoint);
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.headers()["retry-after"], HeaderValue::from(60));
}

#[tokio::test(start_paused = true)]
async fn the_sweeper_ends_with_its_endpoint() {
    let endpoint = endpoint(HttpLimits::default());
    initialized(&endpoint);
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    assert_eq!(tasks(), 1);
    drop(endpoint);
    settle().await;
    assert_eq!(tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_session_remembers_only_so_many_streams() {
    let endpoint = endpoint(HttpLimits::default());
    let headers = initialized(&endpoint);
    let session = find(&endpoint, &headers).session().unwrap();
    let keep = Duration::from_secs(300);
    let first = session.open_stream(keep);
    for _ in 0..1000 {
        session.open_stream(keep).end();
    }
    assert_eq!(session.streams(), 256);
    // The one that is still in use is among them.
    assert!(session.stream_of(EventId { stream: 1, sequence: 0 }, keep).is_some());
    first.end();
    advance(keep).await;
    session.forget_ended(keep);
    assert_eq!(session.streams(), 0);
}

#[tokio::test(start_paused = true)]
async fn callers_without_a_share_of_their_own_take_no_session_from_each_other() {
    let limits = Limits { sessions_per_caller: 1, ..Limits::default() };
    let endpoint = endpoint_of(limits, HttpLimits::default());
    let sessions = [(); 3].map(|()| initialize(&endpoint).unwrap());
    assert!(!endpoint.makes_room_for(endpoint.server.ledger()));
    assert!(sessions.iter().all(|headers| is_known(&endpoint, headers)));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_kept_of_a_caller_while_there_are_no_sessions() {
    let limits = Limits { sessions_per_caller: 0, ..Limits::default() };
    let endpoint = endpoint_of(limits, HttpLimits::default());
    let caller = endpoint.server.ledger().child(Ceilings::NONE);
    assert!(!endpoint.makes_room_for(&caller));
    let caller = { caller }.downgrade();
    assert!(caller.is_gone());
}
