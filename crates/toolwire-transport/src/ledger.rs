//! What peers make this process hold, and how much of it they may.
//!
//! A [`Ledger`] counts requests, sessions and bytes. Ledgers form a tree: that of a connection is below that of its
//! caller, which is below that of the process. Whatever is charged to one is charged to all above it, and is refused
//! when any of them is full. A [`Charge`] is given back by dropping it, so nothing stays counted that is gone.
//!
//! ```
//! use toolwire_transport::ledger::{Account, Ceilings, Ledger};
//!
//! let process = Ledger::root(Ceilings { bytes: ("held_bytes", 100), ..Ceilings::NONE });
//! let connection = process.child(Ceilings { bytes: ("held_bytes_per_connection", 60), ..Ceilings::NONE });
//!
//! let body = connection.charge(Account::RequestBytes, 50).unwrap();
//! let full = connection.charge(Account::RequestBytes, 20).unwrap_err();
//! assert_eq!(full.limit_name(), "held_bytes_per_connection");
//! drop(body);
//! assert_eq!(process.used(Account::RequestBytes), 0);
//! ```

use std::{
    fmt,
    hash::{Hash, Hasher},
    ptr,
    sync::{
        Arc, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

pub use crate::buffer_charge::{BufferCharge, UNCHARGED_BYTES};

/// What something is charged to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Account {
    /// Requests that run or wait, listeners not counted.
    Requests,
    /// `subscriptions/listen` requests that are open.
    Listeners,
    /// Legacy sessions.
    Sessions,
    /// Bytes of requests: being read, waiting, running.
    RequestBytes,
    /// Bytes of answers and notifications that their reader has not taken yet.
    AnswerBytes,
    /// Bytes of what is known of a client and its session.
    SessionBytes,
    /// Bytes of the URIs that are subscribed to.
    SubscriptionBytes,
    /// Bytes of events that are kept for clients that come back.
    EventBytes,
}

impl Account {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Requests,
        Self::Listeners,
        Self::Sessions,
        Self::RequestBytes,
        Self::AnswerBytes,
        Self::SessionBytes,
        Self::SubscriptionBytes,
        Self::EventBytes,
    ];

    /// Which ceiling holds for it: all accounts of bytes share one.
    const fn ceiling(self, ceilings: &Ceilings) -> Ceiling {
        match self {
            Self::Requests => ceilings.requests,
            Self::Listeners => ceilings.listeners,
            Self::Sessions => ceilings.sessions,
            _ => ceilings.bytes,
        }
    }

    const fn is_bytes(self) -> bool {
        !matches!(self, Self::Requests | Self::Listeners | Self::Sessions)
    }
}

/// The name of a limit, as the settings call it, and its value.
pub type Ceiling = (&'static str, usize);

/// How much one ledger may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "meant to be written as a literal with ..Ceilings::NONE")]
pub struct Ceilings {
    /// How many requests.
    pub requests: Ceiling,
    /// How many listeners.
    pub listeners: Ceiling,
    /// How many sessions.
    pub sessions: Ceiling,
    /// How many bytes, of all accounts together.
    pub bytes: Ceiling,
}

impl Ceilings {
    /// Nothing is limited here; the ledgers above have limits of their own.
    pub const NONE: Self = {
        let none = ("none", usize::MAX);
        Self { requests: none, listeners: none, sessions: none, bytes: none }
    };
}

/// A limit was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitReached {
    account: Account,
    ceiling: Ceiling,
}

impl LimitReached {
    /// The name of the limit, as the settings call it.
    pub const fn limit_name(&self) -> &'static str {
        self.ceiling.0
    }

    /// Its value.
    pub const fn limit(&self) -> usize {
        self.ceiling.1
    }

    /// What was to be charged.
    pub const fn account(&self) -> Account {
        self.account
    }
}

impl fmt::Display for LimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, limit) = self.ceiling;
        let what = match self.account {
            Account::Requests => "requests are open",
            Account::Listeners => "subscriptions are open",
            Account::Sessions => "sessions are in use",
            _ => "bytes are held",
        };
        write!(f, "as many {what} as the limit {name} allows ({limit})")
    }
}

impl std::error::Error for LimitReached {}

/// Counts what is held for one connection, one caller or the whole process. Clones are the same ledger.
#[derive(Clone, Debug)]
pub struct Ledger(Arc<Node>);

/// A ledger that is there as long as something else holds it.
#[derive(Clone, Debug)]
pub struct WeakLedger(Weak<Node>);

#[derive(Debug)]
struct Node {
    parent: Option<Ledger>,
    ceilings: Arc<Ceilings>,
    used: [AtomicUsize; Account::ALL.len()],
    bytes: AtomicUsize,
}

impl Ledger {
    /// A ledger with nothing above it.
    pub fn root(ceilings: Ceilings) -> Self {
        Self::new(None, Arc::new(ceilings))
    }

    /// A ledger below this one.
    #[must_use]
    pub fn child(&self, ceilings: impl Into<Arc<Ceilings>>) -> Self {
        Self::new(Some(self.clone()), ceilings.into())
    }

    fn new(parent: Option<Self>, ceilings: Arc<Ceilings>) -> Self {
        Self(Arc::new(Node { parent, ceilings, used: Default::default(), bytes: AtomicUsize::new(0) }))
    }

    /// Charges an amount until the [`Charge`] is dropped.
    ///
    /// # Errors
    /// When this ledger, or one above it, would hold more than it may.
    pub fn charge(&self, account: Account, amount: usize) -> Result<Charge, LimitReached> {
        self.add(account, amount)?;
        Ok(Charge { ledger: self.clone(), account, amount })
    }

    /// Returns the ledger above this one, or `None` if there is nothing above it.
    pub fn parent(&self) -> Option<&Self> {
        self.0.parent.as_ref()
    }

    /// A charge of nothing, to grow later.
    pub fn empty_charge(&self, account: Account) -> Charge {
        Charge { ledger: self.clone(), account, amount: 0 }
    }

    /// How much is charged to an account.
    pub fn used(&self, account: Account) -> usize {
        self.0.used[account as usize].load(Ordering::Relaxed)
    }

    /// How many bytes are charged, to all accounts together.
    pub fn used_bytes(&self) -> usize {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Whether this ledger or one above it holds more bytes than it may, which happens where something could not
    /// be refused.
    pub fn is_over(&self) -> bool {
        self.chain().any(|node| node.bytes.load(Ordering::Relaxed) > node.ceilings.bytes.1)
    }

    /// Returns `true` if `bytes` more could be charged, were up to `freed` bytes of an account given back before.
    #[doc(hidden)]
    pub fn could_hold(&self, bytes: usize, account: Account, freed: usize) -> bool {
        self.chain().all(|node| {
            let freed = freed.min(node.used[account as usize].load(Ordering::Relaxed));
            let held = node.bytes.load(Ordering::Relaxed).saturating_sub(freed);
            held.saturating_add(bytes) <= node.ceilings.bytes.1
        })
    }

    /// The same ledger without keeping it.
    pub fn downgrade(&self) -> WeakLedger {
        WeakLedger(Arc::downgrade(&self.0))
    }

    fn chain(&self) -> impl Iterator<Item = &Node> {
        std::iter::successors(Some(&*self.0), |node| node.parent.as_ref().map(|parent| &*parent.0))
    }

    fn add(&self, account: Account, amount: usize) -> Result<(), LimitReached> {
        for (depth, node) in self.chain().enumerate() {
            let ceiling = account.ceiling(&node.ceilings);
            if node.add(account, amount) > ceiling.1 {
                self.chain().take(depth + 1).for_each(|node| node.subtract(account, amount));
                return Err(LimitReached { account, ceiling });
            }
        }
        Ok(())
    }

    fn add_unchecked(&self, account: Account, amount: usize) {
        self.chain().for_each(|node| {
            node.add(account, amount);
        });
    }

    fn subtract(&self, account: Account, amount: usize) {
        self.chain().for_each(|node| node.subtract(account, amount));
    }
}

/// Ledgers are equal if they are the same one, whatever is charged to them.
impl PartialEq for Ledger {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Ledger {}

impl Hash for Ledger {
    fn hash<H: Hasher>(&self, state: &mut H) {
        ptr::hash(Arc::as_ptr(&self.0), state);
    }
}

impl WeakLedger {
    /// The ledger, if anybody still holds it.
    pub fn upgrade(&self) -> Option<Ledger> {
        self.0.upgrade().map(Ledger)
    }

    /// Whether anybody still holds it.
    pub fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }
}

impl Node {
    /// Adds to an account, and gives what its ceiling is to be compared with.
    fn add(&self, account: Account, amount: usize) -> usize {
        let used = self.used[account as usize].fetch_add(amount, Ordering::Relaxed);
        let used = if account.is_bytes() { self.bytes.fetch_add(amount, Ordering::Relaxed) } else { used };
        used.saturating_add(amount)
    }

    fn subtract(&self, account: Account, amount: usize) {
        self.used[account as usize].fetch_sub(amount, Ordering::Relaxed);
        if account.is_bytes() {
            self.bytes.fetch_sub(amount, Ordering::Relaxed);
        }
    }
}

/// Something that is held; dropping it takes it off the ledger.
#[derive(Debug)]
#[must_use = "dropping a charge takes it off the ledger"]
pub struct Charge {
    ledger: Ledger,
    account: Account,
    amount: usize,
}

impl Charge {
    /// Charges more.
    ///
    /// # Errors
    /// When a ledger would hold more than it may; then nothing has changed.
    pub fn grow(&mut self, amount: usize) -> Result<(), LimitReached> {
        self.ledger.add(self.account, amount)?;
        self.amount += amount;
        Ok(())
    }

    /// Charges more, whatever the limits say: for what is there already and cannot be refused any more. Whoever
    /// does this asks [`Ledger::is_over`] before taking in anything new.
    pub fn grow_unchecked(&mut self, amount: usize) {
        self.ledger.add_unchecked(self.account, amount);
        self.amount += amount;
    }

    /// Charges `amount` more, whatever the limits say. The room of `other` is used for it first, if that is charged to the
    /// same account of the same ledger, and nothing else can take that room in between.
    pub(crate) fn take_over(&mut self, mut other: Self, amount: usize) {
        let is_same = self.account == other.account && self.ledger == other.ledger;
        let taken = if is_same { std::mem::take(&mut other.amount) } else { 0 };
        self.amount += taken;
        if amount >= taken {
            self.grow_unchecked(amount - taken);
        } else {
            self.shrink(taken - amount);
        }
    }

    /// Gives a part back, at most all of it.
    pub fn shrink(&mut self, amount: usize) {
        let amount = amount.min(self.amount);
        self.ledger.subtract(self.account, amount);
        self.amount -= amount;
    }

    /// Returns the number of bytes charged.
    pub const fn amount(&self) -> usize {
        self.amount
    }

    /// The ledger that it is charged to.
    pub const fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if self.amount > 0 {
            self.ledger.subtract(self.account, self.amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> (Ledger, Ledger, Ledger) {
        let process =
            Ledger::root(Ceilings { bytes: ("process", 100), requests: ("all", 3), ..Ceilings::NONE });
        let caller =
            process.child(Ceilings { bytes: ("caller", 60), requests: ("one", 2), ..Ceilings::NONE });
        let connection = caller.child(Ceilings { bytes: ("connection", 50), ..Ceilings::NONE });
        (process, caller, connection)
    }

    #[test]
    fn the_lowest_ledger_that_is_full_is_named_and_nothing_stays_charged() {
        let (process, caller, connection) = tree();
        let refused = |ledger: &Ledger, bytes| ledger.charge(Account::RequestBytes, bytes).unwrap_err();
        assert_eq!(refused(&connection, 51).limit_name(), "connection");
        assert_eq!(refused(&caller, 61).limit_name(), "caller");
        assert_eq!(refused(&process, 101).limit_name(), "process");
        assert_eq!(refused(&process, usize::MAX).limit(), 100);
        assert_eq!([&process, &caller, &connection].map(Ledger::used_bytes), [0; 3]);
    }

    #[test]
    fn accounts_of_bytes_share_one_ceiling_and_counts_have_their_own() {
        let (process, caller, connection) = tree();
        let body = connection.charge(Account::RequestBytes, 30).unwrap();
        assert!(connection.charge(Account::AnswerBytes, 21).is_err());
        let requests = [(); 2].map(|()| connection.charge(Account::Requests, 1).unwrap());
        let refused = connection.charge(Account::Requests, 1).unwrap_err();
        assert_eq!(refused.to_string(), "as many requests are open as the limit one allows (2)");
        let other = process.charge(Account::Requests, 1).unwrap();
        assert_eq!(process.charge(Account::Requests, 1).unwrap_err().limit_name(), "all");
        drop((body, requests, other));
        for account in Account::ALL {
            assert_eq!([&process, &caller, &connection].map(|ledger| ledger.used(account)), [0; 3]);
        }
    }

    #[test]
    fn each_count_has_a_ceiling_of_its_own_and_says_what_there_is_too_much_of() {
        let ledger = Ledger::root(Ceilings {
            requests: ("requests", 0),
            listeners: ("listeners", 1),
            sessions: ("sessions", 2),
            bytes: ("bytes", 3),
        });
        let refused = |account| ledger.charge(account, 4).unwrap_err();
        for (account, words) in [
            (Account::Requests, "as many requests are open as the limit requests allows (0)"),
            (Account::Listeners, "as many subscriptions are open as the limit listeners allows (1)"),
            (Account::Sessions, "as many sessions are in use as the limit sessions allows (2)"),
            (Account::EventBytes, "as many bytes are held as the limit bytes allows (3)"),
        ] {
            assert_eq!(refused(account).to_string(), words);
            assert_eq!(refused(account).account(), account);
        }
    }

    #[test]
    fn what_is_charged_can_be_read_at_every_level() {
        let (process, caller, connection) = tree();
        let body = connection.charge(Account::RequestBytes, 7).unwrap();
        let _session = connection.charge(Account::Sessions, 1).unwrap();
        for ledger in [&process, &caller, &connection] {
            assert_eq!((ledger.used(Account::RequestBytes), ledger.used(Account::Sessions)), (7, 1));
            assert_eq!(ledger.used_bytes(), 7, "a session is not a byte");
        }
        assert_eq!((body.amount(), body.ledger().used_bytes()), (7, 7));
    }

    #[test]
    fn a_charge_grows_and_shrinks_with_what_it_stands_for() {
        let (process, _, connection) = tree();
        let mut charge = connection.empty_charge(Account::AnswerBytes);
        charge.grow(50).unwrap();
        assert!(charge.grow(1).is_err());
        assert!(!connection.is_over());
        charge.grow_unchecked(1);
        assert!(connection.is_over());
        charge.shrink(usize::MAX);
        assert_eq!((charge.amount(), process.used_bytes()), (0, 0));
    }

    #[test]
    fn a_ledger_is_equal_to_its_clones_only_and_knows_the_one_above() {
        let (process, caller, connection) = tree();
        assert_eq!(connection.parent(), Some(&caller));
        assert_eq!((caller.clone().parent(), process.parent()), (Some(&process), None));
        assert_ne!(caller, process.child(Ceilings::NONE));
        assert!(std::collections::HashSet::from([caller.clone(), connection]).contains(&caller));
    }

    #[test]
    fn a_ledger_that_nothing_is_charged_to_can_be_forgotten() {
        let (process, ..) = tree();
        let caller = process.child(Ceilings::NONE);
        let weak = caller.downgrade();
        let charge = caller.charge(Account::Sessions, 1).unwrap();
        drop(caller);
        assert!(weak.upgrade().is_some() && !weak.is_gone());
        drop(charge);
        assert!(weak.is_gone());
    }
}
