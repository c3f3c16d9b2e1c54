//! Probe against cyclictest, round by round.

use std::fmt;

use serde::Serialize;

use crate::common::median;

/// Samples in nanoseconds of both, taken close together.
#[derive(Debug, Default)]
pub struct Round {
    /// The probe's two blocks.
    pub probe: Vec<u32>,
    /// cyclictest's two blocks.
    pub cyclictest: Vec<u32>,
}

/// One comparison. A virtual machine has a fast and a slow mood, factors apart, that last for seconds: medians of all
/// samples would compare moods, ratios within rounds compare the tools.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// Medians of the rounds' medians, in nanoseconds.
    pub probe_median_ns: f64,
    /// As above.
    pub cyclictest_median_ns: f64,
    /// Probe's median over cyclictest's in each round.
    pub ratios: Vec<f64>,
    /// The median of these.
    pub ratio: f64,
    /// Largest distance of that ratio from 1.
    pub tolerance: f64,
    /// Whether it is within.
    pub agrees: bool,
}

impl Comparison {
    /// Compares. Nothing when one of them has no sample in a round.
    pub fn of(rounds: &[Round], tolerance: f64) -> Option<Self> {
        let of_all = |pick: fn(&Round) -> &[u32]| -> Option<Vec<f64>> {
            rounds.iter().map(|round| median(pick(round).iter().map(|ns| f64::from(*ns)).collect())).collect()
        };
        let (probe, cyclictest) = (of_all(|r| &r.probe)?, of_all(|r| &r.cyclictest)?);
        // cyclictest's 0 stands for less than its resolution.
        let ratios: Vec<f64> = probe.iter().zip(&cyclictest).map(|(p, c)| p / c.max(1.0)).collect();
        let ratio = median(ratios.clone())?;
        Some(Self {
            probe_median_ns: median(probe)?,
            cyclictest_median_ns: median(cyclictest)?,
            ratios,
            ratio,
            tolerance,
            agrees: (ratio - 1.0).abs() <= tolerance,
        })
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "probe median {:.1} us, cyclictest {:.1} us, {:.2} times as much in the median round: {} {:.0} % apart",
            self.probe_median_ns / 1000.0,
            self.cyclictest_median_ns / 1000.0,
            self.ratio,
            if self.agrees { "at most" } else { "more than" },
            self.tolerance * 100.0
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(probe: u32, cyclictest: u32) -> Round {
        Round { probe: vec![probe; 3], cyclictest: vec![cyclictest; 3] }
    }

    #[test]
    fn a_machine_that_is_slow_in_half_of_the_rounds_for_both_agrees() {
        let rounds: Vec<Round> =
            (0..12).map(|at| if at < 6 { round(8_100, 8_000) } else { round(24_300, 24_000) }).collect();
        assert!(Comparison::of(&rounds, 0.25).unwrap().agrees);
    }

    #[test]
    fn a_mood_that_changes_within_a_few_rounds_does_not_decide() {
        let mut rounds: Vec<Round> = (0..8).map(|_| round(8_000, 8_000)).collect();
        rounds.extend([
            round(24_000, 8_000),
            round(24_000, 8_000),
            round(8_000, 24_000),
            round(24_000, 8_000),
        ]);
        assert!(Comparison::of(&rounds, 0.25).unwrap().agrees);
    }

    #[test]
    fn a_probe_that_is_half_as_late_again_in_all_moods_disagrees_and_says_so() {
        let rounds: Vec<Round> = (0..12)
            .map(|at| if at % 2 == 0 { round(12_000, 8_000) } else { round(36_000, 24_000) })
            .collect();
        let comparison = Comparison::of(&rounds, 0.25).unwrap();
        assert!(!comparison.agrees);
        let words = comparison.to_string();
        assert!(words.starts_with("probe median 24.0 us, cyclictest 16.0 us"), "{words}");
        assert!(words.ends_with("more than 25 % apart"), "{words}");
    }

    #[test]
    fn rounds_without_cyclictest_are_no_comparison() {
        let rounds = [Round { probe: vec![1], cyclictest: Vec::new() }];
        assert!(Comparison::of(&rounds, 0.25).is_none());
        assert!(Comparison::of(&[], 0.25).is_none());
    }
}
