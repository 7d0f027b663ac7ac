//! WebSocket on the path of the endpoint, with a client that can be as rude as it likes.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{
        Message,
        client::IntoClientRequest as _,
        protocol::{
            Role, WebSocketConfig,
            frame::{Frame, coding::CloseCode},
        },
    },
};
use toolwire_http::server::{HttpLimits, Legacy};
use toolwire_server::{Limits, Usage};

use crate::{
    PATIENCE,
    bare::{Connection, MODERN, Request, ask, enveloped},
    fixture::Fixture,
    until,
};

type Raw = WebSocketStream<TcpStream>;

async fn fixture() -> Fixture {
    Fixture::with(|http| http.websocket(true)).await
}

async fn limited(limits: HttpLimits) -> Fixture {
    Fixture::with(|http| http.websocket(true).limits(limits)).await
}

async fn open(address: SocketAddr) -> Raw {
    try_open(address).await.expect("it is refused")
}

/// Opens one if there is room for it.
async fn try_open(address: SocketAddr) -> Option<Raw> {
    let request = format!("ws://{address}/mcp").into_client_request().unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    client_async(request, stream).await.ok().map(|(socket, _)| socket)
}

/// Opens one whose frames nobody checks before they are sent.
async fn unchecked(address: SocketAddr) -> Raw {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&upgrade_bytes("")).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&head));
    WebSocketStream::from_raw_socket(stream, Role::Client, Some(WebSocketConfig::default())).await
}

fn upgrade_bytes(more: &str) -> Vec<u8> {
    format!(
        "GET /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n"
    )
    .into_bytes()
}

fn upgrade() -> Request {
    Request::new("GET")
        .header("Connection", "Upgrade")
        .header("Upgrade", "websocket")
        .header("Sec-WebSocket-Version", "13")
        .header("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
}

fn call(tool: &str) -> Message {
    Message::text(
        enveloped("tools/call", json!({ "name": tool, "arguments": { "a": 2, "b": 3 } })).to_string(),
    )
}

async fn next(socket: &mut Raw) -> Option<Message> {
    loop {
        let next = timeout(PATIENCE, socket.next()).await.expect("nothing came");
        match next {
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            Some(Ok(message)) => return Some(message),
            Some(Err(_)) | None => return None,
        }
    }
}

async fn answer(socket: &mut Raw) -> Value {
    serde_json::from_str(next(socket).await.unwrap().to_text().unwrap()).unwrap()
}

async fn adds(socket: &mut Raw) {
    socket.send(call("add")).await.unwrap();
    assert_eq!(answer(socket).await["result"]["content"][0]["text"], "5");
}

async fn closed_with(socket: &mut Raw) -> CloseCode {
    match next(socket).await {
        Some(Message::Close(Some(frame))) => frame.code,
        other => panic!("no goodbye, but {other:?}"),
    }
}

#[tokio::test]
async fn one_port_serves_both() {
    let fixture = fixture().await;
    let mut socket = open(fixture.address).await;
    adds(&mut socket).await;
    assert_eq!(ask(fixture.address, &Request::call("add", json!({ "a": 1, "b": 1 }))).await.status(), 200);
    adds(&mut socket).await;
    socket.close(None).await.unwrap();
    while next(&mut socket).await.is_some() {}
    holds_nothing(&fixture).await;
}

#[tokio::test]
async fn without_legacy_there_is_none_here_either() {
    let fixture = Fixture::with(|http| http.websocket(true).legacy(Legacy::Off)).await;
    let mut socket = open(fixture.address).await;
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {} });
    socket.send(Message::text(initialize.to_string())).await.unwrap();
    let refused = answer(&mut socket).await;
    assert_eq!(refused["error"]["code"], -32022);
    assert_eq!(refused["error"]["data"]["supported"], json!([MODERN]));
    adds(&mut socket).await;
}

#[tokio::test]
async fn the_subprotocol_is_named_if_it_was_offered() {
    let fixture = fixture().await;
    for (offered, named) in [
        (&[][..], None),
        (&["mcp"][..], Some("mcp")),
        (&["chat, mcp"][..], Some("mcp")),
        (&["chat", "mcp"][..], Some("mcp")),
        (&[""][..], None),
    ] {
        let request =
            offered.iter().fold(upgrade(), |request, value| request.also("Sec-WebSocket-Protocol", value));
        let mut connection = Connection::open(fixture.address).await;
        connection.send(&request).await;
        let head = connection.head().await;
        assert_eq!(head.status, 101, "{offered:?}");
        assert_eq!(head.get("sec-websocket-protocol"), named, "{offered:?}");
        // The example of the standard.
        assert_eq!(head.get("sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    }
    for hostile in ["chat", "mcp2", "MCP", "mcp;q=1", "\"mcp\"", "chat,,superchat"] {
        let response = ask(fixture.address, &upgrade().header("Sec-WebSocket-Protocol", hostile)).await;
        assert_eq!(response.status(), 400, "{hostile}");
        assert!(response.json()["error"]["message"].as_str().unwrap().contains("\"mcp\""), "{response:?}");
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_handshake_is_said() {
    let fixture = fixture().await;
    let old = ask(fixture.address, &upgrade().header("Sec-WebSocket-Version", "8")).await;
    assert_eq!((old.status(), old.head.get("sec-websocket-version")), (426, Some("13")));
    for key in ["", "short", "dGhlIHNhbXBsZSBub25jZQ", "dGhlIHNhbXBsZSBub25jZQ==, x"] {
        assert_eq!(
            ask(fixture.address, &upgrade().header("Sec-WebSocket-Key", key)).await.status(),
            400,
            "{key}"
        );
    }
    let twice = upgrade().also("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
    assert_eq!(ask(fixture.address, &twice).await.status(), 400);
    assert_eq!(ask(fixture.address, &upgrade().path("/other")).await.status(), 404);
    assert_eq!(ask(fixture.address, &upgrade().header("Host", "evil.example")).await.status(), 403);
    assert_eq!(ask(fixture.address, &upgrade().header("Origin", "https://evil.example")).await.status(), 403);
    let plain = Fixture::start().await;
    assert_ne!(ask(plain.address, &upgrade()).await.status(), 101);
}

#[tokio::test]
async fn frames_that_are_no_messages_end_it_with_a_reason() {
    let fixture = limited(HttpLimits { body_bytes: 1000, ..HttpLimits::default() }).await;
    let mut good = open(fixture.address).await;
    let mut binary = open(fixture.address).await;
    binary.send(Message::binary(&b"{}"[..])).await.unwrap();
    assert_eq!(closed_with(&mut binary).await, CloseCode::Unsupported);
    let mut huge = open(fixture.address).await;
    let _ = huge.send(Message::text("x".repeat(4 * 1024 * 1024))).await;
    assert_eq!(closed_with(&mut huge).await, CloseCode::Size);
    let mut garbled = unchecked(fixture.address).await;
    // A text frame with its mask, and a byte that no text has.
    garbled.get_mut().write_all(&[0x81, 0x81, 0, 0, 0, 0, 0xff]).await.unwrap();
    assert_eq!(closed_with(&mut garbled).await, CloseCode::Invalid);
    let mut unmasked = unchecked(fixture.address).await;
    unmasked.get_mut().write_all(&[0x81, 2, b'{', b'}']).await.unwrap();
    assert_eq!(closed_with(&mut unmasked).await, CloseCode::Protocol);
    let mut nonsense = unchecked(fixture.address).await;
    nonsense.get_mut().write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    assert_eq!(closed_with(&mut nonsense).await, CloseCode::Protocol);
    adds(&mut good).await;
}

#[tokio::test]
async fn text_that_is_no_message_is_answered() {
    let fixture = fixture().await;
    let mut socket = open(fixture.address).await;
    for junk in ["", "nonsense", "[1,", "\u{0}"] {
        socket.send(Message::text(junk)).await.unwrap();
        assert_eq!(answer(&mut socket).await["error"]["code"], -32700, "{junk:?}");
    }
    adds(&mut socket).await;
}

#[tokio::test]
async fn a_message_in_many_pieces_is_one() {
    let fixture = fixture().await;
    let mut socket = open(fixture.address).await;
    let text = call("add").into_data();
    let (head, tail) = text.split_at(20);
    let (first, last) = (op(true), op(false));
    socket.send(Message::Frame(Frame::message(head.to_vec(), first, false))).await.unwrap();
    socket.send(Message::Ping("are you there?".into())).await.unwrap();
    socket.send(Message::Frame(Frame::message(tail.to_vec(), last, true))).await.unwrap();
    assert_eq!(answer(&mut socket).await["result"]["content"][0]["text"], "5");
    drop(socket);
    holds_nothing(&fixture).await;
}

fn op(first: bool) -> tokio_tungstenite::tungstenite::protocol::frame::coding::OpCode {
    use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
    OpCode::Data(if first { Data::Text } else { Data::Continue })
}

/// Waits until nothing is held for anybody.
async fn holds_nothing(fixture: &Fixture) {
    until("something stays counted", async || fixture.server.usage() == Usage::default()).await;
}

#[tokio::test]
async fn all_sockets_of_an_address_share_what_they_may_leave_unfinished() {
    const PIECE: usize = 200_000;
    let limits = Limits { held_bytes_per_caller: 2 * PIECE, ..Limits::default() };
    let fixture = Fixture::with_limits(limits, |http| http.websocket(true)).await;
    let mut first = open(fixture.address).await;
    let piece = || Message::Frame(Frame::message(vec![b'x'; PIECE], op(true), false));
    first.send(piece()).await.unwrap();
    until("it was not charged", async || fixture.server.usage().request_bytes >= PIECE).await;
    let mut second = open(fixture.address).await;
    let _ = second.send(piece()).await;
    match next(&mut second).await {
        Some(Message::Close(Some(frame))) => {
            assert_eq!(frame.code, CloseCode::Again);
            assert!(frame.reason.contains("held_bytes_per_caller"), "{frame:?}");
        }
        other => panic!("no goodbye, but {other:?}"),
    }
    drop((first, second));
    holds_nothing(&fixture).await;
}

#[tokio::test]
async fn the_timeout_of_bodies_is_that_of_messages() {
    let limits = HttpLimits { body_timeout: Duration::from_millis(50), ..HttpLimits::default() };
    let fixture = limited(limits).await;
    let mut socket = open(fixture.address).await;
    socket.send(Message::Frame(Frame::message(&b"{"[..], op(true), false))).await.unwrap();
    assert_eq!(closed_with(&mut socket).await, CloseCode::Policy);
    drop(socket);
    holds_nothing(&fixture).await;
}

#[tokio::test]
async fn one_that_is_cut_off_at_any_byte_disturbs_nobody() {
    // One address has a quarter of them.
    let fixture = limited(HttpLimits { websockets: 8, ..HttpLimits::default() }).await;
    let mut good = open(fixture.address).await;
    let frame = [0x81, 0x85, 1, 2, 3, 4, b'h', b'e', b'l', b'l', b'o'];
    for length in 0..frame.len() {
        // There is room for one more, so each has to be gone before the next one is let in.
        let mut opened = None;
        until("the place of the one before was not given back", async || {
            opened = try_open(fixture.address).await;
            opened.is_some()
        })
        .await;
        opened.unwrap().get_mut().write_all(&frame[..length]).await.unwrap();
    }
    adds(&mut good).await;
    drop(good);
    holds_nothing(&fixture).await;
}

#[tokio::test]
async fn only_so_many_at_once() {
    let fixture = limited(HttpLimits { websockets: 1, ..HttpLimits::default() }).await;
    let mut first = open(fixture.address).await;
    let refused = ask(fixture.address, &upgrade()).await;
    assert_eq!((refused.status(), refused.head.get("retry-after")), (503, Some("5")));
    adds(&mut first).await;
    first.close(None).await.unwrap();
    while next(&mut first).await.is_some() {}
    until("its place was not given back", async || try_open(fixture.address).await.is_some()).await;
}

#[tokio::test]
async fn a_client_that_answers_no_pings_is_given_up() {
    let silence = Duration::from_millis(50);
    let fixture = limited(HttpLimits { websocket_silence: silence, ..HttpLimits::default() }).await;
    let begun = Instant::now();
    let mut socket = unchecked(fixture.address).await;
    let mut rest = Vec::new();
    // Reading below the protocol, so that nothing is answered.
    timeout(PATIENCE, socket.get_mut().read_to_end(&mut rest)).await.expect("it is still open").unwrap();
    assert!(rest.starts_with(&[0x89, 0]), "no ping: {rest:?}");
    assert!(begun.elapsed() < HttpLimits::default().websocket_silence, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn one_that_does_not_read_holds_up_only_itself() {
    let limits = HttpLimits { write_timeout: Duration::from_millis(100), ..HttpLimits::default() };
    let mut fixture = limited(limits).await;
    let begun = Instant::now();
    let mut slow = open(fixture.address).await;
    let message = enveloped("tools/call", json!({ "name": "flood" }));
    let mut message = message;
    message["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = "info".into();
    slow.send(Message::text(message.to_string())).await.unwrap();
    let mut good = open(fixture.address).await;
    adds(&mut good).await;
    // The handler sends without end; it can only be stopped because what it sends is not taken.
    fixture.hears("dropped").await;
    assert!(begun.elapsed() < HttpLimits::default().write_timeout, "{:?}", begun.elapsed());
    adds(&mut good).await;
    drop((slow, good));
    holds_nothing(&fixture).await;
}

#[tokio::test]
async fn shutting_down_lets_running_requests_finish() {
    let mut fixture = fixture().await;
    let mut idle = open(fixture.address).await;
    let mut busy = open(fixture.address).await;
    busy.send(call("wait")).await.unwrap();
    fixture.hears("started").await;
    fixture.server.shutdown();
    assert_eq!(closed_with(&mut idle).await, CloseCode::Away);
    fixture.go.notify_one();
    assert_eq!(answer(&mut busy).await["result"]["content"][0]["text"], "done");
    assert_eq!(closed_with(&mut busy).await, CloseCode::Away);
    drop((idle, busy));
    timeout(PATIENCE, &mut fixture.serving).await.expect("still serving").unwrap().unwrap();
}

#[tokio::test]
async fn those_that_do_not_finish_are_cut_off() {
    let limits = Limits { drain_timeout: Duration::from_millis(20), ..Limits::default() };
    let mut fixture = Fixture::with_limits(limits, |http| http.websocket(true)).await;
    let mut socket = open(fixture.address).await;
    socket.send(call("hang")).await.unwrap();
    fixture.hears("started").await;
    fixture.server.shutdown();
    assert_eq!(closed_with(&mut socket).await, CloseCode::Away);
    timeout(PATIENCE, &mut fixture.serving).await.expect("still serving").unwrap().unwrap();
}
