//! How long answers take.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolwire::{Client, Era};

use crate::waits;

/// How many answers are measured.
const ANSWERS: usize = 10;

/// How long all of them together may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The times of some answers.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// What was asked.
    pub(super) method: &'static str,
    /// From the fastest to the slowest.
    sorted: Vec<Duration>,
    /// What went wrong instead.
    pub(super) trouble: Option<String>,
}

impl Times {
    /// Asks the server a few times for next to nothing.
    pub(super) async fn measure(client: &Client) -> Self {
        let method = match client.era() {
            Era::Modern => "server/discover",
            Era::Legacy => "ping",
        };
        let mut times = Self { method, ..Self::default() };
        let deadline = Instant::now() + waits::stretched(PATIENCE);
        while times.sorted.len() < ANSWERS && Instant::now() < deadline {
            let begun = Instant::now();
            match client.raw().request(method, json!({})).await {
                Ok(_) => times.sorted.push(begun.elapsed()),
                Err(error) => {
                    times.trouble = Some(error.to_string());
                    break;
                }
            }
        }
        times.sorted.sort();
        times
    }

    /// The fastest, the one in the middle, and the slowest.
    pub(super) fn summary(&self) -> Option<[Duration; 3]> {
        let middle = self.sorted.get(self.sorted.len() / 2)?;
        Some([*self.sorted.first()?, *middle, *self.sorted.last()?])
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.sorted.len()
    }

    pub(super) fn to_json(&self) -> Value {
        let times = self.summary().map(|times| times.map(microseconds));
        json!({
            "method": self.method,
            "count": self.sorted.len(),
            "minMicroseconds": times.map(|[min, _, _]| min),
            "medianMicroseconds": times.map(|[_, median, _]| median),
            "maxMicroseconds": times.map(|[_, _, max]| max),
            "error": self.trouble,
        })
    }
}

/// A time for scripts.
pub(super) fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_in_the_middle() {
        let times = Times { sorted: (1..=5).map(Duration::from_secs).collect(), ..Times::default() };
        assert_eq!(times.summary(), Some([1, 3, 5].map(Duration::from_secs)));
        assert_eq!(Times::default().summary(), None);
    }
}
