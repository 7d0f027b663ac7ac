//! The threads that talk to SQLite: one that writes, some that read, one that keeps the log of writes short.
//!
//! The writer takes what has gathered during its last commit into the next transaction and answers after it: however
//! many operations wait, a commit, and with it a flush of the disk, is paid once. It never waits for more.

use std::{
    panic::{self, AssertUnwindSafe},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError},
    },
    thread,
    time::{Duration, Instant},
};

use rusqlite::Connection;
use tokio::sync::oneshot;
use toolwire_store::{Hub, Op, StoreError, Topic, memory::Clock};

use crate::{
    SqliteOptions,
    error::failed,
    neighbours::Neighbours,
    schema::{self, LARGEST_LOG},
    turns::Turns,
};

/// How many operations go into one transaction.
const BATCH: usize = 256;
/// How many operations may wait for a thread.
const WAITING: usize = 4096;
/// How long an operation may take, waiting included.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long the lock is left to other processes after a transaction that was not this one's turn.
const YIELD: Duration = Duration::from_micros(300);
/// How many threads read.
const READERS: usize = 2;
/// How often the log of writes is brought into the file.
const CHECKPOINT: Duration = Duration::from_secs(1);
/// How often the writer tries to shorten it at most, once it has become too large.
const SHORTEN: Duration = Duration::from_secs(1);

/// What an operation has while it runs.
pub(crate) struct At<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) now: u64,
    pub(crate) wakes: &'a mut Vec<Topic>,
}

trait Work: Send {
    /// Returns whether the caller still waits. A claim for one that has gone would lease tasks to no node.
    fn is_wanted(&self) -> bool;
    /// Gives the error that whoever called will be told.
    fn run(&mut self, now: &mut At<'_>) -> Option<StoreError>;
    fn answer(self: Box<Self>, committed: Result<(), StoreError>);
}

struct Call<T, F> {
    act: Option<F>,
    done: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T: Send, F: FnOnce(&mut At<'_>) -> Result<T, StoreError> + Send> Work for Call<T, F> {
    fn is_wanted(&self) -> bool {
        !self.reply.is_closed()
    }

    fn run(&mut self, now: &mut At<'_>) -> Option<StoreError> {
        let act = self.act.take()?;
        // What it has written is rolled back, as for any other error. Repeating it would end the same way.
        self.done = Some(guarded(|| act(now), StoreError::corrupt));
        self.done.as_ref().and_then(|done| done.as_ref().err().cloned())
    }

    fn answer(self: Box<Self>, committed: Result<(), StoreError>) {
        let done = match committed {
            Ok(()) => self.done.unwrap_or_else(|| Err(StoreError::unavailable("it was not carried out"))),
            Err(error) => Err(error),
        };
        // Whoever asked may be gone.
        let _ = self.reply.send(done);
    }
}

/// Carries out something whose panic must end neither the thread nor what else it is to do.
fn guarded<T>(
    act: impl FnOnce() -> Result<T, StoreError>,
    error: impl FnOnce(&'static str) -> StoreError,
) -> Result<T, StoreError> {
    panic::catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|_| {
        tracing::error!("an operation of the store has panicked");
        Err(error("an operation of the store has panicked"))
    })
}

struct Job {
    urgent: bool,
    work: Box<dyn Work>,
}

/// The threads of one store. They end when it is dropped.
#[derive(Debug)]
pub(crate) struct Threads {
    writer: SyncSender<Job>,
    readers: Vec<SyncSender<Job>>,
    next: AtomicUsize,
    _checkpoints: SyncSender<()>,
}

impl Threads {
    pub(crate) fn start(options: &SqliteOptions, hub: &Hub) -> Result<Self, StoreError> {
        let connection = schema::open_writer(options)?;
        let written = Arc::new(AtomicBool::new(true));
        let neighbours = Neighbours::new(&connection, options.clock.clone(), hub.clone())?;
        let (writer, jobs) = mpsc::sync_channel(WAITING);
        let mut state = Writer {
            connection,
            neighbours,
            clock: options.clock.clone(),
            hub: hub.clone(),
            written: written.clone(),
            log: log_of(options),
            shortened: None,
            turns: Turns::new(&options.path),
        };
        spawn("writer", move || state.work(&jobs))?;
        let mut readers = Vec::new();
        for _ in 0..READERS {
            let connection = schema::open(options)?;
            let clock = options.clock.clone();
            let (reader, jobs) = mpsc::sync_channel(WAITING);
            spawn("reader", move || read(&connection, &*clock, &jobs))?;
            readers.push(reader);
        }
        let connection = schema::open(options)?;
        let (checkpoints, end) = mpsc::sync_channel(1);
        spawn("checkpoints", move || checkpoint(&connection, &written, &end))?;
        Ok(Self { writer, readers, next: AtomicUsize::new(0), _checkpoints: checkpoints })
    }

    /// Carries out a write, in a transaction with others.
    pub(crate) fn write<'a, T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut At<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Op<'a, T> {
        call(&self.writer, false, act)
    }

    /// The same, before all others that wait.
    pub(crate) fn write_first<'a, T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut At<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Op<'a, T> {
        call(&self.writer, true, act)
    }

    /// Reads what has been committed.
    pub(crate) fn read<'a, T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut At<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Op<'a, T> {
        let next = self.next.fetch_add(1, Ordering::Relaxed) % self.readers.len().max(1);
        call(self.readers.get(next).unwrap_or(&self.writer), false, act)
    }
}

fn call<'a, T: Send + 'static>(
    thread: &SyncSender<Job>,
    urgent: bool,
    act: impl FnOnce(&mut At<'_>) -> Result<T, StoreError> + Send + 'static,
) -> Op<'a, T> {
    let thread = thread.clone();
    Box::pin(async move {
        let (reply, done) = oneshot::channel();
        let work = Box::new(Call { act: Some(act), done: None, reply });
        match thread.try_send(Job { urgent, work }) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                return Err(StoreError::unavailable("more operations wait for the file than it can take"));
            }
            Err(TrySendError::Disconnected(_)) => {
                return Err(StoreError::unavailable("the thread of the file has ended"));
            }
        }
        drop(thread);
        match tokio::time::timeout(TIMEOUT, done).await {
            Ok(Ok(done)) => done,
            Ok(Err(_)) => Err(StoreError::unavailable("the thread of the file has ended")),
            Err(_) => Err(StoreError::unavailable("no answer of the file within 5 s")),
        }
    })
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), StoreError> {
    let thread = thread::Builder::new().name(format!("toolwire-sqlite-{name}")).spawn(work);
    thread.map(drop).map_err(StoreError::unavailable)
}

/// The log of writes beside the file.
fn log_of(options: &SqliteOptions) -> PathBuf {
    let mut name = options.path.clone().into_os_string();
    name.push("-wal");
    name.into()
}

struct Writer {
    connection: Connection,
    neighbours: Neighbours,
    clock: Arc<dyn Clock>,
    hub: Hub,
    written: Arc<AtomicBool>,
    log: PathBuf,
    /// When the log was last tried to be shortened.
    shortened: Option<Instant>,
    turns: Turns,
}

impl Writer {
    fn work(&mut self, jobs: &Receiver<Job>) {
        let mut looked = Instant::now();
        loop {
            match jobs.recv_timeout(self.neighbours.patience()) {
                Ok(job) => {
                    let has_turn = self.neighbours.are_there() && self.turns.take();
                    let mut batch = vec![job];
                    batch.extend(jobs.try_iter().take(BATCH - 1));
                    batch.sort_by_key(|job| !job.urgent);
                    self.carry_out(batch);
                    if self.neighbours.are_there() && !has_turn {
                        // Another writer may wait for the lock, and does not get it from one that takes it again at once.
                        thread::sleep(YIELD);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.neighbours.leave(&self.connection),
            }
            if looked.elapsed() >= self.neighbours.patience() {
                looked = Instant::now();
                self.look();
            }
        }
    }

    fn look(&mut self) {
        let looked = guarded(
            || {
                self.neighbours.look(&self.connection);
                self.shorten_log();
                Ok(())
            },
            StoreError::unavailable,
        );
        if looked.is_err() {
            self.roll_back();
        }
    }

    /// Ends a transaction that was left open.
    fn roll_back(&self) {
        if !self.connection.is_autocommit() {
            // If even that fails, the next transaction cannot begin, and says so.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }

    fn carry_out(&mut self, mut batch: Vec<Job>) {
        let mut wakes = Vec::new();
        let committed = guarded(|| self.transact(&mut batch, &mut wakes), StoreError::unavailable);
        self.turns.leave();
        if committed.is_ok() {
            // Also without a wake: steps and renewals make the log longer, too.
            self.written.store(true, Ordering::Relaxed);
        } else {
            self.roll_back();
        }
        let is_committed = committed.is_ok();
        for job in batch {
            job.work.answer(committed.clone());
        }
        if is_committed && !wakes.is_empty() {
            self.hub.send(&wakes);
        }
    }

    fn transact(&mut self, batch: &mut [Job], wakes: &mut Vec<Topic>) -> Result<(), StoreError> {
        let begun = self.connection.execute_batch("BEGIN IMMEDIATE").map_err(failed);
        // The next one may try from now on, and this one has to queue again.
        self.turns.leave();
        begun?;
        // With the lock, so that a later transaction never has an earlier time.
        let now = self.clock.now_ms();
        for job in batch.iter_mut().filter(|job| job.work.is_wanted()) {
            self.run("SAVEPOINT job")?;
            let before = wakes.len();
            let error = job.work.run(&mut At { connection: &self.connection, now, wakes });
            if self.connection.is_autocommit() {
                // SQLite gives up everything when, say, the disk is full. Then all are told so.
                let unknown = || StoreError::unavailable("SQLite has given up the transaction");
                return Err(error.unwrap_or_else(unknown));
            }
            if error.is_some() {
                wakes.truncate(before);
                self.run("ROLLBACK TO job")?;
            }
            self.run("RELEASE job")?;
        }
        self.neighbours.tell(&self.connection, wakes, now)?;
        self.connection.execute_batch("COMMIT").map_err(failed)
    }

    fn run(&self, statement: &str) -> Result<(), StoreError> {
        self.connection
            .prepare_cached(statement)
            .and_then(|mut statement| statement.execute([]))
            .map_err(failed)?;
        Ok(())
    }

    /// Under steady load a passive checkpoint never finds the log unused, so now and then all writers wait. They do so
    /// briefly: while something reads for long, such as a backup, the log cannot be shortened at all.
    fn shorten_log(&mut self) {
        if self.shortened.is_some_and(|shortened| shortened.elapsed() < SHORTEN) {
            return;
        }
        if std::fs::metadata(&self.log).is_ok_and(|log| log.len() > LARGEST_LOG) {
            self.shortened = Some(Instant::now());
            let truncate = "PRAGMA wal_checkpoint(TRUNCATE)";
            let done = schema::briefly(|| self.connection.query_row(truncate, [], |_| Ok(())));
            if let Err(error) = done {
                tracing::warn!(%error, "the log of the store's file cannot be shortened");
            }
        }
    }
}

fn read(connection: &Connection, clock: &dyn Clock, jobs: &Receiver<Job>) {
    for mut job in jobs {
        if !job.work.is_wanted() {
            continue;
        }
        let mut act = || {
            // One view of the file for all that an operation reads.
            connection.execute_batch("BEGIN").map_err(failed)?;
            job.work.run(&mut At { connection, now: clock.now_ms(), wakes: &mut Vec::new() });
            Ok(())
        };
        let done = guarded(&mut act, StoreError::unavailable);
        let ended = if connection.is_autocommit() {
            Ok(())
        } else {
            connection.execute_batch("COMMIT").map_err(failed)
        };
        job.work.answer(done.and(ended));
    }
}

fn checkpoint(connection: &Connection, written: &AtomicBool, end: &Receiver<()>) {
    while end.recv_timeout(CHECKPOINT) == Err(RecvTimeoutError::Timeout) {
        if written.swap(false, Ordering::Relaxed) {
            let done = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
            if let Err(error) = done {
                tracing::warn!(%error, "the log of the store's file cannot be brought into it");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that goes with the test.
    struct File(SqliteOptions);

    impl File {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("toolwire-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            Self(SqliteOptions::new(folder.join("tasks.db")))
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            if let Some(folder) = self.0.path.parent() {
                let _ = std::fs::remove_dir_all(folder);
            }
        }
    }

    fn nodes(at: &At<'_>) -> Result<i64, StoreError> {
        at.connection.query_row("SELECT count(*) FROM node", [], |row| row.get(0)).map_err(failed)
    }

    fn add_node(at: &At<'_>) -> Result<(), StoreError> {
        let sql = "INSERT INTO node VALUES (randomblob(8), 9223372036854775807)";
        at.connection.execute(sql, []).map(drop).map_err(failed)
    }

    #[tokio::test]
    async fn a_panic_ends_its_operation_alone() {
        let file = File::new("panic");
        let threads = Threads::start(&file.0, &Hub::new()).unwrap();
        for _ in 0..READERS * 2 {
            let read = threads.read(|_| -> Result<(), StoreError> { panic!("in a read") }).await;
            assert!(matches!(read, Err(StoreError::Corrupt(_))), "{read:?}");
        }
        let (before, panicked, after) = tokio::join!(
            threads.write(|at| add_node(at)),
            threads.write(|at| {
                add_node(at)?;
                assert_eq!(nodes(at)?, 0, "in a write");
                Ok(())
            }),
            threads.write(|at| add_node(at)),
        );
        assert!(before.is_ok() && after.is_ok(), "{before:?} {after:?}");
        assert!(matches!(panicked, Err(StoreError::Corrupt(_))), "{panicked:?}");
        assert_eq!(threads.read(|at| nodes(at)).await.unwrap(), 2, "what it had written is rolled back");
    }

    #[tokio::test]
    async fn what_no_caller_waits_for_is_not_carried_out() {
        let file = File::new("gone");
        let threads = Threads::start(&file.0, &Hub::new()).unwrap();
        let (release, wait) = mpsc::channel();
        let first = threads.write(move |_| wait.recv().map_err(StoreError::unavailable));
        let mut first = std::pin::pin!(first);
        let mut poll = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(first.as_mut().poll(&mut poll).is_pending());
        let mut second = threads.write(|at| add_node(at));
        assert!(second.as_mut().poll(&mut poll).is_pending());
        drop(second);
        release.send(()).unwrap();
        first.await.unwrap();
        assert_eq!(threads.write(|at| nodes(at)).await.unwrap(), 0);
    }
}
