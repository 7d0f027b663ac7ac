//! Sessions from the first request to the last: which status comes when.

use std::time::Duration;

use http::StatusCode;
use serde_json::json;
use tokio::time;
use toolwire_http::server::{Legacy, Principal};
use toolwire_server::Limits;

use crate::{legacy_kit::*, until};

#[tokio::test]
async fn a_session_from_beginning_to_end() {
    let (service, _) = service();
    let mut peer = Peer::stranger(&service);
    peer.initialize(NEWEST).await;
    let id = peer.session.clone().unwrap();
    assert!(id.len() >= 22 && id.bytes().all(|byte| (0x21..=0x7e).contains(&byte)), "{id}");
    peer.initialized().await;
    let answer = json_body(peer.call(1, "echo").await).await;
    assert_eq!(gist(&answer), "echo");
    let pong = json_body(peer.post(&json!({"jsonrpc": "2.0", "id": "p", "method": "ping"})).await).await;
    assert_eq!(pong, json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
    assert_eq!(peer.delete().await.status(), StatusCode::NO_CONTENT);
    for response in [peer.call(2, "echo").await, peer.get(None).await, peer.delete().await] {
        assert_eq!(response.status(), StatusCode::NOT_FOUND);
    }
    // The client starts anew, without the old id.
    peer.session = None;
    peer.version = None;
    peer.initialize(NEWEST).await;
    assert_ne!(peer.session.unwrap(), id);
}

#[tokio::test]
async fn without_a_session_400_with_a_wrong_one_404() {
    let (service, _) = service();
    let mut peer = Peer::stranger(&service);
    for response in [peer.call(1, "echo").await, peer.get(None).await, peer.delete().await] {
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    }
    for unknown in ["AAAAAAAAAAAAAAAAAAAAAAAA", "not one of ours", ""] {
        peer.session = Some(unknown.to_owned());
        let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        for response in [
            peer.call(1, "echo").await,
            peer.post(&note).await,
            peer.post(&json!({"jsonrpc": "2.0", "id": 1, "result": {}})).await,
            peer.get(None).await,
            peer.delete().await,
        ] {
            assert_eq!(response.status(), StatusCode::NOT_FOUND, "{unknown}");
        }
    }
}

#[tokio::test]
async fn the_version_header_is_checked_and_the_handshake_rules() {
    let (service, _) = service();
    let mut peer = Peer::connect(&service, "2025-06-18").await;
    for (header, status) in [
        (None, StatusCode::OK),
        (Some("2025-03-26"), StatusCode::OK),
        (Some("2025-06-18"), StatusCode::OK),
        (Some("1.0"), StatusCode::BAD_REQUEST),
    ] {
        peer.version = header;
        assert_eq!(peer.call(1, "echo").await.status(), status, "{header:?}");
    }
    peer.version = Some("1.0");
    assert_eq!(peer.get(None).await.status(), StatusCode::BAD_REQUEST);
    // Modern clients have nothing to get or to delete.
    peer.version = Some("2026-07-28");
    for response in [peer.get(None).await, peer.delete().await] {
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(response.headers()["allow"], "POST");
    }
}

#[tokio::test]
async fn notifications_and_responses_are_accepted() {
    let (service, _) = service();
    let peer = Peer::connect(&service, NEWEST).await;
    for message in [
        cancelled(77),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled"}),
        json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}),
        json!({"jsonrpc": "2.0", "method": "notifications/unheard-of"}),
        json!({"jsonrpc": "2.0", "id": 5, "result": {}}),
        json!({"jsonrpc": "2.0", "id": 5, "error": {"code": -1, "message": "no"}}),
    ] {
        let response = peer.post(&message).await;
        assert_eq!(response.status(), StatusCode::ACCEPTED, "{message}");
        assert!(bytes(response).await.is_empty());
    }
}

#[tokio::test]
async fn before_initialized_only_ping_is_answered() {
    let (service, _) = service();
    let mut peer = Peer::stranger(&service);
    peer.initialize(NEWEST).await;
    let pong = json_body(peer.post(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).await).await;
    assert_eq!(pong["result"], json!({}));
    let refused = json_body(peer.call(2, "echo").await).await;
    assert_eq!(refused["error"]["code"], -32600);
    peer.initialized().await;
    assert_eq!(gist(&json_body(peer.call(3, "echo").await).await), "echo");
}

#[tokio::test]
async fn a_session_belongs_to_its_principal() {
    let (service, _) = service();
    let mut peer = Peer::stranger(&service);
    peer.principal = Some(Principal::new("alice"));
    peer.initialize(NEWEST).await;
    peer.initialized().await;
    for other in [None, Some(Principal::new("mallory"))] {
        let thief = Peer { principal: other, ..peer.clone() };
        for response in [thief.call(1, "echo").await, thief.get(None).await, thief.delete().await] {
            assert_eq!(response.status(), StatusCode::NOT_FOUND);
        }
    }
    assert_eq!(peer.call(1, "echo").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn cancelling_stops_the_handler_and_leaves_no_answer() {
    let (server, _, ends) = server();
    let service = crate::unaddressed(server);
    let peer = Peer::connect(&service, NEWEST).await;
    let waiting = peer.start(1, "wait");
    peer.wait_for_start(1).await;
    assert_eq!(peer.post(&cancelled(1)).await.status(), StatusCode::ACCEPTED);
    ends.0.acquire().await.unwrap().forget();
    let response = waiting.await.unwrap();
    assert_eq!(response.status(), StatusCode::ACCEPTED);
    assert!(bytes(response).await.is_empty());
    assert_eq!(gist(&json_body(peer.call(1, "echo").await).await), "echo");
}

#[tokio::test]
async fn another_sessions_requests_cannot_be_cancelled() {
    let (service, gate) = service();
    let (one, two) = (Peer::connect(&service, NEWEST).await, Peer::connect(&service, NEWEST).await);
    let waiting = one.start(1, "wait");
    one.wait_for_start(1).await;
    two.post(&cancelled(1)).await;
    gate.open();
    assert_eq!(gist(&json_body(waiting.await.unwrap()).await), "waited");
}

#[tokio::test]
async fn delete_cancels_what_runs_and_ends_streams() {
    let (server, _, ends) = server();
    let service = crate::unaddressed(server);
    let peer = Peer::connect(&service, NEWEST).await;
    let mut stream = Events::of(peer.get(None).await);
    assert!(stream.next().await.unwrap().data.is_empty());
    let waiting = peer.start(1, "wait");
    peer.wait_for_start(1).await;
    assert_eq!(peer.delete().await.status(), StatusCode::NO_CONTENT);
    ends.0.acquire().await.unwrap().forget();
    assert_eq!(waiting.await.unwrap().status(), StatusCode::ACCEPTED);
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn a_client_that_goes_away_does_not_cancel() {
    let (server, gate, ends) = server();
    let service = crate::unaddressed(server);
    let peer = Peer::connect(&service, NEWEST).await;
    let waiting = peer.start(1, "wait");
    peer.wait_for_start(1).await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    // The request goes on: its id is still in use, and nobody has dropped the handler.
    assert!(peer.uses(1).await);
    assert_eq!(ends.0.available_permits(), 0);
    gate.open();
    ends.0.acquire().await.unwrap().forget();
    until("its id is still in use", async || !peer.uses(1).await).await;
}

#[tokio::test]
async fn running_requests_are_bounded() {
    let limits = Limits { requests_in_flight: 2, ..Limits::default() };
    let (server, gate, _) = server_with(limits);
    let service = crate::unaddressed(server);
    let peer = Peer::connect(&service, NEWEST).await;
    let running = [peer.start(1, "wait"), peer.start(2, "wait")];
    for id in [1, 2] {
        peer.wait_for_start(id).await;
    }
    let refused = peer.call(3, "echo").await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.headers().contains_key("retry-after"));
    assert_eq!(json_body(refused).await["id"], 3);
    gate.open();
    gate.open();
    for running in running {
        assert_eq!(gist(&json_body(running.await.unwrap()).await), "waited");
    }
    assert_eq!(peer.call(3, "echo").await.status(), StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_takes_too_long_is_stopped() {
    let (service, _) = service();
    let peer = Peer::connect(&service, NEWEST).await;
    let mut stream = Events::of(peer.call(1, "wait").await);
    let answer = stream.message().await.unwrap();
    assert_eq!(answer["error"]["code"], -32603);
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn without_sessions_each_request_stands_alone() {
    let (service, _) = service_with(|http| http.legacy(Legacy::Stateless));
    let mut peer = Peer::stranger(&service);
    peer.initialize("2025-06-18").await;
    assert_eq!(peer.session, None);
    peer.initialized().await;
    assert_eq!(gist(&json_body(peer.call(1, "echo").await).await), "echo");
    peer.version = None;
    assert_eq!(gist(&json_body(peer.call(1, "echo").await).await), "echo");
    for method in ["ping", "logging/setLevel"] {
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"level": "info"}});
        let answer = json_body(peer.post(&request).await).await;
        assert_eq!(answer["result"], json!({}), "{method}: {answer}");
    }
    // An id from elsewhere means nothing here.
    peer.session = Some("AAAAAAAAAAAAAAAAAAAAAAAA".into());
    assert_eq!(peer.call(1, "echo").await.status(), StatusCode::OK);
    for response in [peer.get(None).await, peer.delete().await] {
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
    }
    peer.version = Some("1.0");
    assert_eq!(peer.call(1, "echo").await.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test(start_paused = true)]
async fn without_sessions_a_slow_answer_is_a_stream_without_ids() {
    let (service, gate) = service_with(|http| http.legacy(Legacy::Stateless));
    let peer = Peer { version: Some(NEWEST), ..Peer::stranger(&service) };
    let mut stream = Events::of(peer.call(1, "wait").await);
    gate.open();
    let answer = stream.next().await.unwrap();
    assert_eq!(answer.id, None);
    assert!(answer.data.contains("waited"));
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn the_oldest_idle_session_of_a_caller_makes_room_for_its_next_one() {
    let limits = Limits { sessions_per_caller: 3, ..Limits::default() };
    let (server, gate, _) = server_with(limits);
    let service = crate::unaddressed(server.clone());
    let connect = async |name: &str| {
        let mut peer = Peer { principal: Some(Principal::new(name)), ..Peer::stranger(&service) };
        peer.initialize(NEWEST).await;
        peer.initialized().await;
        peer
    };
    time::pause();
    let (busy, other) = (connect("alice").await, connect("bob").await);
    let call = busy.start(1, "wait");
    busy.wait_for_start(1).await;
    time::advance(Duration::from_secs(1)).await;
    let idle = connect("alice").await;
    // What a stream has going ends with it.
    drop(idle.get(None).await);
    time::advance(Duration::from_secs(1)).await;
    let newer = connect("alice").await;
    let refused = Peer { principal: busy.principal.clone(), ..Peer::stranger(&service) };
    assert_eq!(refused.post(&initialize(NEWEST)).await.status(), StatusCode::TOO_MANY_REQUESTS);
    time::advance(Duration::from_secs(60)).await;
    let newest = connect("alice").await;
    assert_eq!(idle.call(2, "echo").await.status(), StatusCode::NOT_FOUND);
    for peer in [&newer, &newest, &other] {
        assert_eq!(peer.call(2, "echo").await.status(), StatusCode::OK);
    }
    assert_eq!(server.usage().sessions, 4);
    gate.open();
    assert_eq!(call.await.unwrap().status(), StatusCode::OK);
}
