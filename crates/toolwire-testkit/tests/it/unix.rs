//! Many clients at one unix socket, and what hostile ones can do there.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::UnixStream,
    sync::Semaphore,
    task::JoinHandle,
    time::timeout,
};
use toolwire_client::{Client, EraChoice, ErrorKind};
use toolwire_protocol::Version;
use toolwire_server::{Limits, Server, tool};
use toolwire_transport::UnixSocket;

use crate::{PATIENCE, until};

/// A server at a socket of its own, and the tool's permits.
struct Served {
    server: Server,
    socket: UnixSocket,
    permits: Arc<Semaphore>,
    started: Arc<Semaphore>,
    serving: JoinHandle<()>,
}

impl Served {
    async fn start(limits: Limits) -> Self {
        let (permits, started) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let wait = {
            let (permits, started) = (Arc::clone(&permits), Arc::clone(&started));
            move || {
                let (permits, started) = (Arc::clone(&permits), Arc::clone(&started));
                async move {
                    started.add_permits(1);
                    permits.acquire().await.unwrap().forget();
                    "waited"
                }
            }
        };
        let long = || async { "x".repeat(1024 * 1024) };
        let builder = Server::builder("socket", "1.0").tool(tool("wait", wait)).tool(tool("long", long));
        let server = builder.tool(tool("now", || async { "noon" })).limits(limits).build().unwrap();
        let socket = UnixSocket::new(path());
        let serving = serve(&server, &socket).await;
        Self { server, socket, permits, started, serving }
    }

    async fn client(&self) -> Client {
        client(&self.socket).await
    }

    async fn raw(&self) -> BufReader<UnixStream> {
        BufReader::new(UnixStream::connect(self.socket.path()).await.unwrap())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn path() -> PathBuf {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("toolwire-kit-{}-{number}.sock", std::process::id()))
}

async fn serve(server: &Server, socket: &UnixSocket) -> JoinHandle<()> {
    let listener = socket.listen().await.unwrap();
    let server = server.clone();
    tokio::spawn(async move { server.serve_listener(listener).await })
}

async fn client(socket: &UnixSocket) -> Client {
    Client::builder("test", "1.0").connect(socket.clone()).await.unwrap()
}

async fn now(client: &Client) -> String {
    client.call("now", json!({})).await.unwrap().text()
}

/// Asks by hand, and gives the answer.
async fn ask(raw: &mut BufReader<UnixStream>, line: &[u8]) -> Value {
    raw.get_mut().write_all(line).await.unwrap();
    let mut answer = String::new();
    timeout(PATIENCE, raw.read_line(&mut answer)).await.expect("no answer").unwrap();
    serde_json::from_str(&answer).unwrap()
}

const PING: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";

#[tokio::test]
async fn clients_of_both_eras_are_served_side_by_side() {
    let served = Served::start(Limits::default()).await;
    let mut clients = Vec::new();
    for version in Version::ALL {
        let builder = Client::builder("test", "1.0").era(EraChoice::Version(version));
        clients.push(builder.connect(served.socket.clone()).await.unwrap());
    }
    for client in &clients {
        assert_eq!(now(client).await, "noon");
    }
    for client in clients {
        client.close().await.unwrap();
    }
}

#[tokio::test]
async fn only_so_many_clients_at_once() {
    let served = Served::start(Limits { connections: 1, ..Limits::default() }).await;
    let first = served.client().await;
    let mut second = served.raw().await;
    second.get_mut().write_all(PING).await.unwrap();
    let mut answer = String::new();
    // Only time can show that nothing happens.
    assert!(timeout(Duration::from_millis(200), second.read_line(&mut answer)).await.is_err());
    assert_eq!(now(&first).await, "noon");
    first.close().await.unwrap();
    timeout(PATIENCE, second.read_line(&mut answer)).await.expect("no answer").unwrap();
    assert!(answer.contains("\"id\":1"), "{answer}");
}

#[tokio::test]
async fn shutting_down_lets_running_requests_finish_and_takes_no_new_ones() {
    let mut served = Served::start(Limits { drain_timeout: PATIENCE, ..Limits::default() }).await;
    let client = served.client().await;
    let waiting = tokio::spawn(async move { client.call("wait", json!({})).await.unwrap().text() });
    served.started.acquire().await.unwrap().forget();
    served.server.shutdown();
    until(|| !served.socket.path().exists()).await;
    assert!(UnixStream::connect(served.socket.path()).await.is_err());
    served.permits.add_permits(1);
    assert_eq!(waiting.await.unwrap(), "waited");
    timeout(PATIENCE, &mut served.serving).await.expect("still serving").unwrap();
}

#[tokio::test]
async fn a_server_that_died_is_missed_and_its_successor_is_found() {
    let mut served = Served::start(Limits::default()).await;
    let client = Arc::new(served.client().await);
    let calling = Arc::clone(&client);
    let waiting = tokio::spawn(async move { calling.call("wait", json!({})).await });
    served.started.acquire().await.unwrap().forget();
    served.serving.abort();
    assert!((&mut served.serving).await.unwrap_err().is_cancelled());
    let error = waiting.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed, "{error:?}");
    let refused = Client::builder("test", "1.0").connect(served.socket.clone()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Connect);
    served.serving = serve(&served.server, &served.socket).await;
    assert_eq!(now(&served.client().await).await, "noon");
}

#[tokio::test]
async fn a_wrong_path_is_named() {
    let error = Client::builder("test", "1.0").connect(UnixSocket::new("/nowhere/at.all")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect);
    let text = format!("{error}: {}", std::error::Error::source(&error).unwrap());
    assert!(text.contains("/nowhere/at.all") && text.contains("start the server first"), "{text}");
}

#[tokio::test]
async fn one_that_is_cut_off_or_talks_nonsense_disturbs_nobody() {
    let limits = Limits { message_bytes: 1000, ..Limits::default() };
    let served = Served::start(limits).await;
    let good = served.client().await;
    let mut cut = served.raw().await;
    cut.get_mut().write_all(&PING[..20]).await.unwrap();
    drop(cut);
    let mut raw = served.raw().await;
    assert_eq!(ask(&mut raw, b"\x00\xff nonsense\n").await["error"]["code"], -32700);
    let huge = [b"{\"x\":\"".as_slice(), &vec![b'x'; 5 * 1024 * 1024], b"\"}\n"].concat();
    assert_eq!(ask(&mut raw, &huge).await["error"]["code"], -32600);
    // As the SDKs for TypeScript and Python write it: with the id at the end, where they wait for an answer to it.
    let filler = "x".repeat(5 * 1024 * 1024);
    let request = format!(
        "{{\"method\":\"tools/call\",\"params\":{{\"x\":\"{filler}\"}},\"jsonrpc\":\"2.0\",\"id\":7}}\n"
    );
    let refusal = ask(&mut raw, request.as_bytes()).await;
    assert_eq!((&refusal["id"], &refusal["error"]["code"]), (&json!(7), &json!(-32600)));
    assert!(ask(&mut raw, PING).await["result"].is_object());
    assert_eq!(now(&good).await, "noon");
}

#[tokio::test]
async fn one_that_does_not_read_holds_up_only_itself() {
    let served = Served::start(Limits { queued_bytes: 4 * 1024 * 1024, ..Limits::default() }).await;
    let mut slow = served.raw().await;
    let handshake = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "slow", "version": "1" }
    } });
    assert!(ask(&mut slow, format!("{handshake}\n").as_bytes()).await["result"].is_object());
    for id in 1..=20 {
        let call =
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "long" } });
        slow.get_mut().write_all(format!("{call}\n").as_bytes()).await.unwrap();
    }
    assert_eq!(now(&served.client().await).await, "noon");
    // Every request has its answer in the end, though those that came too fast are told so.
    let mut answered = 0;
    while answered < 20 {
        let mut line = String::new();
        timeout(PATIENCE, slow.read_line(&mut line)).await.expect("no answer").unwrap();
        answered += 1;
        assert!(line.contains("\"result\"") || line.contains("\"error\""), "{line:.200}");
    }
    assert!(Path::exists(served.socket.path()));
}
