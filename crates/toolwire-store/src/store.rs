//! The parts of a store together.

use std::sync::Arc;

use crate::{Bus, EventLog, NonceStore, SessionStore, TaskStore, memory::MemoryStore};

/// All that a server keeps. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Store {
    tasks: Arc<dyn TaskStore>,
    sessions: Arc<dyn SessionStore>,
    log: Arc<dyn EventLog>,
    bus: Arc<dyn Bus>,
    nonces: Arc<dyn NonceStore>,
    durable: bool,
    shared: bool,
    remote: bool,
}

impl Store {
    /// A store in memory, with the limits that are the default.
    pub fn memory() -> Self {
        MemoryStore::default().store()
    }

    /// A store of these parts, of which nothing is promised yet: see [`durable`](Self::durable) and
    /// [`shared`](Self::shared). The bus has to carry the wakes of all other parts.
    pub fn new(
        tasks: Arc<dyn TaskStore>,
        sessions: Arc<dyn SessionStore>,
        log: Arc<dyn EventLog>,
        bus: Arc<dyn Bus>,
        nonces: Arc<dyn NonceStore>,
    ) -> Self {
        Self { tasks, sessions, log, bus, nonces, durable: false, shared: false, remote: false }
    }

    /// What it has acknowledged is there after a restart.
    #[must_use]
    pub fn durable(mut self, durable: bool) -> Self {
        self.durable = durable;
        self
    }

    /// Other nodes use it, too.
    #[must_use]
    pub fn shared(mut self, shared: bool) -> Self {
        self.shared = shared;
        self
    }

    /// Nodes on other machines use it, too, where this machine's users and pipes mean nothing. Servers keep no tasks in it
    /// of callers of which only that is known.
    #[must_use]
    pub fn remote(mut self, remote: bool) -> Self {
        self.remote = remote;
        self
    }

    /// Keeps tasks somewhere else.
    #[must_use]
    pub fn with_tasks(mut self, tasks: Arc<dyn TaskStore>) -> Self {
        self.tasks = tasks;
        self
    }

    /// The tasks.
    pub fn tasks(&self) -> &Arc<dyn TaskStore> {
        &self.tasks
    }

    /// The sessions.
    pub fn sessions(&self) -> &Arc<dyn SessionStore> {
        &self.sessions
    }

    /// The events.
    pub fn log(&self) -> &Arc<dyn EventLog> {
        &self.log
    }

    /// The wakes.
    pub fn bus(&self) -> &Arc<dyn Bus> {
        &self.bus
    }

    /// What may be used once.
    pub fn nonces(&self) -> &Arc<dyn NonceStore> {
        &self.nonces
    }

    /// Whether what it has acknowledged is there after a restart.
    pub fn is_durable(&self) -> bool {
        self.durable
    }

    /// Whether other nodes use it, too.
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// Returns whether nodes on other machines use the store, too.
    pub fn is_remote(&self) -> bool {
        self.remote
    }
}
