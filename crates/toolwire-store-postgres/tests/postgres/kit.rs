//! Shared parts of the tests.

use std::time::{Duration, Instant};

use toolwire_protocol::{RawJson, Version};
use toolwire_store::{
    Advance, Answer, Claim, Claimed, Finish, Lease, NewLease, NewTask, NodeId, OpenQuestion, Outcome, Owner,
    Park, Quota, Store, TaskId, TaskRequest, Token,
};

/// Longer than any test.
pub(crate) const LEASE: Duration = Duration::from_secs(600);

/// The time after which a test that waits for something has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Interval of looking at something that is waited for.
const LOOK: Duration = Duration::from_millis(20);

pub(crate) const OWNER: Owner = Owner::Local(None);

pub(crate) fn id(number: u64) -> TaskId {
    let mut id = [0; 24];
    id[..8].copy_from_slice(&number.to_be_bytes());
    TaskId::from_bytes(id)
}

pub(crate) fn token() -> Token {
    Token::from_bytes([7; 16])
}

/// A task that is worked on.
pub(crate) fn new_task(number: u64) -> NewTask {
    let mut task = ready_task(number);
    task.lease = Some(NewLease { node: NodeId::from_bytes([1; 8]), token: token(), lease: LEASE });
    task
}

/// A task that can be claimed.
pub(crate) fn ready_task(number: u64) -> NewTask {
    let request = TaskRequest::new("report", Version::LATEST, json("{}"));
    let mut task = NewTask::new(id(number), OWNER, Quota::from_bytes([1; 32]), request);
    task.limit = 1_000_000;
    task
}

pub(crate) fn json(text: &str) -> RawJson {
    RawJson::parse(text).unwrap()
}

pub(crate) fn outcome() -> Advance {
    Advance::Finish(Finish::new(Outcome::Result(json("{\"content\":[]}"))))
}

pub(crate) fn record(text: &str) -> Advance {
    Advance::Record(vec![json(text)])
}

pub(crate) fn park(keys: &[&str]) -> Park {
    let mut park = Park::default();
    let question = |key: &&str| OpenQuestion { key: (*key).to_owned(), question: json("{}") };
    park.open = keys.iter().map(question).collect();
    park
}

pub(crate) fn answer(key: &str) -> Answer {
    Answer { key: key.to_owned(), entry: json(&serde_json::to_string(key).unwrap()) }
}

pub(crate) fn claim(max: usize) -> Claim {
    Claim::new(NodeId::from_bytes([2; 8]), Token::from_bytes([8; 16]), vec![("report".into(), 1)], max, LEASE)
}

/// Makes a task that is worked on.
pub(crate) async fn begin(store: &Store, number: u64) -> Lease {
    store.tasks().create(new_task(number)).await.unwrap().lease.unwrap()
}

pub(crate) async fn write(store: &Store, lease: &Lease, n: u64, step: Advance) {
    store.tasks().advance(lease, n, step).await.unwrap();
}

pub(crate) async fn claimed(store: &Store, max: usize) -> Vec<Claimed> {
    store.tasks().claim(&claim(max)).await.unwrap()
}

/// Asks until it is so.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(LOOK).await;
    }
}
