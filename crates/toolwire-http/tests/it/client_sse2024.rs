//! Servers of the first revision: one stream, one address to post to.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use toolwire_client::{Client, ConnectionState, Delivery, EraChoice, Error, ErrorKind, Reconnect};
use toolwire_protocol::Version;

use crate::client_script::{Reply, Script, Step, builder, event, legacy, said};

/// A server whose stream begins with this, and which answers on it as often as the steps allow.
async fn server(endpoint: &'static str, answers: usize) -> Script {
    refusing(endpoint, answers, usize::MAX).await
}

/// The same, where one of the streams cannot be opened: that many were before it.
async fn refusing(endpoint: &'static str, answers: usize, refused: usize) -> Script {
    let stream: Arc<Mutex<Vec<Arc<Slot>>>> = Arc::default();
    let opened = AtomicUsize::new(0);
    Script::start(move |seen| match (seen.verb.as_str(), seen.path.as_str()) {
        ("GET", "/mcp") if opened.fetch_add(1, Ordering::Relaxed) == refused => Reply::status(503),
        ("GET", "/mcp") => {
            let slots: Vec<_> = (0..answers).map(|_| Arc::new(Slot::default())).collect();
            stream.lock().unwrap().clone_from(&slots);
            let mut steps = vec![Step::Send(format!("event: endpoint\ndata: {endpoint}\n\n"))];
            for slot in slots {
                steps.push(Step::Wait(Arc::clone(&slot.go)));
                steps.push(Step::Later(Arc::clone(&slot.text)));
            }
            Reply::stream(steps)
        }
        ("POST", "/messages?session=7") => {
            let result = match seen.what() {
                "initialize" => json!({ "protocolVersion": "2024-11-05", "capabilities": { "tools": {} },
                    "serverInfo": { "name": "old", "version": "1" } }),
                "tools/call" if seen.body["params"]["name"] == "end" => {
                    stream.lock().unwrap().remove(0).go.notify_one();
                    return Reply::status(202);
                }
                "tools/call" => said("hello"),
                _ => return Reply::status(202),
            };
            let slot = stream.lock().unwrap().remove(0);
            *slot.text.lock().unwrap() = event(&seen.result(&result));
            slot.go.notify_one();
            Reply::status(202)
        }
        _ => Reply::status(405),
    })
    .await
}

#[derive(Default)]
struct Slot {
    go: Arc<Notify>,
    text: Arc<Mutex<String>>,
}

#[tokio::test]
async fn it_is_found_when_nothing_else_is_understood() {
    let script = server("/messages?session=7", 2).await;
    let client: Client = script.connect().await;
    assert_eq!(client.version(), Version::V2024_11_05);
    assert_eq!(client.call("tool", json!({})).await.unwrap().text(), "hello");
    assert_eq!(
        script.story(),
        ["server/discover", "initialize", "GET", "initialize", "notifications/initialized", "tools/call"]
    );
    for seen in script.seen() {
        assert_eq!(seen.header("mcp-session-id"), None);
    }
}

#[tokio::test]
async fn the_end_of_the_stream_is_the_end_of_the_connection() {
    let script = server("/messages?session=7", 2).await;
    let client = script.connect().await;
    let error = client.call("end", json!({})).await.unwrap_err();
    assert_eq!((error.kind(), error.delivery()), (ErrorKind::Closed, Delivery::Unknown), "{error}");
}

#[tokio::test]
async fn a_stream_that_is_lost_is_opened_again_also_after_an_attempt_that_failed() {
    let script = refusing("/messages?session=7", 2, 1).await;
    let (told, mut heard) = mpsc::unbounded_channel();
    let connecting = builder()
        .on_connection(move |state| told.send(state).unwrap())
        .reconnect(Reconnect::default().first_pause(Duration::from_millis(1)))
        .connect(script.http());
    let client = connecting.await.unwrap();
    let error = client.call("end", json!({})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert!(matches!(heard.recv().await, Some(ConnectionState::Lost(_))));
    assert_eq!(client.call("tool", json!({})).await.unwrap().text(), "hello");
    assert_eq!(heard.recv().await, Some(ConnectionState::Restored));
    assert_eq!(script.all("GET").len(), 3, "one that was lost, one that failed, one that works");
}

async fn fail(script: &Script) -> Error {
    builder().era(EraChoice::Legacy).connect(script.http()).await.unwrap_err()
}

#[tokio::test]
async fn messages_are_posted_to_the_same_origin_only() {
    let script = server("http://localhost:1/messages", 1).await;
    let error = fail(&script).await;
    assert!(format!("{error:?}").contains("another origin"), "{error:?}");
}

#[tokio::test]
async fn a_message_that_is_refused_ends_the_connection_with_the_reason() {
    let script = server("/elsewhere", 1).await;
    let error = fail(&script).await;
    assert!(format!("{error:?}").contains("405"), "{error:?}");
}

#[tokio::test]
async fn a_wrong_path_is_told_as_such() {
    for reply in [
        Reply::status(404),
        Reply::stream([Step::Send("data: {}\n\n".to_owned())]),
        Reply::json(200, &Value::Null),
    ] {
        let script = Script::start(move |seen| match seen.verb.as_str() {
            "GET" => reply.clone(),
            _ => Reply::status(404),
        })
        .await;
        let error = fail(&script).await;
        let text = format!("{error:?}");
        assert_eq!((error.kind(), error.delivery()), (ErrorKind::Connect, Delivery::Rejected));
        assert!(error.to_string().starts_with("initialize failed: the server answered with 404"), "{error}");
        assert!(
            text.contains("is the path right?") || text.contains("does not begin with an endpoint"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn a_newer_server_is_not_asked_for_it() {
    let script = Script::start(|seen| match seen.what() {
        "initialize" => Reply::status(503),
        _ => legacy(seen, "2025-11-25", "s"),
    })
    .await;
    fail(&script).await;
    assert_eq!(script.story(), ["initialize"]);
}
