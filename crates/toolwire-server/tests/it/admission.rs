//! Every way in passes one admission, which weighs bytes; nothing stays counted that is gone.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use tokio::{sync::Semaphore, time::Instant};
use toolwire_server::{
    Context, Extensions, Limits, Principal, Server, State, TaskPolicy, Usage, engine::EndsAt, tool,
};
use toolwire_store::memory::{MemoryLimits, MemoryStore};
use toolwire_transport::{ledger::Account, memory};

use crate::wire::{Wire, modern, request, until};

/// What handlers tell the tests, and what they wait for.
#[derive(Clone)]
struct Stage {
    running: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    go: Arc<Semaphore>,
}

struct Running(Stage);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn wait(State(stage): State<Stage>) -> &'static str {
    let now = stage.running.fetch_add(1, Ordering::SeqCst) + 1;
    stage.most.fetch_max(now, Ordering::SeqCst);
    let _running = Running(stage.clone());
    let _ = stage.go.acquire().await;
    "done"
}

async fn ask(cx: Context) -> Result<String, toolwire_server::AskError> {
    let roots = cx.roots().await?;
    Ok(format!("{} roots", roots.len()))
}

fn server(limits: Limits) -> (Server, Stage) {
    let stage = Stage { running: Arc::default(), most: Arc::default(), go: Arc::new(Semaphore::new(0)) };
    let server = Server::builder("t", "1")
        .limits(limits)
        .state(stage.clone())
        .tool(tool("wait", wait))
        .tool(tool("ask", ask))
        .resource(toolwire_server::resource("r://x", || async { "x" }))
        .build()
        .unwrap();
    (server, stage)
}

#[tokio::test]
async fn a_batch_is_let_in_like_any_other_request() {
    let limits = Limits { requests_in_flight: 8, queued_requests: 10_000, ..Limits::default() };
    let (server, stage) = server(limits);
    let mut wire = Wire::legacy(&server, "2025-03-26").await;
    for batch in 0..20 {
        let calls: Vec<_> =
            (0..64).map(|call| request(batch * 64 + call, "tools/call", json!({"name": "wait"}))).collect();
        wire.send(&json!(calls)).await;
    }
    until(|| stage.running.load(Ordering::SeqCst) == 8 && server.usage().requests == 20 * 64).await;
    stage.go.add_permits(Semaphore::MAX_PERMITS);
    for _ in 0..20 {
        let answers = wire.receive().await;
        assert_eq!(answers.as_array().unwrap().len(), 64);
    }
    assert_eq!(stage.most.load(Ordering::SeqCst), 8);
}

#[tokio::test]
async fn a_batch_weighs_what_it_weighs_until_the_last_of_it_is_over() {
    let (server, stage) = server(Limits { held_bytes_per_connection: 1024 * 1024, ..Limits::default() });
    let mut wire = Wire::legacy(&server, "2025-03-26").await;
    // One call that stays, and sixty-three that are over at once: together they carry 300 kB that stay, too.
    let batch = |first: u32| {
        let pings = (1..64).map(|number| request(first + number, "ping", json!({"x": "x".repeat(4700)})));
        let call = request(first, "tools/call", json!({"name": "wait"}));
        json!(std::iter::once(call).chain(pings).collect::<Vec<_>>())
    };
    for number in 1..=3 {
        wire.send(&batch(number * 100)).await;
    }
    until(|| stage.running.load(Ordering::SeqCst) == 3).await;
    let held = server.usage().request_bytes;
    assert!((900_000..1024 * 1024).contains(&held), "{held}");
    let refused = wire.ask(&batch(400)).await;
    assert_eq!(refused.as_array().unwrap().len(), 64);
    assert_eq!(refused[0]["error"]["data"]["limit"], "held_bytes_per_connection");
    stage.go.add_permits(3);
    for _ in 0..3 {
        assert_eq!(wire.receive().await.as_array().unwrap().len(), 64);
    }
    drop(wire);
    until(|| server.usage() == Usage::default()).await;
}

#[tokio::test]
async fn what_a_connection_has_started_ends_with_it() {
    let (server, stage) = server(Limits::default());
    for _ in 0..3 {
        let (ours, theirs) = memory::pair();
        let serving = tokio::spawn({
            let server = server.clone();
            async move { server.serve(theirs).await }
        });
        let mut wire = Wire::over(ours);
        for id in 0..20 {
            wire.send(&modern(id, "tools/call", json!({"name": "wait"}))).await;
            wire.send(&modern(100 + id, "subscriptions/listen", json!({"notifications": {}}))).await;
        }
        until(|| stage.running.load(Ordering::SeqCst) == 20 && server.usage().listeners == 20).await;
        // Nobody says goodbye: the future that serves is dropped, as when the task of an HTTP stream is.
        serving.abort();
        until(|| stage.running.load(Ordering::SeqCst) == 0 && server.usage() == Usage::default()).await;
    }
}

#[tokio::test]
async fn a_client_that_describes_itself_at_length_is_refused() {
    let (server, _) = server(Limits::default());
    let long = json!({"experimental": {"x": {"text": "x".repeat(20 * 1024)}}});
    let mut wire = Wire::connect(&server);
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": long, "clientInfo": {"name": "t", "version": "1"}});
    let refused = wire.ask(&request(1, "initialize", params)).await;
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("client_facts_bytes"), "{message}");
    let mut call = modern(2, "tools/call", json!({"name": "wait"}));
    call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = long;
    let refused = wire.ask(&call).await;
    assert_eq!(refused["error"]["code"], -32602);
    assert!(refused["error"]["message"].as_str().unwrap().contains("client_facts_bytes"));
    assert_eq!(server.usage().sessions, 0);
}

#[tokio::test]
async fn requests_that_wait_weigh_what_they_weigh() {
    let limits =
        Limits { requests_in_flight: 1, held_bytes_per_connection: 1024 * 1024, ..Limits::default() };
    let (server, stage) = server(limits);
    let mut wire = Wire::connect(&server);
    let heavy =
        |id: u32| modern(id, "tools/call", json!({"name": "wait", "arguments": {"x": "x".repeat(300_000)}}));
    for id in 1..=3 {
        wire.send(&heavy(id)).await;
        // One after the other: those that were not read yet weigh, too.
        until(|| server.usage().requests == usize::try_from(id).unwrap()).await;
    }
    let refused = wire.ask(&heavy(4)).await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(4), &json!(-32603)));
    assert_eq!(refused["error"]["data"]["limit"], "held_bytes_per_connection");
    let held = server.usage().request_bytes;
    assert!((900_000..1024 * 1024).contains(&held), "{held}");
    // Small ones still fit, and everything is given back with the answers.
    wire.send(&modern(5, "tools/call", json!({"name": "wait"}))).await;
    stage.go.add_permits(4);
    for _ in 0..4 {
        assert_eq!(wire.receive().await["result"]["content"][0]["text"], "done");
    }
    until(|| server.usage() == Usage::default()).await;
}

#[tokio::test]
async fn one_caller_leaves_room_for_the_others() {
    let limits = Limits { requests: 8, requests_per_caller: 5, ..Limits::default() };
    let (server, stage) = server(limits);
    let connect = |name: &str| {
        let (ours, theirs) = memory::pair();
        let (server, mut extensions) = (server.clone(), Extensions::default());
        extensions.insert(Principal::new(name));
        tokio::spawn(async move { server.serve_with(theirs, extensions).await });
        Wire::over(ours)
    };
    // Two connections of one caller share what it may have.
    let (mut one, mut two, mut other) = (connect("eve"), connect("eve"), connect("ada"));
    for id in 0..3 {
        one.send(&modern(id, "tools/call", json!({"name": "wait"}))).await;
    }
    until(|| server.usage().requests == 3).await;
    for id in 0..2 {
        two.send(&modern(id, "tools/call", json!({"name": "wait"}))).await;
    }
    let refused = two.ask(&modern(9, "tools/call", json!({"name": "wait"}))).await;
    assert_eq!(refused["error"]["data"]["limit"], "requests_per_caller");
    for id in 0..3 {
        other.send(&modern(id, "tools/call", json!({"name": "wait"}))).await;
    }
    let refused = other.ask(&modern(9, "tools/call", json!({"name": "wait"}))).await;
    assert_eq!(refused["error"]["data"]["limit"], "requests");
    stage.go.add_permits(8);
    for _ in 0..3 {
        assert!(other.receive().await["result"].is_object());
    }
}

#[tokio::test]
async fn subscriptions_weigh_what_they_weigh() {
    let limits = Limits { held_bytes_per_connection: 64 * 1024, ..Limits::default() };
    let (server, _) = server(limits);
    let mut wire = Wire::legacy(&server, "2025-11-25").await;
    let uri = |number: u32| format!("r://{number}/{}", "x".repeat(10_000));
    let mut refused = None;
    for number in 0..10 {
        let answer = wire.ask(&request(number, "resources/subscribe", json!({"uri": uri(number)}))).await;
        if answer["error"].is_object() {
            refused = Some((number, answer));
            break;
        }
    }
    let (number, answer) = refused.expect("no limit was met");
    assert!((4..=6).contains(&number), "{number}");
    assert_eq!(answer["error"]["data"]["limit"], "held_bytes_per_connection");
    // The same one again costs nothing; one that is given back makes room.
    assert!(
        wire.ask(&request(20, "resources/subscribe", json!({"uri": uri(0)}))).await["result"].is_object()
    );
    assert!(
        wire.ask(&request(21, "resources/unsubscribe", json!({"uri": uri(0)}))).await["result"].is_object()
    );
    assert!(
        wire.ask(&request(22, "resources/subscribe", json!({"uri": uri(50)}))).await["result"].is_object()
    );
    drop(wire);
    until(|| server.usage() == Usage::default()).await;
}

#[tokio::test(start_paused = true)]
async fn the_clock_of_a_handler_stands_still_while_a_question_is_open() {
    let limits = Limits { handler_timeout: Duration::from_secs(5), ..Limits::default() };
    let (server, _) = server(limits);
    let mut wire = Wire::legacy_with(&server, "2025-11-25", json!({"roots": {}})).await;
    wire.send(&request(1, "tools/call", json!({"name": "ask"}))).await;
    let question = wire.receive().await;
    assert_eq!(question["method"], "roots/list");
    tokio::time::sleep(Duration::from_secs(300)).await;
    wire.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})).await;
    assert_eq!(wire.receive().await["result"]["content"][0]["text"], "0 roots");
}

#[tokio::test(start_paused = true)]
async fn an_open_question_does_not_hold_up_the_end_of_input() {
    let (server, _) = server(Limits::default());
    let (ours, theirs) = memory::pair();
    let serving = tokio::spawn({
        let server = server.clone();
        async move { server.serve(theirs).await }
    });
    let mut wire = Wire::over(ours);
    wire.handshake("2025-11-25", json!({"roots": {}})).await;
    wire.send(&request(1, "tools/call", json!({"name": "ask"}))).await;
    assert_eq!(wire.receive().await["method"], "roots/list");
    let started = Instant::now();
    wire.end_input().await;
    serving.await.unwrap().unwrap();
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
}

#[tokio::test]
async fn answers_to_questions_weigh_what_they_weigh() {
    async fn ask_and_wait(
        cx: Context,
        State(go): State<Arc<Semaphore>>,
    ) -> Result<&'static str, toolwire_server::AskError> {
        let _roots = cx.roots().await?;
        let _ = go.acquire().await;
        Ok("done")
    }
    let go = Arc::new(Semaphore::new(0));
    let limits = Limits { held_bytes_per_connection: 1024 * 1024, ..Limits::default() };
    let server = Server::builder("t", "1")
        .limits(limits)
        .state(Arc::clone(&go))
        .tool(tool("ask", ask_and_wait))
        .build()
        .unwrap();
    let mut wire = Wire::legacy_with(&server, "2025-11-25", json!({"roots": {}})).await;
    for id in 1..=4 {
        wire.send(&request(id, "tools/call", json!({"name": "ask"}))).await;
        let question = wire.receive().await;
        let answer = json!({"roots": [{"uri": "file:///x", "junk": "x".repeat(300_000)}]});
        wire.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer})).await;
    }
    let refused = wire.receive().await.to_string();
    assert!(refused.contains("held_bytes_per_connection"), "{refused}");
    let held = server.usage().request_bytes;
    assert!((900_000..1024 * 1024).contains(&held), "{held}");
    go.add_permits(3);
    for _ in 0..3 {
        assert_eq!(wire.receive().await["result"]["content"][0]["text"], "done");
    }
    drop(wire);
    until(|| server.usage() == Usage::default()).await;
}

#[tokio::test]
async fn notifications_are_heard_however_much_is_held() {
    let note = |method: &str, id: u32| {
        let params = json!({"requestId": id, "x": "x".repeat(8 * 1024)});
        json!({"jsonrpc": "2.0", "method": method, "params": params})
    };
    let heavy =
        |id| modern(id, "tools/call", json!({"name": "wait", "arguments": {"x": "x".repeat(56 * 1024)}}));
    for in_batch in [false, true] {
        let (server, stage) = server(Limits { held_bytes_per_connection: 64 * 1024, ..Limits::default() });
        let mut wire = Wire::connect(&server);
        wire.send(&heavy(1)).await;
        until(|| stage.running.load(Ordering::SeqCst) == 1).await;
        let params = json!({"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        assert!(wire.ask(&request(2, "initialize", params)).await["result"].is_object());
        let refused = wire.ask(&heavy(3)).await;
        assert_eq!(
            refused["error"]["data"]["limit"], "held_bytes_per_connection",
            "there is no room: {refused}"
        );
        if in_batch {
            let ping = request(4, "ping", json!({}));
            let answers = wire.ask(&json!([note("notifications/initialized", 0), ping])).await;
            assert_eq!(answers[0]["error"]["data"]["limit"], "held_bytes_per_connection", "{answers}");
        } else {
            wire.send(&note("notifications/initialized", 0)).await;
        }
        assert!(wire.ask(&request(5, "tools/list", json!({}))).await["result"].is_object());
        server.notify().tools_changed();
        assert_eq!(wire.receive().await["method"], "notifications/tools/list_changed");
        let cancel = note("notifications/cancelled", 1);
        wire.send(&if in_batch { json!([cancel]) } else { cancel }).await;
        until(|| stage.running.load(Ordering::SeqCst) == 0).await;
        drop(wire);
        until(|| server.usage() == Usage::default()).await;
    }
}

#[tokio::test]
async fn an_id_that_is_too_long_is_refused_and_not_sent_back() {
    let (server, stage) = server(Limits::default());
    let mut wire = Wire::legacy(&server, "2025-03-26").await;
    let (fits, long) = ("x".repeat(1024), "x".repeat(1025));
    assert_eq!(wire.ask(&request(&*fits, "tools/list", json!({}))).await["id"], fits);
    for (method, params) in
        [("tools/call", json!({"name": "wait"})), ("subscriptions/listen", json!({"notifications": {}}))]
    {
        let refused = wire.ask(&modern(&*long, method, params)).await;
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(null), &json!(-32600)));
        assert!(refused["error"]["message"].as_str().unwrap().contains("request_id_bytes"), "{refused}");
    }
    let batch = json!([request(&*long, "ping", json!({})), request(1, "ping", json!({}))]);
    let answers = wire.ask(&batch).await;
    assert_eq!((&answers[0]["id"], &answers[0]["error"]["code"]), (&json!(null), &json!(-32600)));
    assert_eq!(answers[1]["id"], 1);
    // The token for progress is kept and sent just as an id is.
    let mut call = modern(2, "tools/call", json!({"name": "wait"}));
    call["params"]["_meta"]["progressToken"] = long.into();
    let refused = wire.ask(&call).await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(2), &json!(-32600)));
    assert_eq!((stage.running.load(Ordering::SeqCst), server.usage().listeners), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn news_ends_with_the_time_of_a_client_although_a_call_goes_on() {
    let (server, stage) = server(Limits::default());
    let (ours, theirs) = memory::pair();
    let mut extensions = Extensions::default();
    extensions.insert(EndsAt(Instant::now() + Duration::from_secs(60)));
    tokio::spawn({
        let server = server.clone();
        async move { server.serve_with(theirs, extensions).await }
    });
    let mut wire = Wire::over(ours);
    wire.handshake("2025-11-25", json!({})).await;
    wire.send(&request(1, "tools/call", json!({"name": "wait"}))).await;
    until(|| stage.running.load(Ordering::SeqCst) == 1).await;
    server.notify().tools_changed();
    assert_eq!(wire.receive().await["method"], "notifications/tools/list_changed");
    tokio::time::sleep(Duration::from_secs(61)).await;
    server.notify().tools_changed();
    tokio::time::sleep(Duration::from_secs(1)).await;
    stage.go.add_permits(1);
    assert_eq!(wire.receive().await["id"], 1);
}

/// The next message of this kind.
async fn received(wire: &mut Wire, wanted: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
    loop {
        let message = wire.receive().await;
        if wanted(&message) {
            return message;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_is_told_of_an_answer_for_which_there_is_no_room() {
    let ask = |cx: Context| async move {
        match cx.roots().await {
            Ok(roots) => format!("{} roots", roots.len()),
            Err(error) => error.to_string(),
        }
    };
    let limits = Limits { held_bytes: 1024 * 1024, message_bytes: 100_000, ..Limits::default() };
    let server = Server::builder("t", "1")
        .limits(limits)
        .store(MemoryStore::new(MemoryLimits::default()).store())
        .tool(tool("ask", ask).task(TaskPolicy::optional()))
        .build()
        .unwrap();
    let mut wire = Wire::connect_as(&server, Some(Principal::new("ada")));
    wire.handshake("2025-11-25", json!({"roots": {}})).await;
    for (length, why) in [(100_000, "longer than the limit"), (1, "held_bytes")] {
        let params = json!({"name": "ask", "arguments": {}, "task": {"ttl": 600_000}});
        wire.send(&request("call", "tools/call", params)).await;
        let task =
            received(&mut wire, |message| message["id"] == "call").await["result"]["task"]["taskId"].clone();
        wire.send(&request("result", "tasks/result", json!({"taskId": task}))).await;
        let question = received(&mut wire, |message| message["method"] == "roots/list").await["id"].clone();
        let free = server.limits().held_bytes - server.ledger().used_bytes();
        // An answer that is too long is told of whatever room there is.
        let held = server.ledger().charge(Account::RequestBytes, free - if length == 1 { 500 } else { 5000 });
        let answer = json!({"roots": [], "_meta": {"x": "x".repeat(length)}});
        wire.send(&json!({"jsonrpc": "2.0", "id": question, "result": answer})).await;
        let result = received(&mut wire, |message| message["id"] == "result").await;
        let text = result["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.contains(why), "{result}");
        drop(held);
    }
}
