//! What is kept, for how long, and in how much room.

use std::{fs, path::Path, time::Duration};

use rusqlite::Connection;
use toolwire_protocol::RawJson;
use toolwire_store::{
    Advance, Answer, Finish, LogKey, NewHead, NodeId, OpenQuestion, Outcome, Park, SessionKey, TaskNote,
};
use toolwire_testkit::FakeClock;

use super::{Folder, LEASE, OWNER, claim, task, text, until};

fn done() -> Advance {
    Advance::Finish(Finish::new(Outcome::Result(text(5))))
}

fn asking(keys: &[&str]) -> Advance {
    let mut park = Park::default();
    park.hold = true;
    park.open = keys.iter().map(|key| OpenQuestion { key: (*key).to_owned(), question: text(1) }).collect();
    Advance::Park(park)
}

fn answer(key: &str) -> Answer {
    Answer { key: key.to_owned(), entry: RawJson::of(key).unwrap() }
}

#[tokio::test]
async fn an_answer_that_comes_while_a_held_run_parks_again_is_told_to_it() {
    let folder = Folder::new("answers");
    let store = folder.open().await;
    let tasks = store.tasks();
    let lease = tasks.create(task(true)).await.unwrap().lease.unwrap();
    tasks.advance(&lease, 1, asking(&["a", "b"])).await.unwrap();
    for key in ["a", "b"] {
        tasks.answer(&OWNER, &lease.id, vec![answer(key)]).await.unwrap();
    }
    tasks.advance(&lease, 2, asking(&["b", "c"])).await.unwrap();
    assert_eq!(tasks.answers(&lease).await.unwrap(), [answer("a").entry, answer("b").entry]);
    tasks.answer(&OWNER, &lease.id, vec![answer("c")]).await.unwrap();
    tasks.advance(&lease, 3, Advance::Release).await.unwrap();
    let run = tasks.claim(&claim(1)).await.unwrap().pop().unwrap();
    assert_eq!(run.journal.len(), 3);
    assert!(tasks.answers(&run.lease).await.unwrap().is_empty(), "it was given them by the claim");
}

#[tokio::test]
async fn the_request_and_the_journal_go_with_the_end_of_a_task() {
    const LARGE: u32 = 100_000;
    let folder = Folder::new("strip");
    let store = folder.open().await;
    let tasks = store.tasks();
    let mut leases = Vec::new();
    for _ in 0..3 {
        let mut large = task(true);
        large.request.params = text(LARGE as usize);
        let lease = tasks.create(large).await.unwrap().lease.unwrap();
        tasks.advance(&lease, 1, Advance::Record(vec![text(LARGE as usize)])).await.unwrap();
        leases.push(lease);
    }
    tasks.advance(&leases[0], 2, done()).await.unwrap();
    tasks.cancel(&OWNER, &leases[1].id, TaskNote::default()).await.unwrap();
    let other = Connection::open(folder.file()).unwrap();
    let number = |sql: &str| other.query_row(sql, [], |row| row.get::<_, u32>(0)).unwrap();
    assert!(number("SELECT max(length(request)) FROM task WHERE phase > 3") < 200);
    assert_eq!(number("SELECT count(*) FROM journal"), 1, "that of the one which goes on");
    assert_eq!(number("SELECT sum(entries + bytes) FROM task WHERE phase > 3"), 0);
    assert!(number("SELECT length(request) FROM task WHERE phase = 1") > LARGE);
    let view = tasks.view(&OWNER, &leases[0].id).await.unwrap().unwrap();
    assert_eq!(view.outcome, Some(Outcome::Result(text(5))));
    tasks.advance(&leases[0], 2, done()).await.unwrap();
    assert!(tasks.advance(&leases[0], 3, done()).await.is_err());
}

fn hours(count: u64) -> Duration {
    Duration::from_secs(count * 60 * 60)
}

#[tokio::test]
async fn a_stream_that_does_not_end_is_removed_after_a_day() {
    let folder = Folder::new("streams");
    let clock = FakeClock::new();
    let store = folder.open_at(clock.clone()).await;
    let key = |number| LogKey::Stream(SessionKey::from_bytes([1; 32]), number);
    let head = || NewHead { node: NodeId::from_bytes([1; 8]), pending: Vec::new() };
    store.log().open(&key(1), head(), None).await.unwrap();
    store.log().open(&key(2), head(), None).await.unwrap();
    drop(store);
    let other = Connection::open(folder.file()).unwrap();
    let streams = || other.query_row("SELECT count(*) FROM head", [], |row| row.get::<_, i64>(0)).unwrap();
    // As earlier versions have left them.
    other.execute("UPDATE head SET until = NULL WHERE row = 1", []).unwrap();
    let store = folder.open_at(clock.clone()).await;
    clock.advance(hours(23));
    store.log().attend(&key(1)).await.unwrap();
    let events = ["x".into()];
    store.log().append(&key(2), 1, 1, &events, toolwire_store::LogState::Open).await.unwrap();
    clock.advance(hours(2));
    until("the first stream is still there", || streams() == 1).await;
    assert!(store.log().read(&key(1), 0, 10).await.unwrap().head.is_none());
    assert_eq!(store.log().read(&key(2), 0, 10).await.unwrap().events.len(), 1, "it was written to since");
    clock.advance(hours(23));
    until("the second stream is still there", || streams() == 0).await;
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |file| file.len())
}

#[tokio::test]
async fn what_wakes_no_one_is_brought_into_the_file_as_well() {
    let folder = Folder::new("checkpoint");
    let store = folder.open().await;
    let mut large = task(true);
    large.request.params = text(200_000);
    let lease = store.tasks().create(large).await.unwrap().lease.unwrap();
    until("the task is not in the file", || length(&folder.file()) > 200_000).await;
    for n in 1..=3 {
        store.tasks().advance(&lease, n, Advance::Record(vec![text(200_000)])).await.unwrap();
    }
    until("the steps are not in the file", || length(&folder.file()) > 800_000).await;
}

#[tokio::test]
async fn a_log_of_writes_that_became_too_large_is_shortened() {
    const LARGEST: u64 = 64 * 1024 * 1024;
    let folder = Folder::new("wal");
    let store = folder.open().await;
    let log = folder.file().with_file_name("tasks.db-wal");
    let lease = store.tasks().create(task(true)).await.unwrap().lease.unwrap();
    let reader = Connection::open(folder.file()).unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM task").unwrap();
    let mut made = 0;
    while length(&log) <= LARGEST {
        let mut large = task(false);
        large.request.params = text(3_500_000);
        store.tasks().create(large).await.unwrap();
        made += 1;
        assert!(made < 40, "{} bytes", length(&log));
    }
    // While something reads, it cannot be shortened; writes go on.
    assert!(store.tasks().renew(&[lease], LEASE).await.unwrap().lost.is_empty());
    reader.execute_batch("COMMIT").unwrap();
    until("the log is as long as before", || length(&log) < LARGEST).await;
    assert_eq!(store.tasks().list(&OWNER, None, 100).await.unwrap().len(), made + 1);
}

/// The schema as the first version has made it, with a task and a stream of its.
#[tokio::test]
async fn a_file_of_the_first_version_is_used_as_it_is() {
    let folder = Folder::new("first");
    let other = Connection::open(folder.file()).unwrap();
    other.execute_batch(include_str!("../../src/migrations/0001.sql")).unwrap();
    other
        .execute_batch(
            r#"PRAGMA user_version = 1; PRAGMA journal_mode = WAL;
            INSERT INTO task VALUES (1, zeroblob(24), x'6c', zeroblob(32), 1, NULL, 'report', 1, '2025-11-25', NULL,
                '{"tool":"report","revision":1,"version":"2025-11-25","params":{},"client":null,"principal":null,
                "carried":null,"call":""}', 1000, 86400000, 9000000000000, 1000,
                0, 1000, 0, 1, 9000000000000, 0, 0, NULL, NULL, 0, 0, 0, 0, 0, 1, 3, '[]', '[]', '{}', NULL, 0, 1000, 1);
            INSERT INTO journal VALUES (1, 0, 0, '"a"');
            INSERT INTO quota VALUES (zeroblob(32), 1);
            INSERT INTO head VALUES (1, x'63', NULL, zeroblob(8), 1, 0, 0, '[]', 0, 0, 0, 0, NULL);"#,
        )
        .unwrap();
    let store = folder.open().await;
    let run = store.tasks().claim(&claim(1)).await.unwrap().pop().unwrap();
    assert_eq!((run.attempt, run.journal), (1, vec![answer("a").entry]));
    store.tasks().advance(&run.lease, 1, done()).await.unwrap();
    let quotas: i64 = other.query_row("SELECT count(*) FROM quota", [], |row| row.get(0)).unwrap();
    assert_eq!(quotas, 0);
    let endless = "SELECT count(*) FROM head WHERE until IS NULL";
    assert_eq!(other.query_row(endless, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    let version: i64 = other.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    assert_eq!(version, 1, "an older version goes on working beside it");
}
