use std::io::ErrorKind;

use bytes::Bytes;
use toolwire_transport::ledger::{Ceilings, Ledger};
use toolwire_transport::memory::{self, BYTES, MESSAGES};
use toolwire_transport::{Duplex, Sink, Source};

use crate::{receive_many, send_many};

/// How many messages a sink takes before it makes its sender wait.
async fn accepted_without_waiting(sink: &mut impl Sink, message: Bytes) -> usize {
    let mut count = 0;
    loop {
        tokio::select! {
            biased;
            result = sink.send(message.clone()) => result.unwrap(),
            () = std::future::ready(()) => return count,
        }
        count += 1;
    }
}

#[tokio::test]
async fn a_direction_is_bounded_in_messages() {
    let (left, right) = memory::pair();
    let (_left_source, mut sink) = left.split();
    let (mut source, _right_sink) = right.split();
    assert_eq!(accepted_without_waiting(&mut sink, Bytes::from_static(b"{}")).await, MESSAGES);
    source.receive().await.unwrap().unwrap();
    assert_eq!(accepted_without_waiting(&mut sink, Bytes::from_static(b"{}")).await, 1);
}

#[tokio::test]
async fn a_direction_is_bounded_in_bytes() {
    let (left, right) = memory::pair();
    let (_left_source, mut sink) = left.split();
    let (mut source, _right_sink) = right.split();
    let third = Bytes::from(vec![b'x'; BYTES / 3]);
    assert_eq!(accepted_without_waiting(&mut sink, third).await, 4);
    source.receive().await.unwrap().unwrap();
    source.receive().await.unwrap().unwrap();
    let huge = Bytes::from(vec![b'x'; 3 * BYTES]);
    assert_eq!(accepted_without_waiting(&mut sink, huge).await, 1);
}

#[tokio::test]
async fn what_waits_is_charged_and_bounded_by_what_may_be_held() {
    const LARGE: usize = 100_000;
    let ledger = Ledger::root(Ceilings { bytes: ("held_bytes", 2 * LARGE), ..Ceilings::NONE });
    let (left, right) = memory::pair();
    let (mut left_source, mut left_sink) = left.split();
    let (mut right_source, mut right_sink) = right.split();
    // The one end is a server's.
    right_source.charge_to(&ledger);
    right_sink.charge_to(&ledger);
    let large = Bytes::from(vec![b'x'; LARGE]);
    assert_eq!(accepted_without_waiting(&mut left_sink, large.clone()).await, 3);
    assert_eq!(accepted_without_waiting(&mut right_sink, large).await, 1);
    assert_eq!(ledger.used_bytes(), 4 * LARGE);
    left_source.receive().await.unwrap().unwrap();
    assert_eq!(ledger.used_bytes(), 3 * LARGE);
    // Small ones pass whatever is held.
    assert!(accepted_without_waiting(&mut right_sink, Bytes::from_static(b"{}")).await > 1);
    for _ in 0..3 {
        right_source.receive().await.unwrap().unwrap();
    }
    assert_eq!(ledger.used_bytes(), 0);
}

#[tokio::test]
async fn closing_one_end_ends_the_other() {
    let (left, right) = memory::pair();
    let (left_source, mut left_sink) = left.split();
    let (mut right_source, mut right_sink) = right.split();
    left_sink.send(Bytes::from_static(b"last")).await.unwrap();
    left_sink.close().await.unwrap();
    assert_eq!(left_sink.send(Bytes::new()).await.unwrap_err().kind(), ErrorKind::BrokenPipe);
    assert_eq!(right_source.receive().await.unwrap().unwrap(), "last");
    assert!(right_source.receive().await.unwrap().is_none());

    drop(left_source);
    assert_eq!(right_sink.send(Bytes::new()).await.unwrap_err().kind(), ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn dropping_an_end_wakes_the_other() {
    let (left, right) = memory::pair();
    let (mut source, mut sink) = left.split();
    let receiving = tokio::spawn(async move { source.receive().await });
    accepted_without_waiting(&mut sink, Bytes::from_static(b"{}")).await;
    let sending = tokio::spawn(async move { sink.send(Bytes::from_static(b"{}")).await });
    tokio::task::yield_now().await;
    assert!(!receiving.is_finished() && !sending.is_finished());
    drop(right);
    assert!(receiving.await.unwrap().unwrap().is_none());
    assert_eq!(sending.await.unwrap().unwrap_err().kind(), ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn both_ways_at_once() {
    let (left, right) = memory::pair();
    let (left_source, left_sink) = left.split();
    let (right_source, right_sink) = right.split();
    let sending = (tokio::spawn(send_many(left_sink)), tokio::spawn(send_many(right_sink)));
    tokio::join!(receive_many(left_source), receive_many(right_source));
    sending.0.await.unwrap().unwrap();
    sending.1.await.unwrap().unwrap();
}
