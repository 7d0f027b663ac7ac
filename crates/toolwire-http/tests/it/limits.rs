//! Every limit that is met by counting.

use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;
use toolwire_http::server::HttpLimits;
use toolwire_server::Limits;

use crate::{
    bare::{Connection, Request, ask},
    fixture::Fixture,
};

#[tokio::test]
async fn only_so_many_requests() {
    let limits = Limits { requests: 1, ..Limits::default() };
    let mut fixture = Fixture::with_limits(limits, |http| http).await;
    let mut waiting = Connection::open(fixture.address).await;
    waiting.send(&Request::call("wait", json!({}))).await;
    fixture.hears("started").await;
    let mut other = Connection::open(fixture.address).await;
    let response = other.ask(&Request::call("add", json!({ "a": 1, "b": 2 }))).await;
    assert_eq!((response.status(), response.code()), (429, -32603));
    assert_eq!(response.json()["error"]["data"]["limit"], "requests");
    fixture.go.notify_one();
    assert_eq!(waiting.response().await.status(), 200);
    let response = other.ask(&Request::call("add", json!({ "a": 1, "b": 2 }))).await;
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn only_so_many_connections() {
    let limits = HttpLimits { connections: 1, ..HttpLimits::default() };
    let mut fixture = Fixture::with(|http| http.limits(limits)).await;
    let mut first = Connection::open(fixture.address).await;
    first.send(&Request::call("wait", json!({}))).await;
    fixture.hears("started").await;
    let mut second = Connection::open(fixture.address).await;
    second.send(&Request::call("wait", json!({}))).await;
    // The second one is not even accepted before the first has gone. Only time can show that nothing happens.
    assert!(timeout(Duration::from_millis(200), fixture.heard.recv()).await.is_err());
    fixture.go.notify_one();
    assert_eq!(first.response().await.status(), 200);
    drop(first);
    fixture.hears("started").await;
    fixture.go.notify_one();
    assert_eq!(second.response().await.status(), 200);
}

#[tokio::test]
async fn only_so_many_headers() {
    let limits = HttpLimits { headers: 20, ..HttpLimits::default() };
    let fixture = Fixture::with(|http| http.limits(limits)).await;
    let mut request = Request::call("add", json!({ "a": 1, "b": 2 }));
    assert_eq!(ask(fixture.address, &request).await.status(), 200);
    for index in 0..20 {
        request = request.header(&format!("X-{index}"), "x");
    }
    assert_eq!(ask(fixture.address, &request).await.status(), 431);
}

#[tokio::test]
async fn only_such_long_headers() {
    let limits = HttpLimits { header_bytes: 8 * 1024, ..HttpLimits::default() };
    let fixture = Fixture::with(|http| http.limits(limits)).await;
    let request = Request::call("add", json!({ "a": 1, "b": 2 }));
    assert_eq!(ask(fixture.address, &request.clone().header("X", &"x".repeat(4000))).await.status(), 200);
    assert_eq!(ask(fixture.address, &request.header("X", &"x".repeat(9000))).await.status(), 431);
}
