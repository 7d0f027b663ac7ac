//! State of one session: what a handler keeps from one request of a caller to the next.

use std::{
    any::{Any, TypeId},
    collections::{BTreeMap, HashMap},
    fmt,
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use toolwire_protocol::{ErrorCode, RpcError};

use crate::{
    CallerKey, Context, Limits,
    handler::{FromContext, HandlerSpec, Rejection},
};

/// A value of one session, made by `T::default()` with the first request that takes it. An extractor.
///
/// What lives as long as a session depends on who calls:
///
/// * A client that has shaken hands (`initialize`) has a session on every transport. The value is gone with it.
/// * The requests of a modern client stand alone. Where the transport has identified the caller, the value belongs to
///   its [`Principal`](crate::Principal), until it was not used for
///   [`principal_session_idle`](crate::Limits::principal_session_idle) or, when there are more than
///   [`principal_sessions`](crate::Limits::principal_sessions), until it is the one that was used least recently.
/// * Otherwise there is nothing a value could belong to, and the call is refused. Take `Option<Session<T>>` to go on
///   without one.
///
/// Values are in the memory of this process: replicas do not share them, and a restart forgets them. What must last
/// belongs into a store, under an id that a tool returns and takes as an argument; that works for every caller.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use toolwire_server::{Server, Session, tool};
///
/// #[derive(Default)]
/// struct Visits(AtomicU64);
///
/// async fn count(visits: Session<Visits>) -> String {
///     format!("call number {}", visits.0.0.fetch_add(1, Ordering::Relaxed) + 1)
/// }
///
/// let server = Server::builder("demo", "1.0").tool(tool("count", count)).build().unwrap();
/// ```
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "taken apart in argument position")]
pub struct Session<T>(pub Arc<T>);

impl<T> Clone for Session<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Deref for Session<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Default + Send + Sync + 'static> FromContext for Session<T> {
    async fn from_context(cx: &Context) -> Result<Self, Rejection> {
        if let Some(values) = cx.caller().session_values() {
            return Ok(Self(values.get()));
        }
        let Some(owner) = CallerKey::of_principal(&cx.0.extensions) else {
            let message = "requests stand alone here; return an id and take it as an argument";
            return Err(Rejection::absent(RpcError::new(ErrorCode::INVALID_REQUEST, message)));
        };
        let server = cx.server();
        Ok(Self(server.principal_sessions().of(owner, server.limits())?.get()))
    }

    fn describe(spec: &mut HandlerSpec) {
        spec.takes_from_request::<Self>();
    }

    fn describe_optional(_: &mut HandlerSpec) {}
}

/// The values of one session, by type: never more than the handlers of the program have types for.
#[derive(Default)]
pub(crate) struct SessionValues(Mutex<Vec<(TypeId, Arc<dyn Any + Send + Sync>)>>);

impl SessionValues {
    fn get<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        if let Some(known) = self.find() {
            return known;
        }
        // Made without the lock, because it is not our code.
        let made = Arc::new(T::default());
        let mut values = self.lock();
        if let Some(known) = find(&values) {
            return known;
        }
        values.push((TypeId::of::<T>(), Arc::<T>::clone(&made)));
        made
    }

    fn find<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        find(&self.lock())
    }

    fn is_in_use(&self) -> bool {
        self.lock().iter().any(|(_, value)| Arc::strong_count(value) > 1)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(TypeId, Arc<dyn Any + Send + Sync>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn find<T: Send + Sync + 'static>(values: &[(TypeId, Arc<dyn Any + Send + Sync>)]) -> Option<Arc<T>> {
    let (_, value) = values.iter().find(|(id, _)| *id == TypeId::of::<T>())?;
    Arc::clone(value).downcast().ok()
}

impl fmt::Debug for SessionValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionValues({})", self.lock().len())
    }
}

/// The sessions of those who have none by the protocol, but a principal.
#[derive(Debug, Default)]
pub(crate) struct PrincipalSessions(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    sessions: HashMap<CallerKey, Entry>,
    /// By the turn of their last use: the first was used least recently.
    order: BTreeMap<u64, CallerKey>,
    turns: u64,
}

#[derive(Debug)]
struct Entry {
    values: Arc<SessionValues>,
    used: Instant,
    turn: u64,
}

impl Entry {
    fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.values) > 1 || self.values.is_in_use()
    }
}

impl PrincipalSessions {
    fn of(&self, owner: CallerKey, limits: &Limits) -> Result<Arc<SessionValues>, RpcError> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        kept.forget_idle(now, limits.principal_session_idle);
        let full = kept.sessions.len() >= limits.principal_sessions;
        if full && !kept.sessions.contains_key(&owner) && !kept.forget_one() {
            return Err(RpcError::new(
                ErrorCode::INTERNAL_ERROR,
                format!(
                    "the server is busy: as many sessions are in use as the limit principal_sessions allows ({}); \
                     try again later",
                    limits.principal_sessions
                ),
            ));
        }
        Ok(kept.touch(owner, now))
    }
}

impl Kept {
    fn touch(&mut self, owner: CallerKey, now: Instant) -> Arc<SessionValues> {
        self.turns += 1;
        let turn = self.turns;
        let entry = self.sessions.entry(owner.clone()).or_insert_with(|| Entry {
            values: Arc::default(),
            used: now,
            turn,
        });
        self.order.remove(&entry.turn);
        self.order.insert(turn, owner);
        (entry.used, entry.turn) = (now, turn);
        Arc::clone(&entry.values)
    }

    /// Forgets those that were not used for so long; what a handler still holds counts as used.
    fn forget_idle(&mut self, now: Instant, idle: Duration) {
        // Those that are kept go to the end, and are not looked at again, however short the time is.
        let newest = self.turns;
        while let Some((&turn, owner)) = self.order.first_key_value().filter(|(turn, _)| **turn <= newest) {
            let owner = owner.clone();
            match self.sessions.get(&owner) {
                Some(entry) if now.duration_since(entry.used) < idle => return,
                Some(entry) if entry.is_in_use() => {
                    self.touch(owner, now);
                }
                _ => self.forget(turn, &owner),
            }
        }
    }

    /// Forgets the one that was used least recently. Says whether there was one that nobody uses now.
    fn forget_one(&mut self) -> bool {
        let idle = |owner: &CallerKey| self.sessions.get(owner).is_some_and(|entry| !entry.is_in_use());
        let found = self.order.iter().find(|(_, owner)| idle(owner));
        let Some((turn, owner)) = found.map(|(turn, owner)| (*turn, owner.clone())) else { return false };
        self.forget(turn, &owner);
        true
    }

    fn forget(&mut self, turn: u64, owner: &CallerKey) {
        self.order.remove(&turn);
        self.sessions.remove(owner);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn owner(name: &str) -> CallerKey {
        CallerKey::principal(crate::Principal::new(name).key())
    }

    fn value(sessions: &PrincipalSessions, name: &str, limits: &Limits) -> Arc<AtomicUsize> {
        sessions.of(owner(name), limits).unwrap().get()
    }

    fn count(sessions: &PrincipalSessions, name: &str, limits: &Limits) -> usize {
        value(sessions, name, limits).fetch_add(1, Ordering::Relaxed) + 1
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_that_is_not_used_for_its_time_is_forgotten() {
        let (sessions, limits) = (PrincipalSessions::default(), Limits::default());
        assert_eq!(count(&sessions, "ann", &limits), 1);
        tokio::time::advance(limits.principal_session_idle * 9 / 10).await;
        assert_eq!(count(&sessions, "ann", &limits), 2);
        let held = value(&sessions, "bob", &limits);
        tokio::time::advance(limits.principal_session_idle).await;
        assert_eq!(count(&sessions, "cid", &limits), 1);
        assert_eq!(count(&sessions, "ann", &limits), 1, "it was not used for too long");
        held.store(7, Ordering::Relaxed);
        assert_eq!(count(&sessions, "bob", &limits), 8, "a handler still had it");
    }

    #[tokio::test(start_paused = true)]
    async fn there_are_never_more_than_the_limit_and_the_least_used_goes_first() {
        let limits = Limits { principal_sessions: 2, ..Limits::default() };
        let sessions = PrincipalSessions::default();
        let used = value(&sessions, "ann", &limits);
        count(&sessions, "bob", &limits);
        count(&sessions, "cid", &limits);
        assert_eq!(count(&sessions, "cid", &limits), 2);
        let second = value(&sessions, "cid", &limits);
        let error = sessions.of(owner("dan"), &limits).unwrap_err();
        assert!(error.message.contains("principal_sessions"), "{error:?}");
        drop((used, second));
        for name in 0..1000 {
            count(&sessions, &name.to_string(), &limits);
        }
        let kept = sessions.0.lock().unwrap();
        assert_eq!((kept.sessions.len(), kept.order.len()), (2, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn sessions_that_are_kept_for_no_time_are_looked_at_once() {
        let limits = Limits { principal_session_idle: Duration::ZERO, ..Limits::default() };
        let sessions = PrincipalSessions::default();
        let held = value(&sessions, "ann", &limits);
        held.store(7, Ordering::Relaxed);
        assert_eq!(count(&sessions, "bob", &limits), 1);
        assert_eq!(count(&sessions, "ann", &limits), 8, "a handler still had it");
    }

    #[test]
    fn each_type_has_a_value_of_its_own() {
        let values = SessionValues::default();
        let first: Arc<Mutex<String>> = values.get();
        first.lock().unwrap().push_str("kept");
        let number: Arc<AtomicUsize> = values.get();
        assert_eq!(number.load(Ordering::Relaxed), 0);
        assert_eq!(*values.get::<Mutex<String>>().lock().unwrap(), "kept");
    }
}
