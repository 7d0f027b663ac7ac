//! What the rules are written with.

use std::{
    hash::{BuildHasher, RandomState},
    time::{Duration, Instant},
};

use toolwire_protocol::{RawJson, Version};
use toolwire_store::{
    Advance, Answer, Claim, Claimed, Entry, Finish, Lease, NewLease, NewTask, NodeId, OpenQuestion, Outcome,
    Owner, Park, Quota, SessionKey, Store, StoreError, TaskId, TaskNote, TaskRequest, TaskView, Token,
};

use super::Backend;

/// Long enough that no rule sees its end.
pub(super) const LONG: Duration = Duration::from_secs(600);
/// The time after which a rule that waits for something has failed.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// A lease whose end is waited for.
pub(super) const SHORT: Duration = Duration::from_millis(400);
/// The most by which things may be late, by the time of the store.
pub(super) const LATE: Duration = Duration::from_secs(1);
/// How often something is looked at that is waited for.
const LOOK: Duration = Duration::from_millis(20);

pub(super) fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Bytes that nobody else has.
pub(super) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    for chunk in bytes.chunks_mut(8) {
        let number = RandomState::new().hash_one(0).to_be_bytes();
        chunk.iter_mut().zip(number).for_each(|(to, from)| *to = from);
    }
    bytes
}

pub(super) fn node() -> NodeId {
    NodeId::from_bytes(random())
}

pub(super) fn token() -> Token {
    Token::from_bytes(random())
}

pub(super) fn session() -> SessionKey {
    SessionKey::from_bytes(random())
}

/// An owner and a tool that no other rule has, so that rules may share a store.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) owner: Owner,
    pub(super) quota: Quota,
    pub(super) tool: String,
}

impl Case {
    pub(super) fn new() -> Self {
        let tool = format!("tool-{:016x}", u64::from_be_bytes(random()));
        Self { owner: Owner::Principal(random()), quota: Quota::from_bytes(random()), tool }
    }

    /// A task that is ready.
    pub(super) fn task(&self) -> NewTask {
        let request = TaskRequest::new(self.tool.clone(), Version::V2026_07_28, json(r#"{"year":2026}"#));
        let mut task = NewTask::new(TaskId::from_bytes(random()), self.owner, self.quota, request);
        task.limit = 100_000;
        task
    }

    /// A task that is being worked on.
    pub(super) fn leased(&self, lease: Duration) -> NewTask {
        let mut task = self.task();
        task.lease = Some(NewLease { node: node(), token: token(), lease });
        task
    }

    /// Makes a task that is being worked on.
    pub(super) async fn begin(&self, store: &Store, lease: Duration) -> Lease {
        create(store, self.leased(lease)).await.1.expect("a lease")
    }

    /// Makes a task that waits for answers to these keys.
    pub(super) async fn asking(&self, store: &Store, keys: &[&str]) -> TaskId {
        let lease = self.begin(store, LONG).await;
        write(store, &lease, 1, Advance::Park(parked(keys))).await;
        lease.id
    }

    pub(super) fn claim(&self, max: usize, lease: Duration) -> Claim {
        Claim::new(node(), token(), vec![(self.tool.clone(), 1)], max, lease)
    }

    pub(super) async fn view(&self, store: &Store, id: &TaskId) -> TaskView {
        store.tasks().view(&self.owner, id).await.expect("a view").expect("the task is there")
    }

    /// Takes a task that can be claimed within this time.
    pub(super) async fn claim_within(
        &self,
        backend: &dyn Backend,
        store: &Store,
        within: Duration,
        lease: Duration,
    ) -> Claimed {
        let (began, deadline) = (Instant::now(), now(store).await + ms(within));
        loop {
            // Taken before the claim: what is asked for after the deadline has to be there.
            let asked = now(store).await;
            let claimed = claim(store, &self.claim(1, lease)).await.pop();
            if let Some(claimed) = claimed {
                return claimed;
            }
            assert!(asked <= deadline, "nothing could be claimed within {within:?}");
            assert!(began.elapsed() < within + PATIENCE, "the time of the store does not pass");
            backend.pass(LOOK).await;
        }
    }

    /// Asserts that nothing can be claimed before this time.
    ///
    /// # Errors
    /// When something was claimed, but not before this time.
    pub(super) async fn claims_nothing_before(&self, store: &Store, before_ms: u64) -> Result<(), TooLate> {
        let claimed = claim(store, &self.claim(10, LONG)).await;
        if claimed.is_empty() {
            return Ok(());
        }
        assert!(now(store).await >= before_ms, "it was claimed too early: {claimed:?}");
        Err(TooLate)
    }
}

/// The error of a check that came too late to show anything, as it may where time passes by itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct TooLate;

/// Makes a check whose times are multiples of the one that it is given: [`SHORT`], and twice as much after each time
/// that it came too late.
pub(super) async fn in_time(check: impl AsyncFn(Duration) -> Result<(), TooLate>) {
    const TRIES: u32 = 5;
    for doubled in 0..TRIES {
        if check(SHORT * 2_u32.pow(doubled)).await.is_ok() {
            return;
        }
    }
    panic!("the machine was too slow {TRIES} times, with longer times each time");
}

/// Lets time pass until the store shows this time.
pub(super) async fn pass_until(backend: &dyn Backend, store: &Store, time_ms: u64) {
    let began = Instant::now();
    loop {
        let left = time_ms.saturating_sub(now(store).await);
        if left == 0 {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "the time of the store does not pass");
        backend.pass(Duration::from_millis(left)).await;
    }
}

/// Removes all that has expired.
pub(super) async fn sweep(store: &Store) {
    for _ in 0..1000 {
        if store.tasks().sweep(100).await.expect("a sweep") == 0 {
            return;
        }
    }
    panic!("there is always something left to sweep");
}

pub(super) async fn create(store: &Store, task: NewTask) -> (TaskView, Option<Lease>) {
    let created = store.tasks().create(task).await.expect("a task");
    (created.view, created.lease)
}

pub(super) async fn claim(store: &Store, claim: &Claim) -> Vec<Claimed> {
    store.tasks().claim(claim).await.expect("a claim")
}

pub(super) async fn write(store: &Store, lease: &Lease, n: u64, step: Advance) -> u64 {
    store.tasks().advance(lease, n, step).await.expect("a write")
}

pub(super) async fn is_lost(store: &Store, lease: &Lease, n: u64, step: Advance) -> bool {
    matches!(store.tasks().advance(lease, n, step).await, Err(StoreError::Lost))
}

pub(super) async fn renew(store: &Store, lease: &Lease, time: Duration) -> bool {
    store.tasks().renew(&[*lease], time).await.expect("a renewal").lost.is_empty()
}

/// The store's time.
pub(super) async fn now(store: &Store) -> u64 {
    store.tasks().renew(&[], Duration::ZERO).await.expect("the time").now_ms
}

pub(super) fn json(text: &str) -> RawJson {
    RawJson::parse(text).expect("JSON")
}

pub(super) fn step(name: &str) -> Entry {
    json(&format!(r#"{{"k":"step","name":"{name}"}}"#))
}

pub(super) fn record(name: &str) -> Advance {
    Advance::Record(vec![step(name)])
}

pub(super) fn note(text: &str) -> TaskNote {
    TaskNote::message(json(&format!("{text:?}")))
}

pub(super) fn parked(keys: &[&str]) -> Park {
    let mut park = Park::default();
    park.open = keys.iter().map(|key| question(key)).collect();
    park
}

pub(super) fn question(key: &str) -> OpenQuestion {
    OpenQuestion { key: key.to_owned(), question: json(&format!(r#"{{"message":"{key}?"}}"#)) }
}

pub(super) fn answer(key: &str) -> Answer {
    Answer { key: key.to_owned(), entry: answer_entry(key) }
}

pub(super) fn answer_entry(key: &str) -> Entry {
    json(&format!(r#"{{"k":"answer","wire":"{key}","v":1}}"#))
}

pub(super) fn done() -> Advance {
    Advance::Finish(Finish::new(Outcome::Result(json(r#"{"content":[]}"#))))
}

/// Eight clients of the store.
pub(super) async fn clients(backend: &dyn Backend) -> Vec<Store> {
    let mut clients = Vec::new();
    for _ in 0..8 {
        clients.push(backend.connect().await);
    }
    clients
}

/// Does the same on all clients at once, on threads as far as there are some, and gives what each came to.
pub(super) async fn all_at_once<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    clients: &[Store],
    act: impl Fn(Store, usize) -> F,
) -> Vec<T> {
    let start = std::sync::Arc::new(tokio::sync::Barrier::new(clients.len()));
    let spawned: Vec<_> = clients
        .iter()
        .enumerate()
        .map(|(number, store)| {
            let (start, act) = (start.clone(), act(store.clone(), number));
            tokio::spawn(async move {
                start.wait().await;
                act.await
            })
        })
        .collect();
    let mut done = Vec::new();
    for one in spawned {
        done.push(one.await.expect("no panic"));
    }
    done
}
