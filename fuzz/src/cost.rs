//! Holding work to a budget of processor time, which a busy machine does not change.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Does `work` and fails if it has taken more than `budget`. Budgets are for an instrumented build, which is some ten
/// times slower than a released one.
pub(crate) fn within<T>(budget: Duration, what: &str, work: impl FnOnce() -> T) -> T {
    let before = spent();
    let done = work();
    let taken = spent().saturating_sub(before);
    assert!(taken <= budget, "{what} took {taken:?}, more than {budget:?}");
    done
}

fn spent() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}
