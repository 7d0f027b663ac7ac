use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::{io::DuplexStream, time::Instant};
use tokio_tungstenite::tungstenite::{
    Message,
    protocol::{
        CloseFrame,
        frame::{
            Frame,
            coding::{CloseCode, Data, OpCode},
        },
    },
};
use toolwire_transport::{
    Sink as _, Source as _,
    ledger::{Ceilings, UNCHARGED_BYTES},
};

use super::*;

const BOUNDS: Bounds =
    Bounds { message_bytes: 1000, silence: Duration::from_secs(60), message_time: Duration::from_secs(30) };

async fn opened(stream: DuplexStream, role: Role) -> Connection {
    let (connection, driving) = open(stream, role, BOUNDS, None).await;
    tokio::spawn(driving);
    connection
}

/// Opens the side of a server that takes large messages and charges them.
async fn charged(stream: DuplexStream, ledger: &Ledger) -> Connection {
    let bounds = Bounds { message_bytes: 4 * LARGE, ..BOUNDS };
    let (connection, driving) = open(stream, Role::Server, bounds, Some(ledger)).await;
    tokio::spawn(driving);
    connection
}

/// Opens the side of a client that sends frames as it likes.
async fn rude(stream: DuplexStream) -> WebSocketStream<DuplexStream> {
    WebSocketStream::from_raw_socket(stream, Role::Client, None).await
}

const LARGE: usize = 200_000;

/// A piece of a message.
fn piece(bytes: usize, first: bool, last: bool) -> Message {
    let op = OpCode::Data(if first { Data::Text } else { Data::Continue });
    Message::Frame(Frame::message(vec![b'x'; bytes], op, last))
}

/// Returns the peer's reason for closing the connection.
async fn farewell(socket: &mut WebSocketStream<DuplexStream>) -> CloseFrame {
    loop {
        match socket.next().await {
            Some(Ok(Message::Close(Some(frame)))) => return frame,
            Some(Ok(_)) => {}
            other => panic!("no goodbye, but {other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_is_charged_while_it_comes_and_nothing_of_it_is_kept() {
    let ledger = Ledger::root(Ceilings::NONE);
    let (near, far) = tokio::io::duplex(LARGE);
    let (mut source, sink) = charged(near, &ledger).await.split();
    let mut client = rude(far).await;
    client.send(piece(UNCHARGED_BYTES / 2, true, false)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(ledger.used_bytes(), 0, "that is in the constant");
    client.send(piece(LARGE, false, false)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let whole = LARGE + UNCHARGED_BYTES / 2;
    assert!((whole..whole + 100).contains(&ledger.used(Account::RequestBytes)), "{ledger:?}");
    client.send(piece(0, false, true)).await.unwrap();
    assert_eq!(source.receive().await.unwrap().unwrap().len(), whole);
    for _ in 0..2 {
        client.send(piece(LARGE, true, true)).await.unwrap();
        let message = source.receive().await.unwrap().unwrap();
        assert_eq!((message.len(), message.is_unique()), (LARGE, true), "no buffer has a part in it");
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(ledger.used_bytes(), 0, "the connection is idle");
    }
    // Half of a message is held until the connection ends.
    client.send(piece(LARGE, true, false)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!((LARGE..LARGE + 100).contains(&ledger.used_bytes()), "{ledger:?}");
    drop((source, sink, client));
    tokio::time::sleep(CLOSE_PATIENCE).await;
    assert_eq!(ledger.used_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_the_peer_does_not_read_is_charged() {
    let ledger = Ledger::root(Ceilings::NONE);
    let (near, far) = tokio::io::duplex(1024);
    let (_source, mut sink) = charged(near, &ledger).await.split();
    let mut client = rude(far).await;
    sink.send(vec![b'x'; LARGE].into()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(ledger.used(Account::AnswerBytes), LARGE);
    assert_eq!(client.next().await.unwrap().unwrap().len(), LARGE);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(ledger.used_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_may_not_be_held_ends_the_connection_and_names_the_limit() {
    let ledger = Ledger::root(Ceilings { bytes: ("held_bytes", LARGE), ..Ceilings::NONE });
    let (near, far) = tokio::io::duplex(1024);
    let (mut source, _sink) = charged(near, &ledger).await.split();
    let mut client = rude(far).await;
    let _ = client.send(piece(2 * LARGE, true, false)).await;
    let frame = farewell(&mut client).await;
    assert_eq!(frame.code, CloseCode::Again);
    assert!(frame.reason.contains("held_bytes"), "{frame:?}");
    assert!(source.receive().await.unwrap().is_none());
    drop(client);
    tokio::time::sleep(CLOSE_PATIENCE).await;
    assert_eq!(ledger.used_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_never_complete_ends_the_connection_whatever_else_comes() {
    for role in [Role::Server, Role::Client] {
        let (near, far) = tokio::io::duplex(1024);
        let _connection = opened(near, role).await;
        let other = if role == Role::Server { Role::Client } else { Role::Server };
        let mut peer = WebSocketStream::from_raw_socket(far, other, None).await;
        // One that was complete, and pings, start no clock.
        peer.send(Message::text("{}")).await.unwrap();
        for _ in 0..20 {
            peer.send(Message::Ping(vec![0; 100].into())).await.unwrap();
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        let begun = Instant::now();
        peer.send(piece(1, true, false)).await.unwrap();
        let frame = loop {
            tokio::select! {
                frame = farewell(&mut peer) => break frame,
                () = tokio::time::sleep(Duration::from_secs(7)) => {}
            }
            peer.send(Message::Ping(vec![0; 100].into())).await.unwrap();
            peer.send(piece(1, false, false)).await.unwrap();
        };
        assert_eq!(frame.code, CloseCode::Policy);
        assert_eq!(frame.reason, "a message was not complete within 30s");
        assert_eq!(begun.elapsed().as_secs(), 30);
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_lives_as_long_as_its_pings_are_answered() {
    let (near, far) = tokio::io::duplex(1024);
    let server = opened(near, Role::Server).await;
    let (mut source, _sink) = opened(far, Role::Client).await.split();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let (_source, mut sink) = server.split();
    sink.send(Bytes::from_static(b"{}")).await.unwrap();
    assert_eq!(source.receive().await.unwrap().unwrap(), "{}");
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_is_gone_without_a_word_is_given_up() {
    let (near, _far) = tokio::io::duplex(1024);
    let before = Instant::now();
    let server = opened(near, Role::Server).await;
    let diagnostics = server.diagnostics().unwrap();
    let (mut source, _sink) = server.split();
    assert!(source.receive().await.unwrap().is_none());
    assert_eq!(before.elapsed().as_secs(), 60);
    assert!(diagnostics.why_closed().await.unwrap().contains("nothing was heard for 60s"));
}

#[tokio::test(start_paused = true)]
async fn a_peer_is_not_blamed_for_our_own_slowness() {
    let (near, far) = tokio::io::duplex(1024);
    let (mut source, _server_sink) = opened(near, Role::Server).await.split();
    let (_client_source, mut sink) = opened(far, Role::Client).await.split();
    let many = 3 * memory::MESSAGES;
    let sending = tokio::spawn(async move {
        for number in 0..many {
            sink.send(number.to_string().into()).await.unwrap();
        }
        sink
    });
    tokio::time::sleep(Duration::from_secs(3600)).await;
    for number in 0..many {
        assert_eq!(source.receive().await.unwrap().unwrap(), number.to_string());
    }
    sending.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn large_messages_both_ways_at_once_do_not_wait_for_each_other() {
    let (near, far) = tokio::io::duplex(64);
    let (mut server_source, mut server_sink) = opened(near, Role::Server).await.split();
    let (mut client_source, mut client_sink) = opened(far, Role::Client).await.split();
    let large = Bytes::from(vec![b'x'; BOUNDS.message_bytes]);
    for _ in 0..memory::MESSAGES {
        server_sink.send(large.clone()).await.unwrap();
        client_sink.send(large.clone()).await.unwrap();
    }
    for _ in 0..memory::MESSAGES {
        assert_eq!(server_source.receive().await.unwrap().unwrap(), large);
        assert_eq!(client_source.receive().await.unwrap().unwrap(), large);
    }
}

#[tokio::test(start_paused = true)]
async fn closing_one_side_ends_the_other_after_everything_was_said() {
    for closing in [Role::Server, Role::Client] {
        let (near, far) = tokio::io::duplex(64);
        let other = if closing == Role::Server { Role::Client } else { Role::Server };
        let (mut source, _sink) = opened(near, other).await.split();
        let closed = opened(far, closing).await;
        let diagnostics = closed.diagnostics().unwrap();
        let (_source, mut sink) = closed.split();
        sink.send(Bytes::from_static(b"last")).await.unwrap();
        sink.close().await.unwrap();
        let before = Instant::now();
        diagnostics.shutdown().await;
        assert!(before.elapsed() < CLOSE_PATIENCE, "{closing:?}");
        assert_eq!(diagnostics.why_closed().await, None);
        assert_eq!(source.receive().await.unwrap().unwrap(), "last");
        assert!(source.receive().await.unwrap().is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_never_agrees_to_close_is_not_waited_for() {
    let (near, _far) = tokio::io::duplex(1024);
    let server = opened(near, Role::Server).await;
    let diagnostics = server.diagnostics().unwrap();
    drop(server);
    let before = Instant::now();
    diagnostics.shutdown().await;
    assert_eq!(before.elapsed(), CLOSE_PATIENCE);
}
