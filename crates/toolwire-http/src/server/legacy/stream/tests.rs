use std::{future::Future as _, pin::pin, task::Poll, time::Duration};

use super::*;
use crate::server::legacy::{
    event_log::{EventLogLimits, MemoryEventLog},
    id::SessionId,
    reader::Reader,
};
use toolwire_transport::ledger::{Account, Ceilings, Ledger};

fn stream() -> (Arc<Stream>, Arc<MemoryEventLog>) {
    stream_on(&Ledger::root(Ceilings::NONE))
}

fn stream_on(ledger: &Ledger) -> (Arc<Stream>, Arc<MemoryEventLog>) {
    let log = Arc::new(MemoryEventLog::new(EventLogLimits::default()));
    let key = StreamKey { session: SessionId::random().unwrap(), stream: 1 };
    let charge = ledger.empty_charge(Account::AnswerBytes);
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

fn small_ledger() -> Ledger {
    Ledger::root(Ceilings { bytes: ("held_bytes_per_caller", 10_000), ..Ceilings::NONE })
}

#[tokio::test]
async fn what_a_connection_has_read_is_charged_until_it_asks_for_more() {
    let ledger = small_ledger();
    let stream = Stream::fleeting(ledger.empty_charge(Account::AnswerBytes));
    let connection = stream.connect();
    for _ in 0..2 {
        stream.send(vec![b'x'; 3000].into()).await;
    }
    for held in [6000, 3000] {
        next(&stream, connection).await.unwrap();
        assert_eq!(ledger.used_bytes(), held);
    }
    stream.disconnect(connection);
    assert_eq!(ledger.used_bytes(), 0);
}

/// A log entry.
fn report(bytes: usize) -> Bytes {
    let text = "x".repeat(bytes);
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"data":"{text}"}}}}"#).into()
}

fn question(bytes: usize) -> Bytes {
    let text = "x".repeat(bytes);
    format!(r#"{{"jsonrpc":"2.0","id":3,"method":"elicitation/create","params":{{"message":"{text}"}}}}"#)
        .into()
}

fn answer(bytes: usize) -> Bytes {
    format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"x":"{}"}}}}"#, "x".repeat(bytes)).into()
}

#[tokio::test]
async fn a_connection_without_room_misses_reports_and_gets_questions_and_the_answer() {
    for is_logged in [false, true] {
        let ledger = small_ledger();
        let _held = ledger.charge(Account::AnswerBytes, 10_000).unwrap();
        let stream = if is_logged {
            stream_on(&ledger).0
        } else {
            Stream::fleeting(ledger.empty_charge(Account::AnswerBytes))
        };
        let connection = stream.connect();
        for bytes in [10, 3000] {
            stream.send(report(bytes)).await;
            stream.send(question(bytes)).await;
            assert_eq!(next(&stream, connection).await.unwrap().message, question(bytes));
        }
        stream.send_answer(answer(10)).await;
        stream.send_answer(answer(6000)).await;
        stream.end();
        assert_eq!(next(&stream, connection).await.unwrap().message, answer(10));
        let error = next(&stream, connection).await.unwrap().message;
        assert!(String::from_utf8_lossy(&error).contains("held_bytes_per_caller"), "{error:?}");
        assert!(next(&stream, connection).await.is_none());
        assert_eq!(ledger.used(Account::AnswerBytes), 10_000);
    }
}

#[tokio::test]
async fn without_room_a_question_waits_until_the_one_before_is_read() {
    let ledger = small_ledger();
    let _held = ledger.charge(Account::AnswerBytes, 10_000).unwrap();
    let stream = Stream::fleeting(ledger.empty_charge(Account::AnswerBytes));
    let connection = stream.connect();
    assert_eq!(fill(&stream, &question(10)).await, 1);
    next(&stream, connection).await.unwrap();
    assert_eq!(fill(&stream, &question(10)).await, 1);
    // Nobody waits for a connection that is gone.
    stream.disconnect(connection);
    stream.send(question(10)).await;
}

#[tokio::test]
async fn events_that_are_kept_make_room_for_those_that_are_sent() {
    let ledger = small_ledger();
    let (stream, log) = stream_on(&ledger);
    let connection = stream.connect();
    for sequence in 1..=100 {
        stream.send(report(300)).await;
        assert_eq!(next(&stream, connection).await.unwrap().sequence, sequence);
    }
    assert!(log.bytes() > 5000, "{}", log.bytes());
    stream.send_answer(answer(6000)).await;
    assert_eq!(next(&stream, connection).await.unwrap().message, answer(6000));
}

#[tokio::test]
async fn an_answer_for_a_client_that_is_away_and_has_no_room_is_kept_as_an_error() {
    let ledger = small_ledger();
    let _held = ledger.charge(Account::AnswerBytes, 10_000).unwrap();
    let (stream, log) = stream_on(&ledger);
    stream.send_answer(answer(6000)).await;
    stream.end();
    assert!(Reader::resume(Arc::clone(&stream), 0).await.is_ok());
    assert!(log.bytes() > 0 && ledger.used_bytes() == 10_000 + log.bytes());
}

#[tokio::test]
async fn an_answer_for_which_there_is_no_room_becomes_an_error_that_says_so() {
    let ledger = small_ledger();
    let stream = Stream::fleeting(ledger.empty_charge(Account::AnswerBytes));
    let connection = stream.connect();
    for _ in 0..2 {
        stream.send_answer(answer(6000)).await;
    }
    assert_eq!(next(&stream, connection).await.unwrap().message, answer(6000));
    let error = next(&stream, connection).await.unwrap().message;
    let error: serde_json::Value = serde_json::from_slice(&error).unwrap();
    assert_eq!((&error["id"], &error["error"]["code"]), (&7.into(), &(-32603).into()));
    assert_eq!(error["error"]["data"]["limit"], "held_bytes_per_caller");
    assert!(ledger.used_bytes() < 1000, "{}", ledger.used_bytes());
}
