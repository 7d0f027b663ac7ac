//! Waits that no option sets. Tests make them longer, because a busy machine may be late.
//!
//! Only waits for events that are expected belong here. A test in which such a wait is in vain runs without the variable.

use std::{env, sync::OnceLock, time::Duration};

/// The variable with the factor, for the tests of this program only.
const VARIABLE: &str = "__TOOLWIRE_TEST_WAITS";

/// Returns the length of a wait that is usually this long.
pub(crate) fn stretched(usual: Duration) -> Duration {
    static TIMES: OnceLock<u32> = OnceLock::new();
    usual.saturating_mul(*TIMES.get_or_init(|| times(env::var(VARIABLE).ok().as_deref())))
}

/// The largest factor.
const MOST: u32 = 100;

/// Reads the variable. The factor is one unless it is a larger number.
fn times(text: Option<&str>) -> u32 {
    text.and_then(|text| text.parse::<u32>().ok()).unwrap_or(1).clamp(1, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_as_long_as_usual_or_longer_up_to_a_limit() {
        assert_eq!([None, Some("20"), Some("0"), Some("-1"), Some("101")].map(times), [1, 20, 1, 1, 100]);
    }
}
