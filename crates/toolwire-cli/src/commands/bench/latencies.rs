//! The times of many answers, in little memory.

use std::time::Duration;

use hdrhistogram::Histogram;

/// How many digits of a time are known for sure.
const DIGITS: u8 = 2;

/// The times of many answers.
#[derive(Clone, Debug)]
pub(super) struct Latencies {
    times: Histogram<u64>,
    /// Exactly.
    range: Option<(Duration, Duration)>,
}

impl Latencies {
    pub(super) fn new() -> Self {
        let mut times = Histogram::new(DIGITS).unwrap_or_else(|_| unreachable!("two digits are allowed"));
        times.auto(true);
        Self { times, range: None }
    }

    /// Adds a time.
    pub(super) fn add(&mut self, time: Duration) {
        // It grows to what it is given, so nothing can be too much for it.
        let _ = self.times.record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        self.widen(time, time);
    }

    fn widen(&mut self, least: Duration, most: Duration) {
        let (min, max) = self.range.unwrap_or((least, most));
        self.range = Some((min.min(least), max.max(most)));
    }

    /// Adds all times of another.
    pub(super) fn merge(&mut self, other: &Self) {
        let _ = self.times.add(&other.times);
        if let Some((min, max)) = other.range {
            self.widen(min, max);
        }
    }

    /// How many there are.
    pub(super) fn total(&self) -> u64 {
        self.times.len()
    }

    /// The shortest and the longest, if there are any.
    pub(super) const fn range(&self) -> Option<(Duration, Duration)> {
        self.range
    }

    /// The time that this share of them, in parts of a thousand, does not exceed.
    pub(super) fn percentile(&self, thousandths: u32) -> Option<Duration> {
        let (min, max) = self.range?;
        let nanos = self.times.value_at_quantile(f64::from(thousandths) / 1000.0);
        Some(Duration::from_nanos(nanos).clamp(min, max))
    }

    /// How many there are in each of `rows` equal steps of the logarithm, with the upper end of each step.
    pub(super) fn histogram(&self, rows: u32) -> Vec<(Duration, u64)> {
        let Some((min, max)) = self.range() else { return Vec::new() };
        let (low, high) = (min.as_secs_f64().max(1e-9), max.as_secs_f64().max(1e-9));
        let step = (high / low).powf(1.0 / f64::from(rows));
        if step <= 1.0 {
            return vec![(max, self.total())];
        }
        let mut ends: Vec<_> =
            (1..=rows).map(|row| Duration::from_secs_f64(low * step.powf(f64::from(row)))).collect();
        // The last one has them all, whatever the arithmetic says.
        if let Some(last) = ends.last_mut() {
            *last = max;
        }
        let mut histogram: Vec<_> = ends.into_iter().map(|end| (end, 0)).collect();
        for recorded in self.times.iter_recorded() {
            let time = Duration::from_nanos(recorded.value_iterated_to()).clamp(min, max);
            if let Some(row) = histogram.iter_mut().find(|(end, _)| time <= *end) {
                row.1 += recorded.count_at_value();
            }
        }
        histogram
    }
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
