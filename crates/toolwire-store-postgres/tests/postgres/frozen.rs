//! Locks: of clients that are silent, and of others.

use std::time::{Duration, Instant};

use tokio_postgres::Client;
use toolwire_store::TaskNote;
use toolwire_testkit::tcp_faults::Fault;

use super::Postgres;
use super::kit::{OWNER, begin, claimed, id, new_task, outcome, until, write};

/// Time limit of a call.
const CALL: Duration = Duration::from_secs(5);

/// The servers' processes that wait for a lock of this session.
async fn blocked_by(watch: &Client, pid: i32) -> Vec<i32> {
    let sql =
        "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND $1 = ANY(pg_blocking_pids(pid))";
    watch.query(sql, &[&pid]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

async fn pid(client: &Client) -> i32 {
    client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0)
}

/// A client falls silent while it has the lock of a task, like a process that is stopped. Says whether that was managed.
async fn freeze(postgres: &Postgres, holder: &Client, watch: &Client) -> bool {
    let frozen = postgres.open().await;
    holder.batch_execute("BEGIN; SELECT FROM task FOR UPDATE").await.unwrap();
    let holder_pid = pid(holder).await;
    let cancelling =
        tokio::spawn(async move { frozen.tasks().cancel(&OWNER, &id(1), TaskNote::default()).await });
    let mut waiting = Vec::new();
    until("no transaction waits for the lock", async || {
        waiting = blocked_by(watch, holder_pid).await;
        !waiting.is_empty()
    })
    .await;
    postgres.proxy.set(Fault::Blackhole);
    holder.batch_execute("COMMIT").await.unwrap();
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE pid = ANY($1) AND state = 'idle in transaction'";
    let is_idle = watch.query_one(sql, &[&waiting]).await.unwrap().get::<_, i64>(0) > 0;
    if is_idle {
        // Its caller has given up long before the server hears of that.
        assert!(cancelling.await.unwrap().is_err());
    } else {
        postgres.proxy.set(Fault::None);
        let _ = cancelling.await;
    }
    is_idle
}

#[tokio::test]
async fn a_client_that_is_silent_within_a_transaction_loses_its_tasks() {
    let postgres = Postgres::new().await;
    let other = postgres.direct().await;
    let (holder, watch) = (postgres.raw().await, postgres.raw().await);
    let mut task = new_task(1);
    task.lease =
        task.lease.map(|lease| toolwire_store::NewLease { lease: Duration::from_millis(100), ..lease });
    let mut was_managed = false;
    for _ in 0..20 {
        // The wait for the lock may have ended too early, and the task with it.
        holder.batch_execute("DELETE FROM task").await.unwrap();
        other.tasks().create(task.clone()).await.unwrap();
        was_managed = freeze(&postgres, &holder, &watch).await;
        if was_managed {
            break;
        }
    }
    assert!(was_managed, "no client could be made silent in time");
    until("the task stays with the silent client", async || !claimed(&other, 1).await.is_empty()).await;
    postgres.proxy.set(Fault::None);
}

#[tokio::test]
async fn an_operation_that_waits_for_a_lock_does_not_hold_up_others() {
    const OTHERS: u64 = 200;
    let postgres = Postgres::new().await;
    let store = postgres.direct().await;
    let (holder, watch) = (postgres.raw().await, postgres.raw().await);
    begin(&store, 0).await;
    holder.batch_execute("BEGIN; SELECT FROM task FOR UPDATE").await.unwrap();
    let holder_pid = pid(&holder).await;
    let cancel = |store: toolwire_store::Store| async move {
        store.tasks().cancel(&OWNER, &id(0), TaskNote::default()).await
    };
    let began = Instant::now();
    let waiting = tokio::spawn(cancel(store.clone()));
    until("it waits", async || !blocked_by(&watch, holder_pid).await.is_empty()).await;
    // Together with another one that waits.
    let second = tokio::spawn(cancel(store.clone()));
    let others: Vec<_> = (1..=OTHERS)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                let lease = begin(&store, number).await;
                write(&store, &lease, 1, outcome()).await;
            })
        })
        .collect();
    for other in others {
        other.await.unwrap();
    }
    holder.batch_execute("COMMIT").await.unwrap();
    for ended in [waiting.await.unwrap(), second.await.unwrap()] {
        // On a busy machine their callers may have given up.
        assert!(ended.is_ok_and(|cancelled| cancelled.is_some()) || began.elapsed() > CALL);
    }
}

#[tokio::test]
async fn an_operation_that_has_waited_for_a_lock_is_carried_out_when_it_is_free() {
    let postgres = Postgres::new().await;
    let store = postgres.direct().await;
    let (holder, watch) = (postgres.raw().await, postgres.raw().await);
    begin(&store, 0).await;
    holder.batch_execute("BEGIN; SELECT FROM task FOR UPDATE").await.unwrap();
    let holder_pid = pid(&holder).await;
    let waiting =
        tokio::spawn(async move { store.tasks().cancel(&OWNER, &id(0), TaskNote::default()).await });
    let transaction = async || {
        let sql = "SELECT xact_start::text FROM pg_stat_activity
            WHERE wait_event_type = 'Lock' AND $1 = ANY(pg_blocking_pids(pid))";
        let row = watch.query_opt(sql, &[&holder_pid]).await.unwrap();
        row.and_then(|row| row.get::<_, Option<String>>(0))
    };
    let mut first = None;
    until("it waits", async || {
        first = transaction().await;
        first.is_some()
    })
    .await;
    until("it is tried again", async || transaction().await.is_some_and(|now| Some(&now) != first.as_ref()))
        .await;
    holder.batch_execute("COMMIT").await.unwrap();
    let cancelled = waiting.await.unwrap().unwrap().unwrap();
    assert!(!cancelled.was_terminal);
}

#[tokio::test]
async fn renewing_many_leases_takes_as_long_as_renewing_one() {
    const LEASES: u64 = 300;
    let postgres = Postgres::new().await;
    let direct = postgres.direct().await;
    let mut leases = Vec::new();
    for number in 0..LEASES {
        leases.push(begin(&direct, number).await);
    }
    write(&direct, &leases[7], 1, outcome()).await;
    leases[9].fence += 1;
    let (ended, forged) = (leases[7].id, leases[9].id);
    let far = postgres.open().await;
    // Two statements for each would take 24 s.
    postgres.proxy.set(Fault::Latency(Duration::from_millis(20)));
    let mut lost = far.tasks().renew(&leases, Duration::from_secs(60)).await.unwrap().lost;
    postgres.proxy.set(Fault::None);
    lost.sort_unstable();
    assert_eq!(lost, [ended, forged]);
    let raw = postgres.raw().await;
    let row = raw.query_one("SELECT count(*) FROM task WHERE lease_ms = 60000", &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), i64::try_from(LEASES).unwrap() - 2);
}
