use std::{future::Future as _, pin::pin, task::Poll, time::Duration};

use super::*;
use crate::server::legacy::{
    event_log::{EventLogLimits, MemoryEventLog},
    id::SessionId,
    reader::Reader,
};
use toolwire_transport::ledger::{Account, Ceilings, Ledger};

fn stream() -> (Arc<Stream>, Arc<MemoryEventLog>) {
    let log = Arc::new(MemoryEventLog::new(EventLogLimits::default()));
    let key = StreamKey { session: SessionId::random().unwrap(), stream: 1 };
    let charge = Ledger::root(Ceilings::NONE).empty_charge(Account::AnswerBytes);
    (Stream::logged(Arc::clone(&log) as Arc<dyn EventLog>, key, charge), log)
}

fn message(number: usize) -> Bytes {
    number.to_string().into()
}

/// Sends until it has to wait; gives how many were sent.
async fn fill(stream: &Stream, message: &Bytes) -> usize {
    for sent in 0..10_000 {
        let mut sending = pin!(stream.send(message.clone()));
        let sent_now = std::future::poll_fn(|task| Poll::Ready(sending.as_mut().poll(task).is_ready())).await;
        if !sent_now {
            return sent;
        }
    }
    panic!("it never has to wait");
}

async fn next(stream: &Stream, connection: u64) -> Option<LoggedEvent> {
    match std::future::poll_fn(|task| stream.poll_next(connection, task)).await {
        Next::Event(event) => Some(event),
        Next::End => None,
    }
}

#[tokio::test]
async fn a_sender_waits_for_a_slow_connection() {
    let (stream, _) = stream();
    let connection = stream.connect();
    assert_eq!(fill(&stream, &message(1)).await, UNREAD_EVENTS);
    // Each that is read makes room for one.
    next(&stream, connection).await.unwrap();
    assert_eq!(fill(&stream, &message(1)).await, 1);
    // An answer does not wait.
    stream.send_answer(message(2)).await;
    // Nor does anybody once the connection is gone.
    stream.disconnect(connection);
    for _ in 0..1000 {
        stream.send(message(3)).await;
    }
}

#[tokio::test]
async fn a_sender_waits_for_bytes_as_well() {
    let (stream, _) = stream();
    stream.connect();
    assert_eq!(fill(&stream, &vec![b'x'; UNREAD_BYTES / 4].into()).await, 4);
}

#[tokio::test]
async fn nothing_piles_up_without_a_connection() {
    let (stream, log) = stream();
    for number in 0..1000 {
        stream.send(message(number)).await;
    }
    assert!(stream.lock().unread.is_empty());
    assert!(log.bytes() <= 256 * 3);
}

#[tokio::test]
async fn a_message_is_logged_before_it_is_given_to_the_connection() {
    let (stream, log) = stream();
    let connection = stream.connect();
    stream.send(message(7)).await;
    assert_eq!(log.bytes(), 1);
    assert_eq!(next(&stream, connection).await.unwrap(), LoggedEvent { sequence: 1, message: message(7) });
}

#[tokio::test]
async fn numbers_are_not_used_twice_when_a_sender_gives_up() {
    let (stream, _) = stream();
    let connection = stream.connect();
    assert_eq!(fill(&stream, &message(1)).await, UNREAD_EVENTS);
    for _ in 0..UNREAD_EVENTS {
        next(&stream, connection).await.unwrap();
    }
    stream.send(message(2)).await;
    assert_eq!(next(&stream, connection).await.unwrap().sequence, UNREAD_EVENTS as u64 + 1);
}

#[tokio::test]
async fn what_is_read_from_the_log_and_live_is_read_once() {
    let (stream, _) = stream();
    for number in 1..=3 {
        stream.send(message(number)).await;
    }
    let mut reader = Reader::resume(Arc::clone(&stream), 1).await.unwrap();
    stream.send_answer(message(4)).await;
    stream.end();
    let mut text = String::new();
    while let Some(bytes) =
        std::future::poll_fn(|task| futures_core::Stream::poll_next(pin!(&mut reader), task)).await
    {
        text.push_str(std::str::from_utf8(&bytes).unwrap());
    }
    assert_eq!(text, "id: 1-2\ndata: 2\n\nid: 1-3\ndata: 3\n\nid: 1-4\ndata: 4\n\n");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_kept_any_more_cannot_be_waited_for() {
    let (stream, _) = stream();
    stream.send_answer(message(1)).await;
    stream.end();
    assert!(Reader::resume(Arc::clone(&stream), 0).await.is_ok());
    tokio::time::advance(Duration::from_secs(301)).await;
    assert!(Reader::resume(Arc::clone(&stream), 0).await.is_err());
    // Who has it already misses nothing.
    assert!(Reader::resume(Arc::clone(&stream), 1).await.is_ok());
}

#[tokio::test]
async fn what_is_logged_after_the_session_went_is_forgotten() {
    let (stream, log) = stream();
    let (_, key) = stream.log.clone().unwrap();
    stream.lock().forgotten = true;
    stream.send(message(1)).await;
    assert_eq!((log.bytes(), log.sessions()), (0, 0));
    stream.forget();
    log.forget(&key.session);
    stream.send(message(2)).await;
    assert_eq!(log.sessions(), 0);
}
