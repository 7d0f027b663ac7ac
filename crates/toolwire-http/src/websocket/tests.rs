use std::time::Duration;

use bytes::Bytes;
use tokio::{io::DuplexStream, time::Instant};
use toolwire_transport::{Sink as _, Source as _};

use super::*;

const BOUNDS: Bounds = Bounds { message_bytes: 1000, silence: Duration::from_secs(60) };

async fn opened(stream: DuplexStream, role: Role) -> Connection {
    let (connection, driving) = open(stream, role, BOUNDS).await;
    tokio::spawn(driving);
    connection
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
