//! What is special about a file: who can read it, who else has it open, how full the disk is.

#![expect(clippy::unwrap_used, reason = "what does not hold here is a failed test")]

mod kept;
mod unreadable;
mod writers;

use std::{
    collections::HashSet,
    error::Error,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Waker},
    time::Duration,
};

use rusqlite::Connection;
use toolwire_protocol::{RawJson, Version};
use toolwire_store::{
    Advance, Claim, NewLease, NewTask, NodeId, Owner, Quota, Store, StoreError, TaskId, TaskRequest, Token,
    Topic, Wake, memory::Clock,
};
use toolwire_store_sqlite::{SqliteOptions, open_with};

const OWNER: Owner = Owner::Local(None);
const LEASE: Duration = Duration::from_secs(20);

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("tasks.db")
    }

    async fn open(&self) -> Store {
        open_with(SqliteOptions::new(self.file())).await.unwrap()
    }

    async fn open_at(&self, clock: impl Clock + 'static) -> Store {
        let mut options = SqliteOptions::new(self.file());
        options.clock = Arc::new(clock);
        open_with(options).await.unwrap()
    }
}

/// Looks again and again until something holds, for a minute at most.
async fn until(what: &str, holds: impl Fn() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), wait).await.expect(what);
}

fn claim(max: usize) -> Claim {
    let (node, token) = (NodeId::from_bytes([3; 8]), Token::from_bytes([4; 16]));
    Claim::new(node, token, vec![("report".to_owned(), 1)], max, LEASE)
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn task(leased: bool) -> NewTask {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    let mut id = [0; 24];
    id[..8].copy_from_slice(&NUMBER.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    let request = TaskRequest::new("report", Version::V2025_11_25, RawJson::parse("{}").unwrap());
    let mut task = NewTask::new(TaskId::from_bytes(id), OWNER, Quota::from_bytes([1; 32]), request);
    (task.limit, task.lease) = (100_000, None);
    let token = Token::from_bytes([2; 16]);
    task.lease = leased.then_some(NewLease { node: NodeId::from_bytes([1; 8]), token, lease: LEASE });
    task
}

fn text(bytes: usize) -> RawJson {
    RawJson::of(&"x".repeat(bytes)).unwrap()
}

#[cfg(unix)]
#[tokio::test]
async fn nobody_else_can_read_the_files() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new("mode");
    let store = folder.open().await;
    store.tasks().create(task(false)).await.unwrap();
    let files: Vec<_> = std::fs::read_dir(&folder.0).unwrap().map(Result::unwrap).collect();
    assert!(files.len() > 1, "the file and its log");
    for file in files {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", file.path());
    }
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_restart() {
    let folder = Folder::new("restart");
    let id = {
        let store = folder.open().await;
        let lease = store.tasks().create(task(true)).await.unwrap().lease.unwrap();
        store.tasks().advance(&lease, 1, Advance::Record(vec![text(10)])).await.unwrap();
        store.tasks().advance(&lease, 2, Advance::Release).await.unwrap();
        lease.id
    };
    let store = folder.open().await;
    let claimed = store.tasks().claim(&claim(10)).await.unwrap();
    assert_eq!(claimed.len(), 1);
    assert_eq!((claimed[0].lease.id, claimed[0].lease.fence), (id, 2));
    assert_eq!(claimed[0].journal, [text(10)]);
}

#[tokio::test]
async fn a_writer_elsewhere_that_does_not_end_makes_writes_unavailable_and_nothing_else() {
    let folder = Folder::new("busy");
    let store = folder.open().await;
    let id = store.tasks().create(task(false)).await.unwrap().view.head.id;
    let other = Connection::open(folder.file()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut tried = 0;
    loop {
        let refused = store.tasks().create(task(false)).await.unwrap_err();
        assert!(refused.is_unavailable(), "{refused:?}");
        // It waits for four seconds. On a busy machine the limit of five for any operation may be met before.
        if refused.source().unwrap().to_string().contains("locked") {
            break;
        }
        tried += 1;
        assert!(tried < 10, "it waits for too long: {refused:?}");
    }
    assert!(store.tasks().view(&OWNER, &id).await.unwrap().is_some(), "reading goes on");
    other.execute_batch("ROLLBACK").unwrap();
    store.tasks().create(task(false)).await.unwrap();
    assert_eq!(store.tasks().list(&OWNER, None, 10).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_full_disk_is_told_and_does_not_break_what_is_there() {
    let folder = Folder::new("full");
    let mut options = SqliteOptions::new(folder.file());
    options.max_pages = Some(200);
    let store = open_with(options).await.unwrap();
    let mut leases = Vec::new();
    let refused = loop {
        let mut large = task(true);
        large.request.params = text(50_000);
        match store.tasks().create(large).await {
            Ok(created) => leases.extend(created.lease),
            Err(error) => break error,
        }
        assert!(leases.len() < 100, "the file has more than 200 pages");
    };
    assert!(matches!(refused, StoreError::Full(_)), "{refused:?}");
    assert!(leases.len() > 5);
    for lease in &leases {
        assert!(store.tasks().view(&OWNER, &lease.id).await.unwrap().is_some());
    }
    assert!(store.tasks().renew(&leases, LEASE).await.unwrap().lost.is_empty(), "what needs no room is done");
}

#[tokio::test]
async fn an_old_schema_is_an_error_where_migrations_are_turned_off() {
    let folder = Folder::new("migrate");
    let mut options = SqliteOptions::new(folder.file());
    options.migrate = false;
    let error = open_with(options.clone()).await.unwrap_err();
    let why = error.source().unwrap().to_string();
    assert!(why.contains("toolwire store migrate"), "{why}");
    assert!(!folder.file().exists());
    let other = folder.file().with_extension("other");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE mine (id)").unwrap();
    let before = std::fs::read(&other).unwrap();
    let mut foreign = options.clone();
    foreign.path.clone_from(&other);
    open_with(foreign).await.unwrap_err();
    assert_eq!(std::fs::read(&other).unwrap(), before, "a file of another program stays as it is");
    folder.open().await;
    open_with(options).await.unwrap();
    // One that a newer version has added to is taken as it is.
    let newer = Connection::open(folder.file()).unwrap();
    newer.execute_batch("PRAGMA user_version = 7; ALTER TABLE task ADD COLUMN later TEXT").unwrap();
    let store = folder.open().await;
    store.tasks().create(task(false)).await.unwrap();
}

#[tokio::test]
async fn wakes_reach_others_that_have_the_file_open() {
    let folder = Folder::new("wakes");
    let (here, there) = (folder.open().await, folder.open().await);
    let mut wakes = there.bus().listen();
    let heard = tokio::time::timeout(Duration::from_secs(60), async {
        let mut made = HashSet::new();
        loop {
            made.insert(here.tasks().create(task(false)).await.unwrap().view.head.id);
            let next = tokio::time::timeout(Duration::from_millis(300), async {
                loop {
                    let wake = wakes.next().await.unwrap();
                    if let Wake::Topic(Topic::Task { id, session: None }) = wake
                        && made.contains(&id)
                    {
                        return id;
                    }
                }
            });
            if let Ok(id) = next.await {
                return there.tasks().view(&OWNER, &id).await.unwrap().is_some();
            }
        }
    });
    assert!(heard.await.expect("no wake came"), "what the wake is about can be seen");
}

/// A clock that shows a later time each time, and makes its store wait while it is locked.
#[derive(Clone, Debug, Default)]
struct Ticks(Arc<Mutex<u64>>);

impl Clock for Ticks {
    fn now_ms(&self) -> u64 {
        let mut now = self.0.lock().unwrap();
        *now += 1;
        *now
    }
}

#[tokio::test]
async fn what_waits_is_written_together() {
    let folder = Folder::new("together");
    let clock = Ticks::default();
    let store = folder.open_at(clock.clone()).await;
    let mut writes: Vec<_> = (0..300).map(|_| store.tasks().create(task(false))).collect();
    {
        let _held = clock.0.lock().unwrap();
        let mut begins = Context::from_waker(Waker::noop());
        assert!(writes.iter_mut().all(|write| write.as_mut().poll(&mut begins).is_pending()));
    }
    let mut moments = HashSet::new();
    for write in writes {
        moments.insert(write.await.unwrap().view.head.created_ms);
    }
    // Each transaction asks for the time once: the first has what was there when it began, the others have 256 each.
    assert!(moments.len() <= 3, "{} transactions", moments.len());
    assert_eq!(store.tasks().list(&OWNER, None, 10_000).await.unwrap().len(), 300);
}
