//! What sections of known length must do to a probe.
//!
//! A probe that wakes at a random moment on a CPU where uninterruptible sections of length L begin at rate λ, independently of it,
//! falls into one with probability λ·E\[L\] and then waits for the rest of it. So, to first order in λ·E\[L\] (sections neither overlap
//! nor queue), its extra mean delay is λ·E\[L²\]/2 and the chance of a delay beyond x is λ·E\[(L − x)⁺\].

use serde::Serialize;

use crate::{StatsError, error::finite, summary::mean};

const SECONDS_PER_NANOSECOND: f64 = 1e-9;

/// Sections that disturb a probe.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sections {
    rate_per_second: f64,
    lengths_ns: Vec<f64>,
}

impl Sections {
    /// Sections that begin `rate_per_second` times a second, with lengths in nanoseconds of which each given one is equally likely.
    ///
    /// # Errors
    /// No length, one that is not finite or negative, a rate that is not finite or negative, or sections that fill more than the whole
    /// time (λ·E\[L\] ≥ 1), for which the formulas mean nothing.
    pub fn new<T: Copy + Into<f64>>(rate_per_second: f64, lengths_ns: &[T]) -> Result<Self, StatsError> {
        let lengths_ns = finite(lengths_ns, "section lengths", 1)?;
        if let Some(&value) = lengths_ns.iter().find(|length| **length < 0.0) {
            return Err(StatsError::Setting { name: "section length", value, expected: "not negative" });
        }
        if !(rate_per_second.is_finite() && rate_per_second >= 0.0) {
            let expected = "finite and not negative";
            return Err(StatsError::Setting { name: "section rate", value: rate_per_second, expected });
        }
        let sections = Self { rate_per_second, lengths_ns };
        let share = sections.utilisation();
        if share >= 1.0 {
            return Err(StatsError::Setting {
                name: "share of time in sections",
                value: share,
                expected: "below 1",
            });
        }
        Ok(sections)
    }

    /// Share of all time spent in sections, λ·E\[L\]: the formulas are off by about this share.
    #[must_use]
    pub fn utilisation(&self) -> f64 {
        self.rate_per_nanosecond() * mean(&self.lengths_ns)
    }

    /// Extra mean delay of the probe in nanoseconds: λ·E\[L²\]/2.
    #[must_use]
    pub fn extra_mean_ns(&self) -> f64 {
        self.rate_per_nanosecond() * self.mean_of(|length| length * length) / 2.0
    }

    /// Probability that one wake-up is delayed by more than `delay_ns`: λ·E\[(L − x)⁺\].
    #[must_use]
    pub fn exceedance(&self, delay_ns: f64) -> f64 {
        self.rate_per_nanosecond() * self.mean_of(|length| (length - delay_ns).max(0.0))
    }

    fn rate_per_nanosecond(&self) -> f64 {
        self.rate_per_second * SECONDS_PER_NANOSECOND
    }

    fn mean_of(&self, f: impl Fn(f64) -> f64) -> f64 {
        self.lengths_ns.iter().map(|&length| f(length)).sum::<f64>() / self.lengths_ns.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::SmallRng};

    #[test]
    fn hundred_thousand_sections_of_2800_ns_a_second_add_0_392_us() {
        let sections = Sections::new(1e5, &[2800_u32]).unwrap();
        assert!((sections.extra_mean_ns() - 392.0).abs() < 1e-9);
        assert!((sections.utilisation() - 0.28).abs() < 1e-12);
        assert!((sections.exceedance(1800.0) - 0.1).abs() < 1e-12);
        assert_eq!(sections.exceedance(2800.0), 0.0);
    }

    /// Plays the situation: a time line with sections at random gaps, a probe at random moments.
    #[test]
    fn a_simulated_probe_sees_the_mean_and_the_tail_of_the_formulas() {
        let mut random = SmallRng::seed_from_u64(7);
        let lengths = [1000.0, 2000.0, 9000.0];
        let sections = Sections::new(2e4, &lengths).unwrap();
        let mut spans = Vec::new();
        let mut now = 0.0_f64;
        while now < 1e10 {
            // Sections start once per 50 µs, at a random place in the first 40 µs, so that none overlap.
            let start = now + random.random_range(0.0..40_000.0);
            spans.push((start, start + lengths[random.random_range(0..3)]));
            now += 50_000.0;
        }
        let (mut total, mut beyond, probes) = (0.0, 0.0, 400_000);
        for _ in 0..probes {
            let wake = random.random_range(0.0..now);
            let next = spans.partition_point(|span| span.1 <= wake);
            let delay = spans.get(next).filter(|span| span.0 <= wake).map_or(0.0, |span| span.1 - wake);
            total += delay;
            beyond += f64::from(u8::from(delay > 4000.0));
        }
        let (measured, expected) = (total / f64::from(probes), sections.extra_mean_ns());
        assert!((measured / expected - 1.0).abs() < 0.03, "mean {measured} for {expected}");
        let (measured, expected) = (beyond / f64::from(probes), sections.exceedance(4000.0));
        assert!((measured / expected - 1.0).abs() < 0.05, "tail {measured} for {expected}");
    }

    #[test]
    fn impossible_sections_are_refused() {
        assert!(Sections::new::<f64>(1.0, &[]).is_err());
        assert!(Sections::new(-1.0, &[1.0]).is_err());
        assert!(Sections::new(1.0, &[-1.0]).is_err());
        assert!(Sections::new(f64::NAN, &[1.0]).is_err());
        assert!(Sections::new(1e6, &[1000.0]).is_err());
    }
}
