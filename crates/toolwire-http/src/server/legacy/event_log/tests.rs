use std::time::Duration;

use toolwire_transport::ledger::{Account, Ceilings};

use super::*;

fn session() -> SessionId {
    SessionId::random().unwrap()
}

fn event(sequence: u64, size: usize) -> LoggedEvent {
    LoggedEvent { sequence, message: Bytes::from(vec![b'x'; size]) }
}

async fn sequences(log: &MemoryEventLog, stream: &StreamKey, after: u64) -> Vec<u64> {
    log.after(stream, after).await.unwrap().iter().map(|event| event.sequence).collect()
}

async fn fill(log: &MemoryEventLog, stream: &StreamKey, events: u64, size: usize) {
    for sequence in 1..=events {
        log.append(stream, event(sequence, size)).await.unwrap();
    }
}

#[tokio::test]
async fn only_the_later_events_of_that_stream_come_back() {
    let log = MemoryEventLog::new(EventLogLimits::default());
    let session = session();
    let (one, two) = (StreamKey { session, stream: 1 }, StreamKey { session, stream: 2 });
    fill(&log, &one, 3, 10).await;
    fill(&log, &two, 5, 10).await;
    assert_eq!(sequences(&log, &one, 1).await, [2, 3]);
    assert_eq!(sequences(&log, &one, 3).await, [0; 0]);
    assert_eq!(sequences(&log, &two, 0).await, [1, 2, 3, 4, 5]);
    log.forget(&session);
    assert_eq!(sequences(&log, &two, 0).await, [0; 0]);
    assert_eq!((log.bytes(), log.sessions()), (0, 0));
}

#[tokio::test]
async fn a_stream_is_bounded_in_events_and_bytes() {
    let limits = EventLogLimits { stream_events: 4, stream_bytes: 1000, ..EventLogLimits::default() };
    let log = MemoryEventLog::new(limits);
    let stream = StreamKey { session: session(), stream: 1 };
    fill(&log, &stream, 100, 1).await;
    assert_eq!(sequences(&log, &stream, 0).await, [97, 98, 99, 100]);
    log.append(&stream, event(101, 600)).await.unwrap();
    log.append(&stream, event(102, 600)).await.unwrap();
    assert_eq!(sequences(&log, &stream, 0).await, [102]);
    // An event over the limit is kept alone.
    log.append(&stream, event(103, 5000)).await.unwrap();
    assert_eq!(sequences(&log, &stream, 0).await, [103]);
    assert_eq!(log.bytes(), 5000);
}

#[tokio::test]
async fn a_session_gives_up_its_ended_streams_first() {
    let limits = EventLogLimits { session_events: 6, session_bytes: 1000, ..EventLogLimits::default() };
    let log = MemoryEventLog::new(limits);
    let session = session();
    let [one, two, three] = [1, 2, 3].map(|stream| StreamKey { session, stream });
    fill(&log, &one, 3, 10).await;
    fill(&log, &two, 3, 10).await;
    log.end_stream(&two);
    fill(&log, &three, 2, 10).await;
    assert_eq!(sequences(&log, &two, 0).await, [0; 0]);
    assert_eq!(sequences(&log, &one, 0).await, [1, 2, 3]);
    fill(&log, &three, 20, 100).await;
    assert_eq!(sequences(&log, &one, 0).await, [1, 2, 3]);
    assert!(log.bytes() <= 1000, "{}", log.bytes());
}

#[tokio::test]
async fn all_sessions_together_are_bounded() {
    let log = MemoryEventLog::new(EventLogLimits { total_bytes: 10_000, ..EventLogLimits::default() });
    for _ in 0..1000 {
        let stream = StreamKey { session: session(), stream: 1 };
        fill(&log, &stream, 2, 100).await;
        log.end_stream(&stream);
    }
    assert!(log.bytes() <= 10_000, "{}", log.bytes());
    assert_eq!(log.sessions(), 50);
}

#[tokio::test(start_paused = true)]
async fn ended_streams_expire_and_running_ones_do_not() {
    let log = MemoryEventLog::new(EventLogLimits::default());
    let session = session();
    let (one, two) = (StreamKey { session, stream: 1 }, StreamKey { session, stream: 2 });
    fill(&log, &one, 1, 10).await;
    fill(&log, &two, 1, 10).await;
    log.end_stream(&one);
    log.end_stream(&one);
    tokio::time::advance(Duration::from_secs(299)).await;
    assert_eq!(sequences(&log, &one, 0).await, [1]);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(sequences(&log, &one, 0).await, [0; 0]);
    assert_eq!(sequences(&log, &two, 0).await, [1]);
}

#[tokio::test]
async fn forgotten_sessions_leave_nothing_behind() {
    let log = MemoryEventLog::new(EventLogLimits::default());
    for _ in 0..1000 {
        let stream = StreamKey { session: session(), stream: 1 };
        fill(&log, &stream, 1, 10).await;
        log.end_stream(&stream);
        log.forget(&stream.session);
    }
    assert!(log.is_empty(), "{log:?}");
}

/// The ledgers of one session each of several callers, who may hold so much.
fn sessions_of_callers<const N: usize>(held_bytes_per_caller: usize) -> [(Ledger, StreamKey); N] {
    let process = Ledger::root(Ceilings::NONE);
    let ceilings = Ceilings { bytes: ("held_bytes_per_caller", held_bytes_per_caller), ..Ceilings::NONE };
    [(); N].map(|()| {
        let ledger = process.child(ceilings).child(Ceilings::NONE);
        (ledger, StreamKey { session: session(), stream: 0 })
    })
}

/// Logs streams of two events with 100 bytes each, which have ended.
async fn fill_streams(log: &MemoryEventLog, (ledger, first): &(Ledger, StreamKey), streams: u64) {
    for stream in 0..streams {
        let key = StreamKey { stream, ..*first };
        for sequence in 1..=2 {
            log.append_charged(&key, event(sequence, 100), ledger).await.unwrap();
        }
        log.end_stream(&key);
    }
}

#[tokio::test]
async fn a_caller_that_keeps_much_takes_nothing_from_another() {
    let limits = EventLogLimits { caller_bytes: 5000, total_bytes: 10_000, ..EventLogLimits::default() };
    for held_bytes_per_caller in [usize::MAX, 5000] {
        let log = MemoryEventLog::new(limits.clone());
        let [ada, bob] = sessions_of_callers(held_bytes_per_caller);
        fill_streams(&log, &bob, 1).await;
        fill_streams(&log, &ada, 1000).await;
        assert_eq!(sequences(&log, &bob.1, 0).await, [1, 2]);
        // Of its own streams, the oldest went first.
        assert_eq!((log.bytes(), ada.0.used(Account::EventBytes)), (5200, 5000));
        for (stream, kept) in [(974, &[][..]), (975, &[1, 2]), (999, &[1, 2])] {
            assert_eq!(sequences(&log, &StreamKey { stream, ..ada.1 }, 0).await, kept, "{stream}");
        }
        for (_, key) in [&ada, &bob] {
            log.forget(&key.session);
        }
        assert!(log.is_empty(), "{log:?}");
        assert_eq!([&ada.0, &bob.0].map(Ledger::used_bytes), [0; 2]);
    }
}

#[tokio::test]
async fn a_caller_that_holds_all_it_may_keeps_only_what_is_new_and_small() {
    let log = MemoryEventLog::new(EventLogLimits::default());
    let [(ledger, stream)] = sessions_of_callers(1000);
    let mut held = ledger.charge(Account::AnswerBytes, 800).unwrap();
    for (sequence, kept) in [(1, &[1][..]), (2, &[1, 2]), (3, &[2, 3])] {
        log.append_charged(&stream, event(sequence, 100), &ledger).await.unwrap();
        assert_eq!(sequences(&log, &stream, 0).await, kept);
    }
    log.append_charged(&StreamKey { stream: 1, ..stream }, event(1, 2000), &ledger).await.unwrap();
    assert_eq!((log.bytes(), ledger.used_bytes()), (200, 1000));
    held.grow_unchecked(200);
    for sequence in 4..100 {
        log.append_charged(&stream, event(sequence, 100), &ledger).await.unwrap();
        assert_eq!(sequences(&log, &stream, 0).await, [sequence - 1, sequence]);
    }
    assert_eq!((log.bytes(), ledger.used_bytes()), (200, 1200));
    drop(held);
    log.append_charged(&stream, event(100, 300), &ledger).await.unwrap();
    assert_eq!(sequences(&log, &stream, 0).await, [98, 99, 100]);
}

#[tokio::test]
async fn what_is_kept_makes_room_and_nothing_stays_charged_for_it() {
    let log = MemoryEventLog::new(EventLogLimits::default());
    let [(ledger, stream)] = sessions_of_callers(1000);
    log.make_room(&stream, 500, &ledger);
    assert!(log.is_empty() && ledger.used_bytes() == 0);
    for sequence in 1..=9 {
        log.append_charged(&stream, event(sequence, 100), &ledger).await.unwrap();
    }
    log.make_room(&stream, 500, &ledger);
    assert_eq!(sequences(&log, &stream, 0).await, [5, 6, 7, 8, 9]);
    log.make_room(&stream, 900, &ledger);
    assert_eq!(sequences(&log, &stream, 0).await, [9]);
    assert_eq!(ledger.used_bytes(), 100);
}

#[tokio::test]
async fn nothing_goes_for_an_event_that_does_not_fit_anyway() {
    let log = MemoryEventLog::new(EventLogLimits::default());
    let caller = sessions_of_callers::<1>(10_000);
    let (ledger, first) = &caller[0];
    fill_streams(&log, &caller[0], 10).await;
    let held = ledger.charge(Account::AnswerBytes, 5000).unwrap();
    let next = StreamKey { stream: 10, ..*first };
    log.append_charged(&next, event(1, 5001), ledger).await.unwrap();
    log.make_room(&next, 5001, ledger);
    assert_eq!((log.bytes(), ledger.used_bytes()), (2000, 7000));
    // What fits makes room, but no more than it needs.
    log.append_charged(&next, event(1, 4000), ledger).await.unwrap();
    assert_eq!((log.bytes(), ledger.used_bytes()), (5000, 10_000));
    drop(held);
}

#[tokio::test]
async fn callers_that_cannot_be_told_apart_have_no_share() {
    let limits = EventLogLimits { caller_bytes: 100, ..EventLogLimits::default() };
    let log = MemoryEventLog::new(limits);
    let connection = Ledger::root(Ceilings::NONE).child(Ceilings::NONE);
    fill_streams(&log, &(connection, StreamKey { session: session(), stream: 0 }), 10).await;
    assert_eq!(log.bytes(), 2000);
}
