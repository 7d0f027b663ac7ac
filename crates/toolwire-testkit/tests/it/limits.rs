//! Every limit, reached and survived.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use toolwire_protocol::Version;
use toolwire_server::{Limits, Server, tool};
use toolwire_testkit::{Matrix, Setup, each};
use toolwire_transport::{Duplex, Sink, memory};

use crate::text;

/// Two answers are on their way, the third fills the queue, and then nobody reads any more.
#[tokio::test(start_paused = true)]
async fn a_client_that_reads_nothing_does_not_hold_up_the_shutdown() {
    let blob = || async { "x".repeat(3 * 1024 * 1024) };
    let limits = Limits { queued_bytes: 1024 * 1024, ..Limits::default() };
    let patience = 3 * limits.drain_timeout;
    let server = Server::builder("limits", "1.0").tool(tool("blob", blob)).limits(limits).build().unwrap();
    let (ours, theirs) = memory::pair();
    let (_unread, mut sink) = ours.split();
    let serving = tokio::spawn({
        let server = server.clone();
        async move { server.serve(theirs).await }
    });
    for id in 0..8 {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let mut call = call(id, "blob");
        call["params"]["_meta"] = meta;
        sink.send(call.to_string().into()).await.unwrap();
    }
    // With a clock that stands still, this passes when nobody has anything to do any more.
    tokio::time::sleep(Duration::from_millis(1)).await;
    server.shutdown();
    let ended = tokio::time::timeout(patience, serving).await;
    ended.expect("the server waits for a client that does not read").unwrap().unwrap();
}

/// A server whose tool `wait` takes a permit before it answers and counts how often it was called.
fn server(limits: Limits) -> (Server, Arc<Semaphore>, Arc<AtomicUsize>) {
    let (permits, calls) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let wait = {
        let (permits, calls) = (Arc::clone(&permits), Arc::clone(&calls));
        move || {
            let permits = Arc::clone(&permits);
            calls.fetch_add(1, Ordering::SeqCst);
            async move {
                permits.acquire().await.unwrap().forget();
                "waited"
            }
        }
    };
    let server = Server::builder("limits", "1.0")
        .tool(tool("wait", wait))
        .tool(tool("quick", || async { "quick" }))
        .limits(limits)
        .build()
        .unwrap();
    (server, permits, calls)
}

#[tokio::test]
async fn a_message_that_is_too_long_is_refused_and_the_connection_lives() {
    each(async |setup| {
        let (server, ..) = server(Limits { message_bytes: 1000, ..Limits::default() });
        let mut wire = setup.wire(&server).await;
        let long = json!({ "name": "quick", "arguments": { "filler": "x".repeat(1000) } });
        wire.start("tools/call", long).await;
        let refusal = wire.next().await;
        assert_eq!(refusal["error"]["code"], -32600, "{refusal}");
        assert_eq!(refusal.get("id").is_some(), setup.link.is_duplex(), "{refusal}");
        let reply = wire.request("tools/call", json!({ "name": "quick" })).await;
        assert_eq!(text(reply.result()), "quick");
    })
    .await;
}

#[tokio::test]
async fn requests_run_then_wait_then_are_refused_as_busy() {
    each(async |setup| {
        let limits = Limits { requests_in_flight: 2, queued_requests: 2, ..Limits::default() };
        let (server, permits, calls) = server(limits);
        let mut wire = setup.wire(&server).await;
        let mut ids = Vec::new();
        for _ in 0..4 {
            ids.push(wire.start("tools/call", json!({ "name": "wait" })).await);
        }
        let busy = wire.request("tools/call", json!({ "name": "wait" })).await;
        assert_eq!(busy.code(), -32603);
        assert!(busy.error_text().contains("busy"), "{}", busy.message());
        assert_eq!(calls.load(Ordering::SeqCst), 2, "more run than may");
        permits.add_permits(4);
        for id in ids {
            assert_eq!(text(wire.reply(id).await.result()), "waited");
        }
        let reply = wire.request("tools/call", json!({ "name": "quick" })).await;
        assert_eq!(text(reply.result()), "quick");
    })
    .await;
}

#[tokio::test]
async fn an_id_that_is_in_use_is_refused() {
    each(async |setup| {
        let (server, permits, _) = server(Limits::default());
        let mut wire = setup.wire(&server).await;
        wire.start_as(json!("same"), "tools/call", json!({ "name": "wait" })).await;
        wire.start_as(json!("same"), "tools/call", json!({ "name": "quick" })).await;
        assert_eq!(wire.reply("same").await.code(), -32600);
        permits.add_permits(1);
        assert_eq!(text(wire.reply("same").await.result()), "waited");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_takes_too_long_is_stopped() {
    each(async |setup| {
        let (server, permits, _) =
            server(Limits { handler_timeout: Duration::from_secs(30), ..Limits::default() });
        let patience = Duration::from_secs(60);
        let mut wire = setup.wire_with(&server, |wire| wire.patience(patience)).await;
        let before = tokio::time::Instant::now();
        let reply = wire.request("tools/call", json!({ "name": "wait" })).await;
        assert_eq!(reply.code(), -32603);
        assert!(reply.error_text().contains("30 s"), "{}", reply.message());
        assert_eq!(before.elapsed().as_secs(), 30);
        permits.add_permits(1);
        wire.expect_silence().await;
    })
    .await;
}

fn call(id: impl Into<Value>, name: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": { "name": name } })
}

fn batches() -> Matrix {
    Matrix::new().versions([Version::V2025_03_26])
}

#[tokio::test]
async fn a_batch_is_answered_as_one() {
    batches()
        .run(async |setup: Setup| {
            let (server, ..) = server(Limits::default());
            let mut wire = setup.wire(&server).await;
            let batch = json!([
                call("a", "quick"),
                { "jsonrpc": "2.0", "method": "notifications/roots/list_changed" },
                { "jsonrpc": "2.0", "id": null, "method": "ping" },
                { "jsonrpc": "2.0", "id": "b", "method": "ping" },
            ]);
            wire.send_raw(batch.to_string()).await;
            let answers = wire.next().await;
            let mut ids: Vec<_> =
                answers.as_array().unwrap().iter().map(|answer| answer["id"].to_string()).collect();
            ids.sort();
            assert_eq!(ids, ["\"a\"", "\"b\"", "null"], "{answers}");
            let note = json!([{ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }]);
            wire.send_raw(note.to_string()).await;
            wire.expect_silence().await;
        })
        .await;
}

#[tokio::test]
async fn a_batch_holds_only_so_many_messages() {
    batches()
        .run(async |setup: Setup| {
            let (server, ..) = server(Limits { batch_messages: 2, ..Limits::default() });
            let mut wire = setup.wire(&server).await;
            for (size, fits) in [(0, false), (1, true), (2, true), (3, false)] {
                let batch: Vec<_> = (0..size).map(|id| call(format!("b{id}"), "quick")).collect();
                wire.send_raw(Value::Array(batch).to_string()).await;
                let answer = wire.next().await;
                assert_eq!(answer.is_array(), fits, "{size}: {answer}");
                if !fits {
                    assert_eq!(answer["error"]["code"], -32600);
                }
            }
        })
        .await;
}

#[tokio::test]
async fn a_batch_leaves_out_what_was_cancelled() {
    batches()
        .run(async |setup: Setup| {
            let (server, ..) = server(Limits::default());
            let mut wire = setup.wire(&server).await;
            let batch = json!([call("a", "wait"), call("b", "quick")]);
            wire.send_raw(batch.to_string()).await;
            wire.cancel("a").await;
            let answers = wire.next().await;
            assert_eq!(answers.as_array().map(Vec::len), Some(1), "{answers}");
            assert_eq!(answers[0]["id"], "b");
            wire.send_raw(json!([call("c", "wait")]).to_string()).await;
            wire.cancel("c").await;
            wire.expect_silence().await;
        })
        .await;
}

#[tokio::test]
async fn a_batch_is_no_place_for_modern_requests() {
    batches()
        .run(async |setup: Setup| {
            let (server, ..) = server(Limits::default());
            let mut wire = setup.wire(&server).await;
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            });
            let listen = json!({
                "jsonrpc": "2.0",
                "id": "a",
                "method": "subscriptions/listen",
                "params": { "notifications": { "toolsListChanged": true }, "_meta": meta },
            });
            wire.send_raw(json!([listen, call("b", "quick")]).to_string()).await;
            let answers = wire.next().await;
            let answers = answers.as_array().unwrap_or_else(|| panic!("no batch: {answers}"));
            let of = |id: &str| answers.iter().find(|answer| answer["id"] == id).unwrap();
            assert_eq!(of("a")["error"]["code"], -32600, "{answers:?}");
            assert!(of("b")["result"].is_object(), "{answers:?}");
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_batch_does_not_wait_for_a_handler_that_takes_too_long() {
    batches()
        .run(async |setup: Setup| {
            let (server, ..) =
                server(Limits { handler_timeout: Duration::from_secs(3), ..Limits::default() });
            let mut wire = setup.wire(&server).await;
            wire.send_raw(json!([call("a", "wait"), call("b", "quick")]).to_string()).await;
            let answers = wire.next().await;
            let codes: Vec<_> =
                answers.as_array().unwrap().iter().map(|a| a["error"]["code"].as_i64()).collect();
            assert!(codes.contains(&Some(-32603)) && codes.contains(&None), "{answers}");
        })
        .await;
}

#[tokio::test]
async fn a_batch_runs_each_of_its_requests_once_however_busy_the_server_is() {
    batches()
        .run(async |setup: Setup| {
            let (server, permits, calls) = server(Limits { requests_in_flight: 1, ..Limits::default() });
            let mut wire = setup.wire(&server).await;
            let running = wire.start("tools/call", json!({ "name": "wait" })).await;
            let batch = json!([call("a", "wait"), call("b", "wait")]);
            wire.send_raw(batch.to_string()).await;
            wire.settle().await;
            permits.add_permits(100);
            assert_eq!(text(wire.reply(running).await.result()), "waited");
            let answers = wire.next().await;
            assert_eq!(answers.as_array().map(Vec::len), Some(2), "{answers}");
            wire.expect_silence().await;
            assert_eq!(calls.load(Ordering::SeqCst), 3);
        })
        .await;
}

#[tokio::test]
async fn answers_for_a_client_that_does_not_read_are_bounded() {
    each(async |setup| {
        let blob = || async { "x".repeat(256 * 1024) };
        let server = Server::builder("limits", "1.0")
            .tool(tool("blob", blob))
            .limits(Limits { queued_bytes: 1024 * 1024, ..Limits::default() })
            .build()
            .unwrap();
        let mut wire = setup.wire(&server).await;
        let mut ids = Vec::new();
        for _ in 0..32 {
            ids.push(wire.start("tools/call", json!({ "name": "blob" })).await);
            // The answers before are there when the next request comes.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let mut refused = 0;
        for id in ids {
            let reply = wire.reply(id).await;
            if reply.is_error() {
                assert!(reply.error_text().contains("busy"), "{}", reply.message());
                refused += 1;
            }
        }
        assert!((1..32).contains(&refused), "{refused} of 32 were refused");
        let reply = wire.request("tools/call", json!({ "name": "blob" })).await;
        assert_eq!(text(reply.result()).len(), 256 * 1024);
    })
    .await;
}
