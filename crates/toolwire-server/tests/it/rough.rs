//! What must not break a server.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use tokio::sync::{Notify, oneshot};
use toolwire_protocol::RawJson;
use toolwire_server::{Args, Context, Json, Limits, Server, tool};

use crate::wire::{PATIENCE, Wire, modern, request};

fn server() -> Server {
    Server::builder("test", "1.0")
        .tool(tool("hello", || async { "hello" }))
        .tool(tool("panic", || async {
            assert!(std::hint::black_box(false), "on purpose");
        }))
        .tool(tool("late-panic", || async {
            tokio::task::yield_now().await;
            assert!(std::hint::black_box(false), "on purpose");
        }))
        .tool(tool("wrong", || async { Json(7) }).output_schema(json!({"type": "string"})))
        .build()
        .unwrap()
}

#[tokio::test]
async fn both_eras_are_served_on_one_connection() {
    let mut wire = Wire::legacy(&server(), "2025-06-18").await;
    let old = wire.ask(&request(1, "tools/call", json!({"name": "hello"}))).await;
    assert_eq!(old["result"], json!({"content": [{"type": "text", "text": "hello"}]}));
    let new = wire.ask(&modern("1", "tools/call", json!({"name": "hello"}))).await;
    assert_eq!(new["id"], "1");
    assert_eq!(new["result"]["resultType"], "complete");
    assert_eq!(new["result"]["content"], old["result"]["content"]);
}

#[tokio::test]
async fn a_panic_is_an_error_and_nothing_else_is_disturbed() {
    let mut wire = Wire::connect(&server());
    for name in ["panic", "late-panic"] {
        let answer = wire.ask(&modern(1, "tools/call", json!({"name": name}))).await;
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
    }
    let answer = wire.ask(&modern(2, "tools/call", json!({"name": "hello"}))).await;
    assert_eq!(answer["result"]["content"][0]["text"], "hello");
}

#[tokio::test]
async fn a_message_that_is_too_long_is_answered_with_its_id() {
    let server = Server::builder("test", "1.0")
        .limits(Limits { message_bytes: 1000, ..Limits::default() })
        .build()
        .unwrap();
    let mut wire = Wire::connect(&server);
    let filler = "x".repeat(2000);
    let request =
        json!({"jsonrpc": "2.0", "method": "tools/call", "params": {"x": filler, "id": 1}, "id": "last"});
    let refusal = wire.ask(&request).await;
    assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!("last"), &json!(-32600)));
    // An answer and a notification are not answered, whatever they are.
    let answer = json!({"jsonrpc": "2.0", "id": 5, "result": {"x": filler}});
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/x", "params": {"x": filler}});
    wire.send(&answer).await;
    wire.send(&notification).await;
    let answer = wire.ask(&modern(2, "server/discover", json!({}))).await;
    assert_eq!(answer["id"], 2, "{answer}");
}

#[tokio::test]
async fn a_result_that_contradicts_its_schema_is_our_error() {
    let mut wire = Wire::connect(&server());
    let answer = wire.ask(&modern(1, "tools/call", json!({"name": "wrong"}))).await;
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
}

#[tokio::test]
async fn garbage_is_answered_and_survived() {
    let mut wire = Wire::connect(&server());
    for (text, code) in [
        ("nonsense", -32700),
        ("{\"jsonrpc\":\"2.0\"", -32700),
        ("[]", -32600),
        ("7", -32600),
        ("{}", -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, -32602),
    ] {
        wire.send_text(text).await;
        let answer = wire.receive().await;
        assert_eq!(answer["error"]["code"], code, "{text}: {answer}");
    }
    assert_eq!(wire.ask(&request(1, "ping", json!({}))).await["result"], json!({}));
}

#[tokio::test]
async fn cancelling_stops_the_handler_and_says_nothing() {
    struct Guard(Option<oneshot::Sender<()>>);
    impl Drop for Guard {
        fn drop(&mut self) {
            let _ = self.0.take().unwrap().send(());
        }
    }
    let (dropped, was_dropped) = oneshot::channel();
    let dropped = Arc::new(Mutex::new(Some(dropped)));
    let wait = move || {
        let guard = Guard(dropped.lock().unwrap().take());
        async move {
            std::future::pending::<()>().await;
            drop(guard);
        }
    };
    let server = Server::builder("test", "1.0").tool(tool("wait", wait)).build().unwrap();
    let mut wire = Wire::connect(&server);
    wire.send(&modern("x", "tools/call", json!({"name": "wait"}))).await;
    wire.send(&json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}})).await;
    tokio::time::timeout(PATIENCE, was_dropped).await.unwrap().unwrap();
    // The next message is the answer to the next request, so the cancelled one got none.
    assert_eq!(wire.ask(&modern(2, "server/discover", json!({}))).await["id"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_takes_too_long_is_stopped() {
    let limits = Limits { handler_timeout: Duration::from_secs(5), ..Limits::default() };
    let quick =
        Server::builder("t", "1").limits(limits).tool(tool("never", std::future::pending::<()>)).build();
    let mut wire = Wire::connect(&quick.unwrap());
    let answer = wire.ask(&modern(1, "tools/call", json!({"name": "never"}))).await;
    assert_eq!(answer["error"]["message"], "the handler took longer than 5 s (limit handler_timeout)");
}

#[tokio::test]
async fn requests_over_the_limit_wait_and_then_are_refused() {
    let limits = Limits { requests_in_flight: 1, queued_requests: 1, ..Limits::default() };
    let server = Server::builder("t", "1")
        .limits(limits)
        .tool(tool("never", std::future::pending::<()>))
        .tool(tool("hello", || async { "hello" }))
        .build()
        .unwrap();
    let mut wire = Wire::connect(&server);
    wire.send(&modern(1, "tools/call", json!({"name": "never"}))).await;
    wire.send(&modern(2, "tools/call", json!({"name": "hello"}))).await;
    let refused = wire.ask(&modern(3, "tools/call", json!({"name": "hello"}))).await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(3), &json!(-32603)));
    let twice = wire.ask(&modern(1, "tools/call", json!({"name": "hello"}))).await;
    assert_eq!(twice["error"]["code"], -32600, "an id in use: {twice}");
    // The waiting one runs as soon as the running one is gone.
    wire.send(&json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})).await;
    assert_eq!(wire.receive().await["id"], 2);
}

#[tokio::test]
async fn two_hundred_large_messages_each_way_do_not_deadlock() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Echo {
        text: String,
    }
    let echo = tool("echo", |Args(echo): Args<Echo>| async move { echo.text });
    let server = Server::builder("t", "1").tool(echo).build().unwrap();
    let mut wire = Wire::connect(&server);
    let text = "x".repeat(64 * 1024);
    // Nothing is read until everything is written.
    for id in 0..200 {
        wire.send(&modern(id, "tools/call", json!({"name": "echo", "arguments": {"text": text}}))).await;
    }
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..200 {
        let answer = wire.receive().await;
        assert_eq!(answer["result"]["content"][0]["text"].as_str().unwrap().len(), text.len());
        seen.insert(answer["id"].as_i64().unwrap());
    }
    assert_eq!(seen.len(), 200);
}

#[tokio::test]
async fn what_is_running_when_the_client_leaves_may_finish() {
    let (done, finished) = oneshot::channel();
    let done = Arc::new(Mutex::new(Some(done)));
    let slow = move |cx: Context| {
        let done = done.lock().unwrap().take();
        async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            drop(cx);
            let _ = done.unwrap().send(());
        }
    };
    let server = Server::builder("t", "1").tool(tool("slow", slow)).build().unwrap();
    let mut wire = Wire::connect(&server);
    wire.send(&modern(1, "tools/call", json!({"name": "slow"}))).await;
    drop(wire);
    tokio::time::timeout(PATIENCE, finished).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[expect(clippy::await_holding_lock, reason = "a handler is to block on it meanwhile")]
async fn a_handler_that_blocks_holds_up_its_pipe_once() {
    let (told, release) = (Arc::new(Notify::new()), Arc::new(Mutex::new(())));
    let blocks = {
        let (told, release) = (Arc::clone(&told), Arc::clone(&release));
        move || {
            let (told, release) = (Arc::clone(&told), Arc::clone(&release));
            async move {
                told.notify_one();
                drop(release.lock());
                std::thread::sleep(Duration::from_millis(25));
                "blocked"
            }
        }
    };
    let server = Server::builder("t", "1")
        .tool(tool("blocks", blocks))
        .tool(tool("quick", || async { "quick" }))
        .build()
        .unwrap();
    let mut wire = Wire::connect(&server);
    let call = |id: u32, name: &str| modern(id, "tools/call", json!({"name": name}));
    assert_eq!(wire.ask(&call(1, "blocks")).await["id"], 1);
    told.notified().await;
    let held = release.lock().unwrap();
    wire.send(&call(2, "blocks")).await;
    told.notified().await;
    // The handler blocks a thread until the lock is released, and the next request is answered all the same.
    assert_eq!(wire.ask(&call(3, "quick")).await["id"], 3);
    drop(held);
    assert_eq!(wire.receive().await["id"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_route_has_tasks_from_its_first_slow_poll_on_until_a_thousand_were_quick() {
    async fn task() -> String {
        tokio::task::id().to_string()
    }
    let blocks = Arc::new(AtomicBool::new(false));
    let sometimes = {
        let blocks = Arc::clone(&blocks);
        move || {
            let blocks = Arc::clone(&blocks);
            async move {
                let task = task().await;
                if blocks.swap(false, Ordering::SeqCst) {
                    // The clock moves on within the poll, as if the handler had blocked.
                    tokio::time::advance(Duration::from_millis(20)).await;
                }
                task
            }
        }
    };
    let server = Server::builder("t", "1")
        .tool(tool("sometimes", sometimes))
        .tool(tool("quick", task))
        .build()
        .unwrap();
    let mut wire = Wire::connect(&server);
    let mut call = async |name: &str| {
        let answer = wire.ask(&modern(1, "tools/call", json!({"name": name}))).await;
        answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    };
    let reader = call("quick").await;
    // Twice, because a route that is quick again may become slow again.
    for _ in 0..2 {
        for number in 1..=100 {
            assert_eq!(call("sometimes").await, reader, "call {number} before it blocks");
        }
        blocks.store(true, Ordering::SeqCst);
        assert_eq!(call("sometimes").await, reader, "the one that blocks");
        for number in 1..=1000 {
            assert_ne!(call("sometimes").await, reader, "call {number} after it has blocked");
        }
        assert_eq!(call("quick").await, reader, "it is another route");
    }
}

#[tokio::test]
async fn a_custom_method_has_members_of_its_own() {
    let echo = |cx: Context| async move { cx.decode::<RawJson>() };
    let server =
        Server::builder("t", "1").method("acme/echo", echo).tool(tool("t", || async {})).build().unwrap();
    let members = json!({
        "name": 1, "uri": [], "cursor": {}, "arguments": "x", "taskId": null, "task": 2, "requestState": 3,
        "inputResponses": [4],
    });
    let mut wire = Wire::legacy(&server, "2025-11-25").await;
    let answer = wire.ask(&request(1, "acme/echo", members.clone())).await;
    assert_eq!(answer["result"], members, "{answer}");
    let answer = wire.ask(&modern(2, "acme/echo", members.clone())).await;
    for (name, value) in members.as_object().unwrap() {
        assert_eq!(&answer["result"][name], value, "{answer}");
    }
    // Nothing of this is for a method of the protocol, and `_meta` belongs to all.
    let answer = wire.ask(&request(3, "tools/list", json!({"cursor": 1}))).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    for text in [r#"{"name":1,"_meta":7}"#, r#"{"_meta":7,"name":1}"#] {
        wire.send_text(&format!(r#"{{"jsonrpc":"2.0","id":4,"method":"acme/echo","params":{text}}}"#)).await;
        let answer = wire.receive().await;
        assert_eq!(answer["error"]["message"], "acme/echo: \"_meta\" must be an object", "{text}");
    }
}
