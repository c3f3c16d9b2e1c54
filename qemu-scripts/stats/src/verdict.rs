//! One verdict by one stated rule.
//!
//! *Different* is said only if the permutation test gives p < α **and** the bootstrap interval of the difference excludes 0. The first condition alone keeps the
//! promise that two equal arms are called different with probability at most α, whatever the distribution; the second can only
//! lower it. *Not enough data* is said when this number of blocks could not have given p < α even with the arms fully apart.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    BlockValue, Location, StatsError, Strata, bootstrap, bootstrap::Interval, error::probability, permutation,
};

/// The rule, with all its settings.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// Error rate: the probability of calling equal arms different is at most this.
    pub alpha: f64,
    /// What of an arm is compared.
    pub location: Location,
    /// The permutation test.
    pub permutation: permutation::Plan,
    /// The interval.
    pub bootstrap: bootstrap::Plan,
}

impl Default for Rule {
    /// α = 0.01, means, labels exchanged within rounds, 95 % interval.
    fn default() -> Self {
        Self {
            alpha: 0.01,
            location: Location::Mean,
            permutation: permutation::Plan::default(),
            bootstrap: bootstrap::Plan::default(),
        }
    }
}

impl Rule {
    /// The same rule for numbers without rounds.
    #[must_use]
    pub fn pooled(mut self) -> Self {
        self.permutation.strata = Strata::Pooled;
        self
    }

    /// The same rule with another seed for both the test and the interval.
    #[must_use]
    pub fn seeded(mut self, seed: u64) -> Self {
        self.permutation.seed = seed;
        self.bootstrap.seed = seed;
        self
    }
}

/// What is said of the candidate, for a metric where less is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Call {
    /// The candidate is lower than the baseline.
    Better,
    /// The candidate is higher.
    Worse,
    /// The data could have shown a difference and did not.
    NoDifferenceSeen,
    /// So few blocks cannot show any difference at this α.
    NotEnoughData,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::NoDifferenceSeen => "no difference seen",
            Self::NotEnoughData => "not enough data",
        })
    }
}

/// A call with the numbers behind it. Differences are candidate minus baseline.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// What is said.
    pub call: Call,
    /// Location of the baseline's blocks; `None` without blocks.
    pub baseline: Option<f64>,
    /// Location of the candidate's blocks; `None` without blocks.
    pub candidate: Option<f64>,
    /// Difference within strata and its interval; `None` when fewer than two rounds (or blocks per arm) can be compared.
    pub difference: Option<Interval>,
    /// The difference as a share of the baseline (0.1 is 10 % more); `None` without a difference or with a baseline of 0.
    pub relative: Option<f64>,
    /// The permutation test; `None` when no round holds both arms.
    pub test: Option<permutation::Outcome>,
    /// Smallest p-value that this number of blocks allows.
    pub smallest_p: f64,
    /// Blocks of the baseline.
    pub baseline_blocks: usize,
    /// Blocks of the candidate.
    pub candidate_blocks: usize,
    /// The rule applied; `rule.alpha` is its stated error rate.
    pub rule: Rule,
}

/// Compares a candidate with a baseline, less being better.
///
/// Exchanging the two exchanges better and worse, turns the difference round and changes no p-value.
///
/// # Errors
/// A value that is not finite, or a rule out of range. Too little data is a verdict, not an error.
pub fn judge(baseline: &[BlockValue], candidate: &[BlockValue], rule: &Rule) -> Result<Verdict, StatsError> {
    let alpha = probability("alpha", rule.alpha)?;
    let plan = &rule.permutation;
    // Chance must not depend on which arm is called the baseline: both are put in an order that only their numbers decide.
    let swapped = key(candidate) < key(baseline);
    let (first, second) = if swapped { (candidate, baseline) } else { (baseline, candidate) };
    let smallest_p = permutation::smallest_p(first, second, plan)?;
    let test = enough(permutation::of_difference(first, second, rule.location, plan))?;
    let difference =
        enough(bootstrap::of_arm_difference(first, second, plan.strata, rule.location, &rule.bootstrap))?;
    let (test, difference) = if swapped {
        let turned = |test: permutation::Outcome| permutation::Outcome { observed: -test.observed, ..test };
        (test.map(turned), difference.map(Interval::mirrored))
    } else {
        (test, difference)
    };
    let call = match (&test, &difference) {
        (Some(test), Some(difference)) if smallest_p < alpha => {
            if test.p < alpha && difference.excludes_zero() {
                if difference.estimate < 0.0 { Call::Better } else { Call::Worse }
            } else {
                Call::NoDifferenceSeen
            }
        }
        _ => Call::NotEnoughData,
    };
    let (baseline_level, candidate_level) = (level(baseline, rule.location), level(candidate, rule.location));
    let relative = match (difference, baseline_level) {
        (Some(difference), Some(level)) if level != 0.0 => Some(difference.estimate / level.abs()),
        _ => None,
    };
    Ok(Verdict {
        call,
        baseline: baseline_level,
        candidate: candidate_level,
        difference,
        relative,
        test,
        smallest_p,
        baseline_blocks: baseline.len(),
        candidate_blocks: candidate.len(),
        rule: *rule,
    })
}

/// Too little data is no error of a verdict.
fn enough<T>(result: Result<T, StatsError>) -> Result<Option<T>, StatsError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(StatsError::TooFew { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn level(blocks: &[BlockValue], location: Location) -> Option<f64> {
    let values: Vec<f64> = blocks.iter().map(|block| block.value).collect();
    (!values.is_empty()).then(|| location.of(&values))
}

/// An arm's numbers in an order of their own; for finite values the bits of `value` sort as well as any order.
fn key(blocks: &[BlockValue]) -> Vec<(u32, u64)> {
    let mut key: Vec<(u32, u64)> = blocks.iter().map(|block| (block.round, block.value.to_bits())).collect();
    key.sort_unstable();
    key
}

/// Fewest rounds (or blocks per arm, without rounds) for which an interval is printed: with fewer, resampling can only repeat a
/// handful of numbers, and the interval looks far surer than it is. The rule applies it all the same, where it can only hold a call back.
pub const MIN_INTERVAL_UNITS: usize = 6;

/// A p-value with as many digits as it takes to see on which side of `bound` it lies, two at least.
fn shown_p(p: f64, bound: f64) -> String {
    let text = |digits: usize| {
        if p < 1e-4 {
            return format!("{p:.*e}", digits - 1);
        }
        // Digits before the first one that counts: 0.037 has one.
        let leading = (-p.log10()).ceil().max(1.0) as usize - 1;
        format!("{p:.*}", leading + digits)
    };
    let side = |value: f64| value.partial_cmp(&bound);
    let tells = |text: &String| text.parse().is_ok_and(|value| side(value) == side(p));
    (2..=6).map(text).find(tells).unwrap_or_else(|| text(6))
}

/// One or two sentences for a terminal; numbers in the unit of the metric.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.rule.alpha * 100.0;
        write!(f, "{}: ", self.call)?;
        if self.call == Call::NotEnoughData {
            return write!(
                f,
                "{} and {} blocks cannot give p < {} (the smallest possible is {})",
                self.baseline_blocks,
                self.candidate_blocks,
                self.rule.alpha,
                shown_p(self.smallest_p, self.rule.alpha)
            );
        }
        if let Some(difference) = &self.difference {
            write!(f, "{:+.4}", difference.estimate)?;
            if let Some(relative) = self.relative {
                write!(f, " ({:+.2} %)", relative * 100.0)?;
            }
            if difference.units < MIN_INTERVAL_UNITS {
                let unit = match self.rule.permutation.strata {
                    Strata::Rounds => "rounds",
                    Strata::Pooled => "values",
                };
                write!(f, ", too few {unit} for an interval ({} of {MIN_INTERVAL_UNITS})", difference.units)?;
            } else {
                let confidence = difference.confidence * 100.0;
                write!(f, ", {confidence} % interval {:+.4} to {:+.4}", difference.low, difference.high)?;
            }
        }
        if let Some(test) = &self.test {
            let alpha = self.rule.alpha;
            write!(f, ", p = {}; a difference needs p < {alpha}", shown_p(test.p, alpha))?;
            // The other half of the rule is said where it was that which decided.
            let held_back = self.call == Call::NoDifferenceSeen && test.p < alpha;
            if held_back {
                write!(f, " and an interval without 0")?;
            }
        }
        write!(f, "; equal arms are called different in at most {percent} % of comparisons")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(rounds: u32, per_round: u32, value: impl Fn(u32, u32) -> f64) -> Vec<BlockValue> {
        (0..rounds)
            .flat_map(|round| (0..per_round).map(move |place| (round, place)))
            .map(|(round, place)| BlockValue { round, value: value(round, place) })
            .collect()
    }

    #[test]
    fn a_lower_candidate_is_better_and_the_exchange_is_worse() {
        let baseline = arm(6, 2, |round, place| 100.0 + f64::from(round * 30 + place * 3));
        let candidate = arm(6, 2, |round, place| 80.0 + f64::from(round * 30 + place * 4));
        let rule = Rule::default();
        let better = judge(&baseline, &candidate, &rule).unwrap();
        let worse = judge(&candidate, &baseline, &rule).unwrap();
        assert_eq!((better.call, worse.call), (Call::Better, Call::Worse));
        let (down, up) = (better.difference.unwrap(), worse.difference.unwrap());
        assert_eq!((down.estimate, down.low, down.high), (-up.estimate, -up.high, -up.low));
        assert_eq!(better.test.unwrap().p, worse.test.unwrap().p);
        assert!((down.estimate + 19.5).abs() < 1e-9);
        assert!((better.relative.unwrap() + 19.5 / 176.5).abs() < 1e-9);
    }

    #[test]
    fn two_rounds_of_two_are_not_enough_and_three_are() {
        let judge = |rounds| {
            let low = arm(rounds, 2, |_, place| f64::from(place));
            let high = arm(rounds, 2, |_, place| f64::from(place + 10));
            judge(&low, &high, &Rule::default()).unwrap()
        };
        assert_eq!((judge(2).call, judge(2).smallest_p), (Call::NotEnoughData, 2.0 / 36.0));
        assert_eq!((judge(3).call, judge(3).smallest_p), (Call::Worse, 2.0 / 216.0));
    }

    #[test]
    fn no_blocks_at_all_are_not_enough() {
        let verdict = judge(&[], &[], &Rule::default()).unwrap();
        assert_eq!((verdict.call, verdict.difference, verdict.smallest_p), (Call::NotEnoughData, None, 1.0));
    }

    #[test]
    fn one_wild_block_hides_a_shift_of_means_but_not_of_medians() {
        let baseline = arm(10, 2, |round, place| 100.0 + f64::from((round * 7 + place * 5) % 11));
        let mut candidate = arm(10, 2, |round, place| 60.0 + f64::from((round * 5 + place * 3) % 11));
        candidate[7].value = 100_000.0;
        let by = |location| judge(&baseline, &candidate, &Rule { location, ..Rule::default() }).unwrap().call;
        assert_eq!(by(Location::Mean), Call::NoDifferenceSeen);
        assert_eq!(by(Location::Median), Call::Better);
    }

    #[test]
    fn text_states_estimate_interval_p_and_error_rate() {
        let low = arm(3, 2, |_, place| 10.0 + f64::from(place));
        let high = arm(3, 2, |_, place| 20.0 + f64::from(place));
        assert_eq!(
            judge(&high, &low, &Rule::default()).unwrap().to_string(),
            "better: -10.0000 (-48.78 %), too few rounds for an interval (3 of 6), p = 0.0093; a difference needs p < 0.01; \
             equal arms are called different in at most 1 % of comparisons"
        );
        assert_eq!(
            judge(&high[..1], &low[..1], &Rule::default()).unwrap().to_string(),
            "not enough data: 1 and 1 blocks cannot give p < 0.01 (the smallest possible is 1.00)"
        );
        let long = judge(
            &arm(6, 2, |_, place| 20.0 + f64::from(place)),
            &arm(6, 2, |_, place| f64::from(place)),
            &Rule::default(),
        );
        let text = long.unwrap().to_string();
        assert!(text.contains("95 % interval -20.0000 to -20.0000, p = "), "{text}");
    }

    #[test]
    fn a_p_near_its_bound_is_shown_with_the_digits_that_tell() {
        let shown = |p| shown_p(p, 0.01);
        assert_eq!(shown(1.0 / 84.0), "0.012");
        assert_eq!(shown(0.037), "0.037");
        assert_eq!(shown(0.557), "0.56");
        assert_eq!((shown(0.009_97), shown(0.010_04)), ("0.00997".into(), "0.01004".into()));
        assert_eq!((shown(0.01), shown(1.0)), ("0.010".into(), "1.00".into()));
        assert_eq!(shown(2.345e-5), "2.3e-5");
    }

    #[test]
    fn bad_numbers_and_rules_are_errors() {
        let bad = [BlockValue { round: 0, value: f64::NAN }];
        assert!(judge(&bad, &bad, &Rule::default()).is_err());
        assert!(judge(&[], &[], &Rule { alpha: 0.0, ..Rule::default() }).is_err());
    }
}
