//! A store in the memory of this process: bounded, quick, and gone with it.
//!
//! It is what a server has that is given no other, what simulations run on, and what the contract of stores is read
//! from.

mod clock;
mod log;
mod nonces;
mod sessions;
mod tasks;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

pub use self::{
    clock::{Clock, RuntimeClock},
    log::MemoryLog,
    nonces::MemoryNonces,
    sessions::MemorySessions,
    tasks::{MemoryTasks, TasksAtOnce},
};
use crate::{Bus, Hub, Op, Store, Topic, Wakes};

/// The limits of a store in memory.
///
/// ```
/// use toolwire_store::memory::{MemoryLimits, MemoryStore};
///
/// let limits = MemoryLimits { tasks: 100, ..MemoryLimits::default() };
/// let store = MemoryStore::new(limits).store();
/// assert!(!store.is_durable());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "meant to be written as a literal with ..default()")]
pub struct MemoryLimits {
    /// How many tasks are kept, ended ones included. Default 10,000.
    pub tasks: usize,
    /// The number of bytes that all tasks have together, with what it takes to keep them. A quarter of it is for tasks
    /// that are there already: when three quarters are taken, no new ones are. Default 64 MiB.
    pub task_bytes: usize,
    /// The number of tasks that are kept of one caller, ended ones included. With `None`, the default, it is a quarter of
    /// [`tasks`](Self::tasks), or half of them while no other caller has any, so that there is always room for another.
    pub caller_tasks: Option<usize>,
    /// The number of bytes that the tasks of one caller have together, with the same quarter for those that are there
    /// already. With `None`, the default, it is a quarter of [`task_bytes`](Self::task_bytes), or half of them while no
    /// other caller has tasks.
    pub caller_task_bytes: Option<usize>,
    /// How many sessions are kept, removed ones included as long as they must not come back. Default 10,000.
    pub sessions: usize,
    /// How many bytes they have together. Default 16 MiB.
    pub session_bytes: usize,
    /// How many logs are kept. Default 65,536.
    pub logs: usize,
    /// How many events of one log are kept. Default 256, and of the changes for all nodes 1,000.
    pub log_events: usize,
    /// How many bytes of one log are kept. Default 4 MiB.
    pub log_bytes: usize,
    /// How many events of one session are kept. Default 1,024.
    pub session_log_events: usize,
    /// How many bytes of events of one session are kept. Default 8 MiB.
    pub session_log_bytes: usize,
    /// How many bytes of events are kept of all logs together. Default 256 MiB.
    pub all_log_bytes: usize,
    /// How long a stream is kept after its end, and another log after its last event. Default 5 minutes.
    pub log_time: Duration,
    /// How many nonces are remembered. Default 100,000, of some two hundred bytes each.
    pub nonces: usize,
    /// How many of them for one caller. Default a sixteenth.
    pub caller_nonces: usize,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self {
            tasks: 10_000,
            task_bytes: 64 * 1024 * 1024,
            caller_tasks: None,
            caller_task_bytes: None,
            sessions: 10_000,
            session_bytes: 16 * 1024 * 1024,
            logs: 65_536,
            log_events: 256,
            log_bytes: 4 * 1024 * 1024,
            session_log_events: 1024,
            session_log_bytes: 8 * 1024 * 1024,
            all_log_bytes: 256 * 1024 * 1024,
            log_time: Duration::from_secs(5 * 60),
            nonces: 100_000,
            caller_nonces: 100_000 / 16,
        }
    }
}

/// All parts of a store, in memory, with one clock.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    tasks: Arc<MemoryTasks>,
    sessions: Arc<MemorySessions>,
    log: Arc<MemoryLog>,
    nonces: Arc<MemoryNonces>,
    bus: MemoryBus,
}

impl MemoryStore {
    /// An empty store.
    pub fn new(limits: MemoryLimits) -> Self {
        Self::with_clock(limits, Arc::new(RuntimeClock::new()))
    }

    /// An empty store that goes by this clock.
    pub fn with_clock(limits: MemoryLimits, clock: Arc<dyn Clock>) -> Self {
        let hub = Hub::new();
        Self {
            tasks: Arc::new(MemoryTasks::with(limits.clone(), clock.clone(), hub.clone())),
            sessions: Arc::new(MemorySessions::with(limits.clone(), clock.clone(), hub.clone())),
            log: Arc::new(MemoryLog::with(limits.clone(), clock.clone(), hub.clone())),
            nonces: Arc::new(MemoryNonces::with(limits, clock)),
            bus: MemoryBus(hub),
        }
    }

    /// Its tasks.
    pub fn tasks(&self) -> &Arc<MemoryTasks> {
        &self.tasks
    }

    /// Its sessions.
    pub fn sessions(&self) -> &Arc<MemorySessions> {
        &self.sessions
    }

    /// Its events.
    pub fn log(&self) -> &Arc<MemoryLog> {
        &self.log
    }

    /// Its nonces.
    pub fn nonces(&self) -> &Arc<MemoryNonces> {
        &self.nonces
    }

    /// It as what a server takes. Servers of one process that are given the same one share it.
    pub fn store(&self) -> Store {
        Store::new(
            self.tasks.clone(),
            self.sessions.clone(),
            self.log.clone(),
            Arc::new(self.bus.clone()),
            self.nonces.clone(),
        )
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new(MemoryLimits::default())
    }
}

/// Wakes within this process.
#[derive(Clone, Debug, Default)]
pub struct MemoryBus(Hub);

impl MemoryBus {
    /// A bus that tells the listeners of this hub.
    pub fn new(hub: Hub) -> Self {
        Self(hub)
    }
}

impl Bus for MemoryBus {
    fn wake<'a>(&'a self, topics: &'a [Topic]) -> Op<'a, ()> {
        Box::pin(async move {
            self.0.send(topics);
            Ok(())
        })
    }

    fn listen(&self) -> Wakes {
        self.0.listen()
    }
}

/// No code here panics while it holds a lock with the data half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
