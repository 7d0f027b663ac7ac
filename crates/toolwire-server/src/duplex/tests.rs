//! What a pipe buffers is charged to its caller, and what has no room becomes an error.

use bytes::Bytes;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use toolwire_transport::{LocalPeer, Sink as _, ledger::Account, lines::Lines, memory};

use super::*;
use crate::{AskError, Context, Limits, Usage, tool};

const LARGE: usize = 200_000;

fn server(limits: Limits) -> Server {
    Server::builder("t", "1").limits(limits).build().unwrap()
}

/// Connects a process of this user.
fn connect(server: &Server, uid: u32) -> BufReader<DuplexStream> {
    connect_through(server, uid, 2 * LARGE)
}

/// Connects by a pipe that holds so many bytes each way.
fn connect_through(server: &Server, uid: u32, capacity: usize) -> BufReader<DuplexStream> {
    let (near, far) = tokio::io::duplex(capacity);
    let (reader, writer) = tokio::io::split(far);
    let lines = Lines::new(reader, writer).local_peer(LocalPeer::with_uid(uid));
    let server = server.clone();
    tokio::spawn(async move { server.serve(lines).await });
    BufReader::new(near)
}

async fn answer(client: &mut BufReader<DuplexStream>) -> serde_json::Value {
    let mut line = String::new();
    client.read_line(&mut line).await.unwrap();
    serde_json::from_str(&line).unwrap()
}

async fn until(mut met: impl FnMut() -> bool) {
    let waiting = async {
        while !met() {
            tokio::task::yield_now().await;
        }
    };
    timeout(std::time::Duration::from_secs(60), waiting).await.expect("it never came to that");
}

#[tokio::test]
async fn connections_of_one_user_share_what_they_may_leave_unfinished() {
    let server = server(Limits { held_bytes_per_caller: LARGE + LARGE / 2, ..Limits::default() });
    let unfinished = vec![b' '; LARGE];
    let (mut first, mut other) = (connect(&server, 1), connect(&server, 2));
    first.write_all(&unfinished).await.unwrap();
    other.write_all(&unfinished).await.unwrap();
    until(|| server.usage().request_bytes == 2 * LARGE).await;
    assert_eq!(server.caller_ledger(CallerKey::user(1)).used_bytes(), LARGE);

    let mut second = connect(&server, 1);
    second.write_all(br#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"#).await.unwrap();
    second.write_all(&unfinished).await.unwrap();
    let refused = answer(&mut second).await;
    assert_eq!(
        (&refused["id"], &refused["error"]["data"]["limit"]),
        (&7.into(), &"held_bytes_per_caller".into())
    );
    second.write_all(b"}}\n{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"nothing\"}\n").await.unwrap();
    assert_eq!(answer(&mut second).await["id"], 8, "the connection goes on");

    first.write_all(b"\n").await.unwrap();
    until(|| server.usage().request_bytes == LARGE).await;
    drop((first, second, other));
    until(|| server.usage() == Usage::default()).await;
}

#[tokio::test]
async fn an_answer_stays_charged_until_the_client_takes_it() {
    let server = Server::builder("t", "1").instructions("i".repeat(LARGE)).build().unwrap();
    let (ours, theirs) = memory::pair();
    let serving = tokio::spawn({
        let server = server.clone();
        async move { server.serve(theirs).await }
    });
    let (mut source, mut sink) = ours.split();
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",
        "capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    sink.send(Bytes::from(initialize)).await.unwrap();
    until(|| server.usage().answer_bytes > LARGE).await;
    for _ in 0..10 {
        // The writer takes it from the queue.
        tokio::task::yield_now().await;
    }
    assert!(server.usage().answer_bytes > LARGE, "{:?}", server.usage());
    source.receive().await.unwrap().unwrap();
    assert_eq!(server.usage().answer_bytes, 0);
    drop((source, sink));
    serving.await.unwrap().unwrap();
    assert_eq!(server.usage(), Usage::default());
}

/// A server with a tool whose answer takes 100 kB, and one that asks its client.
fn large_answers(limits: Limits) -> Server {
    let ask = |cx: Context| async move { cx.roots().await.map(|roots| format!("{} roots", roots.len())) };
    let told =
        move |cx: Context| async move { ask(cx).await.unwrap_or_else(|error: AskError| error.to_string()) };
    Server::builder("t", "1")
        .limits(limits)
        .tool(tool("large", || async { "x".repeat(LARGE / 2) }))
        .tool(tool("ask", told))
        .build()
        .unwrap()
}

async fn say(client: &mut BufReader<DuplexStream>, message: &serde_json::Value) {
    client.write_all(format!("{message}\n").as_bytes()).await.unwrap();
}

async fn shake_hands(client: &mut BufReader<DuplexStream>, version: &str) {
    let params = serde_json::json!({"protocolVersion": version, "capabilities": {"roots": {}},
        "clientInfo": {"name": "t", "version": "1"}});
    let initialize = serde_json::json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    say(client, &initialize).await;
    assert_eq!(answer(client).await["result"]["protocolVersion"], version);
    say(client, &serde_json::json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
}

fn call(id: u64, tool: &str) -> serde_json::Value {
    serde_json::json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool}})
}

#[tokio::test]
async fn a_pipe_that_takes_no_answers_leaves_room_for_others() {
    let limits = Limits { held_bytes: 5 * LARGE, held_bytes_per_caller: 3 * LARGE, ..Limits::default() };
    let server = large_answers(limits);
    let (mut idle, mut other) = (connect_through(&server, 1, 1024), connect(&server, 2));
    shake_hands(&mut idle, "2025-11-25").await;
    shake_hands(&mut other, "2025-11-25").await;
    for id in 1..=30 {
        say(&mut idle, &call(id, "large")).await;
    }
    // Next to nothing fits into the pipe.
    until(|| server.usage().requests == 0 && server.usage().answer_bytes > 2 * LARGE).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let held = server.caller_ledger(CallerKey::user(1)).used_bytes();
    assert!(held < 4 * LARGE, "{held} bytes are held for one caller");
    say(&mut other, &call(1, "large")).await;
    let answered = answer(&mut other).await;
    assert_eq!(answered["result"]["content"][0]["text"].as_str().map(str::len), Some(LARGE / 2));

    let (mut answers, mut refused) = (0, 0);
    for id in 1..=30 {
        let answered = answer(&mut idle).await;
        assert_eq!(answered["id"], id);
        if answered["error"].is_object() {
            assert_eq!(answered["error"]["data"]["limit"], "held_bytes_per_caller");
            refused += 1;
        } else {
            answers += 1;
        }
    }
    assert!((5..=8).contains(&answers) && refused == 30 - answers, "{answers} answers, {refused} errors");
    drop((idle, other));
    until(|| server.usage() == Usage::default()).await;
}

#[tokio::test]
async fn the_answers_of_a_batch_leave_room_for_others() {
    let limits = Limits { held_bytes_per_connection: LARGE + LARGE / 4, ..Limits::default() };
    let server = large_answers(limits);
    let mut client = connect(&server, 1);
    shake_hands(&mut client, "2025-03-26").await;
    let batch: Vec<_> = (1..=20).map(|id| call(id, "large")).collect();
    say(&mut client, &serde_json::json!(batch)).await;
    let answers = answer(&mut client).await;
    let answers = answers.as_array().unwrap();
    let full = |answer: &&serde_json::Value| answer["result"].is_object();
    assert_eq!((answers.len(), answers.iter().filter(full).count()), (20, 2));
    let ids: std::collections::BTreeSet<_> = answers.iter().map(|answer| answer["id"].as_u64()).collect();
    assert_eq!(ids.len(), 20);
    for refused in answers.iter().filter(|answer| answer["error"].is_object()) {
        assert_eq!(refused["error"]["data"]["limit"], "held_bytes_per_connection");
    }
    drop(client);
    until(|| server.usage() == Usage::default()).await;
}

#[tokio::test]
async fn no_session_is_left_of_an_initialize_whose_answer_has_no_room_on_a_pipe() {
    let limits = Limits { held_bytes_per_connection: LARGE, ..Limits::default() };
    let server = Server::builder("t", "1").instructions("i".repeat(LARGE)).limits(limits).build().unwrap();
    let mut client = connect(&server, 1);
    let params = serde_json::json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"}});
    let initialize = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    for _ in 0..2 {
        say(&mut client, &initialize).await;
        let refused = answer(&mut client).await;
        assert_eq!(
            (&refused["id"], &refused["error"]["data"]["limit"]),
            (&1.into(), &"held_bytes_per_connection".into())
        );
        assert_eq!(server.usage().sessions, 0);
    }
}

#[tokio::test]
async fn a_client_has_a_session_exactly_if_its_initialize_is_answered_with_a_result() {
    const ROOM: usize = 10_000;
    let limits = Limits { held_bytes: ROOM + 8000, ..Limits::default() };
    let server = Server::builder("t", "1").instructions("i".repeat(ROOM)).limits(limits).build().unwrap();
    let initialize = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params":
        {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let initialize = Bytes::from(initialize.to_string());
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (other, over) = (server.ledger().clone(), &over);
        scope.spawn(move || {
            // Another client takes the room and gives it back, over and over.
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                let held = other.charge(Account::AnswerBytes, ROOM);
                (0..100).for_each(|_| std::hint::spin_loop());
                drop(held);
                (0..100).for_each(|_| std::hint::spin_loop());
            }
        });
        let _over = SetOnDrop(over);
        for _ in 0..5_000 {
            let ledger = server.connection_ledger(server.ledger());
            let connection = Arc::new(Connection::new(server.clone(), Extensions::default(), ledger));
            connection.handle(&initialize, &mut std::task::Context::from_waker(std::task::Waker::noop()));
            let answer = connection.queue.try_next().unwrap();
            let refused = answer.len() < ROOM;
            assert_eq!(connection.session().is_none(), refused, "{}", String::from_utf8_lossy(&answer));
        }
    });
    assert_eq!(server.usage(), Usage::default());
}

/// Ends a loop in another thread, also when the test fails.
struct SetOnDrop<'a>(&'a std::sync::atomic::AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_is_told_of_an_answer_that_was_too_long_to_be_taken() {
    let limits = Limits { message_bytes: LARGE / 2, held_bytes_per_caller: 2 * LARGE, ..Limits::default() };
    let server = large_answers(limits);
    let (mut asked, mut other) = (connect(&server, 1), connect(&server, 1));
    shake_hands(&mut asked, "2025-11-25").await;
    let mut fails_with = async |why: &str| {
        let started = tokio::time::Instant::now();
        say(&mut asked, &call(1, "ask")).await;
        let question = answer(&mut asked).await;
        assert_eq!(question["method"], "roots/list");
        let answered = serde_json::json!({"jsonrpc": "2.0", "id": question["id"],
            "result": {"roots": [], "_meta": {"x": "x".repeat(LARGE)}}});
        say(&mut asked, &answered).await;
        let told = answer(&mut asked).await;
        let text = told["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert!(text.contains(why), "{told}");
        assert_eq!(started.elapsed(), std::time::Duration::ZERO, "nothing has timed out");
    };
    fails_with("longer than the limit").await;
    // Now there is no room to read it, either.
    other.write_all(&vec![b' '; LARGE + LARGE / 2]).await.unwrap();
    until(|| server.usage().request_bytes == LARGE + LARGE / 2).await;
    fails_with("held_bytes_per_caller").await;
}
