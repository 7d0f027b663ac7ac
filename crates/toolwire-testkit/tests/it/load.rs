//! Much at once.

use std::collections::HashSet;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout;
use toolwire_protocol::{Message, Version};
use toolwire_server::{Args, Limits, Server, tool};
use toolwire_testkit::{Matrix, Setup};
use toolwire_transport::{Duplex, Sink, Source};

use crate::{PATIENCE, text};

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

fn server() -> Server {
    let slow = |Args(echo): Args<Echo>| async move {
        tokio::task::yield_now().await;
        echo.text
    };
    Server::builder("load", "1.0")
        .tool(tool("echo", |Args(echo): Args<Echo>| async move { echo.text }))
        .tool(tool("slow", slow))
        .limits(Limits { queued_requests: 2000, ..Limits::default() })
        .build()
        .unwrap()
}

/// Written by hand, because there are many of them and they are large.
fn call(version: Version, id: usize, text: &str) -> Bytes {
    let meta = if version.is_modern() {
        r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#
    } else {
        ""
    };
    let params = format!(r#"{{"name":"echo","arguments":{{"text":"{text}"}}{meta}}}"#);
    Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#))
}

async fn shake_hands(version: Version, source: &mut impl Source, sink: &mut impl Sink) {
    if version.is_modern() {
        return;
    }
    let params = json!({
        "protocolVersion": version.as_str(),
        "capabilities": {},
        "clientInfo": { "name": "load", "version": "1" },
    });
    let hello = json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params });
    sink.send(hello.to_string().into()).await.unwrap();
    sink.flush().await.unwrap();
    source.receive().await.unwrap().unwrap();
    let done = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    sink.send(done.to_string().into()).await.unwrap();
}

/// The client writes everything before it reads anything, as far as the link allows; then both go on together.
#[tokio::test]
async fn of_large_messages_both_ways_does_not_deadlock() {
    const MANY: usize = 200;
    let server = server();
    let filler = "x".repeat(64 * 1024);
    // One revision of each era: what differs between the others is not how messages move.
    Matrix::new()
        .versions([Version::V2024_11_05, Version::LATEST])
        .run(async |setup: Setup| {
            let (mut source, mut sink) = setup.open(&server).split();
            shake_hands(setup.version, &mut source, &mut sink).await;
            let sending = async {
                for id in 0..MANY {
                    sink.send(call(setup.version, id, &filler)).await.unwrap();
                }
                sink.flush().await.unwrap();
            };
            let receiving = async {
                let mut answered = HashSet::new();
                while answered.len() < MANY {
                    let bytes = source.receive().await.unwrap().expect("the server has left");
                    let Ok(Message::Response(answer)) = Message::parse(&bytes) else { panic!("no answer") };
                    let result = answer.outcome.expect("a result");
                    assert!(result.text().contains(&filler));
                    assert!(answered.insert(answer.id), "answered twice");
                }
            };
            let both = async { tokio::join!(sending, receiving) };
            timeout(PATIENCE, both).await.expect("both sides wait for each other");
        })
        .await;
}

#[tokio::test]
async fn of_a_thousand_calls_is_answered_once_each() {
    let server = server();
    Matrix::new()
        .run(async |setup: Setup| {
            let mut wire = setup.wire(&server).await;
            let mut ids = Vec::new();
            for number in 0..1000 {
                let name = if number % 2 == 0 { "slow" } else { "echo" };
                let arguments = json!({ "text": format!("call {number}") });
                let call = json!({ "name": name, "arguments": arguments });
                // Over a pipe nobody reads the answers meanwhile, so it must not take more than fits.
                ids.push(wire.start("tools/call", call).await);
            }
            for (number, id) in ids.into_iter().enumerate() {
                assert_eq!(text(wire.reply(id).await.result()), format!("call {number}"));
            }
            wire.expect_silence().await;
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_thousand_calls_is_answered_on_many_threads() {
    let server = server();
    Matrix::new()
        .run(async |setup: Setup| {
            let mut wire = setup.wire(&server).await;
            let mut ids = Vec::new();
            for number in 0..1000 {
                let arguments = json!({ "text": number.to_string() });
                ids.push(wire.start("tools/call", json!({ "name": "slow", "arguments": arguments })).await);
            }
            for (number, id) in ids.into_iter().enumerate() {
                assert_eq!(text(wire.reply(id).await.result()), number.to_string());
            }
        })
        .await;
}
