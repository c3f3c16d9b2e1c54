//! How late deadlines were met.

use hdrhistogram::Histogram;

/// Longest lateness told apart, in nanoseconds (60 s). What is later counts as this.
const LONGEST_NS: u64 = 60_000_000_000;
/// Shortest span told apart, in nanoseconds.
const SHORTEST_NS: u64 = 1;
/// Significant decimal digits of a bucket: quantiles are right to 1 %.
const DIGITS: u8 = 2;

/// Lateness of every deadline since it was made or cleared. Recording does not allocate: the buckets are laid
/// out once, for 1 ns to 60 s.
#[derive(Debug, Clone)]
pub struct Lateness {
    histogram: Histogram<u64>,
}

/// What a [`Lateness`] has seen. Nanoseconds; all 0 when nothing was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LatenessSummary {
    /// Deadlines met.
    pub count: u64,
    /// Half of them were not later than this.
    pub p50: u64,
    /// 99 of 100 were not later than this.
    pub p99: u64,
    /// The latest.
    pub max: u64,
}

impl Lateness {
    /// An empty record. `None` if the histogram's fixed bounds were impossible, which a test rules out.
    #[must_use]
    pub fn new() -> Option<Self> {
        let histogram = Histogram::new_with_bounds(SHORTEST_NS, LONGEST_NS, DIGITS).ok()?;
        Some(Self { histogram })
    }

    /// A deadline was met `ns` nanoseconds late.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.histogram.saturating_record(ns);
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.histogram.reset();
    }

    /// What was recorded.
    #[must_use]
    pub fn summary(&self) -> LatenessSummary {
        LatenessSummary {
            count: self.histogram.len(),
            p50: self.histogram.value_at_quantile(0.50),
            p99: self.histogram.value_at_quantile(0.99),
            max: self.histogram.max(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_recorded_summarises_to_zeros() {
        assert_eq!(Lateness::new().unwrap().summary(), LatenessSummary::default());
    }

    #[test]
    fn quantiles_are_right_to_one_percent_and_the_maximum_is_kept() {
        let mut lateness = Lateness::new().unwrap();
        (1..=1000).for_each(|us| lateness.record(us * 1000));
        let seen = lateness.summary();
        assert_eq!(seen.count, 1000);
        assert!((495_000..=506_000).contains(&seen.p50), "{seen:?}");
        assert!((980_000..=1_000_000).contains(&seen.p99), "{seen:?}");
        assert!((1_000_000..=1_010_000).contains(&seen.max), "{seen:?}");
    }

    #[test]
    fn zero_and_absurd_lateness_are_taken() {
        let mut lateness = Lateness::new().unwrap();
        lateness.record(0);
        lateness.record(u64::MAX);
        assert_eq!(lateness.summary().count, 2);
    }
}
