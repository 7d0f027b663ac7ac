//! Telling clients of changes of their tasks: sessions of what was made in them, listeners of what they have named.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use toolwire_protocol::{
    Feature, Method, ProgressToken, Response, RpcError, Version,
    codec::{TaskState, relate},
    envelope::write_notification,
    wire::ProgressNotificationParams,
};
use toolwire_store::{Owner, SessionKey, TaskId};
use toolwire_transport::{BoxFuture, LocalPeer};

use super::{Tasks, recent::Recent, service::TaskService, view};
use crate::{Caller, CallerId, Extensions, Principal, Server};

/// How many tasks it is remembered of what a client was last told.
const TOLD: usize = 1024;

/// Whom tasks of a caller belong to: to whoever has proved who it is, to a process on this machine, or to nobody in
/// particular. What is not known to be local is not.
pub(crate) fn owner_of(extensions: &Extensions) -> Owner {
    match (extensions.get::<Principal>(), extensions.get::<LocalPeer>()) {
        (Some(principal), _) => Owner::Principal(*principal.key().as_bytes()),
        (None, Some(peer)) => Owner::Local(peer.uid),
        (None, None) => Owner::Anonymous,
    }
}

/// A look at a task.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    pub(crate) owner: Owner,
    pub(crate) id: TaskId,
    pub(crate) version: Version,
    /// Through whose eyes: a tool may be hidden by now, or ask for more than it did.
    pub(crate) principal: Option<Principal>,
}

/// What was seen.
#[derive(Clone, Debug)]
pub(crate) struct Glance {
    pub(crate) rev: u64,
    pub(crate) state: TaskState,
    /// How far it has come, and what its client wants to be told that with.
    done: Option<f64>,
    total: Option<f64>,
    token: Option<ProgressToken>,
}

impl TaskService {
    /// Looks at a task. `None` if there is nothing to see for whoever looks.
    pub(super) async fn glance(&self, look: Look) -> Option<Glance> {
        let Ok(view) = self.view(&look.owner, &look.id).await else {
            // A change has led to this look, and its listener must still hear of it.
            self.watches.missed(look.id);
            return None;
        };
        let view = view?;
        let server = self.server()?;
        let (catalog, viewer) = (server.catalog(), server.viewer(look.principal.as_ref()));
        let route = catalog.tools.get(&view.head.tool, &viewer)?;
        if !viewer.may_use(&route.needs.access) {
            return None;
        }
        let state = view::state(self, &view, route, look.version).ok()?;
        let ended = state.status.is_terminal();
        if ended {
            self.watches.forget(&look.id);
        }
        let token = self.tokens.of(&look.id, ended);
        let note = &view.head.note;
        Some(Glance { rev: view.head.rev, state, done: note.done, total: note.total, token })
    }
}

/// Progress tokens of tasks. Not every task is taken out at its end, since it may be
/// that no session is told of it.
#[derive(Debug)]
pub(super) struct Tokens(Mutex<Recent<ProgressToken>>);

/// Number of tokens that are kept. The progress of the tasks before them is told by their status alone.
const TOKENS: usize = 4096;

impl Default for Tokens {
    fn default() -> Self {
        Self(Mutex::new(Recent::new(TOKENS)))
    }
}

impl Tokens {
    pub(super) fn keep(&self, id: TaskId, token: ProgressToken) {
        self.lock().insert(id, token);
    }

    /// The token of a task, for the last time if it has ended.
    fn of(&self, id: &TaskId, ended: bool) -> Option<ProgressToken> {
        let mut tokens = self.lock();
        if ended { tokens.remove(id) } else { tokens.get(id).cloned() }
    }

    fn lock(&self) -> MutexGuard<'_, Recent<ProgressToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was last told of each task, so that nothing is told twice and nothing goes back.
#[derive(Debug, Default)]
pub(crate) struct Told {
    revs: BTreeMap<TaskId, (u64, Option<f64>)>,
    order: VecDeque<TaskId>,
}

impl Told {
    /// Whether this is news. If so, it counts as told.
    pub(crate) fn is_news(&mut self, id: TaskId, rev: u64) -> bool {
        match self.revs.get_mut(&id) {
            Some((told, _)) if rev <= *told => false,
            Some((told, _)) => {
                *told = rev;
                true
            }
            None => {
                if self.order.len() >= TOLD
                    && let Some(oldest) = self.order.pop_front()
                {
                    self.revs.remove(&oldest);
                }
                self.order.push_back(id);
                self.revs.insert(id, (rev, None));
                true
            }
        }
    }

    /// Whether the work has come further than was told.
    fn is_progress(&mut self, id: &TaskId, done: f64) -> bool {
        let Some((_, told)) = self.revs.get_mut(id) else { return false };
        let further = told.is_none_or(|told| done > told);
        if further {
            *told = Some(done);
        }
        further
    }
}

/// The tasks of a session, where a revision tells sessions of them.
#[derive(Debug)]
pub(crate) struct SessionTasks {
    tasks: Arc<dyn Tasks>,
    owner: Owner,
    caller: CallerId,
    version: Version,
    key: SessionKey,
    pushes: Mutex<Pushes>,
}

#[derive(Debug, Default)]
struct Pushes {
    /// Tasks that have to be looked at.
    changed: BTreeSet<TaskId>,
    /// What is to be sent.
    ready: VecDeque<Bytes>,
    told: Told,
}

impl SessionTasks {
    /// `None` if there is nothing to tell.
    pub(crate) fn new(server: &Server, caller: &Caller, version: Version, owner: Owner) -> Option<Self> {
        let tasks = server.tasks().filter(|_| version.has(Feature::CoreTasks))?;
        let key = tasks.session_key(caller)?;
        let (tasks, caller) = (Arc::clone(tasks), caller.id());
        Some(Self { tasks, owner, caller, version, key, pushes: Mutex::default() })
    }

    /// What the tasks that are made in the session are known by.
    pub(crate) fn key(&self) -> SessionKey {
        self.key
    }

    /// A task has to be looked at.
    pub(crate) fn changed(&self, id: TaskId) {
        self.lock().changed.insert(id);
    }

    /// The next message; `None` when there is nothing to say.
    ///
    /// # Cancel safety
    /// A future that is dropped before it is ready has taken nothing.
    pub(crate) async fn next(&self, principal: Option<Principal>) -> Option<Bytes> {
        loop {
            let id = {
                let mut pushes = self.lock();
                if let Some(message) = pushes.ready.pop_front() {
                    return Some(message);
                }
                *pushes.changed.first()?
            };
            let (owner, version, principal) = (self.owner, self.version, principal.clone());
            let seen = Arc::clone(&self.tasks).look_at(Look { owner, id, version, principal }).await;
            self.lock().saw(id, seen, self.version);
        }
    }

    /// Takes the answer to a question of a task, and is ready when it is stored. Gives other responses back.
    pub(crate) fn answer(&self, response: Response) -> Result<Answering, Response> {
        Arc::clone(&self.tasks).take_answer(self.owner, self.caller, response)
    }

    fn lock(&self) -> MutexGuard<'_, Pushes> {
        self.pushes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer that is being stored.
pub(crate) type Answering = BoxFuture<'static, Result<(), RpcError>>;

impl Pushes {
    fn saw(&mut self, id: TaskId, seen: Option<Glance>, version: Version) {
        self.changed.remove(&id);
        let Some(seen) = seen else { return };
        if !self.told.is_news(id, seen.rev) {
            return;
        }
        if let (Some(token), Some(done)) = (&seen.token, seen.done)
            && self.told.is_progress(&id, done)
        {
            let mut params = ProgressNotificationParams::new(token.clone(), done);
            params.total = seen.total.map(Into::into);
            params.message.clone_from(&seen.state.message);
            relate(&mut params.meta, &seen.state.id);
            self.ready.extend(write_notification(&Method::Progress.into(), &params));
        }
        let status = seen.state.notification(version, None);
        self.ready.extend(write_notification(&Method::TaskStatus.into(), &status));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_never_goes_back_and_is_not_remembered_for_ever() {
        let mut told = Told::default();
        let id = TaskId::from_bytes([1; 24]);
        assert!(told.is_news(id, 2));
        assert!(!told.is_news(id, 2) && !told.is_news(id, 1));
        assert!(told.is_news(id, 3));
        assert!(told.is_progress(&id, 1.0) && !told.is_progress(&id, 1.0) && told.is_progress(&id, 1.5));
        for number in 0..2 * TOLD {
            let mut bytes = [2; 24];
            bytes[..8].copy_from_slice(&number.to_be_bytes());
            assert!(told.is_news(TaskId::from_bytes(bytes), 1));
        }
        assert!(told.revs.len() <= TOLD && told.order.len() <= TOLD);
    }

    #[test]
    fn tokens_of_tasks_that_never_ended_make_room_for_new_ones() {
        let tokens = Tokens::default();
        let id = |number: usize| {
            let mut bytes = [0; 24];
            bytes[..8].copy_from_slice(&number.to_be_bytes());
            TaskId::from_bytes(bytes)
        };
        for number in 0..=TOKENS {
            tokens.keep(id(number), ProgressToken::from(7));
        }
        assert_eq!(tokens.of(&id(0), false), None, "it was the oldest");
        assert!(tokens.of(&id(1), false).is_some() && tokens.of(&id(TOKENS), false).is_some());
        assert!(tokens.of(&id(1), true).is_some() && tokens.of(&id(1), false).is_none());
    }

    #[test]
    fn who_is_not_known_to_be_local_is_a_stranger() {
        let mut extensions = Extensions::default();
        assert_eq!(owner_of(&extensions), Owner::Anonymous);
        extensions.insert(LocalPeer::new());
        assert_eq!(owner_of(&extensions), Owner::Local(None));
        extensions.insert(LocalPeer::with_uid(1000));
        assert_eq!(owner_of(&extensions), Owner::Local(Some(1000)));
        let ada = Principal::new("ada");
        extensions.insert(ada.clone());
        assert_eq!(owner_of(&extensions), Owner::Principal(*ada.key().as_bytes()));
    }
}
