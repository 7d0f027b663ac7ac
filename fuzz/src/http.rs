//! Bytes of a connection into the service, without a socket and with a clock that only moves when nothing else does.

use std::{convert::Infallible, future::Future, time::Duration};

use hyper::{
    body::Incoming,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use toolwire_http::server::HttpService;
use toolwire_server::{Context, Log, Server, resource, tool};
use tower_service::Service as _;

use crate::cost::within;

/// How much may be under way in each direction.
const PIPE_BYTES: usize = 16 * 1024;

/// How much a connection may answer. Each request is answered by a few kilobytes at most.
const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// How long a connection may last by the clock that stands still while there is work.
const CONNECTION: Duration = Duration::from_secs(6 * 60 * 60);

/// A server with something of everything.
pub(crate) fn service() -> HttpService {
    let server = Server::builder("fuzz", "1.0")
        .tool(tool("echo", |cx: Context| async move { cx.params().text().len().to_string() }))
        .tool(tool("log", |log: Log| async move {
            log.info("one");
            log.info("two");
            "logged"
        }))
        .tool(tool("wait", || async { tokio::time::sleep(Duration::from_secs(5)).await }))
        .resource(resource("fuzz://thing", || async { "thing" }))
        .build()
        .expect("the server is fine");
    HttpService::builder(server).without_peer_addresses().build().expect("the endpoint is fine")
}

/// Runs one conversation to its end. Nothing of it is left when this returns.
pub(crate) fn run(conversation: impl Future<Output = ()>) {
    within(Duration::from_secs(5), "a conversation", || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.expect("a runtime without threads always starts");
        runtime.block_on(async {
            tokio::time::timeout(CONNECTION, conversation).await.expect("the conversation comes to an end");
        });
    });
}

/// Bytes as a client of HTTP/1 sends them.
pub fn http1_bytes(data: &[u8]) {
    run(async {
        let (client, server) = duplex(PIPE_BYTES);
        let service = service();
        let serving = async {
            let handler = service_fn(|request: hyper::Request<Incoming>| {
                let answer = service.clone().call(request);
                async move { answer.await.map_err(|never: Infallible| match never {}) }
            });
            // How a connection ends is the peer's business.
            let _ = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(Duration::from_secs(10))
                .serve_connection(TokioIo::new(server), handler)
                .await;
        };
        let ((), answer) = tokio::join!(serving, converse(client, data));
        assert!(
            answer.is_empty() || answer.starts_with(b"HTTP/1."),
            "{:?}",
            String::from_utf8_lossy(&answer)
        );
    });
}

/// Bytes as a client of HTTP/2 sends them, after the preface that every client sends.
pub fn http2_bytes(data: &[u8]) {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";
    let bytes = [PREFACE, data].concat();
    run(async {
        let (client, server) = duplex(PIPE_BYTES);
        let service = service();
        let serving = async {
            let handler = service_fn(move |request: hyper::Request<Incoming>| {
                let answer = service.clone().call(request);
                async move { answer.await.map_err(|never: Infallible| match never {}) }
            });
            let _ = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .keep_alive_interval(Duration::from_secs(20))
                .keep_alive_timeout(Duration::from_secs(20))
                .serve_connection(TokioIo::new(server), handler)
                .await;
        };
        tokio::join!(serving, converse(client, &bytes));
    });
}

/// Sends everything, says that this was all, and reads until the other side has nothing more to say.
async fn converse(client: DuplexStream, data: &[u8]) -> Vec<u8> {
    let (mut read, mut write) = tokio::io::split(client);
    let send = async move {
        // A server may hang up at any time.
        let _ = write.write_all(data).await;
        // Streams stay open as long as the client does, so it is there for a while.
        tokio::time::sleep(Duration::from_secs(60)).await;
        let _ = write.shutdown().await;
    };
    let receive = async {
        let (mut answer, mut buffer) = (Vec::new(), vec![0; 4096]);
        while let Ok(length @ 1..) = read.read(&mut buffer).await {
            answer.extend_from_slice(&buffer[..length]);
            assert!(answer.len() <= MAX_ANSWER_BYTES, "a short request has a long answer");
        }
        answer
    };
    let ((), answer) = tokio::join!(send, receive);
    answer
}
