//! Legacy sessions over real sockets, with connections that really break, and with everything at once.

use std::{net::SocketAddr, time::Duration};

use serde_json::{Value, json};
use tokio::{net::TcpListener, time::timeout};
use toolwire_http::server::{HttpService, LegacyStream};
use toolwire_server::{Extension, Limits, Server, tool};

use crate::{
    PATIENCE,
    bare::{Connection, Request, ask},
    legacy_kit::*,
};

async fn listen() -> (SocketAddr, Gate) {
    let (server, gate, _) = server();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(HttpService::new(server).serve(listener).into_future());
    (address, gate)
}

fn in_session(request: Request, session: &str) -> Request {
    request.header("Mcp-Session-Id", session).header("MCP-Protocol-Version", NEWEST)
}

async fn connect(address: SocketAddr) -> String {
    let response = ask(address, &Request::post(initialize(NEWEST).to_string())).await;
    let session = response.head.get("mcp-session-id").unwrap().to_owned();
    let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(ask(address, &in_session(Request::post(note), &session)).await.status(), 202);
    session
}

/// The id and the message of an event.
fn parts(event: &str) -> (String, Option<Value>) {
    let line = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let data = line("data:").filter(|data| !data.is_empty());
    (line("id:").unwrap().to_owned(), data.map(|data| serde_json::from_str(data).unwrap()))
}

fn resume(session: &str, last_event_id: &str) -> Request {
    let get =
        Request::new("GET").header("Accept", "text/event-stream").header("Last-Event-ID", last_event_id);
    in_session(get, session)
}

#[tokio::test]
async fn a_broken_connection_is_resumed() {
    let (address, gate) = listen().await;
    let session = connect(address).await;
    let mut first = Connection::open(address).await;
    first.send(&in_session(Request::post(call(1, "talk_and_wait").to_string()), &session)).await;
    assert_eq!(first.head().await.status, 200);
    assert_eq!(parts(&first.event().await.unwrap()).1, None);
    let (id, message) = parts(&first.event().await.unwrap());
    assert_eq!(gist(&message.unwrap()), "before");
    drop(first);
    gate.open();
    let mut second = Connection::open(address).await;
    second.send(&resume(&session, &id)).await;
    assert_eq!(second.head().await.get("content-type"), Some("text/event-stream"));
    let mut heard = Vec::new();
    while let Some(event) = second.event().await {
        heard.extend(parts(&event).1);
    }
    assert_eq!(gists(&heard), ["after", "talked and waited"]);
}

#[tokio::test]
async fn a_client_that_was_sent_away_comes_back_for_its_answer() {
    let (address, gate) = listen().await;
    let session = connect(address).await;
    let mut first = Connection::open(address).await;
    first.send(&in_session(Request::post(call(1, "poll").to_string()), &session)).await;
    assert_eq!(first.head().await.status, 200);
    let priming = first.event().await.unwrap();
    let has = |expected: &str| priming.lines().any(|line| line.trim_end() == expected);
    assert!(has("retry: 1000") && has("data:"), "{priming}");
    assert_eq!(first.event().await, None);
    // The connection itself is as good as before.
    first.send(&resume(&session, &parts(&priming).0)).await;
    assert_eq!(first.head().await.status, 200);
    assert_eq!(parts(&first.event().await.unwrap()).1, None);
    gate.open();
    assert_eq!(gist(&parts(&first.event().await.unwrap()).1.unwrap()), "polled");
    assert_eq!(first.event().await, None);
}

/// Calls a tool that sends its client away, and gives where to resume.
async fn sent_away(address: SocketAddr, session: &str) -> String {
    let mut connection = Connection::open(address).await;
    connection.send(&in_session(Request::post(call(1, "poll").to_string()), session)).await;
    assert_eq!(connection.head().await.status, 200);
    let priming = connection.event().await.unwrap();
    assert_eq!(connection.event().await, None);
    parts(&priming).0
}

#[tokio::test]
async fn a_client_that_was_sent_away_gets_its_answer_from_a_server_that_ends() {
    let (server, gate, _) = server_with(Limits { drain_timeout: PATIENCE, ..Limits::default() });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(HttpService::new(server.clone()).serve(listener).into_future());
    let session = connect(address).await;
    let last = sent_away(address, &session).await;
    server.shutdown();
    // Nobody else is let in meanwhile.
    let refused = ask(address, &in_session(Request::post(call(2, "echo").to_string()), &session)).await;
    assert_eq!(refused.status(), 503);
    assert_eq!(ask(address, &Request::call("echo", json!({}))).await.status(), 503);
    assert_eq!(ask(address, &Request::post(initialize(NEWEST).to_string())).await.status(), 503);
    assert_eq!(ask(address, &in_session(Request::new("GET"), &session)).await.status(), 503);
    let mut back = Connection::open(address).await;
    back.send(&resume(&session, &last)).await;
    assert_eq!(back.head().await.status, 200);
    assert_eq!(parts(&back.event().await.unwrap()).1, None);
    gate.open();
    assert_eq!(gist(&parts(&back.event().await.unwrap()).1.unwrap()), "polled");
    assert_eq!(back.event().await, None);
    timeout(PATIENCE, serving).await.expect("the server did not end").unwrap().unwrap();
}

#[tokio::test]
async fn a_client_that_was_sent_away_and_stays_away_is_not_waited_for_for_ever() {
    let limits = Limits { drain_timeout: Duration::from_millis(50), ..Limits::default() };
    let away = |Extension(stream): Extension<LegacyStream>| async move {
        stream.close();
        std::future::pending::<&'static str>().await
    };
    let server = Server::builder("away", "1.0").tool(tool("poll", away)).limits(limits).build().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(HttpService::new(server.clone()).serve(listener).into_future());
    sent_away(address, &connect(address).await).await;
    server.shutdown();
    timeout(PATIENCE, serving).await.expect("it waits for ever").unwrap().unwrap();
}

/// A client that reads a little, leaves and comes back, again and again, while the handler goes on elsewhere.
async fn restless(peer: Peer, id: u64) {
    let mut stream = Events::of(peer.call(id, "talk_and_wait").await);
    let mut heard = Vec::new();
    let mut last = stream.next().await.unwrap().id.unwrap();
    for round in 0.. {
        for _ in 0..=(id + round) % 3 {
            match timeout(Duration::from_micros(200), stream.next()).await {
                Ok(Some(event)) => {
                    last = event.id.unwrap();
                    if !event.data.is_empty() {
                        heard.push(serde_json::from_str(&event.data).unwrap());
                    }
                }
                Ok(None) => {
                    assert_eq!(gists(&heard), ["before", "after", "talked and waited"]);
                    return;
                }
                Err(_) => break,
            }
        }
        stream = Events::resumed(peer.get(Some(&last)).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_restless_clients_lose_and_repeat_nothing() {
    let (service, gate) = service();
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..20 {
        let peer = Peer::connect(&service, NEWEST).await;
        for id in 0..5 {
            clients.spawn(restless(peer.clone(), number + id));
        }
    }
    for _ in 0..100 {
        gate.open();
        tokio::task::yield_now().await;
    }
    timeout(PATIENCE, clients.join_all()).await.expect("a client has not heard everything");
}
