//! Several writers of one file.

use std::{
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use toolwire_store::memory::Clock;

use super::{Folder, OWNER, task};

/// How many have the file open, each with a thread that writes.
const WRITERS: usize = 10;
/// How many transactions each of them makes.
const WRITES: usize = 5;
/// How long each transaction takes.
const COMMIT: Duration = Duration::from_millis(100);

/// A store takes the time while it has the lock, so this makes each transaction as slow as on a busy disk.
#[derive(Debug)]
struct SlowDisk;

impl Clock for SlowDisk {
    fn now_ms(&self) -> u64 {
        thread::sleep(COMMIT);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

/// If chance decided which one writes next, some write would wait for longer than any operation may take.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_of_one_file_take_turns() {
    let folder = Folder::new("turns");
    let mut stores = Vec::new();
    for _ in 0..WRITERS {
        stores.push(folder.open_at(SlowDisk).await);
    }
    let writing: Vec<_> = stores
        .iter()
        .map(|store| {
            let store = store.clone();
            tokio::spawn(async move {
                for _ in 0..WRITES {
                    store.tasks().create(task(false)).await.unwrap();
                }
            })
        })
        .collect();
    for writer in writing {
        writer.await.unwrap();
    }
    let made = stores[0].tasks().list(&OWNER, None, 1000).await.unwrap().len();
    assert_eq!(made, WRITERS * WRITES);
}
