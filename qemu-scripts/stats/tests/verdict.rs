//! The promise of a verdict: equal arms are called different no more often than stated, a real shift is found.
//!
//! Every test draws thousands of data sets from fixed seeds, so its outcome never changes.

// The lint spares `#[test]` functions only; here their helpers are tests too.
#![allow(clippy::unwrap_used)]

use execlab_stats::{
    BlockValue, Location, Strata,
    verdict::{Call, Rule, judge},
};
use proptest::prelude::*;
use rand::{Rng, SeedableRng, rngs::SmallRng};

/// Blocks of one run in the order A B B A, `rounds` times, every value from `value(place in time, random)`.
fn interleaved(
    rounds: u32,
    random: &mut SmallRng,
    mut value: impl FnMut(u32, &mut SmallRng) -> f64,
) -> [Vec<BlockValue>; 2] {
    let mut arms = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        for (place, arm) in (0..).zip([0, 1, 1, 0]) {
            arms[arm].push(BlockValue { round, value: value(round * 4 + place, random) });
        }
    }
    arms
}

fn normal(random: &mut SmallRng) -> f64 {
    let (u, v): (f64, f64) = (random.random_range(f64::MIN_POSITIVE..1.0), random.random());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// Pareto with index 1.1: a mean that hardly exists, no variance.
fn heavy(random: &mut SmallRng) -> f64 {
    random.random_range(f64::MIN_POSITIVE..1.0).powf(-1.0 / 1.1)
}

/// Few samples per test keep this quick; the promise does not depend on their number.
fn quick(alpha: f64, seed: u64) -> Rule {
    let mut rule = Rule { alpha, ..Rule::default() }.seeded(seed);
    rule.permutation.samples = 999;
    rule.permutation.exact_up_to = 2000;
    rule.bootstrap.resamples = 200;
    rule
}

/// Counts false calls over `sets` null data sets and compares with what α allows, plus three deviations of the count itself.
fn assert_rate(
    name: &str,
    sets: u64,
    base: Rule,
    rounds: u32,
    mut value: impl FnMut(u64, u32, &mut SmallRng) -> f64,
) {
    let mut random = SmallRng::seed_from_u64(2024);
    let different = (0..sets)
        .filter(|&set| {
            let [a, b] = interleaved(rounds, &mut random, |time, random| value(set, time, random));
            let call = judge(&a, &b, &base.seeded(set)).unwrap().call;
            assert_ne!(call, Call::NotEnoughData);
            matches!(call, Call::Better | Call::Worse)
        })
        .count() as f64;
    let expected = sets as f64 * base.alpha;
    let allowed = expected + 3.0 * (expected * (1.0 - base.alpha)).sqrt();
    eprintln!("{name}: {different} of {sets} null comparisons called different, {expected} stated");
    assert!(different <= allowed, "{name}: {different} of {sets}, {allowed:.0} allowed");
}

#[test]
fn four_thousand_normal_null_sets_of_three_rounds_stay_at_one_percent() {
    assert_rate("normal, enumerated", 4000, quick(0.01, 0), 3, |_, _, random| normal(random));
}

#[test]
fn two_thousand_normal_null_sets_stay_at_ten_percent_when_ten_are_stated() {
    assert_rate("normal, sampled", 2000, quick(0.1, 0), 6, |_, _, random| normal(random));
}

#[test]
fn four_thousand_heavy_tailed_null_sets_stay_at_one_percent() {
    assert_rate("heavy, mean", 2000, quick(0.01, 0), 5, |_, _, random| heavy(random));
    let median = Rule { location: Location::Median, ..quick(0.01, 0) };
    assert_rate("heavy, median", 2000, median, 5, |_, _, random| heavy(random));
}

#[test]
fn two_thousand_drifting_null_sets_stay_at_one_percent() {
    assert_rate("linear drift", 2000, quick(0.01, 0), 6, |_, time, random| f64::from(time) + normal(random));
    let mut level = (0, 0.0);
    assert_rate("random walk", 2000, quick(0.01, 0), 6, move |set, _, random| {
        if level.0 != set {
            level = (set, 0.0);
        }
        level.1 += normal(random);
        level.1
    });
}

#[test]
fn two_thousand_pooled_null_sets_of_heavy_tails_stay_at_one_percent() {
    assert_rate("pooled", 2000, quick(0.01, 0).pooled(), 3, |_, _, random| heavy(random));
}

/// A shift of 1.5 standard deviations in 8 rounds (16 blocks per arm) must nearly always be found, drift or not.
#[test]
fn a_shift_of_one_and_a_half_deviations_under_drift_is_found_in_at_least_85_of_100_runs() {
    let mut random = SmallRng::seed_from_u64(9);
    let found = (0..100)
        .filter(|&set| {
            let [a, mut b] =
                interleaved(8, &mut random, |time, random| 10.0 * f64::from(time / 4) + normal(random));
            for block in &mut b {
                block.value -= 1.5;
            }
            judge(&a, &b, &quick(0.01, set)).unwrap().call == Call::Better
        })
        .count();
    eprintln!("shift of 1.5 deviations found in {found} of 100 runs");
    assert!(found >= 85, "{found} of 100");
}

/// The 95 % interval of the difference covers the true shift, within rounds and with drift between them.
#[test]
fn the_interval_covers_the_true_shift_in_at_least_91_percent_of_a_thousand_runs() {
    let mut random = SmallRng::seed_from_u64(10);
    let covered = (0..1000)
        .filter(|&set| {
            let [a, mut b] =
                interleaved(8, &mut random, |time, random| 10.0 * f64::from(time / 4) + normal(random));
            for block in &mut b {
                block.value += 0.7;
            }
            let interval = judge(&a, &b, &quick(0.01, set)).unwrap().difference.unwrap();
            interval.low <= 0.7 && 0.7 <= interval.high
        })
        .count();
    eprintln!("95 % interval covered the shift in {covered} of 1000 runs");
    assert!((910..=985).contains(&covered), "{covered} of 1000");
}

fn arm() -> impl Strategy<Value = Vec<BlockValue>> {
    let value = prop_oneof![-1e6..1e6_f64, (0..5_i32).prop_map(f64::from)];
    prop::collection::vec((0..5_u32, value).prop_map(|(round, value)| BlockValue { round, value }), 0..14)
}

proptest! {
    // An integration test has no source folder to keep failures in.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn exchanging_the_arms_turns_the_verdict_round(
        a in arm(), b in arm(), pooled: bool, median: bool, seed: u64,
    ) {
        let mut rule = quick(0.05, seed);
        rule.permutation.samples = 99;
        rule.permutation.exact_up_to = 500;
        if pooled { rule.permutation.strata = Strata::Pooled }
        if median { rule.location = Location::Median }
        let (there, back) = (judge(&a, &b, &rule).unwrap(), judge(&b, &a, &rule).unwrap());
        let turned = match there.call {
            Call::Better => Call::Worse,
            Call::Worse => Call::Better,
            other => other,
        };
        prop_assert_eq!(turned, back.call);
        prop_assert_eq!(there.test.map(|test| test.p), back.test.map(|test| test.p));
        prop_assert_eq!(there.smallest_p, back.smallest_p);
        prop_assert_eq!(
            there.difference.map(|d| (-d.estimate, -d.high, -d.low)),
            back.difference.map(|d| (d.estimate, d.low, d.high))
        );
    }

    #[test]
    fn the_order_in_which_blocks_arrive_plays_no_part(a in arm(), b in arm(), seed: u64) {
        let rule = quick(0.05, seed);
        let reversed = |arm: &[BlockValue]| arm.iter().rev().copied().collect::<Vec<_>>();
        let (one, other) = (judge(&a, &b, &rule).unwrap(), judge(&reversed(&a), &reversed(&b), &rule).unwrap());
        prop_assert_eq!(one.call, other.call);
        prop_assert_eq!(one.test, other.test);
    }
}
