//! What is not in the contract: secrets, lost replies, connections that are cut.

use std::time::{Duration, Instant};

use toolwire_store::{Advance, StoreError, TaskNote, Wake};
use toolwire_testkit::{store::contract::within, tcp_faults::Fault};

use super::Postgres;
use super::kit::{new_task, outcome};

fn cause(error: &StoreError) -> String {
    let source = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    format!("{error} {error:?} {source}")
}

#[tokio::test]
async fn no_error_shows_the_password() {
    let postgres = Postgres::new().await;
    let wrong = postgres.url.replacen("postgres://postgres:", "postgres://postgres:wrong", 1);
    let secret = wrong.split(':').nth(2).unwrap().split('@').next().unwrap().to_owned();
    let error = toolwire_store_postgres::open(&wrong).await.unwrap_err();
    assert!(error.is_unavailable() && !cause(&error).contains(&secret), "{}", cause(&error));
    postgres.proxy.set(Fault::Down);
    let error = toolwire_store_postgres::open(&postgres.url).await.unwrap_err();
    let shown = cause(&error);
    assert!(error.is_unavailable() && !shown.contains(secret.trim_start_matches("wrong")), "{shown}");
    postgres.proxy.set(Fault::None);
    let shown = format!("{:?}", postgres.open().await);
    assert!(!shown.contains(secret.trim_start_matches("wrong")), "{shown}");
}

#[tokio::test]
async fn a_reply_that_is_lost_does_no_harm() {
    let postgres = Postgres::new().await;
    let store = postgres.open().await;
    let task = new_task(1);
    let lease = store.tasks().create(task.clone()).await.unwrap().lease.unwrap();
    store.tasks().advance(&lease, 1, Advance::Note(TaskNote::default())).await.unwrap();
    postgres.proxy.set(Fault::NoReplies);
    let ended = within(Duration::from_secs(6), store.tasks().advance(&lease, 2, outcome())).await;
    let error = ended.expect("every call ends within 5 s").unwrap_err();
    assert!(error.is_unavailable(), "{error:?}");
    postgres.proxy.set(Fault::None);
    // Nobody knows whether it was written.
    store.tasks().advance(&lease, 2, outcome()).await.unwrap();
    assert!(store.tasks().view(&task.owner, &task.id).await.unwrap().unwrap().outcome.is_some());
}

#[tokio::test]
async fn a_connection_that_is_cut_is_made_again_and_tells_of_a_gap() {
    let postgres = Postgres::new().await;
    let store = postgres.open().await;
    let mut wakes = store.bus().listen();
    let next = async |wakes: &mut toolwire_store::Wakes| {
        tokio::time::timeout(Duration::from_secs(60), wakes.next()).await.expect("no wake").unwrap()
    };
    assert_eq!(next(&mut wakes).await, Wake::Gap);
    for number in 0..5 {
        postgres.proxy.cut();
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
    let store = Postgres::new().await.direct().await;
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
