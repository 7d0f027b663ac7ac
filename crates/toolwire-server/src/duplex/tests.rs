//! What a pipe buffers is charged to its caller.

use bytes::Bytes;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use toolwire_transport::{LocalPeer, Sink as _, lines::Lines, memory};

use super::*;
use crate::{Limits, Usage};

const LARGE: usize = 200_000;

fn server(limits: Limits) -> Server {
    Server::builder("t", "1").limits(limits).build().unwrap()
}

/// Connects a process of this user.
fn connect(server: &Server, uid: u32) -> BufReader<DuplexStream> {
    let (near, far) = tokio::io::duplex(2 * LARGE);
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
