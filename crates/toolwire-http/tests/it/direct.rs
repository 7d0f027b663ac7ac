//! The service without a socket, where every poll can be counted.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
};

use http_body::Body as _;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use serde_json::{Value, json};
use tokio::time::timeout;
use toolwire_http::server::{Body, HttpService, Legacy, Principal};
use toolwire_server::{Context, Limits, Log, Server, State, Usage, tool};
use tower_service::Service as _;

use crate::{
    PATIENCE,
    bare::{MODERN, enveloped},
    until,
};

fn call(tool: &str, level: Option<&str>) -> http::Request<Full<Bytes>> {
    let mut message = enveloped("tools/call", json!({ "name": tool }));
    if let Some(level) = level {
        message["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = level.into();
    }
    http::Request::post("/")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("mcp-protocol-version", MODERN)
        .header("mcp-method", "tools/call")
        .header("mcp-name", tool)
        .body(Full::new(message.to_string().into()))
        .unwrap()
}

async fn flood(log: Log, State(sent): State<Arc<AtomicUsize>>) -> &'static str {
    loop {
        log.info("drop");
        sent.fetch_add(1, Ordering::Relaxed);
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_a_client_does_not_read_is_bounded() {
    let sent = Arc::new(AtomicUsize::new(0));
    let server =
        Server::builder("t", "1").state(Arc::clone(&sent)).tool(tool("flood", flood)).build().unwrap();
    let response = crate::unaddressed(server.clone()).call(call("flood", Some("info"))).await.unwrap();
    let mut body = response.into_body();
    assert_eq!(sent.load(Ordering::Relaxed), 1, "the first message makes it a stream");
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    // The handler goes on, and what nobody reads is dropped instead of kept.
    assert!(sent.load(Ordering::Relaxed) > 500);
    let held = server.usage().answer_bytes;
    assert!((1..16 * 1024).contains(&held), "{held}");
    for _ in 0..100 {
        let frame = body.frame().await.unwrap().unwrap();
        assert!(frame.data_ref().unwrap().starts_with(b"data: "));
    }
    drop(body);
    until("not everything was given back", async || server.usage() == Usage::default()).await;
}

#[tokio::test]
async fn nothing_comes_after_the_end_of_a_stream() {
    let server = Server::builder("t", "1")
        .tool(tool("chatty", |log: Log| async move {
            log.info("hello");
            "done"
        }))
        .build()
        .unwrap();
    let response = crate::unaddressed(server).call(call("chatty", Some("info"))).await.unwrap();
    let mut body: Body = response.into_body();
    // The count ends a stream whose frames are always ready, which no timer does.
    let ended = async {
        for _ in 0..100 {
            if body.frame().await.is_none() {
                return;
            }
        }
        panic!("the stream went on after the answer");
    };
    timeout(PATIENCE, ended).await.expect("the stream did not end");
    for _ in 0..3 {
        let again = poll_fn(|task| Poll::Ready(Pin::new(&mut body).poll_frame(task))).await;
        assert!(matches!(again, Poll::Ready(None)));
    }
}

#[tokio::test]
async fn handlers_know_who_is_calling() {
    let whoami = |cx: Context| async move { cx.principal().map_or("nobody", Principal::subject).to_owned() };
    let server = Server::builder("t", "1").tool(tool("whoami", whoami)).build().unwrap();
    let mut service = crate::unaddressed(server);
    for principal in [Some("alice"), None] {
        let mut request = call("whoami", None);
        if let Some(principal) = principal {
            request.extensions_mut().insert(Principal::new(principal));
        }
        let response = service.call(request).await.unwrap();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let message: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(message["result"]["content"][0]["text"], principal.unwrap_or("nobody"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_what_runs_whoever_serves_the_connections() {
    let server =
        Server::builder("t", "1").tool(tool("hang", std::future::pending::<&'static str>)).build().unwrap();
    let limit = server.limits().drain_timeout;
    let mut service = crate::unaddressed(server.clone());
    let answer = tokio::spawn(service.call(call("hang", None)));
    tokio::task::yield_now().await;
    let asked = tokio::time::Instant::now();
    server.shutdown();
    let body = answer.await.unwrap().unwrap().into_body().collect().await.unwrap().to_bytes();
    assert!(asked.elapsed() >= limit && asked.elapsed() < 2 * limit, "{:?}", asked.elapsed());
    let answer: Value = serde_json::from_slice(&body).unwrap();
    assert!(answer["error"]["message"].as_str().unwrap().contains("drain_timeout"), "{answer}");
}

#[tokio::test]
async fn answers_that_nobody_takes_weigh_what_they_weigh() {
    // With a level it is a stream of one message and the answer, without one it is JSON.
    let large = |log: Log| async move {
        log.info("soon");
        "x".repeat(100_000)
    };
    let limit = 1024 * 1024;
    let limits = Limits { held_bytes: limit, ..Limits::default() };
    let server = Server::builder("t", "1").limits(limits).tool(tool("large", large)).build().unwrap();
    let mut service = crate::unaddressed(server.clone());
    for level in [None, Some("info")] {
        let mut bodies = Vec::new();
        let refused = loop {
            let response = service.call(call("large", level)).await.unwrap();
            if response.status() != 200 || bodies.len() > 100 {
                break response;
            }
            bodies.push(response.into_body());
        };
        assert_eq!((refused.status().as_u16(), bodies.len()), (500, 10), "{level:?}");
        let held = server.usage().answer_bytes;
        assert!((1_000_000..=limit).contains(&held), "{held}");
        let refused = refused.into_body().collect().await.unwrap().to_bytes();
        let refused: Value = serde_json::from_slice(&refused).unwrap();
        assert_eq!(refused["error"]["data"]["limit"], "held_bytes");
        let id = if level.is_none() { json!(1) } else { Value::Null };
        assert_eq!(refused["id"], id);
        let taken = bodies.pop().unwrap().collect().await.unwrap().to_bytes();
        assert!(taken.len() > 100_000);
        drop(bodies);
        assert_eq!(server.usage(), Usage::default());
    }
}

#[tokio::test]
async fn a_stream_without_a_session_weighs_what_it_weighs() {
    let server = Server::builder("t", "1").tool(tool("t", || async {})).build().unwrap();
    let mut service = HttpService::builder(server.clone())
        .legacy(Legacy::Stateless)
        .without_peer_addresses()
        .build()
        .unwrap();
    let request = http::Request::post("/")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "text/event-stream")
        .header("mcp-protocol-version", "2025-11-25")
        .body(Full::new(Bytes::from_static(
            br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nobody"}}"#,
        )))
        .unwrap();
    let response = service.call(request).await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(server.usage().answer_bytes > 0, "its answer waits in the stream");
    drop(response);
    assert_eq!(server.usage(), Usage::default());
}

#[tokio::test]
async fn a_caller_that_takes_no_answers_leaves_room_for_others() {
    let large = || async { "x".repeat(100_000) };
    let limits = Limits { held_bytes: 1_000_000, held_bytes_per_caller: 500_000, ..Limits::default() };
    let server = Server::builder("t", "1").limits(limits).tool(tool("large", large)).build().unwrap();
    let mut service = crate::unaddressed(server.clone());
    let mut ask = async |name: &str| {
        let mut request = call("large", None);
        request.extensions_mut().insert(Principal::new(name));
        service.call(request).await.unwrap()
    };
    let mut responses = Vec::new();
    for _ in 0..50 {
        responses.push(ask("ada").await);
    }
    let answered = responses.iter().filter(|response| response.status() == 200).count();
    assert_eq!((answered, responses.last().unwrap().status().as_u16()), (4, 500));
    assert!(server.usage().held_bytes <= 500_000, "{:?}", server.usage());
    assert_eq!(ask("bob").await.status(), 200);
    drop(responses);
    assert_eq!(ask("ada").await.status(), 200);
}

#[tokio::test]
async fn no_session_is_left_of_an_initialize_whose_answer_has_no_room() {
    let limits = Limits { held_bytes_per_caller: 100_000, ..Limits::default() };
    let server = Server::builder("t", "1").instructions("i".repeat(200_000)).limits(limits).build().unwrap();
    let mut service = crate::unaddressed(server.clone());
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
    }});
    let mut request = http::Request::post("/")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(Full::new(Bytes::from(initialize.to_string())))
        .unwrap();
    request.extensions_mut().insert(Principal::new("ada"));
    let response = service.call(request).await.unwrap();
    assert_eq!((response.status().as_u16(), response.headers().get("mcp-session-id")), (500, None));
    drop(response);
    assert_eq!(server.usage(), Usage::default());
}
