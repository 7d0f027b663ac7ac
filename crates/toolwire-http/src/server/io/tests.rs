use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, duplex},
    time::Instant,
};

use super::*;

const OPEN: Duration = Duration::from_secs(10);
const WRITE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn a_peer_that_says_nothing_is_left() {
    for said in [&b""[..], b"P", b"PRI * HTTP/2.0\r\n\r\nSM"] {
        let (mut peer, ours) = duplex(64);
        let mut ours = TimedIo::new(ours, Idle::new(), OPEN, WRITE);
        peer.write_all(said).await.unwrap();
        let start = Instant::now();
        let error = ours.read_to_end(&mut Vec::new()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(start.elapsed().as_secs(), 10);
    }
}

#[tokio::test(start_paused = true)]
async fn once_the_version_is_known_the_clock_stops() {
    for said in [&b"POST"[..], b"PRI * HTTP/1", PREFACE, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nmore"] {
        let (mut peer, ours) = duplex(64);
        let mut ours = TimedIo::new(ours, Idle::new(), OPEN, WRITE);
        for byte in said {
            peer.write_all(&[*byte]).await.unwrap();
            assert_eq!(ours.read_u8().await.unwrap(), *byte);
        }
        sleep(2 * OPEN).await;
        let read = tokio::time::timeout(2 * OPEN, ours.read_u8()).await;
        assert!(read.is_err(), "still waiting: {said:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_does_not_read_is_left() {
    let (mut peer, ours) = duplex(4);
    let mut ours = TimedIo::new(ours, Idle::new(), OPEN, WRITE);
    ours.write_all(b"abcd").await.unwrap();
    let start = Instant::now();
    let error = ours.write_all(b"e").await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert_eq!(start.elapsed().as_secs(), 60);
    // Any byte that is taken starts the time again.
    peer.read_exact(&mut [0; 4]).await.unwrap();
    ours.write_all(b"efgh").await.unwrap();
    ours.flush().await.unwrap();
}
