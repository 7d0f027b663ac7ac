//! This client and this server with a WebSocket between them, and servers that are none.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::mpsc,
    time::timeout,
};
use toolwire_client::{Client, ConnectionState, EraChoice, ErrorKind, Reconnect};
use toolwire_http::{
    client::{HttpLimits, WebSocket},
    server::HttpService,
};
use toolwire_protocol::Version;
use toolwire_server::{Server, tool};

use crate::{PATIENCE, client_script::builder, fixture::Fixture, port::Port};

async fn fixture() -> Fixture {
    Fixture::with(|http| http.websocket(true)).await
}

fn at(fixture: &Fixture) -> WebSocket {
    WebSocket::new(format!("ws://{}/mcp", fixture.address)).unwrap()
}

async fn add(client: &Client) -> String {
    client.call("add", json!({ "a": 2, "b": 3 })).await.unwrap().text()
}

/// The whole chain of reasons.
fn text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

#[tokio::test]
async fn every_revision_is_spoken() {
    let fixture = fixture().await;
    for version in Version::ALL {
        let client = builder().era(EraChoice::Version(version)).connect(at(&fixture)).await.unwrap();
        assert_eq!(add(&client).await, "5", "{version}");
        timeout(PATIENCE, client.close()).await.expect("it does not close").unwrap();
    }
    let client = builder().connect(at(&fixture)).await.unwrap();
    assert_eq!(client.version(), Version::LATEST);
}

#[tokio::test]
async fn handlers_see_the_headers_that_were_sent() {
    let fixture = fixture().await;
    let socket = WebSocket::builder(format!("ws://{}/mcp", fixture.address)).header("User-Agent", "me/1");
    let client = builder().connect(socket.build().unwrap()).await.unwrap();
    assert_eq!(client.call("agent", json!({})).await.unwrap().text(), "me/1");
}

#[tokio::test]
async fn progress_comes_before_the_answer_and_a_call_can_be_cancelled() {
    let mut fixture = fixture().await;
    let client = Arc::new(builder().connect(at(&fixture)).await.unwrap());
    let calling = Arc::clone(&client);
    let hanging = tokio::spawn(async move { calling.call("hang", json!({})).await });
    fixture.hears("started").await;
    hanging.abort();
    fixture.hears_the_end().await;
    assert_eq!(client.call("quick_steps", json!({})).await.unwrap().text(), "done");
}

#[tokio::test]
async fn what_is_no_websocket_is_named() {
    let plain = Fixture::start().await;
    let error = text(&builder().connect(at(&plain)).await.unwrap_err());
    assert!(error.contains("is no WebSocket") && error.contains("are WebSockets enabled there?"), "{error}");

    let fixture = fixture().await;
    let elsewhere = WebSocket::new(format!("ws://{}/elsewhere", fixture.address)).unwrap();
    let error = text(&builder().connect(elsewhere).await.unwrap_err());
    assert!(error.contains("404") && error.contains("is the path right"), "{error}");

    let port = Port::reserve();
    let nobody = WebSocket::new(format!("ws://{}/mcp", port.address())).unwrap();
    let error = builder().connect(nobody).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect);
    assert!(text(&error).contains("is the server running"), "{error}");
}

#[tokio::test]
async fn a_server_that_only_pretends_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let socket = WebSocket::new(format!("ws://{}/mcp", listener.local_addr().unwrap())).unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let head = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                     Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n";
        stream.write_all(head).await.unwrap();
        std::future::pending::<()>().await;
    });
    let error = text(&builder().connect(socket).await.unwrap_err());
    assert!(error.contains("does not speak WebSocket"), "{error}");
}

#[tokio::test]
async fn a_server_that_died_is_missed_and_its_successor_is_found() {
    let port = Port::reserve();
    let mut fixture = Fixture::at(port.listen().await, |http| http.websocket(true));
    let client = builder().connect(at(&fixture)).await.unwrap();
    let waiting = tokio::spawn(async move { client.call("wait", json!({})).await });
    fixture.hears("started").await;
    fixture.serving.abort();
    // Shorter than the time of silence after which the client gives up any server.
    let error = timeout(PATIENCE / 2, waiting).await.expect("it still waits").unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed, "{error:?}");
    let service = HttpService::builder(fixture.server.clone()).path("/mcp").websocket(true).build().unwrap();
    fixture.serving = tokio::spawn(service.serve(port.listen().await).into_future());
    let client = builder().connect(at(&fixture)).await.unwrap();
    assert_eq!(add(&client).await, "5");
}

#[tokio::test]
async fn a_message_that_is_too_long_ends_it_and_is_named() {
    let long = || async { "x".repeat(100_000) };
    let server = Server::builder("long", "1.0").tool(tool("long", long)).build().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/", listener.local_addr().unwrap());
    let service = HttpService::builder(server).websocket(true).build().unwrap();
    let serving = tokio::spawn(service.serve(listener).into_future());
    let limits = HttpLimits { response_bytes: 10_000, ..HttpLimits::default() };
    let socket = WebSocket::builder(&url).limits(limits).build().unwrap();
    let client = builder().connect(socket).await.unwrap();
    let error =
        timeout(PATIENCE, client.call("long", json!({})).into_future()).await.expect("no end").unwrap_err();
    assert!(text(&error).contains("longer than 10000 bytes"), "{}", text(&error));
    serving.abort();
}

#[tokio::test]
async fn a_socket_that_is_lost_is_opened_again_also_after_an_attempt_that_failed() {
    let serve = |listener| {
        let server = Server::builder("clock", "1.0").tool(tool("now", || async { "noon" })).build().unwrap();
        let service = HttpService::builder(server).path("/mcp").websocket(true).build().unwrap();
        service.serve(listener).spawn()
    };
    let port = Port::reserve();
    let first = serve(port.listen().await);
    let (told, mut heard) = mpsc::unbounded_channel();
    let connecting = builder()
        .on_connection(move |state| told.send(state).unwrap())
        .reconnect(Reconnect::default().first_pause(Duration::from_millis(1)))
        .connect(WebSocket::new(format!("ws://{}/mcp", port.address())).unwrap());
    let client = connecting.await.unwrap();
    assert_eq!(client.call("now", json!({})).await.unwrap().text(), "noon");

    first.shutdown().await.unwrap();
    assert!(matches!(heard.recv().await, Some(ConnectionState::Lost(_))));
    // Somebody is there who does not speak HTTP.
    let other = port.listen().await;
    drop(timeout(PATIENCE, other.accept()).await.unwrap().unwrap());
    drop(other);
    let second = serve(port.listen().await);
    let called = timeout(PATIENCE, client.call("now", json!({})).into_future()).await;
    assert_eq!(called.unwrap().unwrap().text(), "noon");
    assert_eq!(heard.recv().await, Some(ConnectionState::Restored));
    client.close().await.unwrap();
    second.shutdown().await.unwrap();
}

#[cfg(all(feature = "client-tls", feature = "tls"))]
#[tokio::test]
async fn with_tls_it_is_wss() {
    use toolwire_http::server::Tls;

    const CERTIFICATE: &[u8] = include_bytes!("tls/certificate.pem");
    const KEY: &[u8] = include_bytes!("tls/key.pem");

    let server = Server::builder("clock", "1.0").tool(tool("now", || async { "noon" })).build().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("wss://localhost:{}/mcp", listener.local_addr().unwrap().port());
    let service = HttpService::builder(server).path("/mcp").websocket(true).build().unwrap();
    let serve = service.serve(listener).tls(Tls::from_pem(CERTIFICATE, KEY).unwrap());
    let serving = tokio::spawn(serve.into_future());
    let socket = WebSocket::builder(&url).root_certificates(CERTIFICATE).build().unwrap();
    let client = builder().connect(socket).await.unwrap();
    assert_eq!(client.call("now", json!({})).await.unwrap().text(), "noon");
    client.close().await.unwrap();
    serving.abort();
}
