//! Connections inside this process, so that the clock can be turned.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream},
    sync::mpsc::UnboundedReceiver,
    task::yield_now,
    time::Instant,
};
use url::Url;

use super::{
    dial::{Dialer, Memory},
    idle::MAX_IDLE,
    pool::IDLE_TIME,
    *,
};

const BOUNDS: Bounds = Bounds { header_bytes: 8 * 1024, connections: 2 * MAX_IDLE };
const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";

type Accepted = UnboundedReceiver<DuplexStream>;

fn target() -> Target {
    Target::of(&Url::parse("http://memory.invalid/mcp").unwrap()).unwrap()
}

async fn send(pool: &Pool) -> Result<Response, NetError> {
    pool.send(Method::POST, &target(), HeaderMap::new(), Bytes::from_static(b"question")).await
}

async fn read(response: Response) -> String {
    let mut body = response.into_body();
    let mut text = String::new();
    while let Some(chunk) = body.chunk().await.unwrap() {
        text.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    text
}

/// Takes one request from a connection.
async fn take(stream: &mut DuplexStream) -> String {
    let mut seen = Vec::new();
    while !seen.ends_with(b"question") {
        assert!(stream.read_buf(&mut seen).await.unwrap() > 0, "{}", String::from_utf8_lossy(&seen));
    }
    String::from_utf8(seen).unwrap()
}

/// Sends a request and answers it on the next connection.
async fn answered(pool: &Pool, accepted: &mut Accepted) -> DuplexStream {
    let (text, stream) = tokio::join!(async { read(send(pool).await.unwrap()).await }, async {
        let mut stream = accepted.recv().await.unwrap();
        take(&mut stream).await;
        stream.write_all(HELLO).await.unwrap();
        stream
    });
    assert_eq!(text, "hello");
    stream
}

#[tokio::test]
async fn a_connection_is_used_again_when_its_response_is_complete() {
    let (pool, mut accepted) = Pool::in_memory(BOUNDS);
    let mut stream = answered(&pool, &mut accepted).await;
    for _ in 0..3 {
        let (text, head) = tokio::join!(async { read(send(&pool).await.unwrap()).await }, async {
            let head = take(&mut stream).await;
            stream.write_all(HELLO).await.unwrap();
            head
        });
        assert_eq!(text, "hello");
        assert!(head.starts_with("POST /mcp HTTP/1.1\r\n"), "{head}");
    }
    assert!(accepted.try_recv().is_err());
    assert_eq!(pool.idle_connections(), 1);
}

#[tokio::test]
async fn a_body_that_is_left_ends_its_connection() {
    let (pool, mut accepted) = Pool::in_memory(BOUNDS);
    let (response, mut stream) = tokio::join!(send(&pool), async {
        let mut stream = accepted.recv().await.unwrap();
        take(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\nhe").await.unwrap();
        stream
    });
    drop(response.unwrap());
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
    assert_eq!(pool.idle_connections(), 0);
}

#[tokio::test]
async fn what_was_not_sent_is_sent_on_a_new_connection() {
    let (pool, mut accepted) = Pool::in_memory(BOUNDS);
    for _ in 0..3 {
        let stream = answered(&pool, &mut accepted).await;
        assert_eq!(pool.idle_connections(), 1);
        // The server closes an idle connection, and nobody here has noticed when the next request is made.
        drop(stream);
    }
}

#[tokio::test]
async fn what_may_have_arrived_is_not_sent_again() {
    let (pool, mut accepted) = Pool::in_memory(BOUNDS);
    let mut stream = answered(&pool, &mut accepted).await;
    let (sent, ()) = tokio::join!(send(&pool), async {
        take(&mut stream).await;
        drop(stream);
    });
    let error = sent.unwrap_err();
    assert_eq!(error.kind(), Kind::Closed);
    assert!(error.was_sent(), "{error}");
    assert!(error.to_string().contains("before its response was complete"), "{error}");
    assert!(accepted.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_nobody_needs_is_closed() {
    let (pool, mut accepted) = Pool::in_memory(BOUNDS);
    let mut stream = answered(&pool, &mut accepted).await;
    let before = Instant::now();
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
    let after = before.elapsed();
    assert!(after >= IDLE_TIME && after <= 2 * IDLE_TIME + Duration::from_secs(1), "{after:?}");
    // The next one is made as if nothing had been.
    drop(answered(&pool, &mut accepted).await);
}

#[tokio::test]
async fn connections_go_with_their_pool() {
    let (pool, mut accepted) = Pool::in_memory(BOUNDS);
    let mut stream = answered(&pool, &mut accepted).await;
    drop(pool);
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
}

#[tokio::test]
async fn only_so_many_connections_wait_for_their_next_request() {
    let (pool, mut accepted) = Pool::in_memory(BOUNDS);
    let mut responses = tokio::task::JoinSet::new();
    for _ in 0..MAX_IDLE + 3 {
        let pool = pool.clone();
        responses.spawn(async move { read(send(&pool).await.unwrap()).await });
    }
    let mut streams = Vec::new();
    for _ in 0..MAX_IDLE + 3 {
        let mut stream = accepted.recv().await.unwrap();
        take(&mut stream).await;
        streams.push(stream);
    }
    for stream in &mut streams {
        stream.write_all(HELLO).await.unwrap();
    }
    assert_eq!(responses.join_all().await.len(), MAX_IDLE + 3);
    assert_eq!(pool.idle_connections(), MAX_IDLE);
}

#[tokio::test(start_paused = true)]
async fn there_are_only_so_many_connections_and_whoever_needs_one_waits_for_it() {
    let (pool, mut accepted) = Pool::in_memory(Bounds { connections: 2, ..BOUNDS });
    let asked = |pool: &Pool| {
        let pool = pool.clone();
        tokio::spawn(async move { Ok::<_, NetError>(read(send(&pool).await?).await) })
    };
    let first = [asked(&pool), asked(&pool)];
    let (mut one, mut two) = (accepted.recv().await.unwrap(), accepted.recv().await.unwrap());
    take(&mut one).await;
    take(&mut two).await;
    // Two more have to wait, and both get what the first two give back: a connection, and the place of one that ends.
    let more = [asked(&pool), asked(&pool)];
    yield_now().await;
    assert!(accepted.try_recv().is_err());
    one.write_all(HELLO).await.unwrap();
    take(&mut one).await;
    two.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello").await.unwrap();
    let mut three = accepted.recv().await.unwrap();
    take(&mut three).await;

    // Whoever waits in vain is told why.
    let before = Instant::now();
    let error = send(&pool).await.unwrap_err();
    assert_eq!((error.kind(), error.was_sent()), (Kind::Busy, false));
    assert!(error.to_string().contains("the limit `connections` allows (2)"), "{error}");
    assert_eq!(before.elapsed(), Duration::from_secs(10));

    one.write_all(HELLO).await.unwrap();
    three.write_all(HELLO).await.unwrap();
    for request in first.into_iter().chain(more) {
        assert_eq!(request.await.unwrap().unwrap(), "hello");
    }
}

#[tokio::test]
async fn a_head_without_an_end_is_given_up() {
    for junk in [&b"x-more: of the same\r\n"[..], b"x"] {
        let (pool, mut accepted) = Pool::in_memory(BOUNDS);
        let (sent, written) = tokio::join!(send(&pool), async {
            let mut stream = accepted.recv().await.unwrap();
            take(&mut stream).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\n").await.unwrap();
            let mut written = 0;
            while stream.write_all(junk).await.is_ok() {
                written += junk.len();
            }
            written
        });
        let error = sent.unwrap_err();
        assert_eq!(error.kind(), Kind::TooLarge, "{error}");
        assert!(error.to_string().contains("header_bytes"), "{error}");
        // What was on its way when the limit was met comes on top.
        assert!(written < 4 * BOUNDS.header_bytes + 16 * 1024, "{written}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_reached_is_not_waited_for_for_ever() {
    let limit = Duration::from_secs(7);
    let pool = Pool::new(Dialer::in_memory(limit, Memory::Nowhere), BOUNDS);
    let before = Instant::now();
    let error = send(&pool).await.unwrap_err();
    assert_eq!((error.kind(), error.was_sent()), (Kind::Timeout, false));
    assert_eq!(error.to_string(), "no connection was made within 7 s");
    assert_eq!(before.elapsed(), limit);
}

#[tokio::test(start_paused = true)]
async fn what_is_left_of_a_response_is_waited_for_only_for_a_moment() {
    let (pool, mut accepted) = Pool::in_memory(BOUNDS);
    for (rest, kept) in [(&b"lo"[..], 1), (b"", 0)] {
        let (response, mut stream) = tokio::join!(send(&pool), async {
            let mut stream = accepted.recv().await.unwrap();
            take(&mut stream).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel").await.unwrap();
            stream
        });
        response.unwrap().into_body().discard();
        yield_now().await;
        stream.write_all(rest).await.unwrap();
        let before = Instant::now();
        let mut byte = [0];
        tokio::select! {
            end = stream.read(&mut byte) => assert_eq!(end.unwrap(), 0),
            () = tokio::time::sleep(Duration::from_secs(10)) => {}
        }
        assert_eq!(pool.idle_connections(), kept);
        assert_eq!(before.elapsed() < Duration::from_secs(2), kept == 0);
        if kept == 1 {
            // Whoever comes next takes it.
            drop(stream);
            yield_now().await;
        }
    }
}

#[tokio::test]
async fn what_is_not_http_is_told_as_such() {
    let (pool, mut accepted) = Pool::in_memory(BOUNDS);
    let (sent, ()) = tokio::join!(send(&pool), async {
        let mut stream = accepted.recv().await.unwrap();
        take(&mut stream).await;
        stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n\r\n").await.unwrap();
    });
    assert_eq!(sent.unwrap_err().kind(), Kind::NotHttp);
}

#[cfg(feature = "client-tls")]
mod http2 {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use h2::Reason;

    use super::*;

    /// A server that turns so many requests away for this reason before it answers one.
    fn server(
        mut accepted: Accepted,
        reason: Reason,
        refusals: usize,
    ) -> (Arc<AtomicUsize>, Arc<AtomicUsize>) {
        let (connections, requests) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let counts = (Arc::clone(&connections), Arc::clone(&requests));
        tokio::spawn(async move {
            while let Some(stream) = accepted.recv().await {
                connections.fetch_add(1, Ordering::SeqCst);
                let requests = Arc::clone(&requests);
                tokio::spawn(async move {
                    let mut connection = h2::server::handshake(stream).await.unwrap();
                    while let Some(Ok((_, mut respond))) = connection.accept().await {
                        if requests.fetch_add(1, Ordering::SeqCst) < refusals {
                            respond.send_reset(reason);
                        } else {
                            respond.send_response(http::Response::new(()), true).unwrap();
                        }
                    }
                });
            }
        });
        counts
    }

    #[tokio::test]
    async fn what_the_server_has_not_looked_at_is_sent_again_a_few_times() {
        let (pool, accepted) = Pool::in_memory_http2(BOUNDS);
        let (connections, requests) = server(accepted, Reason::REFUSED_STREAM, 2);
        assert_eq!(send(&pool).await.unwrap().status(), 200);
        assert_eq!((connections.load(Ordering::SeqCst), requests.load(Ordering::SeqCst)), (1, 3));

        let (pool, accepted) = Pool::in_memory_http2(BOUNDS);
        let (_, requests) = server(accepted, Reason::REFUSED_STREAM, usize::MAX);
        let error = send(&pool).await.unwrap_err();
        assert!(!error.was_sent() && error.to_string().contains("does not take the request"), "{error}");
        assert_eq!(requests.load(Ordering::SeqCst), 3);
    }

    #[tokio::test]
    async fn what_it_may_have_looked_at_is_not() {
        let (pool, accepted) = Pool::in_memory_http2(BOUNDS);
        let (_, requests) = server(accepted, Reason::INTERNAL_ERROR, 1);
        assert!(send(&pool).await.unwrap_err().was_sent());
        assert_eq!(requests.load(Ordering::SeqCst), 1);
        // The connection is none the worse for it.
        assert_eq!(send(&pool).await.unwrap().status(), 200);
    }

    #[tokio::test]
    async fn those_who_come_at_once_share_the_first_connection() {
        let (pool, accepted) = Pool::in_memory_http2(BOUNDS);
        let (connections, requests) = server(accepted, Reason::NO_ERROR, 0);
        let mut sent = tokio::task::JoinSet::new();
        for _ in 0..64 {
            let pool = pool.clone();
            sent.spawn(async move { send(&pool).await.unwrap().status() });
        }
        assert!(sent.join_all().await.iter().all(http::StatusCode::is_success));
        assert_eq!((connections.load(Ordering::SeqCst), requests.load(Ordering::SeqCst)), (1, 64));
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_nobody_needs_is_closed() {
        let (pool, mut accepted) = Pool::in_memory_http2(BOUNDS);
        let (sent, ended) = tokio::join!(async { send(&pool).await.map(drop) }, async {
            let stream = accepted.recv().await.unwrap();
            let mut connection = h2::server::handshake(stream).await.unwrap();
            let (_, mut respond) = connection.accept().await.unwrap().unwrap();
            respond.send_response(http::Response::new(()), true).unwrap();
            let before = Instant::now();
            assert!(connection.accept().await.is_none());
            before.elapsed()
        });
        sent.unwrap();
        assert!(ended >= IDLE_TIME && ended <= 3 * IDLE_TIME, "{ended:?}");
    }
}
