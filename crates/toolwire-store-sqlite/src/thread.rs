//! The threads that talk to SQLite: one that writes, some that read, one that keeps the log of writes short.
//!
//! The writer takes what has gathered during its last commit into the next transaction and answers after it: however
//! many operations wait, a commit, and with it a flush of the disk, is paid once. It never waits for more.

use std::{
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

use crate::{SqliteOptions, error::failed, neighbours::Neighbours, schema};

/// How many operations go into one transaction.
const BATCH: usize = 256;
/// How many operations may wait for a thread.
const WAITING: usize = 4096;
/// How long an operation may take, waiting included.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long the lock is left to other processes after a transaction.
const YIELD: Duration = Duration::from_micros(300);
/// How many threads read.
const READERS: usize = 2;
/// How often the log of writes is brought into the file.
const CHECKPOINT: Duration = Duration::from_secs(1);
/// How large that log may become before the writer waits for it.
const LARGEST_LOG: u64 = 64 * 1024 * 1024;

/// What an operation has while it runs.
pub(crate) struct Now<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) now: u64,
    pub(crate) wakes: &'a mut Vec<Topic>,
}

trait Work: Send {
    fn run(&mut self, now: &mut Now<'_>) -> bool;
    fn answer(self: Box<Self>, committed: Result<(), StoreError>);
}

struct Call<T, F> {
    act: Option<F>,
    done: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T: Send, F: FnOnce(&mut Now<'_>) -> Result<T, StoreError> + Send> Work for Call<T, F> {
    fn run(&mut self, now: &mut Now<'_>) -> bool {
        self.done = self.act.take().map(|act| act(now));
        matches!(self.done, Some(Ok(_)))
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
        act: impl FnOnce(&mut Now<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Op<'a, T> {
        call(&self.writer, false, act)
    }

    /// The same, before all others that wait.
    pub(crate) fn write_first<'a, T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Now<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Op<'a, T> {
        call(&self.writer, true, act)
    }

    /// Reads what has been committed.
    pub(crate) fn read<'a, T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Now<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Op<'a, T> {
        let next = self.next.fetch_add(1, Ordering::Relaxed) % self.readers.len().max(1);
        call(self.readers.get(next).unwrap_or(&self.writer), false, act)
    }
}

fn call<'a, T: Send + 'static>(
    thread: &SyncSender<Job>,
    urgent: bool,
    act: impl FnOnce(&mut Now<'_>) -> Result<T, StoreError> + Send + 'static,
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
}

impl Writer {
    fn work(&mut self, jobs: &Receiver<Job>) {
        let mut looked = Instant::now();
        loop {
            match jobs.recv_timeout(self.neighbours.patience()) {
                Ok(job) => {
                    let mut batch = vec![job];
                    batch.extend(jobs.try_iter().take(BATCH - 1));
                    batch.sort_by_key(|job| !job.urgent);
                    self.carry_out(batch);
                    if self.neighbours.are_there() {
                        // Somebody else may wait for the lock, and does not get it from one who takes it again at once.
                        thread::sleep(YIELD);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.neighbours.leave(&self.connection),
            }
            if looked.elapsed() >= self.neighbours.patience() {
                looked = Instant::now();
                self.neighbours.look(&self.connection);
                self.shorten_log();
            }
        }
    }

    fn carry_out(&mut self, mut batch: Vec<Job>) {
        let mut wakes = Vec::new();
        let committed = self.transact(&mut batch, &mut wakes);
        if committed.is_err() && !self.connection.is_autocommit() {
            // If even that fails, the next transaction cannot begin, and says so.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        let is_committed = committed.is_ok();
        for job in batch {
            job.work.answer(committed.clone());
        }
        if is_committed && !wakes.is_empty() {
            self.written.store(true, Ordering::Relaxed);
            self.hub.send(&wakes);
        }
    }

    fn transact(&mut self, batch: &mut [Job], wakes: &mut Vec<Topic>) -> Result<(), StoreError> {
        self.connection.execute_batch("BEGIN IMMEDIATE").map_err(failed)?;
        // With the lock, so that a later transaction never has an earlier time.
        let now = self.clock.now_ms();
        for job in batch {
            self.run("SAVEPOINT job")?;
            let before = wakes.len();
            let done = job.work.run(&mut Now { connection: &self.connection, now, wakes });
            if self.connection.is_autocommit() {
                return Err(StoreError::unavailable("SQLite has given up the transaction"));
            }
            if !done {
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

    /// Under steady load the log never is as short as a passive checkpoint needs it, so now and then everybody waits.
    fn shorten_log(&self) {
        if std::fs::metadata(&self.log).is_ok_and(|log| log.len() > LARGEST_LOG) {
            let done = self.connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(()));
            if let Err(error) = done {
                tracing::warn!(%error, "the log of the store's file cannot be shortened");
            }
        }
    }
}

fn read(connection: &Connection, clock: &dyn Clock, jobs: &Receiver<Job>) {
    for mut job in jobs {
        // One view of the file for all that an operation reads.
        let begun = connection.execute_batch("BEGIN").map_err(failed);
        if begun.is_ok() {
            job.work.run(&mut Now { connection, now: clock.now_ms(), wakes: &mut Vec::new() });
        }
        let ended = if connection.is_autocommit() {
            Ok(())
        } else {
            connection.execute_batch("COMMIT").map_err(failed)
        };
        job.work.answer(begun.and(ended));
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
