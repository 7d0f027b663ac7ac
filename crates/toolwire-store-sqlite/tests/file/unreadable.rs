//! Rows that this version cannot read, because a newer one has written them or because they are damaged.

use std::time::Duration;

use rusqlite::{Connection, params};
use toolwire_store::{Store, StoreError, TaskId};
use toolwire_testkit::FakeClock;

use super::{Folder, LEASE, OWNER, claim, task};

/// Longer than one that cannot be read is left to others.
const LATER: Duration = Duration::from_secs(61);

async fn create(store: &Store) -> TaskId {
    store.tasks().create(task(false)).await.unwrap().view.head.id
}

async fn claimed(store: &Store, max: usize) -> Vec<(TaskId, u32)> {
    let claimed = store.tasks().claim(&claim(max)).await.unwrap();
    claimed.iter().map(|claimed| (claimed.lease.id, claimed.attempt)).collect()
}

async fn listed(store: &Store, limit: usize) -> Vec<TaskId> {
    store.tasks().list(&OWNER, None, limit).await.unwrap().iter().map(|head| head.id).collect()
}

fn set(other: &Connection, column: &str, value: &str, id: &TaskId) {
    let sql = format!("UPDATE task SET {column} = ?1 WHERE id = ?2");
    assert_eq!(other.execute(&sql, params![value, id.as_bytes()]).unwrap(), 1);
}

fn add_entry(other: &Connection, entry: &str, id: &TaskId) {
    let sql = "INSERT INTO journal SELECT row, 0, 0, ?1 FROM task WHERE id = ?2";
    assert_eq!(other.execute(sql, params![entry, id.as_bytes()]).unwrap(), 1);
}

fn count(other: &Connection, table: &str) -> i64 {
    other.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn a_task_that_cannot_be_read_is_left_to_others_without_an_attempt() {
    let folder = Folder::new("left");
    let clock = FakeClock::new();
    let store = folder.open_at(clock.clone()).await;
    let (newer, torn, odd) = (create(&store).await, create(&store).await, create(&store).await);
    let cut = create(&store).await;
    clock.advance(Duration::from_millis(1));
    let readable = create(&store).await;
    let other = Connection::open(folder.file()).unwrap();
    set(&other, "version", "2999-01-01", &newer);
    set(&other, "request", "{", &torn);
    set(&other, "note", "[", &odd);
    add_entry(&other, "[", &cut);

    assert_eq!(
        claimed(&store, 1).await,
        [(readable, 1)],
        "they are not in the way, although they are due for longer"
    );
    assert!(claimed(&store, 10).await.is_empty());
    let tried: i64 = other
        .query_row(
            "SELECT sum(attempt + fence + phase) FROM task WHERE id <> ?1",
            [readable.as_bytes()],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(tried, 0, "nothing is written to them but when they are due");

    set(&other, "version", "2025-11-25", &newer);
    clock.advance(LATER);
    store.tasks().sweep(10).await.unwrap();
    let again = claimed(&store, 10).await;
    assert!(again.contains(&(newer, 1)), "{again:?}");
    assert!(again.iter().all(|(id, _)| *id == newer || *id == readable), "{again:?}");
}

#[tokio::test]
async fn lists_leave_out_what_cannot_be_read_and_are_as_long_as_without_it() {
    let folder = Folder::new("listed");
    let clock = FakeClock::new();
    let store = folder.open_at(clock.clone()).await;
    let mut made = Vec::new();
    for _ in 0..6 {
        made.push(create(&store).await);
        clock.advance(Duration::from_millis(1));
    }
    let other = Connection::open(folder.file()).unwrap();
    set(&other, "version", "2999-01-01", &made[5]);
    set(&other, "note", "[", &made[3]);
    assert_eq!(listed(&store, 3).await, [made[4], made[2], made[1]]);
    assert!(listed(&store, 0).await.is_empty());
    let refused = store.tasks().view(&OWNER, &made[5]).await.unwrap_err();
    assert!(matches!(refused, StoreError::Corrupt(_)), "{refused:?}");
}

#[tokio::test]
async fn a_sweep_removes_what_cannot_be_read() {
    let folder = Folder::new("swept");
    let clock = FakeClock::new();
    let store = folder.open_at(clock.clone()).await;
    let (newer, odd, unknown) = (create(&store).await, create(&store).await, create(&store).await);
    create(&store).await;
    let other = Connection::open(folder.file()).unwrap();
    set(&other, "version", "2999-01-01", &newer);
    set(&other, "open", "?", &odd);
    other.execute("UPDATE task SET phase = 77 WHERE id = ?1", [unknown.as_bytes()]).unwrap();
    add_entry(&other, "?", &newer);
    clock.advance(Duration::from_secs(400 * 24 * 60 * 60));
    assert_eq!(store.tasks().sweep(3).await.unwrap(), 3);
    assert_eq!(store.tasks().sweep(3).await.unwrap(), 1);
    for table in ["task", "journal", "quota"] {
        assert_eq!(count(&other, table), 0, "{table}");
    }
}

#[tokio::test]
async fn a_lease_of_what_cannot_be_read_is_lost_and_others_are_renewed() {
    let folder = Folder::new("renewed");
    let store = folder.open().await;
    let mut leases = Vec::new();
    for _ in 0..3 {
        leases.push(store.tasks().create(task(true)).await.unwrap().lease.unwrap());
    }
    set(&Connection::open(folder.file()).unwrap(), "open", "?", &leases[1].id);
    let renewed = store.tasks().renew(&leases, LEASE).await.unwrap();
    assert_eq!(renewed.lost, [leases[1].id]);
}
