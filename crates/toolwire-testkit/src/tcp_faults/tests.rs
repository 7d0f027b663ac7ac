//! Real sockets have no paused clock: what must not happen is waited for a moment, what must happen has a minute.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Duration, Instant, sleep, timeout};

use super::{Fault, FaultyTcp};
use crate::store::contract::within;

const MOMENT: Duration = Duration::from_millis(100);
const LONG: Duration = Duration::from_secs(60);

/// A server that gives back what it gets, behind a proxy.
struct Behind {
    proxy: FaultyTcp,
    listener: TcpListener,
}

impl Behind {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = FaultyTcp::to(listener.local_addr().unwrap()).await.unwrap();
        Self { proxy, listener }
    }

    /// A connection, both ends of it.
    async fn connect(&self) -> (TcpStream, TcpStream) {
        let client = TcpStream::connect(self.proxy.address()).await.unwrap();
        let (server, _) = timeout(LONG, self.listener.accept()).await.unwrap().unwrap();
        (client, server)
    }
}

/// What arrives of so many bytes.
async fn arrives(stream: &mut TcpStream, bytes: usize) -> Vec<u8> {
    let mut read = vec![0; bytes];
    timeout(LONG, stream.read_exact(&mut read)).await.expect("nothing came").unwrap();
    read
}

async fn is_silent(stream: &mut TcpStream) -> bool {
    timeout(MOMENT, stream.read(&mut [0; 1])).await.is_err()
}

async fn is_reset(stream: &mut TcpStream) -> bool {
    let read = timeout(LONG, stream.read(&mut [0; 1])).await.expect("it goes on");
    read.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset)
}

#[tokio::test]
async fn without_a_fault_everything_passes_and_an_end_is_an_end() {
    let behind = Behind::new().await;
    let (mut client, mut server) = behind.connect().await;
    let sent: Vec<u8> = (0..200_000u32).map(|number| (number % 251) as u8).collect();
    let (written, read) = tokio::join!(client.write_all(&sent), arrives(&mut server, sent.len()));
    written.unwrap();
    assert!(read == sent);
    client.shutdown().await.unwrap();
    assert_eq!(timeout(LONG, server.read(&mut [0; 1])).await.unwrap().unwrap(), 0);
    // Half of it has ended, the other goes on.
    server.write_all(b"late").await.unwrap();
    assert_eq!(arrives(&mut client, 4).await, b"late");
    drop(server);
    assert_eq!(timeout(LONG, client.read(&mut [0; 1])).await.unwrap().unwrap(), 0);
}

#[tokio::test]
async fn latency_delays_each_direction_and_does_not_add_up() {
    let behind = Behind::new().await;
    let (mut client, mut server) = behind.connect().await;
    behind.proxy.set(Fault::Latency(MOMENT));
    let mut sent = Instant::now();
    for _ in 0..50 {
        sent = Instant::now();
        client.write_all(b"x").await.unwrap();
        // So that the proxy reads each by itself.
        sleep(Duration::from_millis(1)).await;
    }
    // One after the other they would take five seconds.
    let arrived = within(MOMENT * 40, arrives(&mut server, 50)).await;
    assert!(arrived.is_some(), "the latency adds up");
    assert!(sent.elapsed() >= MOMENT, "{:?}", sent.elapsed());
    let sent = Instant::now();
    server.write_all(b"y").await.unwrap();
    arrives(&mut client, 1).await;
    assert!(sent.elapsed() >= MOMENT, "{:?}", sent.elapsed());
}

#[tokio::test]
async fn a_throttled_connection_takes_its_time() {
    let behind = Behind::new().await;
    let (mut client, mut server) = behind.connect().await;
    behind.proxy.set(Fault::Throttle(10_000));
    let start = Instant::now();
    client.write_all(&[7; 2_000]).await.unwrap();
    assert_eq!(arrives(&mut server, 2_000).await, [7; 2_000]);
    assert!(start.elapsed() >= MOMENT, "{:?}", start.elapsed());
}

#[tokio::test]
async fn what_fell_into_a_black_hole_comes_when_it_is_gone() {
    let behind = Behind::new().await;
    let (mut client, mut server) = behind.connect().await;
    behind.proxy.set(Fault::Blackhole);
    client.write_all(b"ab").await.unwrap();
    server.write_all(b"cd").await.unwrap();
    assert!(is_silent(&mut server).await && is_silent(&mut client).await);
    let mut late = TcpStream::connect(behind.proxy.address()).await.unwrap();
    late.write_all(b"ef").await.unwrap();
    assert!(is_silent(&mut late).await);
    behind.proxy.set(Fault::None);
    assert_eq!((arrives(&mut server, 2).await, arrives(&mut client, 2).await), (b"ab".into(), b"cd".into()));
}

#[tokio::test]
async fn without_replies_requests_still_arrive() {
    let behind = Behind::new().await;
    let (mut client, mut server) = behind.connect().await;
    behind.proxy.set(Fault::NoReplies);
    client.write_all(b"ask").await.unwrap();
    assert_eq!(arrives(&mut server, 3).await, b"ask");
    server.write_all(b"say").await.unwrap();
    assert!(is_silent(&mut client).await);
    behind.proxy.cut();
    assert!(is_reset(&mut client).await);
}

#[tokio::test]
async fn a_half_open_connection_ends_for_the_server_alone() {
    let behind = Behind::new().await;
    let (mut client, mut server) = behind.connect().await;
    behind.proxy.set(Fault::HalfOpen);
    assert_eq!(timeout(LONG, server.read(&mut [0; 1])).await.unwrap().unwrap(), 0);
    client.write_all(b"anybody?").await.unwrap();
    assert!(is_silent(&mut client).await);
    behind.proxy.set(Fault::None);
    assert!(is_reset(&mut client).await);
    behind.connect().await;
}

#[tokio::test]
async fn a_reply_is_cut_in_its_middle() {
    let behind = Behind::new().await;
    let (mut client, mut server) = behind.connect().await;
    server.write_all(b"before").await.unwrap();
    arrives(&mut client, 6).await;
    behind.proxy.set(Fault::CutAfter(3));
    client.write_all(b"any number of bytes").await.unwrap();
    arrives(&mut server, 19).await;
    server.write_all(b"answer").await.unwrap();
    assert_eq!(arrives(&mut client, 3).await, b"ans");
    assert!(is_reset(&mut client).await);
}

#[tokio::test]
async fn what_is_down_resets_everybody_until_it_is_back() {
    let behind = Behind::new().await;
    let (mut client, _server) = behind.connect().await;
    behind.proxy.set(Fault::Down);
    assert!(is_reset(&mut client).await);
    let mut late = TcpStream::connect(behind.proxy.address()).await.unwrap();
    assert!(is_reset(&mut late).await);
    behind.proxy.set(Fault::None);
    let mut client = TcpStream::connect(behind.proxy.address()).await.unwrap();
    client.write_all(b"hello").await.unwrap();
    // The one that was reset may have reached the server for a moment.
    loop {
        let (mut server, _) = timeout(LONG, behind.listener.accept()).await.unwrap().unwrap();
        let mut read = [0; 5];
        let all = timeout(LONG, server.read_exact(&mut read)).await.expect("nothing came");
        if all.is_ok() {
            assert_eq!(&read, b"hello");
            break;
        }
    }
}

#[tokio::test]
async fn the_shortest_outage_resets_what_there_was() {
    let behind = Behind::new().await;
    let (mut client, _server) = behind.connect().await;
    behind.proxy.set(Fault::Down);
    behind.proxy.set(Fault::None);
    assert!(is_reset(&mut client).await);
}

#[tokio::test]
async fn a_dropped_proxy_leaves_no_connection() {
    let behind = Behind::new().await;
    let (mut client, mut server) = behind.connect().await;
    drop(behind.proxy);
    assert_eq!(timeout(LONG, server.read(&mut [0; 1])).await.unwrap().unwrap_or(0), 0);
    assert_eq!(timeout(LONG, client.read(&mut [0; 1])).await.unwrap().unwrap_or(0), 0);
}
