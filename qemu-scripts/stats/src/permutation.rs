//! Permutation test: is the difference between two arms larger than relabelling their blocks makes it?
//!
//! If the arms do not differ, the labels of blocks of one stratum are exchangeable, and the p-value is the share of all labellings whose
//! statistic is at least as far from 0 as the observed one. That holds for any distribution. The observed labelling counts itself, so p is never 0 and
//! P(p ≤ α) ≤ α, by complete enumeration and by random sampling alike.

use rand::{Rng, SeedableRng, rngs::SmallRng, seq::SliceRandom};
use serde::{Deserialize, Serialize};
use statrs::function::factorial::binomial;

use crate::{
    BlockValue, Location, StatsError, Strata,
    blocks::{Stratum, aligned, difference, strata},
};

/// How to run the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Which labels may be exchanged.
    pub strata: Strata,
    /// All labellings are enumerated up to this number of them; beyond, they are sampled.
    pub exact_up_to: u32,
    /// Labellings sampled, at least 1.
    pub samples: u32,
    /// Seed of the sampling; plays no part in an enumeration.
    pub seed: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Self { strata: Strata::Rounds, exact_up_to: 20_000, samples: 10_000, seed: 0 }
    }
}

/// Outcome of a test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The statistic of the data as they are labelled.
    pub observed: f64,
    /// Two-sided p-value, in (0, 1].
    pub p: f64,
    /// Smallest p-value that this number of blocks (and samples) could have given at all.
    pub smallest_p: f64,
    /// Labellings looked at.
    pub labellings: u32,
    /// Whether these were all there are.
    pub exact: bool,
}

/// Tests the difference (second minus first) of the arms' locations, after taking the level of each stratum out.
///
/// # Errors
/// A value that is not finite, no stratum with both arms, or no samples asked for.
pub fn of_difference(
    first: &[BlockValue],
    second: &[BlockValue],
    location: Location,
    plan: &Plan,
) -> Result<Outcome, StatsError> {
    let strata = aligned(&strata(first, second, plan.strata)?, location);
    if strata.is_empty() {
        return Err(StatsError::TooFew { what: "rounds with both arms", got: 0, need: 1 });
    }
    // Sums of the same numbers in another order differ by rounding: so much counts as a tie.
    let scale =
        strata.iter().flat_map(|s| s.first.iter().chain(&s.second)).fold(0.0, |max: f64, v| max.max(v.abs()));
    let observed = difference(strata.iter(), location);
    let statistic = |first: &[f64], second: &[f64]| location.of(second) - location.of(first);
    let mirrored = strata.iter().all(|stratum| stratum.first.len() == stratum.second.len());
    Labellings::of(&strata).run(observed, 1e-10 * scale, mirrored, plan, statistic)
}

/// Tests a statistic of the caller's choice, which gets the (unaligned) values of the first and the second arm and must be near 0 when they are alike.
///
/// # Errors
/// As [`of_difference`]; a statistic that is NaN counts as far from 0.
pub fn of_statistic(
    first: &[BlockValue],
    second: &[BlockValue],
    plan: &Plan,
    statistic: impl FnMut(&[f64], &[f64]) -> f64,
) -> Result<Outcome, StatsError> {
    let strata = strata(first, second, plan.strata)?;
    if strata.is_empty() {
        return Err(StatsError::TooFew { what: "rounds with both arms", got: 0, need: 1 });
    }
    let mut statistic = statistic;
    let all = |pick: fn(&Stratum) -> &Vec<f64>| strata.iter().flat_map(pick).copied().collect::<Vec<_>>();
    let observed = statistic(&all(|s| &s.first), &all(|s| &s.second));
    Labellings::of(&strata).run(observed, 1e-10 * observed.abs(), false, plan, statistic)
}

/// Number of ways to label the blocks of two arms, infinite when beyond `f64`.
fn count(strata: &[Group]) -> f64 {
    strata.iter().map(|group| binomial(group.pool.len() as u64, group.first as u64)).product()
}

/// Smallest p-value that a test of [`of_difference`] on this many blocks can give; 1 when no stratum holds both arms.
///
/// # Errors
/// A value that is not finite.
pub fn smallest_p(first: &[BlockValue], second: &[BlockValue], plan: &Plan) -> Result<f64, StatsError> {
    let strata = strata(first, second, plan.strata)?;
    let mirrored = strata.iter().all(|stratum| stratum.first.len() == stratum.second.len());
    let labellings = Labellings::of(&strata);
    Ok(labellings.smallest_p(mirrored, plan))
}

/// One stratum: its values, and how many of them carry the first label.
struct Group {
    pool: Vec<f64>,
    first: usize,
}

struct Labellings {
    groups: Vec<Group>,
    count: f64,
}

impl Labellings {
    fn of(strata: &[Stratum]) -> Self {
        let groups: Vec<Group> = strata
            .iter()
            .map(|s| Group { pool: [s.first.as_slice(), s.second.as_slice()].concat(), first: s.first.len() })
            .collect();
        Self { count: count(&groups), groups }
    }

    fn exact(&self, plan: &Plan) -> bool {
        self.count <= f64::from(plan.exact_up_to)
    }

    /// Exchanging all labels turns a difference round, so with equal numbers every labelling has an equally extreme mirror image.
    fn smallest_p(&self, mirrored: bool, plan: &Plan) -> f64 {
        let floor = (if mirrored { 2.0 } else { 1.0 } / self.count).min(1.0);
        if self.exact(plan) { floor } else { floor.max(1.0 / (f64::from(plan.samples) + 1.0)) }
    }

    fn run(
        mut self,
        observed: f64,
        tie: f64,
        mirrored: bool,
        plan: &Plan,
        mut statistic: impl FnMut(&[f64], &[f64]) -> f64,
    ) -> Result<Outcome, StatsError> {
        if plan.samples == 0 {
            return Err(StatsError::Setting {
                name: "permutation samples",
                value: 0.0,
                expected: "at least 1",
            });
        }
        let smallest_p = self.smallest_p(mirrored, plan);
        let exact = self.exact(plan);
        let (mut extreme, mut labellings) = (0_u32, 0_u32);
        let mut look = |first: &[f64], second: &[f64]| {
            labellings += 1;
            let value = statistic(first, second).abs();
            extreme += u32::from(value.is_nan() || value >= observed.abs() - tie);
        };
        let p = if exact {
            self.enumerate(&mut look);
            f64::from(extreme) / f64::from(labellings)
        } else {
            self.sample(plan, &mut look);
            // The observed labelling is one more.
            (f64::from(extreme) + 1.0) / (f64::from(labellings) + 1.0)
        };
        Ok(Outcome { observed, p, smallest_p, labellings, exact })
    }

    /// Every labelling once: an odometer with one wheel per stratum.
    fn enumerate(&self, look: &mut impl FnMut(&[f64], &[f64])) {
        let mut wheels: Vec<Vec<usize>> =
            self.groups.iter().map(|group| (0..group.first).collect()).collect();
        let (mut first, mut second) = (Vec::new(), Vec::new());
        loop {
            first.clear();
            second.clear();
            for (group, chosen) in self.groups.iter().zip(&wheels) {
                let mut chosen = chosen.iter().copied().peekable();
                for (index, &value) in group.pool.iter().enumerate() {
                    if chosen.next_if_eq(&index).is_some() { first.push(value) } else { second.push(value) }
                }
            }
            look(&first, &second);
            let turned =
                self.groups.iter().zip(&mut wheels).any(|(group, wheel)| turn(wheel, group.pool.len()));
            if !turned {
                return;
            }
        }
    }

    fn sample(&mut self, plan: &Plan, look: &mut impl FnMut(&[f64], &[f64])) {
        let mut random = SmallRng::seed_from_u64(plan.seed);
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for _ in 0..plan.samples {
            first.clear();
            second.clear();
            for group in &mut self.groups {
                let (chosen, rest) = label(&mut group.pool, group.first, &mut random);
                first.extend_from_slice(chosen);
                second.extend_from_slice(rest);
            }
            look(&first, &second);
        }
    }
}

/// Draws which values carry the first label.
fn label<'a>(pool: &'a mut [f64], first: usize, random: &mut impl Rng) -> (&'a [f64], &'a [f64]) {
    let (chosen, rest) = pool.partial_shuffle(random, first);
    (chosen, rest)
}

/// Moves a sorted choice of indices below `n` to the next one in lexicographic order. At the last one it goes back to the first and says `false`.
fn turn(chosen: &mut [usize], n: usize) -> bool {
    let k = chosen.len();
    match (0..k).rev().find(|&place| chosen[place] < n - k + place) {
        Some(place) => {
            let next = chosen[place] + 1;
            for (offset, index) in chosen[place..].iter_mut().enumerate() {
                *index = next + offset;
            }
            true
        }
        None => {
            for (index, chosen) in chosen.iter_mut().enumerate() {
                *chosen = index;
            }
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(values: &[(u32, f64)]) -> Vec<BlockValue> {
        values.iter().map(|&(round, value)| BlockValue { round, value }).collect()
    }

    #[test]
    fn three_against_three_apart_give_two_of_twenty() {
        let (a, b) = (BlockValue::unrounded(&[1.0, 2.0, 3.0]), BlockValue::unrounded(&[7.0, 8.0, 9.0]));
        let plan = Plan { strata: Strata::Pooled, ..Plan::default() };
        let outcome = of_difference(&a, &b, Location::Mean, &plan).unwrap();
        assert_eq!(outcome, Outcome { observed: 6.0, p: 0.1, smallest_p: 0.1, labellings: 20, exact: true });
    }

    #[test]
    fn one_pair_in_each_of_eight_rounds_gives_two_of_256_despite_a_large_drift() {
        let drifting = |shift: f64| -> Vec<BlockValue> {
            (0..8_u32)
                .map(|round| BlockValue { round, value: f64::from(round * round) * 100.0 + shift })
                .collect()
        };
        let outcome =
            of_difference(&drifting(0.0), &drifting(1.0), Location::Mean, &Plan::default()).unwrap();
        assert_eq!((outcome.labellings, outcome.p, outcome.smallest_p), (256, 2.0 / 256.0, 2.0 / 256.0));
        let pooled = Plan { strata: Strata::Pooled, ..Plan::default() };
        assert!(of_difference(&drifting(0.0), &drifting(1.0), Location::Mean, &pooled).unwrap().p > 0.9);
    }

    #[test]
    fn equal_values_give_p_one() {
        let a = arm(&[(0, 5.0), (0, 5.0), (1, 5.0)]);
        let outcome = of_difference(&a, &a, Location::Median, &Plan::default()).unwrap();
        assert_eq!((outcome.p, outcome.observed), (1.0, 0.0));
    }

    #[test]
    fn sampling_comes_near_the_enumeration() {
        let a = BlockValue::unrounded(&[3.1, 4.7, 2.2, 5.9, 4.0, 3.3, 6.1]);
        let b = BlockValue::unrounded(&[4.4, 6.2, 5.1, 7.0, 3.9, 6.6, 5.5]);
        let plan = Plan { strata: Strata::Pooled, ..Plan::default() };
        let exact = of_difference(&a, &b, Location::Mean, &plan).unwrap();
        let sampled = of_difference(&a, &b, Location::Mean, &Plan { exact_up_to: 0, ..plan }).unwrap();
        assert!(exact.exact && !sampled.exact);
        assert_eq!((exact.labellings, sampled.labellings), (3432, 10_000));
        assert!((exact.p - sampled.p).abs() < 0.01, "{} and {}", exact.p, sampled.p);
    }

    #[test]
    fn every_choice_of_three_among_six_comes_once() {
        let mut chosen = vec![0, 1, 2];
        let mut seen = std::collections::BTreeSet::from([chosen.clone()]);
        while turn(&mut chosen, 6) {
            assert!(seen.insert(chosen.clone()));
        }
        assert_eq!(seen.len(), 20);
        assert_eq!(chosen, [0, 1, 2]);
    }

    #[test]
    fn a_statistic_of_the_callers_choice_sees_the_raw_values() {
        let (a, b) = (arm(&[(0, 1.0), (1, 2.0), (2, 3.0)]), arm(&[(0, 10.0), (1, 20.0), (2, 30.0)]));
        let log_ratio = |a: &[f64], b: &[f64]| (b.iter().sum::<f64>() / a.iter().sum::<f64>()).ln();
        let outcome = of_statistic(&a, &b, &Plan::default(), log_ratio).unwrap();
        assert!((outcome.observed - 10.0_f64.ln()).abs() < 1e-12);
        assert_eq!((outcome.labellings, outcome.p), (8, 0.25));
    }

    #[test]
    fn nothing_to_compare_is_an_error() {
        let (a, b) = (arm(&[(0, 1.0)]), arm(&[(1, 1.0)]));
        assert!(of_difference(&a, &b, Location::Mean, &Plan::default()).is_err());
        assert_eq!(smallest_p(&a, &b, &Plan::default()), Ok(1.0));
        assert!(of_difference(&arm(&[(0, f64::NAN)]), &a, Location::Mean, &Plan::default()).is_err());
    }
}
