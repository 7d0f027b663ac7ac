//! Connections as a whole: shutting down, clients that stall, clients that flood.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::{net::TcpListener, sync::oneshot, time::timeout};
use toolwire_http::server::{HttpLimits, HttpService};
use toolwire_server::{Server, tool};

use crate::{
    PATIENCE,
    bare::{Connection, Request, ask},
    fixture::Fixture,
};

#[tokio::test]
async fn a_signal_ends_it_in_an_orderly_way() {
    let server = Server::builder("clock", "1.0").tool(tool("now", || async { "noon" })).build().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let serve = HttpService::new(server).serve(listener).with_graceful_shutdown(async {
        let _ = stopped.await;
    });
    let serving = tokio::spawn(serve.into_future());
    let mut listening = Connection::open(address).await;
    let listen =
        Request::modern("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
    listening.send(&listen).await;
    listening.head().await;
    listening.message().await.unwrap();
    let mut idle = Connection::open(address).await;
    assert_eq!(idle.ask(&Request::call("now", json!({}))).await.status(), 200);
    stop.send(()).unwrap();
    assert!(listening.message().await.unwrap().get("result").is_some());
    assert_eq!(listening.message().await, None);
    assert!(listening.is_closed().await);
    assert!(idle.is_closed().await);
    timeout(PATIENCE, serving).await.expect("the server did not end").unwrap().unwrap();
}

#[tokio::test]
async fn running_requests_may_finish() {
    let mut fixture = Fixture::start().await;
    let mut connection = Connection::open(fixture.address).await;
    connection.send(&Request::call("wait", json!({}))).await;
    fixture.hears("started").await;
    fixture.server.shutdown();
    fixture.go.notify_one();
    let response = connection.response().await;
    assert_eq!(response.json()["result"]["content"][0]["text"], "done");
    assert!(connection.is_closed().await);
    timeout(PATIENCE, &mut fixture.serving).await.expect("the server did not end").unwrap().unwrap();
}

#[tokio::test]
async fn nobody_waits_for_clients_that_have_not_sent_a_request() {
    let limits = toolwire_server::Limits {
        drain_timeout: Duration::from_secs(3600),
        ..toolwire_server::Limits::default()
    };
    let mut fixture = Fixture::with_limits(limits, |http| http).await;
    let mut silent = Connection::open(fixture.address).await;
    let mut begun = Connection::open(fixture.address).await;
    begun.write(b"PRI * HT").await;
    // When this is answered, the others have been accepted.
    assert_eq!(ask(fixture.address, &Request::call("add", json!({ "a": 1, "b": 2 }))).await.status(), 200);
    fixture.server.shutdown();
    assert!(silent.is_closed().await && begun.is_closed().await);
    timeout(PATIENCE, &mut fixture.serving).await.expect("the server did not end").unwrap().unwrap();
}

#[tokio::test]
async fn those_that_do_not_finish_are_cut_off() {
    let limits = toolwire_server::Limits {
        drain_timeout: Duration::from_millis(20),
        ..toolwire_server::Limits::default()
    };
    let mut fixture = Fixture::with_limits(limits, |http| http).await;
    let mut connection = Connection::open(fixture.address).await;
    connection.send(&Request::call("hang", json!({}))).await;
    fixture.hears("started").await;
    fixture.server.shutdown();
    timeout(PATIENCE, &mut fixture.serving).await.expect("the server did not end").unwrap().unwrap();
    assert!(connection.is_closed().await);
}

#[tokio::test]
async fn a_client_that_does_not_read_is_left() {
    let limits = HttpLimits { write_timeout: Duration::from_millis(50), ..HttpLimits::default() };
    let mut fixture = Fixture::with(|http| http.limits(limits)).await;
    let mut connection = Connection::open(fixture.address).await;
    let begun = Instant::now();
    // The handler sends without end; it can only be stopped because what it sends is not taken.
    let flood = Request::call("flood", json!({})).meta("io.modelcontextprotocol/logLevel", json!("info"));
    connection.send(&flood).await;
    fixture.hears("dropped").await;
    assert!(begun.elapsed() < HttpLimits::default().write_timeout, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_flood_reaches_a_client_that_reads() {
    let mut fixture = Fixture::start().await;
    let mut connection = Connection::open(fixture.address).await;
    let flood = Request::call("flood", json!({})).meta("io.modelcontextprotocol/logLevel", json!("info"));
    connection.send(&flood).await;
    connection.head().await;
    for _ in 0..100 {
        assert_eq!(connection.message().await.unwrap()["method"], "notifications/message");
    }
    drop(connection);
    fixture.hears("dropped").await;
}

#[tokio::test]
async fn a_client_that_stalls_before_its_request_is_left() {
    let limits = HttpLimits { header_timeout: Duration::from_millis(50), ..HttpLimits::default() };
    let fixture = Fixture::with(|http| http.limits(limits)).await;
    for said in ["", "P", "POST /mcp HTTP/1.1\r\nHost: local"] {
        let mut connection = Connection::open(fixture.address).await;
        connection.write(said.as_bytes()).await;
        assert!(connection.is_closed().await, "{said:?}");
    }
}

#[tokio::test]
async fn a_body_that_stalls_is_given_up() {
    let limits = HttpLimits { body_timeout: Duration::from_millis(50), ..HttpLimits::default() };
    let fixture = Fixture::with(|http| http.limits(limits)).await;
    let mut connection = Connection::open(fixture.address).await;
    let begun = Instant::now();
    connection
        .write(
            b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
              Content-Length: 9\r\n\r\n{",
        )
        .await;
    assert_eq!(connection.response().await.status(), 408);
    assert!(begun.elapsed() < HttpLimits::default().body_timeout, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_bound_address_may_be_named() {
    let server = Server::builder("clock", "1.0").tool(tool("now", || async { "noon" })).build().unwrap();
    let listener = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(HttpService::new(server).serve(listener).into_future());
    let request = Request::call("now", json!({})).header("Host", &address.to_string());
    assert_eq!(ask(address, &request).await.status(), 200);
    assert_eq!(ask(address, &request.header("Host", "127.0.0.3")).await.status(), 403);
    serving.abort();
}
