//! The rule about what is kept, and for how long.

use std::time::Duration;

use toolwire_store::{Advance, Finish, NewTask, Outcome, Owner, Store, TaskId, TaskNote};

use super::{
    Backend,
    kit::{Case, LONG, SHORT, answer, claim, create, done, json, ms, now, parked, record, write},
};

/// How long a task that waits is kept here.
const KEEP: Duration = SHORT;
/// How long one that works is kept here.
const TTL: Duration = Duration::from_millis(1600);

/// Nothing is gone before the expiry it showed, nothing ready, leased or timed before `ttl`; 60 s after it nothing of it
/// can be seen or claimed, and no part goes before another.
///
/// # Panics
/// When the backend does not keep it.
pub async fn rule_13_nothing_is_gone_before_its_expiry_and_nothing_stays(backend: &dyn Backend) {
    let store = backend.connect().await;
    let case = Case::new();
    let began = now(&store).await;
    let [ready, leased, timed, waits, held, ended, cancelled] = all(&case, &store).await;
    let works = [ready, leased, timed];
    let rests = [waits, held, ended, cancelled];
    for id in rests {
        let shown = case.view(&store, &id).await.head.expires_ms;
        assert!(shown >= began + ms(KEEP) && shown < began + ms(TTL), "{}", shown - began);
    }
    let mut shown: Vec<u64> = Vec::new();
    while now(&store).await < began + ms(KEEP) {
        shown = look(&case, &store, &works, &shown).await;
        look(&case, &store, &rests, &[]).await;
        backend.pass(KEEP / 4).await;
    }
    // What rests is gone soon after its time; what works is not.
    backend.pass(KEEP / 2).await;
    sweep(&store).await;
    for id in rests {
        is_gone(&case, &store, &id).await;
    }
    if now(&store).await < began + ms(TTL) {
        look(&case, &store, &works, &shown).await;
    }
    grows(backend, &store).await;
    while now(&store).await < began + ms(TTL) + 50 {
        backend.pass(KEEP / 2).await;
    }
    sweep(&store).await;
    for id in [ready, leased] {
        is_gone(&case, &store, &id).await;
    }
    // A timer is kept for some time after it was due.
    let late = case.view(&store, &timed).await.head.expires_ms;
    assert!(late >= began + ms(LONG), "what was shown holds");
    assert!(claim(&store, &case.claim(100, LONG)).await.is_empty(), "what has expired cannot be claimed");
}

/// One task in each state, of those that are kept briefly.
async fn all(case: &Case, store: &Store) -> [TaskId; 7] {
    let brief = |mut task: NewTask| {
        (task.keep, task.ttl) = (KEEP, TTL);
        task
    };
    let begin = async || create(store, brief(case.leased(LONG))).await.1.expect("a lease");
    let (ready, _) = create(store, brief(case.task())).await;
    let [leased, timed, waits, held, ended, cancelled] =
        [begin().await, begin().await, begin().await, begin().await, begin().await, begin().await];
    write(store, &leased, 1, record("a")).await;
    let mut park = parked(&[]);
    park.wake = Some(LONG);
    write(store, &timed, 1, Advance::Park(park)).await;
    write(store, &waits, 1, Advance::Park(parked(&["k"]))).await;
    let mut park = parked(&["k"]);
    park.hold = true;
    write(store, &held, 1, Advance::Park(park)).await;
    write(store, &ended, 1, done()).await;
    store.tasks().cancel(&case.owner, &cancelled.id, TaskNote::default()).await.expect("a cancel");
    [ready.head.id, leased.id, timed.id, waits.id, held.id, ended.id, cancelled.id]
}

/// All are there, and none shows less than before.
async fn look(case: &Case, store: &Store, ids: &[TaskId], before: &[u64]) -> Vec<u64> {
    let mut shown = Vec::new();
    sweep(store).await;
    for (number, id) in ids.iter().enumerate() {
        let view = store.tasks().view(&case.owner, id).await.expect("a view");
        let now = now(store).await;
        match view {
            Some(view) => shown.push(view.head.expires_ms),
            // Where time passes by itself it may be later than it was before the look.
            None => assert!(before.get(number).is_some_and(|shown| *shown <= now) || before.is_empty()),
        }
    }
    assert!(before.iter().zip(&shown).all(|(before, shown)| before <= shown), "{before:?} {shown:?}");
    shown
}

/// An end or an answer gives it more time; nothing gives it less.
async fn grows(backend: &dyn Backend, store: &Store) {
    let case = Case::new();
    let mut task = case.leased(LONG);
    (task.keep, task.ttl) = (KEEP, TTL);
    let lease = create(store, task).await.1.expect("a lease");
    write(store, &lease, 1, Advance::Park(parked(&["a", "b"]))).await;
    let shown = async || case.view(store, &lease.id).await.head.expires_ms;
    let first = shown().await;
    backend.pass(Duration::from_millis(10)).await;
    store.tasks().answer(&case.owner, &lease.id, vec![answer("a")]).await.expect("an answer");
    let second = shown().await;
    assert!(second > first);
    store.tasks().answer(&case.owner, &lease.id, vec![answer("b")]).await.expect("an answer");
    assert!(shown().await >= second);
    let run = claim(store, &case.claim(1, LONG)).await.pop().expect("it is ready");
    let mut finish = Finish::new(Outcome::Result(json("{}")));
    finish.keep = LONG;
    let at = now(store).await;
    write(store, &run.lease, 1, Advance::Finish(finish)).await;
    assert!(shown().await >= at + ms(LONG));
}

async fn sweep(store: &Store) {
    while store.tasks().sweep(100).await.expect("a sweep") > 0 {}
}

async fn is_gone(case: &Case, store: &Store, id: &TaskId) {
    let tasks = store.tasks();
    let owner: &Owner = &case.owner;
    assert_eq!(tasks.view(owner, id).await.expect("a view"), None);
    assert_eq!(tasks.revs(&[*id]).await.expect("revisions"), [None]);
    assert!(tasks.list(owner, None, 1000).await.expect("a list").iter().all(|head| head.id != *id));
    assert_eq!(tasks.answer(owner, id, vec![answer("k")]).await.expect("an answer"), None);
    assert!(tasks.cancel(owner, id, TaskNote::default()).await.expect("a cancel").is_none());
}
