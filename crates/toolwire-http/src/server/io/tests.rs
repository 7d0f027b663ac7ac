use std::{future::poll_fn, pin::pin};

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

#[tokio::test]
async fn a_peer_that_has_closed_its_side_still_takes_the_rest_of_an_answer() {
    let (mut peer, ours) = duplex(4);
    let mut ours = TimedIo::new(ours, Activity::new(), WRITE);
    peer.shutdown().await.unwrap();
    ours.write_all(b"abcd").await.unwrap();
    // The request is over, and its answer is not written yet.
    assert!(poll_fn(|task| Poll::Ready(Pin::new(&mut ours).poll_write(task, b"e"))).await.is_pending());
    let mut buf = [0];
    let mut reading = pin!(ours.read(&mut buf));
    assert!(poll_fn(|task| Poll::Ready(reading.as_mut().poll(task))).await.is_pending());
    peer.read_exact(&mut [0; 4]).await.unwrap();
    ours.write_all(b"e").await.unwrap();
    assert_eq!(ours.read(&mut buf).await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_was_broken_off_ends_even_if_the_peer_reads_no_answers() {
    let (mut peer, ours) = duplex(4);
    let activity = Activity::new();
    let mut ours = TimedIo::new(ours, activity.clone(), WRITE);
    ours.write_all(b"abcd").await.unwrap();
    assert!(poll_fn(|task| Poll::Ready(Pin::new(&mut ours).poll_write(task, b"e"))).await.is_pending());
    let _open = activity.request();
    peer.shutdown().await.unwrap();
    let mut buf = [0];
    {
        let mut reading = pin!(ours.read(&mut buf));
        assert!(poll_fn(|task| Poll::Ready(reading.as_mut().poll(task))).await.is_pending());
    }
    assert_eq!([(); 2].map(|()| activity.body_waits()), [true, false], "it is woken once");
    let mut reading = pin!(ours.read(&mut buf));
    let read = poll_fn(|task| Poll::Ready(reading.as_mut().poll(task))).await;
    assert!(matches!(read, Poll::Ready(Ok(0))), "{read:?}");
}
