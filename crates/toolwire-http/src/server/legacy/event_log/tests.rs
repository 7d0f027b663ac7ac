use std::time::Duration;

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
    assert!(log.names_of_ended() <= 100, "{}", log.names_of_ended());
}
