//! What is not in the contract: secrets, lost replies, connections that are cut.

use std::time::{Duration, Instant};

use toolwire_protocol::{RawJson, Version};
use toolwire_store::{
    Advance, Answer, Claim, Finish, NewLease, NewTask, NodeId, OpenQuestion, Outcome, Owner, Park, Quota,
    StoreError, TaskId, TaskRequest, Token, Wake, hex,
};
use toolwire_testkit::{store::contract::within, tcp_faults::Fault};

use super::Redis;

pub(super) const LEASE: Duration = Duration::from_secs(20);

pub(super) fn new_task(number: u64) -> NewTask {
    let mut id = [0; 24];
    id[..8].copy_from_slice(&number.to_be_bytes());
    let request = TaskRequest::new("report", Version::LATEST, RawJson::parse("{}").unwrap());
    let mut task =
        NewTask::new(TaskId::from_bytes(id), Owner::Local(None), Quota::from_bytes([1; 32]), request);
    task.limit = 1_000_000;
    let token = Token::from_bytes([7; 16]);
    task.lease = Some(NewLease { node: NodeId::from_bytes([1; 8]), token, lease: LEASE });
    task
}

pub(super) fn outcome() -> Advance {
    Advance::Finish(Finish::new(Outcome::Result(RawJson::parse("{\"content\":[]}").unwrap())))
}

pub(super) fn cause(error: &StoreError) -> String {
    let source = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    format!("{error} {error:?} {source}")
}

#[tokio::test]
async fn no_error_shows_the_password() {
    let redis = Redis::new().await;
    let wrong = redis.url.replacen("redis://:", "redis://:wrong", 1);
    let secret = wrong.split(':').nth(2).unwrap().split('@').next().unwrap().to_owned();
    let error = toolwire_store_redis::open(&wrong).await.unwrap_err();
    assert!(error.is_unavailable() && !cause(&error).contains(&secret), "{}", cause(&error));
    redis.proxy.set(Fault::Down);
    let error = toolwire_store_redis::open(&redis.url).await.unwrap_err();
    let shown = cause(&error);
    assert!(shown.contains("127.0.0.1") && !shown.contains(secret.trim_start_matches("wrong")), "{shown}");
    redis.proxy.set(Fault::None);
    let shown = format!("{:?}", redis.open().await);
    assert!(!shown.contains(secret.trim_start_matches("wrong")), "{shown}");
}

#[tokio::test]
async fn a_reply_that_is_lost_does_no_harm() {
    let redis = Redis::new().await;
    let store = redis.open().await;
    let task = new_task(1);
    let lease = store.tasks().create(task.clone()).await.unwrap().lease.unwrap();
    // So that the server knows the script: otherwise the answer that is lost would be that it does not.
    let other = store.tasks().create(new_task(2)).await.unwrap().lease.unwrap();
    store.tasks().advance(&other, 1, outcome()).await.unwrap();
    redis.proxy.set(Fault::NoReplies);
    let ended = within(Duration::from_secs(6), store.tasks().advance(&lease, 1, outcome())).await;
    let error = ended.expect("every call ends within 5 s").unwrap_err();
    assert!(error.is_unavailable(), "{error:?}");
    redis.proxy.set(Fault::None);
    assert!(
        store.tasks().view(&task.owner, &task.id).await.unwrap().unwrap().outcome.is_some(),
        "it was written"
    );
    store.tasks().advance(&lease, 1, outcome()).await.unwrap();
}

#[tokio::test]
async fn a_connection_that_is_cut_is_made_again_and_tells_of_a_gap() {
    let redis = Redis::new().await;
    let store = redis.open().await;
    let mut wakes = store.bus().listen();
    let next = async |wakes: &mut toolwire_store::Wakes| {
        tokio::time::timeout(Duration::from_secs(60), wakes.next()).await.expect("no wake").unwrap()
    };
    assert_eq!(next(&mut wakes).await, Wake::Gap);
    for number in 0..5 {
        redis.proxy.cut();
        let task = new_task(number);
        store.tasks().create(task.clone()).await.unwrap();
        while next(&mut wakes).await != Wake::Gap {}
        assert!(store.tasks().view(&task.owner, &task.id).await.unwrap().is_some());
    }
}

/// A task that is ready.
fn ready(number: u64) -> NewTask {
    let mut task = new_task(number);
    task.lease = None;
    task
}

fn claim(max: usize) -> Claim {
    let (node, token) = (NodeId::from_bytes([3; 8]), Token::from_bytes([4; 16]));
    Claim::new(node, token, vec![("report".to_owned(), 1)], max, LEASE)
}

#[tokio::test]
async fn a_task_that_cannot_be_read_is_left_to_others_without_an_attempt() {
    let redis = Redis::new().await;
    let store = redis.open().await;
    let (mut keys, prefix) = redis.keys().await;
    let key = |task: &NewTask| format!("{prefix}t:{}", hex::encode(task.id.as_bytes()));
    let (torn, without, odd, readable) = (ready(1), ready(2), ready(3), ready(4));
    for task in [&torn, &without, &odd, &readable] {
        store.tasks().create(task.clone()).await.unwrap();
    }
    let mut set = async |task: &NewTask, field: &str, value: &str| {
        let () =
            redis::cmd("HSET").arg(key(task)).arg(field).arg(value).query_async(&mut keys).await.unwrap();
    };
    set(&torn, "rq", "{").await;
    set(&odd, "s", "resting").await;
    let (mut keys, _) = redis.keys().await;
    let () = redis::cmd("HDEL").arg(key(&without)).arg("rq").query_async(&mut keys).await.unwrap();

    let claimed = store.tasks().claim(&claim(10)).await.unwrap();
    assert_eq!(claimed.iter().map(|claimed| claimed.lease.id).collect::<Vec<_>>(), [readable.id]);
    assert!(store.tasks().claim(&claim(10)).await.unwrap().is_empty(), "they are due later");
    for task in [&torn, &without, &odd] {
        let state: (String, u32) =
            redis::cmd("HMGET").arg(key(task)).arg(&["st", "at"]).query_async(&mut keys).await.unwrap();
        assert_eq!(state, ("r".to_owned(), 0));
    }
    let listed = store.tasks().list(&readable.owner, None, 3).await.unwrap();
    assert_eq!(listed.len(), 3, "all but the one of an unknown status");

    // When it can be read again and is due, it is given like any other.
    set(&torn, "rq", &serde_json::to_string(&torn.request).unwrap()).await;
    let due = format!("{prefix}due:report:1:1:");
    let () = redis::cmd("ZADD")
        .arg(due)
        .arg(0)
        .arg(hex::encode(torn.id.as_bytes()))
        .query_async(&mut keys)
        .await
        .unwrap();
    let again = store.tasks().claim(&claim(10)).await.unwrap().pop().unwrap();
    assert_eq!((again.lease.id, again.attempt), (torn.id, 1));
}

#[tokio::test]
async fn a_value_that_was_taken_can_be_read_again_however_deep_it_is() {
    let store = Redis::new().await.direct().await;
    let lease = store.tasks().create(new_task(1)).await.unwrap().lease.unwrap();
    let mut deep = serde_json::Value::Null;
    for _ in 0..130 {
        deep = serde_json::Value::Array(vec![deep]);
    }
    let deep = RawJson::of(&deep).unwrap();
    store.tasks().advance(&lease, 1, Advance::Record(vec![deep.clone()])).await.unwrap();
    store.tasks().advance(&lease, 2, Advance::Release).await.unwrap();
    let claimed = store.tasks().claim(&claim(1)).await.unwrap().pop().unwrap();
    assert_eq!(claimed.journal, [deep]);
}

#[tokio::test]
async fn an_answer_that_comes_while_a_held_run_parks_again_is_told_to_it() {
    let store = Redis::new().await.direct().await;
    let tasks = store.tasks();
    let entry = |key: &str| RawJson::of(key).unwrap();
    let asking = |keys: &[&str]| {
        let mut park = Park::default();
        park.hold = true;
        park.open =
            keys.iter().map(|key| OpenQuestion { key: (*key).to_owned(), question: entry(key) }).collect();
        Advance::Park(park)
    };
    let task = new_task(1);
    let lease = tasks.create(task.clone()).await.unwrap().lease.unwrap();
    tasks.advance(&lease, 1, asking(&["a", "b"])).await.unwrap();
    for key in ["a", "b"] {
        let answer = Answer { key: key.to_owned(), entry: entry(key) };
        tasks.answer(&task.owner, &lease.id, vec![answer]).await.unwrap();
    }
    tasks.advance(&lease, 2, asking(&["b", "c"])).await.unwrap();
    assert_eq!(tasks.answers(&lease).await.unwrap(), [entry("a"), entry("b")]);
    tasks.advance(&lease, 3, Advance::Release).await.unwrap();
    let run = tasks.claim(&claim(1)).await.unwrap().pop().unwrap();
    assert!(tasks.answers(&run.lease).await.unwrap().is_empty(), "it was given them by the claim");
}

#[tokio::test]
async fn a_list_looks_at_what_has_expired_once() {
    const EXPIRED: u64 = 1100;
    let redis = Redis::new().await;
    let store = redis.direct().await;
    let (mut keys, prefix) = redis.keys().await;
    let mut last = 0;
    for number in 1..=3 {
        last = store.tasks().create(ready(number)).await.unwrap().view.head.created_ms;
    }
    // They have to be newer, to come first.
    let created = async {
        while store.tasks().renew(&[], LEASE).await.unwrap().now_ms <= last {}
        for number in 4..4 + EXPIRED {
            let mut task = ready(number);
            (task.keep, task.ttl) = (Duration::from_millis(1), Duration::from_millis(1));
            store.tasks().create(task).await.unwrap();
        }
        let now = store.tasks().renew(&[], LEASE).await.unwrap().now_ms;
        while store.tasks().renew(&[], LEASE).await.unwrap().now_ms <= now + 1 {}
    };
    tokio::time::timeout(Duration::from_secs(60), created)
        .await
        .expect("the time of the store does not pass");
    let owner = ready(1).owner;
    let index = format!("{prefix}o:{}", hex::encode(&owner.to_bytes()));
    let mut indexed: u64 = redis::cmd("ZCARD").arg(&index).query_async(&mut keys).await.unwrap();
    assert_eq!(indexed, EXPIRED + 3);
    assert_eq!(store.tasks().list(&owner, None, 3).await.unwrap().len(), 3);
    indexed = redis::cmd("ZCARD").arg(&index).query_async(&mut keys).await.unwrap();
    assert_eq!(indexed, 3);
    let swept = store.tasks().sweep(500).await.unwrap();
    assert_eq!(swept, 500, "they are still removed");
}

/// Not a test of speed: it prints what it has measured.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_tasks_are_created_and_finished() {
    const TASKS: u64 = 2_000;
    const IN_FLIGHT: u64 = 64;
    let store = Redis::new().await.direct().await;
    let start = Instant::now();
    let workers = (0..IN_FLIGHT).map(|worker| {
        let store = store.clone();
        tokio::spawn(async move {
            for number in (worker..TASKS).step_by(usize::try_from(IN_FLIGHT).unwrap()) {
                let lease = store.tasks().create(new_task(number)).await.unwrap().lease.unwrap();
                store.tasks().advance(&lease, 1, outcome()).await.unwrap();
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.unwrap();
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{TASKS} tasks created and finished in {seconds:.2} s");
}
