//! Rules about logs.

use bytes::Bytes;
use toolwire_store::{EventLog, LogKey, LogState, NewHead, Slice, StoreError};

use super::{
    Backend,
    kit::{all_at_once, clients, node, session},
};

fn head() -> NewHead {
    NewHead { node: node(), pending: vec![7.into(), "seven".into()] }
}

fn texts(slice: &Slice) -> Vec<(u64, String)> {
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    slice.events.iter().map(|event| (event.number, text(&event.bytes))).collect()
}

fn events(texts: &[&'static str]) -> Vec<Bytes> {
    texts.iter().map(|text| Bytes::from_static(text.as_bytes())).collect()
}

async fn open(log: &dyn EventLog, key: &LogKey) -> u64 {
    log.open(key, head(), None).await.expect("a stream")
}

/// Log numbers increase per key and are never reused; a stale fence fails, a used number fails unless the bytes are the same.
///
/// # Panics
/// When the backend does not keep it.
pub async fn rule_15_numbers_are_never_used_again(backend: &dyn Backend) {
    let store = backend.connect().await;
    let log = &**store.log();
    let key = LogKey::Stream(session(), 3);
    let new = head();
    let fence = log.open(&key, new.clone(), None).await.expect("a stream");
    assert_eq!(log.open(&key, new.clone(), None).await.expect("the same call again"), fence);
    assert!(matches!(log.open(&key, head(), None).await, Err(StoreError::Conflict)));
    let first = events(&["one", "two"]);
    for _ in 0..2 {
        log.append(&key, fence, 1, &first, LogState::Open).await.expect("an append, and the same again");
    }
    let other = log.append(&key, fence, 2, &events(&["other"]), LogState::Open).await;
    assert!(matches!(other, Err(StoreError::Conflict)), "{other:?}");
    let zero = log.append(&key, fence, 0, &events(&["zero"]), LogState::Open).await;
    assert!(matches!(zero, Err(StoreError::Conflict)), "{zero:?}");
    // Numbers may be left out, and what is there already may come with what is new.
    log.append(&key, fence, 5, &events(&["five"]), LogState::Open).await.expect("an append");
    log.append(&key, fence, 5, &events(&["five", "six"]), LogState::Open).await.expect("an append");
    let left_out = log.append(&key, fence, 4, &events(&["four"]), LogState::Open).await;
    assert!(matches!(left_out, Err(StoreError::Conflict)), "{left_out:?}");
    for stale in [fence - 1, fence + 1] {
        let refused = log.append(&key, stale, 7, &events(&["x"]), LogState::Open).await;
        assert!(matches!(refused, Err(StoreError::Lost)), "{refused:?}");
    }
    for _ in 0..2 {
        log.append(&key, fence, 7, &events(&["end"]), LogState::Ended).await.expect("the end, and again");
    }
    let late = log.append(&key, fence, 8, &events(&["late"]), LogState::Open).await;
    assert!(matches!(late, Err(StoreError::Conflict)), "{late:?}");
    let slice = log.read(&key, 0, 100).await.expect("a slice");
    let expected = [(1, "one"), (2, "two"), (5, "five"), (6, "six"), (7, "end")];
    assert_eq!(texts(&slice), expected.map(|(number, text)| (number, text.to_owned())));
    let head = slice.head.expect("a stream has a head");
    assert_eq!((head.node, head.fence, head.last, head.state), (new.node, fence, 7, LogState::Ended));
    assert_eq!(head.pending, new.pending);
    let unknown = LogKey::Stream(session(), 1);
    let refused = log.append(&unknown, 1, 1, &first, LogState::Open).await;
    assert!(matches!(refused, Err(StoreError::Lost)), "{refused:?}");

    let broken = LogKey::Stream(session(), 1);
    let fence = open(log, &broken).await;
    log.append(&broken, fence, 1, &[], LogState::Broken).await.expect("a mark");
    let head = log.read(&broken, 0, 1).await.expect("a slice").head.expect("a head");
    assert_eq!(head.state, LogState::Broken);
    many_post(backend).await;
}

async fn many_post(backend: &dyn Backend) {
    let clients = clients(backend).await;
    for key in [LogKey::Inbox(node()), LogKey::Session(session())] {
        let posted = all_at_once(&clients, |store, _| async move {
            let mut mine = Vec::new();
            for _ in 0..5 {
                mine.push(store.log().post(&key, Bytes::from_static(b"hello")).await.expect("a post"));
            }
            assert!(mine.windows(2).all(|pair| pair[0] < pair[1]), "{mine:?}");
            mine
        });
        let mut posted: Vec<u64> = posted.await.into_iter().flatten().collect();
        posted.sort_unstable();
        posted.dedup();
        assert_eq!(posted.len(), 40, "no number twice");
        let slice = clients[0].log().read(&key, 0, 100).await.expect("a slice");
        assert_eq!(slice.events.iter().map(|event| event.number).collect::<Vec<_>>(), posted);
        assert!(slice.head.is_none());
    }
    let stream = LogKey::Stream(session(), 1);
    let refused = clients[0].log().post(&stream, Bytes::from_static(b"x")).await;
    assert!(matches!(refused, Err(StoreError::Conflict)), "{refused:?}");
}

/// `read` gives one key's events only, in order; what was trimmed shows in `first_kept`.
///
/// # Panics
/// When the backend does not keep it.
pub async fn rule_16_a_log_is_read_in_order_and_tells_what_is_missing(backend: &dyn Backend) {
    let clients = clients(backend).await;
    let log = &**clients[0].log();
    let nothing = log.read(&LogKey::Stream(session(), 1), 0, 10).await.expect("a slice");
    assert_eq!(nothing, Slice::new(None, Vec::new(), 1));
    let key = LogKey::Stream(session(), 1);
    let fence = open(log, &key).await;
    log.append(&key, fence, 1, &events(&["a", "b", "c", "d"]), LogState::Open).await.expect("an append");
    let part = log.read(&key, 1, 2).await.expect("a slice");
    assert_eq!(texts(&part), [(2, "b".to_owned()), (3, "c".to_owned())]);
    assert_eq!(part.first_kept, 1);
    assert!(log.read(&key, 4, 10).await.expect("a slice").events.is_empty());
    // More than anybody keeps of the inbox of one node.
    let inbox = LogKey::Inbox(node());
    let posts = all_at_once(&clients, |store, _| async move {
        for _ in 0..300 {
            store.log().post(&inbox, Bytes::from_static(b"change")).await.expect("a post");
        }
    });
    posts.await;
    let slice = log.read(&inbox, 0, 10_000).await.expect("a slice");
    assert!(slice.events.windows(2).all(|pair| pair[0].number < pair[1].number));
    if slice.events.len() < 2400 {
        assert!(slice.first_kept > 1, "some are gone, which has to be told");
    }
    let first = slice.events.first().expect("the newest are kept").number;
    assert!(first >= slice.first_kept, "{first} {}", slice.first_kept);
    let middle = slice.events[slice.events.len() / 2].number;
    let rest = log.read(&inbox, middle, 10_000).await.expect("a slice");
    assert_eq!(rest.events.first().map(|event| event.number > middle), Some(true));
    assert_eq!(rest.events.last(), slice.events.last());
}

/// Keys of different sessions never meet, whatever their numbers.
///
/// # Panics
/// When the backend does not keep it.
pub async fn rule_17_logs_of_different_sessions_never_meet(backend: &dyn Backend) {
    let store = backend.connect().await;
    let log = &**store.log();
    let (ada, eve) = (session(), session());
    let keys = [
        (LogKey::Stream(ada, 0), "ada 0"),
        (LogKey::Stream(ada, 1), "ada 1"),
        (LogKey::Stream(ada, u64::MAX), "ada max"),
        (LogKey::Stream(eve, 0), "eve 0"),
        (LogKey::Stream(eve, 1), "eve 1"),
        (LogKey::Stream(eve, u64::MAX), "eve max"),
    ];
    for (key, text) in &keys {
        let fence = open(log, key).await;
        log.append(key, fence, 1, &events(&[text]), LogState::Open).await.expect("an append");
    }
    for session in [ada, eve] {
        log.post(&LogKey::Session(session), Bytes::from_static(b"posted")).await.expect("a post");
    }
    for (key, text) in &keys {
        let slice = log.read(key, 0, 10).await.expect("a slice");
        assert_eq!(texts(&slice), [(1, (*text).to_owned())]);
    }
    for _ in 0..2 {
        log.forget(&ada).await.expect("forgotten");
    }
    for (key, text) in &keys {
        let left = log.read(key, 0, 10).await.expect("a slice");
        let expected: &[&str] = if text.starts_with("ada") { &[] } else { &[text] };
        assert_eq!(texts(&left).iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(), expected);
    }
    assert!(log.read(&LogKey::Session(ada), 0, 10).await.expect("a slice").events.is_empty());
    assert_eq!(log.read(&LogKey::Session(eve), 0, 10).await.expect("a slice").events.len(), 1);
}

/// `attend` numbers increase; of many `open(over)` one succeeds.
///
/// # Panics
/// When the backend does not keep it.
pub async fn rule_18_the_last_reader_and_one_new_writer_count(backend: &dyn Backend) {
    let clients = clients(backend).await;
    let log = &**clients[0].log();
    let key = LogKey::Stream(session(), 9);
    assert!(matches!(log.attend(&key).await, Err(StoreError::Lost)), "there is no such stream");
    let fence = open(log, &key).await;
    log.append(&key, fence, 1, &events(&["one"]), LogState::Open).await.expect("an append");
    let readers =
        all_at_once(&clients, |store, _| async move { store.log().attend(&key).await.expect("a number") });
    let mut readers = readers.await;
    readers.sort_unstable();
    readers.dedup();
    assert_eq!(readers.len(), 8, "each has a number of its own");
    let read = log.read(&key, 0, 10).await.expect("a slice").head.expect("a head");
    assert_eq!(read.reader, readers[7], "the newest counts");

    for round in 0..10 {
        let head = log.read(&key, 0, 10).await.expect("a slice").head.expect("a head");
        let taken = all_at_once(&clients, |store, _| async move {
            let new = self::head();
            let mine = new.node;
            store.log().open(&key, new, Some(head.fence)).await.map(|fence| (fence, mine))
        });
        let taken = taken.await;
        assert!(taken.iter().all(|one| matches!(one, Ok(_) | Err(StoreError::Lost))), "{taken:?}");
        let taken: Vec<_> = taken.into_iter().flatten().collect();
        let [(fence, node)] = taken[..] else { panic!("one succeeds, not {taken:?}") };
        assert!(fence > head.fence);
        let now = log.read(&key, 0, 10).await.expect("a slice");
        let now_head = now.head.expect("a head");
        assert_eq!((now_head.fence, now_head.node, now_head.reader), (fence, node, readers[7]));
        assert_eq!(now.events.len(), 1 + round, "what is there stays");
        let old = log.append(&key, head.fence, 9, &events(&["late"]), LogState::Open).await;
        assert!(matches!(old, Err(StoreError::Lost)), "{old:?}");
        let next = now_head.last + 1;
        log.append(&key, fence, next, &events(&["new"]), LogState::Open).await.expect("an append");
    }
    let head = log.read(&key, 0, 10).await.expect("a slice").head.expect("a head");
    log.append(&key, head.fence, head.last + 1, &events(&["end"]), LogState::Ended).await.expect("an end");
    let after = log.open(&key, self::head(), Some(head.fence)).await;
    assert!(matches!(after, Err(StoreError::Lost)), "it has ended: {after:?}");
}
