//! Pages beside the endpoint, on the same listener.

use std::{future::pending, time::Duration};

use http::Response;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use toolwire_http::server::{Body, HttpBuilder, HttpService};
use toolwire_server::{Server, tool};

use crate::{
    bare::{Connection, Request, ask},
    guard_kit::{guarded, request, send},
};

fn server() -> Server {
    Server::builder("clock", "1.0").tool(tool("now", || async { "noon" })).build().unwrap()
}

fn watched(http: HttpBuilder) -> HttpBuilder {
    http.path("/mcp")
        .page("/healthz", |_| async { Response::new(Body::full("ok")) })
        .page("/echo", |request| async move { Response::new(Body::full(request.uri.to_string())) })
}

#[tokio::test]
async fn they_are_answered_beside_the_endpoint_whatever_host_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let serving = watched(HttpService::builder(server())).build().unwrap().serve(listener).spawn();
    let address = serving.local_addr();
    assert_eq!(ask(address, &Request::call("now", json!({}))).await.status(), 200);

    let mut connection = Connection::open(address).await;
    let by_address = |path: &str| Request::new("GET").path(path).header("Host", "10.1.2.3:8080");
    let alive = connection.ask(&by_address("/healthz")).await;
    assert_eq!((alive.status(), alive.body.as_slice()), (200, &b"ok"[..]));
    assert_eq!(connection.ask(&by_address("/echo?x=1")).await.body, b"/echo?x=1");
    // The endpoint itself is as careful as ever, and what is neither does not exist.
    assert_eq!(connection.ask(&by_address("/mcp")).await.status(), 403);
    assert_eq!(ask(address, &Request::new("GET").path("/healthz/")).await.status(), 404);
    assert_eq!(ask(address, &Request::post("{}").path("/healthz")).await.status(), 405);
    serving.shutdown().await.unwrap();
}

#[tokio::test]
async fn they_need_no_credentials() {
    let service = guarded(server(), watched);
    let asked = request(None, "GET", "/healthz");
    assert_eq!(send(&service, asked, &Value::Null).await.status(), 200);
    let asked = request(None, "GET", "/mcp");
    assert_eq!(send(&service, asked, &Value::Null).await.status(), 401);
}

#[tokio::test(start_paused = true)]
async fn one_that_is_never_done_is_given_up() {
    let service = HttpService::builder(server()).page("/slow", |_| pending()).build().unwrap();
    let before = tokio::time::Instant::now();
    let asked = request(None, "GET", "/slow");
    assert_eq!(send(&service, asked, &Value::Null).await.status(), 503);
    assert_eq!(before.elapsed(), Duration::from_secs(10));
}

#[test]
fn a_path_has_one_owner_and_begins_with_a_slash() {
    let page = |http: HttpBuilder, path: &str| http.page(path, |_| async { Response::new(Body::empty()) });
    let new = || HttpService::builder(server()).path("/mcp");
    for (http, words) in [
        (page(new(), "/mcp"), "\"/mcp\" is used twice"),
        (page(page(new(), "/a"), "/a"), "\"/a\" is used twice"),
        (page(new(), "a"), "\"a\" does not begin with a slash"),
    ] {
        let error = http.build().unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}
