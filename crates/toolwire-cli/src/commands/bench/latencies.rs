//! Many times in little memory: counts in buckets whose width is a fixed share of what they hold.

use std::time::Duration;

/// How many buckets each doubling is divided into; a time is known to about one part in 64.
const PARTS: u64 = 64;

/// How many doublings there are: from one nanosecond to hours.
const DOUBLINGS: u64 = 44;

/// The times of many answers.
#[derive(Clone, Debug)]
pub(super) struct Latencies {
    counts: Vec<u64>,
    total: u64,
    min: Duration,
    max: Duration,
}

impl Latencies {
    pub(super) fn new() -> Self {
        let buckets = usize::try_from(PARTS * (DOUBLINGS + 1)).unwrap_or_default();
        Self { counts: vec![0; buckets], total: 0, min: Duration::MAX, max: Duration::ZERO }
    }

    /// Adds a time.
    pub(super) fn add(&mut self, time: Duration) {
        let last = self.counts.len().saturating_sub(1);
        if let Some(count) = self.counts.get_mut(bucket(time).min(last)) {
            *count += 1;
        }
        self.total += 1;
        self.min = self.min.min(time);
        self.max = self.max.max(time);
    }

    /// Adds all times of another.
    pub(super) fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// How many there are.
    pub(super) const fn total(&self) -> u64 {
        self.total
    }

    /// The shortest and the longest, if there are any.
    pub(super) fn range(&self) -> Option<(Duration, Duration)> {
        (self.total > 0).then_some((self.min, self.max))
    }

    /// The time that this share of them, in parts of a thousand, does not exceed.
    pub(super) fn percentile(&self, thousandths: u64) -> Option<Duration> {
        let (min, max) = self.range()?;
        let rank = (self.total * thousandths).div_ceil(1000).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Some(upper(index).clamp(min, max));
            }
        }
        Some(max)
    }

    /// How many there are in each of `rows` equal steps of the logarithm, with the upper end of each step.
    pub(super) fn histogram(&self, rows: u32) -> Vec<(Duration, u64)> {
        let Some((min, max)) = self.range() else { return Vec::new() };
        let (low, high) = (min.as_secs_f64().max(1e-9), max.as_secs_f64().max(1e-9));
        let step = (high / low).powf(1.0 / f64::from(rows));
        if step <= 1.0 {
            return vec![(max, self.total)];
        }
        let mut ends: Vec<_> =
            (1..=rows).map(|row| Duration::from_secs_f64(low * step.powf(f64::from(row)))).collect();
        // The last one has them all, whatever the arithmetic says.
        if let Some(last) = ends.last_mut() {
            *last = max;
        }
        let mut histogram: Vec<_> = ends.into_iter().map(|end| (end, 0)).collect();
        for (index, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let time = upper(index).clamp(min, max);
            if let Some(row) = histogram.iter_mut().find(|(end, _)| time <= *end) {
                row.1 += count;
            }
        }
        histogram
    }
}

/// The bucket of a time.
fn bucket(time: Duration) -> usize {
    let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1);
    let doubling = u64::from(nanos.ilog2());
    let base = 1_u64 << doubling;
    // Up to 64 ns each nanosecond has its own bucket, and some stay empty.
    let part = (u128::from(nanos - base) * u128::from(PARTS)) >> doubling;
    usize::try_from(doubling * PARTS + u64::try_from(part).unwrap_or_default()).unwrap_or(usize::MAX)
}

/// The end of a bucket.
fn upper(index: usize) -> Duration {
    let index = u64::try_from(index).unwrap_or_default();
    let (doubling, part) = (index / PARTS, index % PARTS);
    let base = 1_u64.checked_shl(u32::try_from(doubling).unwrap_or(63)).unwrap_or(u64::MAX);
    let inside = (u128::from(base) * u128::from(part + 1)) / u128::from(PARTS);
    Duration::from_nanos(base.saturating_add(u64::try_from(inside).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(micros: impl IntoIterator<Item = u64>) -> Latencies {
        let mut latencies = Latencies::new();
        micros.into_iter().for_each(|micros| latencies.add(Duration::from_micros(micros)));
        latencies
    }

    #[test]
    fn percentiles_are_right_to_two_percent() {
        let latencies = of(1..=10_000);
        for (thousandths, expected) in [(500, 5000.0), (900, 9000.0), (990, 9900.0), (999, 9990.0)] {
            let time = latencies.percentile(thousandths).unwrap().as_secs_f64() * 1e6;
            assert!((time - expected).abs() / expected < 0.02, "{thousandths}: {time}");
        }
        assert_eq!(latencies.percentile(1000), Some(Duration::from_millis(10)));
        assert_eq!(latencies.range(), Some((Duration::from_micros(1), Duration::from_millis(10))));
    }

    #[test]
    fn nothing_has_no_percentiles() {
        assert_eq!(Latencies::new().percentile(500), None);
        assert!(Latencies::new().histogram(5).is_empty());
    }

    #[test]
    fn a_histogram_loses_nothing() {
        for latencies in [of([7]), of([7, 7, 7]), of(1..=1000), of([1, 100_000])] {
            let histogram = latencies.histogram(10);
            assert_eq!(histogram.iter().map(|(_, count)| count).sum::<u64>(), latencies.total());
            assert_eq!(histogram.last().unwrap().0, latencies.range().unwrap().1);
        }
    }

    #[test]
    fn extremes_fit_and_merging_adds() {
        let mut latencies = of([3]);
        let mut other = Latencies::new();
        other.add(Duration::ZERO);
        other.add(Duration::MAX);
        latencies.merge(&other);
        assert_eq!(latencies.total(), 3);
        assert_eq!(latencies.range(), Some((Duration::ZERO, Duration::MAX)));
    }
}
