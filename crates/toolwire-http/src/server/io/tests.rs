use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, duplex},
    time::Instant,
};

use super::*;

const WRITE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn a_peer_that_does_not_read_is_left() {
    let (mut peer, ours) = duplex(4);
    let mut ours = TimedIo::new(ours, Activity::new(), WRITE);
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
