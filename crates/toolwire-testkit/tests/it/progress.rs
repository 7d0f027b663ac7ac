//! Progress: only when asked for, strictly increasing, and never after the answer.

use serde_json::{Value, json};
use toolwire_protocol::Version;
use toolwire_server::{Context, Progress, Server, tool};
use toolwire_testkit::{
    each,
    simulation::{Faults, Plan, Random, message_link},
};
use toolwire_transport::{Duplex as _, Sink as _, Source as _};

async fn copy(progress: Progress) -> &'static str {
    for done in [1.0, 2.0, 2.0, 1.5, f64::NAN, 3.0] {
        progress.report_message(done, 3.0, format!("{done} of 3"));
        tokio::task::yield_now().await;
    }
    "copied"
}

/// Reports after it has answered, from a task of its own.
async fn late(cx: Context) -> &'static str {
    let progress = cx.progress();
    progress.report(1.0, None);
    tokio::spawn(async move {
        for done in 2..1000 {
            progress.report(f64::from(done), None);
            tokio::task::yield_now().await;
        }
    });
    "answered"
}

fn server() -> Server {
    Server::builder("progress", "1.0").tool(tool("copy", copy)).tool(tool("late", late)).build().unwrap()
}

#[tokio::test]
async fn increases_and_comes_before_the_answer() {
    let server = server();
    each(async |setup| {
        let mut wire = setup.wire(&server).await;
        for token in [json!("a token"), json!(7)] {
            let call = json!({ "name": "copy", "_meta": { "progressToken": token } });
            let id = wire.start("tools/call", call).await;
            let mut seen = Vec::new();
            loop {
                let message = wire.next().await;
                if message["id"] == id {
                    break;
                }
                assert_eq!(message["method"], "notifications/progress");
                let params = &message["params"];
                assert_eq!((&params["progressToken"], params["total"].as_f64()), (&token, Some(3.0)));
                let has_message = setup.version >= Version::V2025_03_26;
                assert_eq!(params.get("message").is_some(), has_message, "{params}");
                seen.push(params["progress"].as_f64().unwrap());
            }
            assert!(seen.is_sorted_by(|a, b| a < b), "{seen:?}");
            assert_eq!(seen.last(), Some(&3.0));
        }
    })
    .await;
}

#[tokio::test]
async fn is_the_newest_for_a_client_that_reads_slowly() {
    let burst = |progress: Progress| async move {
        (1..=10_000).for_each(|done| progress.report(f64::from(done), 10_000.0));
        "done"
    };
    let server = Server::builder("progress", "1.0").tool(tool("burst", burst)).build().unwrap();
    each(async |setup| {
        let mut wire = setup.wire(&server).await;
        let id = wire.start("tools/call", json!({ "name": "burst", "_meta": { "progressToken": 1 } })).await;
        let mut seen = Vec::new();
        loop {
            let message = wire.next().await;
            if message["id"] == id {
                break;
            }
            seen.push(message["params"]["progress"].as_f64().unwrap());
        }
        assert!(seen.is_sorted_by(|a, b| a < b), "{seen:?}");
        assert_eq!(seen.last(), Some(&10_000.0));
        assert!(seen.len() < 200, "{} notifications have piled up", seen.len());
    })
    .await;
}

#[tokio::test]
async fn is_not_sent_without_a_token() {
    let server = server();
    each(async |setup| {
        let mut wire = setup.wire(&server).await;
        let id = wire.start("tools/call", json!({ "name": "copy" })).await;
        let message = wire.next().await;
        assert_eq!(message["id"], id, "{message}");
        wire.expect_silence().await;
    })
    .await;
}

#[tokio::test]
async fn ends_with_the_answer() {
    let server = server();
    each(async |setup| {
        let mut wire = setup.wire(&server).await;
        let call = json!({ "name": "late", "_meta": { "progressToken": 1 } });
        let id = wire.start("tools/call", call).await;
        loop {
            let message: Value = wire.next().await;
            if message["id"] == id {
                break;
            }
        }
        wire.expect_silence().await;
    })
    .await;
}

#[tokio::test]
async fn of_a_batch_comes_before_its_answers() {
    // The client takes nothing until everything is said, so what is sent has to wait in the server.
    let back = Faults { capacity: 1, ..Faults::calm() };
    let (ours, theirs, _link) = message_link(&mut Random::new(1), Plan { back, ..Plan::calm() });
    let server = server();
    let serving = tokio::spawn(async move { server.serve(theirs).await });
    let (mut source, mut sink) = ours.split();
    let client = json!({ "name": "t", "version": "1" });
    let params = json!({ "protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": client });
    let call = |id: u64| {
        let params = json!({ "name": "copy", "_meta": { "progressToken": id } });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    for message in [
        json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!([call(1), call(2)]),
    ] {
        sink.send(message.to_string().into()).await.unwrap();
    }
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    sink.close().await.unwrap();
    let mut said = Vec::new();
    while let Some(message) = source.receive().await.unwrap() {
        said.push(serde_json::from_slice::<Value>(&message).unwrap());
    }
    assert_eq!(said.len(), 8, "{said:?}");
    assert_eq!(said.last().and_then(Value::as_array).map(Vec::len), Some(2), "{said:?}");
    serving.await.unwrap().unwrap();
}
