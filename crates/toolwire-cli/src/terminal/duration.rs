//! Times for people.

use std::time::Duration;

/// A time for people, with three digits.
pub(crate) fn duration(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    let (value, unit) = match micros {
        _ if micros < 1e3 => (micros, "µs"),
        _ if micros < 1e6 => (micros / 1e3, "ms"),
        _ => (micros / 1e6, "s"),
    };
    let digits = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {unit}")
}

/// A limit in seconds, as it is given: without what measuring has added to it.
pub(crate) fn seconds(limit: Duration) -> String {
    let tenths = ((limit.as_millis() + 50) / 100).max(1);
    match tenths % 10 {
        0 => format!("{} s", tenths / 10),
        rest => format!("{}.{rest} s", tenths / 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_round() {
        for (millis, expected) in [(2000, "2 s"), (10_026, "10 s"), (1500, "1.5 s"), (50, "0.1 s")] {
            assert_eq!(seconds(Duration::from_millis(millis)), expected);
        }
    }

    #[test]
    fn times_have_three_digits() {
        for (nanos, expected) in
            [(12_345, "12.3 µs"), (999_000, "999 µs"), (1_234_000, "1.23 ms"), (61_000_000_000, "61.0 s")]
        {
            assert_eq!(duration(Duration::from_nanos(nanos)), expected);
        }
    }
}
