//! Rules about single tasks and whom they belong to.

use std::time::Duration;

use toolwire_protocol::wire::TaskStatus;
use toolwire_store::{Advance, Owner, Store, StoreError, TaskId, TaskNote};

use super::{
    Backend,
    kit::{
        Case, LATE, LONG, SHORT, TooLate, all_at_once, answer, clients, create, done, in_time, is_lost, ms,
        now, parked, random, record, sweep, write,
    },
};

/// What `create` returned is seen by every later `view` on every node; the same `create` again is no second task and
/// renews the lease of the first.
///
/// # Panics
/// When the backend does not keep it.
pub async fn rule_01_what_was_created_is_seen_everywhere_and_only_once(backend: &dyn Backend) {
    let (here, there) = (backend.connect().await, backend.connect().await);
    in_time(async |short| is_created_once(backend, &here, &there, short).await).await;
}

async fn is_created_once(
    backend: &dyn Backend,
    here: &Store,
    there: &Store,
    short: Duration,
) -> Result<(), TooLate> {
    let case = Case::new();
    let task = case.leased(short);
    let (made, lease) = create(here, task.clone()).await;
    let lease = lease.expect("it was asked for");
    assert_eq!((made.head.id, made.head.status), (task.id, TaskStatus::Working));
    assert_eq!((made.head.tool.as_str(), made.head.poll_ms), (case.tool.as_str(), 1000));
    let seen = case.view(there, &task.id).await;
    assert_eq!((seen.head.rev, seen.head.created_ms), (made.head.rev, made.head.created_ms));

    backend.pass(short / 2).await;
    let leased_until = now(here).await + ms(short);
    let (again, renewed) = create(there, task.clone()).await;
    assert_eq!((again.head.rev, again.head.created_ms), (made.head.rev, made.head.created_ms));
    assert_eq!(renewed, Some(lease), "it is the same lease");
    let list = here.tasks().list(&case.owner, None, 10).await.expect("a list");
    assert_eq!(list.len(), 1, "it is one task");
    case.claims_nothing_before(here, leased_until).await?;

    let taken = case.claim_within(backend, there, short + LATE, LONG).await;
    let (_, not_mine) = create(here, task.clone()).await;
    assert_eq!(not_mine, None, "somebody else has it");
    assert!(is_lost(here, &lease, 1, record("late")).await);
    write(there, &taken.lease, 1, record("first")).await;

    let mut stolen = task;
    stolen.owner = Owner::Principal(random());
    assert!(matches!(here.tasks().create(stolen).await, Err(StoreError::Conflict)));
    Ok(())
}

/// Beyond `limit` open tasks of one quota `create` is `Full`, counted atomically, also among concurrent ones; end,
/// cancel and expiry count down once.
///
/// # Panics
/// When the backend does not keep it.
pub async fn rule_02_open_tasks_of_a_quota_are_limited_and_counted_once(backend: &dyn Backend) {
    let clients = clients(backend).await;
    let case = Case::new();
    let made = all_at_once(&clients, |store, _| {
        let case = case.clone();
        async move {
            let mut made = Vec::new();
            for _ in 0..4 {
                let mut task = case.leased(LONG);
                task.limit = 10;
                match store.tasks().create(task).await {
                    Ok(created) => made.extend(created.lease),
                    Err(StoreError::Full(_)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            made
        }
    });
    let leases: Vec<_> = made.await.into_iter().flatten().collect();
    assert_eq!(leases.len(), 10, "as many as the limit, of 32 that were tried at once");

    let store = &clients[0];
    let another = async |limit| {
        let mut task = case.leased(LONG);
        (task.limit, task.keep) = (limit, SHORT);
        match store.tasks().create(task).await {
            Ok(created) => created.lease,
            Err(StoreError::Full(_)) => None,
            Err(error) => panic!("{error}"),
        }
    };
    write(store, &leases[0], 1, done()).await;
    write(store, &leases[0], 1, done()).await;
    let parks = another(10).await.expect("one has ended");
    assert!(another(10).await.is_none(), "an end counts once");
    for _ in 0..2 {
        store.tasks().cancel(&case.owner, &leases[1].id, TaskNote::default()).await.expect("a cancel");
    }
    assert!(another(10).await.is_some(), "one was cancelled");
    assert!(another(10).await.is_none(), "a cancel counts once");
    write(store, &parks, 1, Advance::Park(parked(&["never answered"]))).await;
    backend.pass(SHORT + Duration::from_millis(50)).await;
    sweep(store).await;
    assert!(another(10).await.is_some(), "one has expired");
    assert!(another(10).await.is_none(), "an expiry counts once");

    let mut other = case.task();
    other.quota = toolwire_store::Quota::from_bytes(random());
    other.limit = 1;
    create(store, other).await;
}

/// No call reveals a task of another owner; unknown and foreign look the same.
///
/// # Panics
/// When the backend does not keep it.
pub async fn rule_03_nobody_sees_the_tasks_of_others(backend: &dyn Backend) {
    let store = backend.connect().await;
    let tasks = store.tasks();
    let case = Case::new();
    let owners =
        [case.owner, Owner::Principal(random()), Owner::Local(None), Owner::Local(Some(0)), Owner::Anonymous];
    for owner in owners {
        let case = Case { owner, ..case.clone() };
        let id = case.asking(&store, &["name"]).await;
        let unknown = TaskId::from_bytes(random());
        for other in owners.iter().filter(|other| **other != owner) {
            for id in [&id, &unknown] {
                assert_eq!(tasks.view(other, id).await.expect("a view"), None);
                assert_eq!(tasks.answer(other, id, vec![answer("name")]).await.expect("an answer"), None);
                assert!(tasks.cancel(other, id, TaskNote::default()).await.expect("a cancel").is_none());
            }
            let list = tasks.list(other, None, 1000).await.expect("a list");
            assert!(list.iter().all(|head| head.id != id));
        }
        let seen = case.view(&store, &id).await;
        assert_eq!((seen.head.status, seen.open.len()), (TaskStatus::InputRequired, 1), "it is untouched");
        assert!(tasks.list(&owner, None, 1000).await.expect("a list").iter().any(|head| head.id == id));
    }
}

/// Pages of `list` are complete and stable while tasks are added and deleted, also the one the cursor names.
///
/// # Panics
/// When the backend does not keep it.
pub async fn rule_14_pages_are_complete_and_stable(backend: &dyn Backend) {
    let store = backend.connect().await;
    let case = Case::new();
    let mut stay = Vec::new();
    let mut go = Vec::new();
    for number in 0..24 {
        let mut task = case.leased(LONG);
        if number % 4 == 1 {
            task.keep = Duration::from_millis(1);
        }
        let lease = create(&store, task).await.1.expect("a lease");
        if number % 4 == 1 {
            go.push(lease);
        } else {
            stay.push(lease.id);
        }
        if number % 3 == 0 {
            backend.pass(Duration::from_millis(2)).await;
        }
    }
    stay.reverse();
    let mut seen: Vec<TaskId> = Vec::new();
    let mut after = None;
    loop {
        let page = store.tasks().list(&case.owner, after.as_ref().map(|(at, id)| (*at, id)), 5).await;
        let page = page.expect("a page");
        let in_order = |pair: &[toolwire_store::TaskHead]| {
            (pair[0].created_ms, pair[0].id) > (pair[1].created_ms, pair[1].id)
        };
        assert!(page.windows(2).all(in_order), "the newest first: {page:?}");
        let Some(last) = page.last() else { break };
        after = Some((last.created_ms, last.id));
        seen.extend(page.iter().map(|head| head.id));
        assert!(seen.len() <= 100, "the pages have no end");
        // Between two pages some are deleted, sometimes the last one of the page, and others are added.
        for lease in go.drain(..go.len().min(2)) {
            write(&store, &lease, 1, done()).await;
        }
        if let Some(lease) = go.iter().position(|lease| lease.id == last.id).map(|at| go.remove(at)) {
            write(&store, &lease, 1, done()).await;
        }
        backend.pass(Duration::from_millis(50)).await;
        sweep(&store).await;
        create(&store, case.task()).await;
    }
    let kept: Vec<TaskId> = seen.iter().copied().filter(|id| stay.contains(id)).collect();
    let (mut sorted, mut expected) = (kept, stay);
    sorted.sort_unstable();
    expected.sort_unstable();
    assert_eq!(sorted, expected, "all that were there throughout, each once");
    let mut twice = seen.clone();
    twice.sort_unstable();
    twice.dedup();
    assert_eq!(twice.len(), seen.len(), "none twice");
    let gone = TaskId::from_bytes([0; 24]);
    assert!(store.tasks().list(&case.owner, Some((0, &gone)), 5).await.expect("a page").is_empty());
}
