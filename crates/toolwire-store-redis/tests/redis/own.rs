//! What is not in the contract: secrets, lost replies, connections that are cut.

use std::time::{Duration, Instant};

use toolwire_protocol::{RawJson, Version};
use toolwire_store::{
    Advance, Finish, NewLease, NewTask, NodeId, Outcome, Owner, Quota, StoreError, TaskId, TaskNote,
    TaskRequest, Token, Wake,
};
use toolwire_testkit::{store::contract::within, tcp_faults::Fault};

use super::Redis;

const LEASE: Duration = Duration::from_secs(20);

fn new_task(number: u64) -> NewTask {
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

fn outcome() -> Advance {
    Advance::Finish(Finish::new(Outcome::Result(RawJson::parse("{\"content\":[]}").unwrap())))
}

fn cause(error: &StoreError) -> String {
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
    store.tasks().advance(&lease, 1, Advance::Note(TaskNote::default())).await.unwrap();
    redis.proxy.set(Fault::NoReplies);
    let ended = within(Duration::from_secs(6), store.tasks().advance(&lease, 2, outcome())).await;
    let error = ended.expect("every call ends within 5 s").unwrap_err();
    assert!(error.is_unavailable(), "{error:?}");
    redis.proxy.set(Fault::None);
    assert!(
        store.tasks().view(&task.owner, &task.id).await.unwrap().unwrap().outcome.is_some(),
        "it was written"
    );
    store.tasks().advance(&lease, 2, outcome()).await.unwrap();
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
