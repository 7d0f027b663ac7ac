//! The shares of callers in a store in memory, and the room for tasks that are there already.

#![expect(clippy::unwrap_used, reason = "a test fails by it")]

use std::time::Duration;

use toolwire_protocol::{RawJson, Version};
use toolwire_store::{
    Advance, Created, Finish, Lease, NewLease, NewTask, NodeId, OpenQuestion, Outcome, Owner, Park, Quota,
    StoreError, TaskId, TaskRequest, TaskStore, Token,
    memory::{MemoryLimits, MemoryTasks},
};

const MIB: usize = 1024 * 1024;

fn text(bytes: usize) -> RawJson {
    RawJson::of(&"x".repeat(bytes)).unwrap()
}

/// Creates tasks, each with another name.
struct Callers {
    store: MemoryTasks,
    created: u64,
}

impl Callers {
    fn new(limits: MemoryLimits) -> Self {
        Self { store: MemoryTasks::new(limits), created: 0 }
    }

    /// A task of this caller whose request has so many bytes.
    async fn create(&mut self, caller: u8, bytes: usize) -> Result<Created, StoreError> {
        self.created += 1;
        let mut id = [0; 24];
        id[..8].copy_from_slice(&self.created.to_be_bytes());
        let request = TaskRequest::new("build", Version::V2026_07_28, text(bytes));
        let mut task =
            NewTask::new(TaskId::from_bytes(id), Owner::Anonymous, Quota::from_bytes([caller; 32]), request);
        task.limit = usize::MAX;
        task.keep = Duration::from_secs(60);
        let token = Token::from_bytes([1; 16]);
        task.lease =
            Some(NewLease { node: NodeId::from_bytes([1; 8]), token, lease: Duration::from_secs(20) });
        self.store.create(task).await
    }

    async fn start(&mut self, caller: u8) -> Lease {
        self.create(caller, 1000).await.unwrap().lease.unwrap()
    }

    /// Ends a task with a result of so many bytes.
    async fn finish(&self, lease: &Lease, bytes: usize) -> Result<u64, StoreError> {
        let finish = Finish::new(Outcome::Result(text(bytes)));
        self.store.advance(lease, 1, Advance::Finish(finish)).await
    }
}

fn full<T>(result: Result<T, StoreError>) -> &'static str {
    match result {
        Err(StoreError::Full(what)) => what,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("there is room"),
    }
}

#[tokio::test(start_paused = true)]
async fn large_results_of_one_caller_leave_room_for_others() {
    let mut callers = Callers::new(MemoryLimits::default());
    let mut kept = 0;
    for _ in 0..24 {
        let Ok(created) = callers.create(1, 1000).await else { break };
        kept += usize::from(callers.finish(&created.lease.unwrap(), 4 * MIB - 100).await.is_ok());
    }
    assert_eq!(kept, 6, "three quarters of half of 64 MiB are for new tasks");
    assert_eq!(full(callers.create(1, 5 * MIB / 2).await), "bytes of tasks of this caller in memory");
    let other = callers.start(2).await;
    callers.finish(&other, 4 * MIB - 100).await.unwrap();
    tokio::time::advance(Duration::from_secs(60)).await;
    callers.start(1).await;
}

#[tokio::test(start_paused = true)]
async fn many_small_tasks_of_one_caller_leave_room_for_others() {
    let mut callers = Callers::new(MemoryLimits::default());
    for _ in 0..5000 {
        let lease = callers.start(1).await;
        callers.finish(&lease, 10).await.unwrap();
    }
    assert_eq!(full(callers.create(1, 10).await), "tasks of this caller in memory");
    for _ in 0..2500 {
        let lease = callers.start(2).await;
        callers.finish(&lease, 10).await.unwrap();
    }
    assert_eq!(full(callers.create(2, 10).await), "tasks of this caller in memory");
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(callers.store.sweep(10_000).await.unwrap(), 7500);
    callers.start(1).await;
}

#[tokio::test(start_paused = true)]
async fn results_that_end_together_fit_as_long_as_no_other_caller_needs_the_room() {
    let mut callers = Callers::new(MemoryLimits::default());
    let mut running = Vec::new();
    for _ in 0..8 {
        running.push(callers.start(1).await);
    }
    for lease in &running[..7] {
        callers.finish(lease, 4 * MIB - 100).await.unwrap();
    }
    let beyond = callers.finish(&running[7], 4 * MIB - 100).await;
    assert!(matches!(beyond, Err(StoreError::TooLarge { limit, .. }) if limit == 32 * MIB), "{beyond:?}");
    let other = callers.start(2).await;
    callers.finish(&other, 4 * MIB - 100).await.unwrap();
    let smaller = callers.finish(&running[7], MIB).await;
    assert!(matches!(smaller, Err(StoreError::TooLarge { limit, .. }) if limit == 16 * MIB), "{smaller:?}");
}

#[tokio::test(start_paused = true)]
async fn shares_are_parts_of_the_limits_that_are_given() {
    let limits = MemoryLimits { tasks: 8, task_bytes: 128 * MIB, ..MemoryLimits::default() };
    let mut callers = Callers::new(limits);
    callers.start(2).await;
    callers.start(1).await;
    let lease = callers.start(1).await;
    assert_eq!(full(callers.create(1, 10).await), "tasks of this caller in memory");
    callers.finish(&lease, 4 * MIB - 100).await.unwrap();

    let mut callers = Callers::new(MemoryLimits { task_bytes: 256 * MIB, ..MemoryLimits::default() });
    callers.start(2).await;
    for _ in 0..8 {
        let lease = callers.start(1).await;
        callers.finish(&lease, 4 * MIB - 100).await.unwrap();
    }

    let mut callers = Callers::new(MemoryLimits { task_bytes: MIB, ..MemoryLimits::default() });
    let (lease, _other) = (callers.start(1).await, callers.start(2).await);
    let beyond = callers.finish(&lease, MIB / 2).await;
    assert!(matches!(beyond, Err(StoreError::TooLarge { limit, .. }) if limit == MIB / 4), "{beyond:?}");

    let mut callers = Callers::new(MemoryLimits { caller_tasks: Some(1), ..MemoryLimits::default() });
    callers.start(1).await;
    assert_eq!(full(callers.create(1, 10).await), "tasks of this caller in memory", "also when it is alone");
}

#[tokio::test(start_paused = true)]
async fn tasks_that_run_go_on_when_no_new_ones_are_taken() {
    let limits = MemoryLimits { task_bytes: MIB, ..MemoryLimits::default() };
    let mut callers = Callers::new(limits);
    let running = [callers.start(1).await, callers.start(2).await, callers.start(3).await];
    let mut caller = 3;
    let refused = loop {
        caller += 1;
        match callers.create(caller, 10_000).await {
            Ok(_) => {}
            Err(error) => break full::<()>(Err(error)),
        }
    };
    assert_eq!(refused, "bytes of tasks in memory");
    let store = &callers.store;
    store.advance(&running[0], 1, Advance::Record(vec![text(60_000)])).await.unwrap();
    let mut park = Park::default();
    park.open = vec![OpenQuestion { key: "k".into(), question: text(60_000) }];
    store.advance(&running[1], 1, Advance::Park(park)).await.unwrap();
    callers.finish(&running[2], 60_000).await.unwrap();
    assert!(store.bytes() <= MIB);
}
