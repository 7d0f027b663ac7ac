//! The rule about what is kept, and for how long.

use std::time::Duration;

use toolwire_store::{Advance, Finish, Lease, NewTask, Outcome, Owner, Store, StoreError, TaskId, TaskNote};

use super::{
    Backend,
    kit::{
        Case, LONG, TooLate, answer, claim, create, done, in_time, json, ms, now, parked, pass_until, record,
        sweep, write,
    },
};

/// The most milliseconds by which something may be late to be gone.
const SLACK_MS: u64 = 50;

/// Nothing is gone before the expiry it showed, nothing ready, leased or timed before `ttl`; 60 s after it nothing of it
/// can be seen or claimed, and no part goes before another.
///
/// # Panics
/// When the backend does not keep it.
pub async fn rule_13_nothing_is_gone_before_its_expiry_and_nothing_stays(backend: &dyn Backend) {
    let store = backend.connect().await;
    in_time(async |keep| is_kept(backend, &store, keep).await).await;
    grows(backend, &store).await;
}

/// Checks that each task is kept as long as it has to be: one that waits or has ended for `keep`, one that works for
/// four times as long.
async fn is_kept(backend: &dyn Backend, store: &Store, keep: Duration) -> Result<(), TooLate> {
    let case = Case::new();
    let began = now(store).await;
    let (rest_until, work_until) = (began + ms(keep), began + ms(keep * 4));
    let [ready, leased, timed, waits, held, ended, cancelled] = all(&case, store, keep, work_until).await?;
    let made = now(store).await;
    let works = [ready, leased, timed];
    let rests = [waits, held, ended, cancelled];
    let mut expiries = Vec::new();
    for id in rests {
        let view = store.tasks().view(&case.owner, &id).await.expect("a view");
        let Some(view) = view else { return Err(expired(store, rest_until).await) };
        let shown = view.head.expires_ms;
        assert!(shown >= rest_until && shown < made + ms(keep * 4), "{}", shown - began);
        expiries.push(shown);
    }
    let mut shown = vec![0; works.len()];
    while now(store).await < rest_until {
        look(&case, store, &works, &mut shown, work_until).await;
        look(&case, store, &rests, &mut expiries, rest_until).await;
        backend.pass(keep / 4).await;
    }
    // What rests is gone soon after its time; what works is not.
    let last = expiries.into_iter().max().unwrap_or_default();
    pass_until(backend, store, last + SLACK_MS).await;
    sweep(store).await;
    for id in rests {
        is_gone(&case, store, &id).await;
    }
    look(&case, store, &works, &mut shown, work_until).await;
    pass_until(backend, store, made + ms(keep * 4) + SLACK_MS).await;
    sweep(store).await;
    for id in [ready, leased] {
        is_gone(&case, store, &id).await;
    }
    // A timer is kept for some time after it was due.
    let late = case.view(store, &timed).await.head.expires_ms;
    assert!(late >= began + ms(LONG), "what was shown holds");
    assert!(claim(store, &case.claim(100, LONG)).await.is_empty(), "what has expired cannot be claimed");
    Ok(())
}

/// Makes one task in each state, of those that are kept briefly. While they work, none of them expires before `until`.
async fn all(case: &Case, store: &Store, keep: Duration, until: u64) -> Result<[TaskId; 7], TooLate> {
    let brief = |mut task: NewTask| {
        (task.keep, task.ttl) = (keep, keep * 4);
        task
    };
    let begin = async || create(store, brief(case.leased(LONG))).await.1.expect("a lease");
    let write = async |lease: &Lease, step: Advance| match store.tasks().advance(lease, 1, step).await {
        Ok(_) => Ok(()),
        Err(StoreError::Lost) => Err(expired(store, until).await),
        Err(error) => panic!("{error}"),
    };
    let (ready, _) = create(store, brief(case.task())).await;
    let [leased, timed, waits, held, ended, cancelled] =
        [begin().await, begin().await, begin().await, begin().await, begin().await, begin().await];
    write(&leased, record("a")).await?;
    let mut park = parked(&[]);
    park.wake = Some(LONG);
    write(&timed, Advance::Park(park)).await?;
    write(&waits, Advance::Park(parked(&["k"]))).await?;
    let mut park = parked(&["k"]);
    park.hold = true;
    write(&held, Advance::Park(park)).await?;
    write(&ended, done()).await?;
    let cancel = store.tasks().cancel(&case.owner, &cancelled.id, TaskNote::default()).await;
    if cancel.expect("a cancel").is_none() {
        return Err(expired(store, until).await);
    }
    Ok([ready.head.id, leased.id, timed.id, waits.id, held.id, ended.id, cancelled.id])
}

/// Asserts that it is late enough for something to be gone.
async fn expired(store: &Store, expiry: u64) -> TooLate {
    assert!(now(store).await >= expiry, "it is gone too early");
    TooLate
}

/// Asserts that all are there until what they showed last and until `until`, and that none shows less than before.
async fn look(case: &Case, store: &Store, ids: &[TaskId], shown: &mut [u64], until: u64) {
    sweep(store).await;
    for (id, shown) in ids.iter().zip(shown) {
        let view = store.tasks().view(&case.owner, id).await.expect("a view");
        if let Some(view) = view {
            assert!(view.head.expires_ms >= *shown, "{} after {shown}", view.head.expires_ms);
            *shown = view.head.expires_ms;
        } else {
            expired(store, until.max(*shown)).await;
        }
    }
}

/// An end or an answer gives it more time; nothing gives it less.
async fn grows(backend: &dyn Backend, store: &Store) {
    let case = Case::new();
    let mut task = case.leased(LONG);
    (task.keep, task.ttl) = (LONG, LONG * 4);
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
    finish.keep = LONG * 2;
    let at = now(store).await;
    write(store, &run.lease, 1, Advance::Finish(finish)).await;
    assert!(shown().await >= at + ms(LONG * 2));
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
