//! The client's response cache of revision 2026-07-28, without a clock and without IO.
//!
//! A server says with each cacheable result for how long it may be kept and who may see it. This module
//! decides what is stored, what is still fresh and what a notification makes void; the caller tells the time
//! and says on whose behalf it asks. It never fetches anything, and it does not renew on its own.

mod key;

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use key::Topic;

pub use key::CacheKey;

use crate::{
    Method, RawJson,
    wire::{CacheHint, CacheScope},
};

/// The longest time for which a result is taken to be fresh, whatever the server says: one day.
pub const MAX_TTL: Duration = Duration::from_secs(24 * 60 * 60);
/// How many results are kept unless told otherwise.
pub const DEFAULT_MAX_ENTRIES: usize = 256;
/// How many bytes of results are kept unless told otherwise: 16 MiB.
pub const DEFAULT_MAX_BYTES: usize = 16 * 1024 * 1024;

/// How much a cache may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLimits {
    /// The number of results.
    pub entries: usize,
    /// The bytes of all results and their keys.
    pub bytes: usize,
    /// The longest time to live.
    pub ttl: Duration,
}

impl Default for CacheLimits {
    fn default() -> Self {
        Self { entries: DEFAULT_MAX_ENTRIES, bytes: DEFAULT_MAX_BYTES, ttl: MAX_TTL }
    }
}

/// A change on the server that makes stored results void.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheChange<'a> {
    /// `notifications/tools/list_changed`
    ToolList,
    /// `notifications/prompts/list_changed`
    PromptList,
    /// `notifications/resources/list_changed`, which is about templates as well.
    ResourceList,
    /// `notifications/resources/updated` for this URI.
    Resource(&'a str),
}

/// What the cache knew when a request was sent: take it then, and hand it in with the response.
///
/// A response that was under way while a change was announced may be from before the change. It is not
/// stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheTicket {
    topic: Topic,
    generation: u64,
}

/// Results that may be served again, within limits of number and size.
///
/// ```
/// use std::{sync::Arc, time::{Duration, Instant}};
/// use serde_json::json;
/// use toolwire_protocol::{Method, RawJson, caching::{CacheChange, CacheKey, ResponseCache}, wire::CacheHint};
///
/// let mut cache = ResponseCache::default();
/// let key = CacheKey::new(Method::ListTools, &serde_json::Map::new()).unwrap();
/// let now = Instant::now();
///
/// let ticket = cache.ticket(&key);
/// let result = Arc::new(RawJson::from(&json!({ "tools": [] })));
/// cache.insert(&key, "alice", CacheHint::of(Some(1000), None), result, ticket, now);
///
/// assert!(cache.fresh(&key, "alice", now + Duration::from_millis(999)).is_some());
/// assert!(cache.fresh(&key, "alice", now + Duration::from_millis(1000)).is_none());
/// assert!(cache.fresh(&key, "bob", now).is_none());
/// cache.invalidate(CacheChange::ToolList);
/// assert!(cache.fresh(&key, "alice", now).is_none());
/// ```
#[derive(Debug, Default)]
pub struct ResponseCache {
    limits: CacheLimits,
    entries: HashMap<Slot, Entry>,
    bytes: usize,
    /// Counts insertions, so that the oldest entry is known.
    inserted: u64,
    /// How often each topic was made void.
    generations: [u64; Topic::COUNT],
}

/// A key and the authorization context it belongs to; a public entry belongs to none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Slot {
    key: CacheKey,
    context: Option<Box<str>>,
}

#[derive(Debug)]
struct Entry {
    result: Arc<RawJson>,
    received: Instant,
    ttl: Duration,
    size: usize,
    number: u64,
}

impl ResponseCache {
    /// An empty cache.
    pub fn new(limits: CacheLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// To be taken when a request is sent whose response is to be stored.
    pub fn ticket(&self, key: &CacheKey) -> CacheTicket {
        CacheTicket { topic: key.topic(), generation: self.generation(key.topic()) }
    }

    /// Stores the result of a request and says whether it did.
    ///
    /// `context` stands for the authorization the request was sent with. A result that may be from before a
    /// change is ignored. Every other one ends the life of an earlier result of the same request, even when it
    /// is not stored itself because it is fresh for no time at all, or larger than the whole cache.
    pub fn insert(
        &mut self,
        key: &CacheKey,
        context: &str,
        hint: CacheHint,
        result: Arc<RawJson>,
        ticket: CacheTicket,
        now: Instant,
    ) -> bool {
        if ticket != self.ticket(key) {
            return false;
        }
        let [private, public] = slots(key, context);
        self.remove(&private);
        self.remove(&public);
        let slot = if hint.scope == CacheScope::Public { public } else { private };
        let size = slot.size() + result.text().len();
        if hint.ttl_ms == 0 || size > self.limits.bytes || self.limits.entries == 0 {
            return false;
        }
        self.make_room(size);
        self.inserted += 1;
        self.bytes += size;
        let ttl = Duration::from_millis(hint.ttl_ms).min(self.limits.ttl);
        self.entries.insert(slot, Entry { result, received: now, ttl, size, number: self.inserted });
        true
    }

    /// The stored result of this request, if it is still fresh.
    pub fn fresh(&self, key: &CacheKey, context: &str, now: Instant) -> Option<Arc<RawJson>> {
        let fresh = |entry: &&Entry| now.saturating_duration_since(entry.received) < entry.ttl;
        slots(key, context).iter().filter_map(|slot| self.entries.get(slot)).find(fresh).map(Entry::share)
    }

    /// The stored result of this request even if its time is over: for when the server cannot be reached.
    ///
    /// What was made void by a change is never handed out.
    pub fn stale(&self, key: &CacheKey, context: &str) -> Option<Arc<RawJson>> {
        slots(key, context).iter().find_map(|slot| self.entries.get(slot)).map(Entry::share)
    }

    /// Makes void what `change` is about, including responses that are under way.
    pub fn invalidate(&mut self, change: CacheChange<'_>) {
        match change {
            CacheChange::ToolList => self.drop_topic(Topic::Tools),
            CacheChange::PromptList => self.drop_topic(Topic::Prompts),
            CacheChange::ResourceList => self.drop_topic(Topic::ResourceLists),
            CacheChange::Resource(uri) => {
                self.next_generation(Topic::Contents);
                self.retain(|slot| !slot.key.is_affected_by(uri));
            }
        }
    }

    /// Drops all pages of a list, including those under way: the server no longer knows a cursor it once gave.
    pub fn drop_pages(&mut self, list: Method) {
        self.next_generation(Topic::of(list));
        self.retain(|slot| slot.key.method() != list);
    }

    /// Drops everything, including responses that are under way: for a server that may have been replaced.
    pub fn clear(&mut self) {
        for generation in &mut self.generations {
            *generation += 1;
        }
        self.entries.clear();
        self.bytes = 0;
    }

    /// Drops what belongs to an authorization context, including responses that are under way: for a client that is
    /// somebody else from now on.
    pub fn clear_private(&mut self) {
        for generation in &mut self.generations {
            *generation += 1;
        }
        self.retain(|slot| slot.context.is_none());
    }

    /// The number of results that are stored.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is stored.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The bytes that the stored results and their keys take.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    fn generation(&self, topic: Topic) -> u64 {
        self.generations.get(topic.index()).copied().unwrap_or_default()
    }

    fn next_generation(&mut self, topic: Topic) {
        if let Some(generation) = self.generations.get_mut(topic.index()) {
            *generation += 1;
        }
    }

    fn drop_topic(&mut self, topic: Topic) {
        self.next_generation(topic);
        self.retain(|slot| slot.key.topic() != topic);
    }

    /// Removes the oldest entries until one more of `size` bytes fits.
    ///
    /// The search is linear in the number of entries, which is small, and runs only when the cache is full.
    fn make_room(&mut self, size: usize) {
        while self.entries.len() >= self.limits.entries || self.bytes + size > self.limits.bytes {
            let Some(oldest) = self.entries.iter().min_by_key(|(_, entry)| entry.number) else { return };
            let slot = oldest.0.clone();
            self.remove(&slot);
        }
    }

    fn remove(&mut self, slot: &Slot) {
        if let Some(entry) = self.entries.remove(slot) {
            self.bytes -= entry.size;
        }
    }

    fn retain(&mut self, keep: impl Fn(&Slot) -> bool) {
        self.entries.retain(|slot, _| keep(slot));
        self.bytes = self.entries.values().map(|entry| entry.size).sum();
    }
}

impl Entry {
    fn share(&self) -> Arc<RawJson> {
        Arc::clone(&self.result)
    }
}

impl Slot {
    fn size(&self) -> usize {
        self.key.size() + self.context.as_ref().map_or(0, |context| context.len())
    }
}

/// Where a result may be found: among those of this context, then among the public ones.
fn slots(key: &CacheKey, context: &str) -> [Slot; 2] {
    [Some(context.into()), None].map(|context| Slot { key: key.clone(), context })
}

#[cfg(test)]
mod tests;
