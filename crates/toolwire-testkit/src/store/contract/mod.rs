//! The contract of stores: 25 rules, each of them a test.
//!
//! A store of your own is held to it by one line in its tests. The [`Backend`] is made anew for each rule:
//!
//! ```
//! use toolwire_testkit::store::contract::InMemory;
//!
//! toolwire_testkit::store_contract!(InMemory::new());
//! # fn main() {}
//! ```
//!
//! or, for a part of a store, by calling single rules with [`check`]. The rules wait by [`Backend::pass`], a few seconds
//! each; on a machine that is too busy for that, some try again with longer times. What only some backends can do (be
//! restarted, be cut off) is left out for the others.

pub mod answers;
pub mod claims;
pub mod expiry;
pub mod faults;
mod kit;
pub mod logs;
pub mod others;
pub mod tasks;
pub mod writes;

use std::{fmt, sync::Arc, time::Duration};

use toolwire_store::{
    Store,
    memory::{MemoryLimits, MemoryStore},
};
use toolwire_transport::BoxFuture;

use crate::FakeClock;

/// A store that is to be held to the contract. It is empty when it is made.
pub trait Backend: fmt::Debug + Send + Sync {
    /// Another client of this store, as another node would have one: its own connections, its own threads.
    fn connect(&self) -> BoxFuture<'_, Store>;

    /// Lets this much of the store's time pass. By default, by waiting for it.
    fn pass(&self, time: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(time))
    }

    /// Ends the store and starts it again with what it has acknowledged, and says so. Clients from before may be of no
    /// use then. By default it cannot, and says `false`.
    fn restart(&self) -> BoxFuture<'_, bool> {
        Box::pin(async { false })
    }

    /// From now on, until [`heal`](Self::heal), the store cannot be reached. By default it cannot be cut off, and says `false`.
    fn cut_off(&self, how: Cut) -> BoxFuture<'_, bool> {
        let _ = how;
        Box::pin(async { false })
    }

    /// The store can be reached again.
    fn heal(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// A client of the last minor version, if there is one: another build of it, which has to work beside the new ones.
    fn connect_older(&self) -> BoxFuture<'_, Option<Store>> {
        Box::pin(async { None })
    }

    /// How often the rules about races try their luck. Default 500.
    fn turns(&self) -> usize {
        500
    }
}

/// How a store cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cut {
    /// Connections are closed, and new ones are refused.
    Closed,
    /// Nothing is answered.
    Silent,
}

/// The store in memory, with a clock of its own that the rules move.
#[derive(Clone, Debug)]
pub struct InMemory {
    store: MemoryStore,
    clock: FakeClock,
}

impl InMemory {
    /// An empty one.
    pub fn new() -> Self {
        let clock = FakeClock::new();
        Self { store: MemoryStore::with_clock(MemoryLimits::default(), Arc::new(clock.clone())), clock }
    }
}

impl Default for InMemory {
    fn default() -> Self {
        Self::new()
    }
}

impl Backend for InMemory {
    fn connect(&self) -> BoxFuture<'_, Store> {
        Box::pin(async { self.store.store() })
    }

    fn pass(&self, time: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move { self.clock.advance(time) })
    }

    fn turns(&self) -> usize {
        10_000
    }
}

/// Holds a backend to one rule, in a runtime with four threads.
///
/// # Panics
/// When it does not keep it.
pub fn check<B, R>(make: impl AsyncFnOnce() -> B, rule: R)
where
    B: Backend,
    R: AsyncFnOnce(&dyn Backend),
{
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build();
    let runtime = runtime.unwrap_or_else(|error| panic!("no runtime: {error}"));
    runtime.block_on(async { rule(&make().await).await });
}

/// The output of a future, or `None` if it takes longer than this. A pause of the whole machine counts little, however
/// long it is: the time is waited for in sixty parts, after each of which the future has a turn.
#[doc(hidden)]
pub async fn within<T>(time: Duration, future: impl Future<Output = T>) -> Option<T> {
    const PARTS: u32 = 60;
    let mut future = std::pin::pin!(future);
    for _ in 0..PARTS {
        if let Ok(output) = tokio::time::timeout(time / PARTS, future.as_mut()).await {
            return Some(output);
        }
    }
    None
}

/// Makes a test of each rule of the contract of stores, on a [`Backend`](crate::store::contract::Backend) that the
/// expression makes. It may `await`.
///
/// ```
/// # use toolwire_testkit::store::contract::InMemory;
/// mod contract {
///     # use super::InMemory;
///     toolwire_testkit::store_contract!(InMemory::new());
/// }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! store_contract {
    ($backend:expr) => {
        $crate::store_contract!(@rules $backend;
            tasks::rule_01_what_was_created_is_seen_everywhere_and_only_once,
            tasks::rule_02_open_tasks_of_a_quota_are_limited_and_counted_once,
            tasks::rule_03_nobody_sees_the_tasks_of_others,
            claims::rule_04_a_task_is_given_to_one_node,
            claims::rule_05_a_claim_takes_what_it_can_read_the_longest_due_first,
            claims::rule_06_a_write_with_an_older_fence_or_another_token_is_lost,
            claims::rule_07_a_lease_that_is_renewed_is_never_given_away,
            writes::rule_08_a_write_is_all_or_nothing_and_can_be_repeated,
            writes::rule_09_a_claim_has_every_entry_that_was_ever_accepted,
            answers::rule_10_each_open_key_is_answered_once,
            writes::rule_11_an_end_never_changes,
            claims::rule_12_a_timer_is_due_at_its_time,
            expiry::rule_13_nothing_is_gone_before_its_expiry_and_nothing_stays,
            tasks::rule_14_pages_are_complete_and_stable,
            logs::rule_15_numbers_are_never_used_again,
            logs::rule_16_a_log_is_read_in_order_and_tells_what_is_missing,
            logs::rule_17_logs_of_different_sessions_never_meet,
            logs::rule_18_the_last_reader_and_one_new_writer_count,
            others::rule_19_a_session_is_replaced_only_by_who_knows_it,
            others::rule_20_a_wake_comes_after_its_write_is_visible,
            others::rule_21_a_nonce_is_taken_once,
            faults::rule_22_every_call_ends_and_can_be_repeated,
            faults::rule_23_a_store_that_comes_back_works_again,
            faults::rule_24_what_is_too_large_is_refused_before_anything_is_written,
            faults::rule_25_a_store_is_opened_by_several_at_once_and_by_older_nodes,
        );
    };
    (@rules $backend:expr; $($module:ident :: $rule:ident,)*) => {
        $(
            #[test]
            fn $rule() {
                $crate::store::contract::check(async || $backend, $crate::store::contract::$module::$rule);
            }
        )*
    };
}
