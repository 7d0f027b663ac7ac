//! What only the store in memory has: its limits. All else is in the contract.

use toolwire_protocol::{RawJson, Version, wire::TaskStatus};

use super::*;
use crate::{Finish, NewLease, NodeId, Outcome, Park, Quota, TaskRequest, Token};

const LEASE: Duration = Duration::from_secs(20);
const OWNER: Owner = Owner::Local(None);

fn text(bytes: usize) -> RawJson {
    RawJson::of(&"x".repeat(bytes)).unwrap()
}

fn task(number: u32) -> NewTask {
    let mut id = [0; 24];
    id[..4].copy_from_slice(&number.to_be_bytes());
    let request = TaskRequest::new("build", Version::V2026_07_28, text(1000));
    let mut task = NewTask::new(
        TaskId::from_bytes(id),
        OWNER,
        Quota::from_bytes([number.to_le_bytes()[0]; 32]),
        request,
    );
    let token = Token::from_bytes([1; 16]);
    task.lease = Some(NewLease { node: NodeId::from_bytes([1; 8]), token, lease: LEASE });
    task.keep = Duration::from_secs(60);
    task
}

/// Limits without shares.
fn limits(tasks: usize, task_bytes: usize) -> MemoryLimits {
    let (caller_tasks, caller_task_bytes) = (Some(tasks), Some(task_bytes));
    MemoryLimits { tasks, task_bytes, caller_tasks, caller_task_bytes, ..MemoryLimits::default() }
}

fn is_full<T>(result: &Result<T, StoreError>) -> bool {
    matches!(result, Err(StoreError::Full(_)))
}

#[tokio::test(start_paused = true)]
async fn ended_tasks_count_until_they_expire() {
    let store = MemoryTasks::new(limits(2, usize::MAX));
    let lease = store.create(task(1)).await.unwrap().lease.unwrap();
    store.create(task(2)).await.unwrap();
    assert!(is_full(&store.create(task(3)).await));
    store.advance(&lease, 1, Advance::Finish(Finish::new(Outcome::Result(text(3))))).await.unwrap();
    assert!(is_full(&store.create(task(3)).await), "its result is kept");
    tokio::time::advance(Duration::from_secs(60)).await;
    store.create(task(3)).await.unwrap();
    assert_eq!(store.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn bytes_are_limited_but_a_task_can_always_be_ended() {
    let store = MemoryTasks::new(limits(100, 100_000));
    let (mut leases, mut refused) = (Vec::new(), 0);
    for number in 0..100 {
        match store.create(task(number)).await {
            Ok(created) => leases.push(created.lease.unwrap()),
            Err(error) => refused += u32::from(matches!(error, StoreError::Full(_))),
        }
    }
    assert!(leases.len() > 20 && refused > 20, "{} {refused}", leases.len());
    assert!(store.bytes() <= 75_000, "the rest is for those that are there");
    // The last one takes all of it.
    let last = leases.pop().unwrap();
    let mut n = 1;
    while !is_full(&store.advance(&last, n, Advance::Record(vec![text(2000)])).await) {
        n += 1;
    }
    let before = store.bytes();
    assert!(before <= 100_000);
    assert!(is_full(&store.advance(&leases[0], 1, Advance::Record(vec![text(3000)])).await));
    let park =
        Park { open: vec![crate::OpenQuestion { key: "k".into(), question: text(3000) }], ..Park::default() };
    assert!(is_full(&store.advance(&leases[0], 1, Advance::Park(park)).await));
    let long = Finish::new(Outcome::Result(text(9000)));
    assert!(is_full(&store.advance(&leases[0], 1, Advance::Finish(long)).await));
    assert_eq!(store.bytes(), before, "nothing was written");
    for lease in &leases[1..] {
        let finish = Finish::new(Outcome::Error(text(200)));
        store.advance(lease, 1, Advance::Finish(finish)).await.unwrap();
    }
    let cancelled = store.cancel(&OWNER, &leases[0].id, TaskNote::message(text(100))).await.unwrap().unwrap();
    assert_eq!(cancelled.now.head.status, TaskStatus::Cancelled);
    let finish = Finish::new(Outcome::Error(text(200)));
    store.advance(&last, n, Advance::Finish(finish)).await.unwrap();
    assert!(store.bytes() <= before);
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(store.sweep(1000).await.unwrap(), leases.len() + 1);
    assert_eq!((store.bytes(), store.len()), (0, 0));
    assert!(store.lock().has_no_traces());
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_parked_tasks_are_small_by_their_own_count() {
    let store = MemoryTasks::new(MemoryLimits::default());
    for number in 0..10_000 {
        let mut task = task(number);
        (task.request.params, task.lease) = (text(100), None);
        task.limit = 10_000;
        store.create(task).await.unwrap();
    }
    assert!(store.bytes() <= 20 * 1024 * 1024, "{}", store.bytes());
    let mut one_more = task(10_000);
    one_more.limit = 10_000;
    assert!(is_full(&store.create(one_more).await));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_lost_its_last_writes_never_takes_the_same_lease_for_another() {
    let store = MemoryTasks::new(MemoryLimits::default());
    let mut ready = task(1);
    ready.lease = None;
    store.create(ready).await.unwrap();
    let then = store.snapshot();
    let serves = vec![("build".to_owned(), 1)];
    let claim = |byte| {
        let node = NodeId::from_bytes([byte; 8]);
        Claim::new(node, Token::from_bytes([byte; 16]), serves.clone(), 1, LEASE)
    };
    let first = store.claim(&claim(1)).await.unwrap().remove(0).lease;
    store.restore(&then);
    let second = store.claim(&claim(2)).await.unwrap().remove(0).lease;
    assert_eq!(first.fence, second.fence);
    assert!(matches!(store.advance(&first, 1, Advance::Release).await, Err(StoreError::Lost)));
    assert!(store.advance(&second, 1, Advance::Release).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_run_does_not_wait_for_room_in_the_share_of_its_caller() {
    let store = MemoryTasks::new(MemoryLimits { caller_task_bytes: Some(10_000), ..limits(100, 20_000) });
    let lease = store.create(task(1)).await.unwrap().lease.unwrap();
    let other = store.create(task(2)).await.unwrap().lease.unwrap();
    let record = |bytes| Advance::Record(vec![text(bytes)]);
    let beyond = store.advance(&lease, 1, record(9000)).await;
    assert!(matches!(beyond, Err(StoreError::TooLarge { limit: 10_000, .. })), "{beyond:?}");
    store.advance(&lease, 1, record(7000)).await.unwrap();
    store.advance(&other, 1, record(7000)).await.unwrap();
}
