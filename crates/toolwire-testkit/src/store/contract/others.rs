//! Rules about sessions, wakes and nonces.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use toolwire_protocol::Version;
use toolwire_store::{Quota, SessionRecord, Store, StoreError, TaskId, Topic, Wake};

use super::{
    Backend, Cut,
    kit::{Case, LATE, LONG, PATIENCE, SHORT, all_at_once, clients, create, json, node, random, session},
};

/// `put` with a stale `expect` is `Conflict`; a removed session stays removed for its idle time.
///
/// # Panics
/// When the backend does not keep it.
pub async fn rule_19_a_session_is_replaced_only_by_who_knows_it(backend: &dyn Backend) {
    let clients = clients(backend).await;
    let sessions = clients[0].sessions();
    let mut record = SessionRecord::new(session(), Version::V2025_11_25, json(r#"{"name":"ü"}"#));
    (record.principal, record.level, record.uris) = (Some([7; 32]), 3, vec!["file:///a".into()]);
    let key = record.key;
    assert_eq!(sessions.get(&key).await.expect("a look"), None);
    let rev = sessions.put(&record, None, LONG).await.expect("a new session");
    record.rev = rev;
    assert_eq!(clients[1].sessions().get(&key).await.expect("a look").as_ref(), Some(&record));
    for stale in [None, Some(rev + 1), Some(rev.wrapping_sub(1))] {
        let put = sessions.put(&record, stale, LONG).await;
        assert!(matches!(put, Err(StoreError::Conflict)), "{stale:?}: {put:?}");
    }
    let puts = all_at_once(&clients, |store, number| {
        let mut record = record.clone();
        record.uris.push(number.to_string());
        async move { store.sessions().put(&record, Some(rev), LONG).await }
    });
    let puts = puts.await;
    assert!(puts.iter().all(|put| matches!(put, Ok(_) | Err(StoreError::Conflict))), "{puts:?}");
    let [next] = puts.into_iter().flatten().collect::<Vec<_>>()[..] else { panic!("one succeeds") };
    assert!(next > rev);
    sessions.touch(&[(key, 9), (session(), 1)], LONG).await.expect("a touch");
    sessions.touch(&[(key, 4)], LONG).await.expect("a touch");
    let touched = sessions.get(&key).await.expect("a look").expect("it is there");
    assert_eq!((touched.rev, touched.seen, touched.uris.len()), (next, 9, 2));

    assert!(sessions.remove(&key).await.expect("a removal"));
    assert!(!sessions.remove(&key).await.expect("a removal"), "once");
    sessions.touch(&[(key, 0)], LONG).await.expect("a touch");
    assert_eq!(clients[1].sessions().get(&key).await.expect("a look"), None);
    for expect in [None, Some(next)] {
        let put = sessions.put(&record, expect, LONG).await;
        assert!(matches!(put, Err(StoreError::Conflict)), "it stays removed: {put:?}");
    }
    let idle = SessionRecord::new(session(), Version::V2025_11_25, json("{}"));
    sessions.put(&idle, None, SHORT).await.expect("a session");
    backend.pass(SHORT + Duration::from_millis(50)).await;
    assert_eq!(sessions.get(&idle.key).await.expect("a look"), None, "it was not used");
    sessions.touch(&[(idle.key, 0)], LONG).await.expect("a touch");
    assert_eq!(sessions.get(&idle.key).await.expect("a look"), None, "and stays gone");
    nodes(backend).await;
}

async fn nodes(backend: &dyn Backend) {
    let (here, there) = (backend.connect().await, backend.connect().await);
    let node = node();
    assert!(!there.sessions().alive(&node).await.expect("a look"));
    here.sessions().beat(&node, LONG).await.expect("a beat");
    assert!(there.sessions().alive(&node).await.expect("a look"));
    here.sessions().beat(&node, SHORT).await.expect("a beat");
    backend.pass(SHORT + Duration::from_millis(50)).await;
    assert!(!there.sessions().alive(&node).await.expect("a look"));
}

/// A wake comes after its write is visible; it may be lost or doubled; after a lost connection `Gap` comes before any
/// other wake.
///
/// # Panics
/// When the backend does not keep it.
pub async fn rule_20_a_wake_comes_after_its_write_is_visible(backend: &dyn Backend) {
    let (here, there) = (backend.connect().await, backend.connect().await);
    // Wakes may only be sent while somebody else is known to listen.
    for _ in 0..2 {
        here.sessions().beat(&node(), LONG).await.expect("a beat");
    }
    let mut wakes = there.bus().listen();
    let case = Case::new();
    let (mut made, mut heard, began) = (HashSet::new(), 0, Instant::now());
    while made.len() < 10 || (heard == 0 && began.elapsed() < PATIENCE) {
        let id = create(&here, case.task()).await.0.head.id;
        made.insert(id);
        while let Ok(Some(wake)) = tokio::time::timeout(LATE, wakes.next()).await {
            match wake {
                // It may come late, and be about one of those before.
                Wake::Topic(Topic::Task { id: woken, .. }) if made.contains(&woken) => {
                    assert_eq!(case.view(&there, &woken).await.head.id, woken, "it is visible");
                    heard += 1;
                    if woken == id {
                        break;
                    }
                }
                _ => {}
            }
        }
    }
    assert!(heard > 0, "one of {}, at least", made.len());
    here.bus().wake(&[Topic::Ready, Topic::Session(session())]).await.expect("a wake");
    if backend.cut_off(Cut::Closed).await {
        backend.heal().await;
        // Wakes of before the cut may still come; what happens after it is told after the gap, if at all.
        let after = create_again(&here, &case).await;
        let mut gap = false;
        while let Ok(Some(wake)) = tokio::time::timeout(PATIENCE, wakes.next()).await {
            match wake {
                Wake::Gap => {
                    gap = true;
                    break;
                }
                Wake::Topic(Topic::Task { id, .. }) => assert_ne!(id, after, "it was told before the gap"),
                Wake::Topic(_) => {}
            }
        }
        assert!(gap, "the listener is told that wakes were lost");
    }
}

/// Adds a task as soon as the store can be reached again.
async fn create_again(store: &Store, case: &Case) -> TaskId {
    let (task, began) = (case.task(), Instant::now());
    loop {
        match store.tasks().create(task.clone()).await {
            Ok(created) => return created.view.head.id,
            Err(error) => assert!(error.is_unavailable() && began.elapsed() < PATIENCE, "{error}"),
        }
        tokio::time::sleep(SHORT).await;
    }
}

/// `consume` is true once per nonce over all nodes.
///
/// # Panics
/// When the backend does not keep it.
pub async fn rule_21_a_nonce_is_taken_once(backend: &dyn Backend) {
    let clients = clients(backend).await;
    for _ in 0..20 {
        let nonce = random();
        let taken = all_at_once(&clients, |store, _| async move {
            let by = Quota::from_bytes(random());
            store.nonces().consume(&by, nonce, LONG).await.expect("an answer")
        });
        assert_eq!(taken.await.into_iter().filter(|taken| *taken).count(), 1);
    }
    let (by, nonce) = (Quota::from_bytes(random()), random());
    assert!(clients[0].nonces().consume(&by, nonce, LONG).await.expect("an answer"));
    assert!(!clients[1].nonces().consume(&by, nonce, LONG).await.expect("an answer"));
    assert!(clients[1].nonces().consume(&by, random(), LONG).await.expect("an answer"));
}
