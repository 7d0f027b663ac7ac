//! A server that means ill, or does not know better.

use serde_json::json;
use toolwire_client::{Delivery, ErrorKind};
use toolwire_protocol::Version;

use crate::script::{builder, connect, legacy, modern, text};

/// How many messages in a row may be unreadable.
const MAX_INVALID_MESSAGES: usize = 100;

const GARBAGE: &[&str] = &[
    "",
    "hello",
    "\"\\ud800\"",
    "[]",
    "[1]",
    "null",
    "{}",
    r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
    r#"{"jsonrpc":"2.0"}"#,
    r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
    r#"{"jsonrpc":"2.0","id":1.5,"result":{}}"#,
    r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":1,"id":1,"result":{}}"#,
    r#"{"jsonrpc":"2.0","method":3}"#,
    r#"{"jsonrpc":"2.0","result":{}}"#,
];

/// Messages that are well formed and still not valid.
const NONSENSE: &[&str] = &[
    r#"{"jsonrpc":"2.0","id":99999,"result":{}}"#,
    r#"{"jsonrpc":"2.0","id":"1","result":{}}"#,
    r#"{"jsonrpc":"2.0","id":-1,"error":{"code":1,"message":"x"}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":[]}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":"x"}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":3}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"loud"}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":[]}}"#,
];

#[tokio::test]
async fn junk_never_ends_a_connection_by_itself() {
    for version in Version::ALL {
        let (client, mut script) = connect(builder(), version).await;
        let (outcome, ()) = tokio::join!(client.call("x", ()), async {
            let request = script.expect("tools/call").await;
            for junk in GARBAGE.iter().chain(NONSENSE) {
                script.send_text(*junk).await;
            }
            script.reply(&request, text("still here")).await;
        });
        assert_eq!(outcome.unwrap().text(), "still here");
    }
}

#[tokio::test]
async fn nothing_but_junk_does() {
    let (client, mut script) = modern().await;
    let (outcome, ()) = tokio::join!(client.call("x", ()), async {
        script.expect("tools/call").await;
        for _ in 0..MAX_INVALID_MESSAGES {
            script.send_text("junk").await;
        }
    });
    let error = outcome.unwrap_err();
    assert_eq!((error.kind(), error.delivery()), (ErrorKind::Closed, Delivery::Unknown));
    assert!(error.to_string().contains("100 things in a row"), "{error}");
    script.expect_end().await;

    let (client, mut script) = modern().await;
    for _ in 0..3 {
        for _ in 1..MAX_INVALID_MESSAGES {
            script.send_text("junk").await;
        }
        let (outcome, ()) = tokio::join!(client.call("x", ()), async {
            let request = script.expect("tools/call").await;
            script.reply(&request, text("ok")).await;
        });
        outcome.unwrap();
    }
}

#[tokio::test]
async fn an_answer_that_is_no_message_fails_its_call_at_once() {
    let (client, mut script) = modern().await;
    for answer in [
        r#"{"jsonrpc":"2.0","id":ID,"result":{},"error":{"code":1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":ID,"error":"oops"}"#,
        r#"{"jsonrpc":"2.0","id":ID}"#,
    ] {
        let (outcome, ()) = tokio::join!(client.call("x", ()), async {
            let request = script.expect("tools/call").await;
            script.send_text(answer.replace("ID", &request["id"].to_string())).await;
        });
        let error = outcome.unwrap_err();
        assert_eq!((error.kind(), error.delivery()), (ErrorKind::InvalidResponse, Delivery::Unknown));
    }
}

#[tokio::test]
async fn the_same_answer_twice_counts_once() {
    let (client, mut script) = legacy().await;
    let (first, request) = tokio::join!(client.call("x", ()), async {
        let request = script.expect("tools/call").await;
        script.reply(&request, text("one")).await;
        script.reply(&request, text("two")).await;
        request
    });
    assert_eq!(first.unwrap().text(), "one");
    let (second, ()) = tokio::join!(client.call("y", ()), async {
        let next = script.expect("tools/call").await;
        script.reply(&request, text("three")).await;
        script.reply(&next, text("four")).await;
    });
    assert_eq!(second.unwrap().text(), "four");
}

#[tokio::test]
async fn batches_exist_in_one_version() {
    let batch = |id: &serde_json::Value| {
        let answer =
            json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "ok"}]}});
        json!([{"jsonrpc": "2.0", "method": "notifications/x"}, 3, answer])
    };
    let (client, mut script) = connect(builder(), Version::V2025_03_26).await;
    let (outcome, ()) = tokio::join!(client.call("x", ()), async {
        let request = script.expect("tools/call").await;
        script.send(batch(&request["id"])).await;
    });
    assert_eq!(outcome.unwrap().text(), "ok");

    let (client, mut script) = connect(builder(), Version::V2025_06_18).await;
    let (outcome, ()) = tokio::join!(client.call("x", ()), async {
        let request = script.expect("tools/call").await;
        script.send(batch(&request["id"])).await;
        script.reply(&request, text("not from a batch")).await;
    });
    assert_eq!(outcome.unwrap().text(), "not from a batch");
}

#[tokio::test]
async fn a_server_that_asks_and_never_reads_is_not_answered_for_ever() {
    let (_client, mut script) = legacy().await;
    let method = "x".repeat(64 * 1024);
    let asked = 400;
    for id in 0..asked {
        script.send(json!({"jsonrpc": "2.0", "id": id, "method": method})).await;
    }
    script.send(json!({"jsonrpc": "2.0", "method": "notifications/end"})).await;
    let mut answered = 0;
    while let Some(answer) = script.receive_now().await {
        assert_eq!(answer["error"]["code"], -32601);
        answered += 1;
    }
    // Sixteen megabytes are 256 of them, and some are in the pipe.
    assert!((256..asked).contains(&answered), "{answered}");
}

#[tokio::test]
async fn deep_nesting_is_no_danger() {
    let (client, mut script) = modern().await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let (outcome, ()) = tokio::join!(client.call("x", ()), async {
        let request = script.expect("tools/call").await;
        script.send_text(format!(r#"{{"jsonrpc":"2.0","method":"a","params":{{"x":{deep}}}}}"#)).await;
        let id = &request["id"];
        script.send_text(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":{deep}}}}}"#)).await;
        script.reply(&request, text("ok")).await;
    });
    // No reader decodes it, so the call is over although another answer would come.
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidResponse);
    let (outcome, ()) = tokio::join!(client.call("x", ()), async {
        let request = script.expect("tools/call").await;
        script.reply(&request, text("ok")).await;
    });
    assert_eq!(outcome.unwrap().text(), "ok");
}
