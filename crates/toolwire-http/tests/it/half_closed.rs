//! Clients that close their side after a request: whether they still read, nobody can tell before something is written.

use std::time::Duration;

use serde_json::json;
use tokio::{net::TcpListener, time};
use toolwire_http::server::{HttpLimits, HttpService, Legacy};
use toolwire_server::{Server, tool};

use crate::{
    PATIENCE,
    bare::{Connection, Request},
    fixture::Fixture,
};

/// The rounds of tests about what comes at the same time.
const ROUNDS: usize = 50;

/// A call of `add` in each era.
fn sums() -> [Request; 2] {
    let arguments = json!({ "a": 1, "b": 2 });
    let params = json!({ "name": "add", "arguments": arguments.clone() });
    let legacy = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let legacy = Request::post(legacy.to_string()).header("MCP-Protocol-Version", "2025-06-18");
    [Request::call("add", arguments), legacy]
}

/// Sends requests and closes the side of the client, both before the server accepts the connection.
async fn finished_early(requests: &[Request]) -> (Fixture, Connection) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut connection = Connection::open(listener.local_addr().unwrap()).await;
    for request in requests {
        connection.send(request).await;
    }
    connection.finish().await;
    (Fixture::at(listener, |http| http.legacy(Legacy::Stateless)), connection)
}

fn keep_alive(time: Duration) -> HttpLimits {
    HttpLimits { keep_alive: time, ..HttpLimits::default() }
}

#[tokio::test]
async fn a_client_that_still_reads_is_answered() {
    for accept in ["application/json", "application/json, text/event-stream"] {
        let mut fixture = Fixture::with(|http| http.limits(keep_alive(Duration::from_millis(20)))).await;
        let mut connection = Connection::open(fixture.address).await;
        connection.send(&Request::call("wait", json!({})).header("Accept", accept)).await;
        connection.finish().await;
        fixture.hears("started").await;
        let head = connection.head();
        let head = if accept.contains("event") {
            // It has become a stream, and somebody takes it.
            let head = head.await;
            for _ in 0..3 {
                assert_eq!(connection.event().await.unwrap(), ": keep-alive");
            }
            fixture.go.notify_one();
            assert!(connection.message().await.unwrap().get("result").is_some());
            assert_eq!(connection.message().await, None);
            head
        } else {
            fixture.go.notify_one();
            head.await
        };
        assert_eq!(head.status, 200, "{accept}");
    }
}

#[tokio::test]
async fn a_client_that_sends_nothing_more_is_answered_at_once_and_left() {
    let fixture = Fixture::start().await;
    for _ in 0..50 {
        let mut connection = Connection::open(fixture.address).await;
        connection.send(&Request::call("add", json!({ "a": 1, "b": 2 }))).await;
        connection.finish().await;
        assert_eq!(connection.response().await.json()["result"]["content"][0]["text"], "3");
        assert!(connection.is_closed().await);
    }
}

#[tokio::test]
async fn a_long_answer_comes_as_a_whole() {
    let long = tool("long", || async { "x".repeat(8 * 1024 * 1024) });
    let server = Server::builder("long", "1.0").tool(long).build().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(HttpService::new(server).serve(listener).into_future());
    let mut connection = Connection::open(address).await;
    connection.send(&Request::call("long", json!({}))).await;
    connection.finish().await;
    let answer = connection.response().await.json();
    assert_eq!(answer["result"]["content"][0]["text"].as_str().unwrap().len(), 8 * 1024 * 1024);
    assert!(connection.is_closed().await);
    serving.abort();
}

#[tokio::test]
async fn a_client_that_is_gone_is_noticed_with_the_next_sign_of_life() {
    let mut fixture = Fixture::with(|http| http.limits(keep_alive(Duration::from_millis(20)))).await;
    let mut connection = Connection::open(fixture.address).await;
    connection.send(&Request::call("hang", json!({}))).await;
    fixture.hears("started").await;
    drop(connection);
    fixture.hears_the_end().await;
}

#[tokio::test]
async fn one_write_is_enough_to_notice() {
    // The next one would come after the end has been waited for in vain.
    let interval = 3 * PATIENCE;
    let mut fixture = Fixture::with(|http| http.limits(keep_alive(interval))).await;
    let mut connection = Connection::open(fixture.address).await;
    connection.send(&Request::call("hang", json!({}))).await;
    fixture.hears("started").await;
    drop(connection);
    // The first write is due at once, and its failure is noticed on the running clock.
    time::pause();
    time::advance(interval).await;
    time::resume();
    fixture.hears_the_end().await;
}

#[tokio::test]
async fn a_client_that_resets_its_connection_cancels_at_once() {
    for accept in ["application/json", "application/json, text/event-stream"] {
        let mut fixture = Fixture::with(|http| http.limits(keep_alive(Duration::from_secs(3600)))).await;
        let mut connection = Connection::open(fixture.address).await;
        connection.send(&Request::call("hang", json!({})).header("Accept", accept)).await;
        fixture.hears("started").await;
        connection.reset();
        fixture.hears_the_end().await;
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_is_not_waited_for() {
    let fixture = Fixture::start().await;
    let mut connection = Connection::open(fixture.address).await;
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{";
    connection.write(head.as_bytes()).await;
    connection.finish().await;
    // Whatever it says, it does not take the thirty seconds that a body may take.
    while !connection.is_closed().await {
        connection.response().await;
    }
}

#[tokio::test]
async fn a_request_that_comes_together_with_the_end_of_its_client_is_answered() {
    for request in sums() {
        for _ in 0..ROUNDS {
            let (_fixture, mut connection) = finished_early(std::slice::from_ref(&request)).await;
            assert_eq!(connection.response().await.json()["result"]["content"][0]["text"], "3");
            assert!(connection.is_closed().await);
        }
    }
}

#[tokio::test]
async fn an_answer_as_a_stream_comes_after_the_end_of_its_client() {
    for request in sums() {
        let request = request.header("Accept", "text/event-stream");
        for _ in 0..ROUNDS {
            let (_fixture, mut connection) = finished_early(std::slice::from_ref(&request)).await;
            let events = connection.response().await.events();
            assert_eq!(events[0]["result"]["content"][0]["text"], "3");
            assert!(connection.is_closed().await);
        }
    }
}

#[tokio::test]
async fn every_request_before_the_end_of_its_client_is_answered() {
    let [modern, legacy] = sums();
    let requests = [modern.clone(), legacy.clone(), Request::new("GET"), legacy, modern];
    for _ in 0..ROUNDS {
        let (_fixture, mut connection) = finished_early(&requests).await;
        for (index, status) in [200, 200, 405, 200, 200].into_iter().enumerate() {
            assert_eq!(connection.response().await.status(), status, "{index}");
        }
        assert!(connection.is_closed().await);
    }
}

#[tokio::test]
async fn a_refusal_reaches_a_client_that_has_closed_its_side() {
    let [modern, _] = sums();
    for _ in 0..ROUNDS {
        let refused = modern.clone().header("Content-Type", "text/plain");
        let (_fixture, mut connection) = finished_early(&[refused]).await;
        assert_eq!(connection.response().await.status(), 415);
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_before_it_is_read_is_not_waited_for() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut connections = Vec::new();
    for body in ["Content-Length: 9\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"] {
        let mut connection = Connection::open(address).await;
        let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
        connection.write(format!("{head}{body}").as_bytes()).await;
        connection.finish().await;
        connections.push(connection);
    }
    let _fixture = Fixture::at(listener, |http| http);
    for mut connection in connections {
        while !connection.is_closed().await {
            connection.response().await;
        }
    }
}
