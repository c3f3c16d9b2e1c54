//! What the samples of a profile look like.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests, which the lint does not see as tests"
)]

use execlab_abi::engine::Engine;
use execlab_profile::{Arm, BusNs, Distribution, Point, Profile, Sampler};
use proptest::prelude::*;
use statrs::distribution::{ChiSquared, ContinuousCDF};

const POINT: Point = Point::CsbVisible;
const ENGINE: Engine = Engine::Rcs0;

fn profile(delay: &str) -> Profile {
    Profile::parse(&format!("[delay]\n\"csb.visible\" = {delay}"), "test.toml").unwrap()
}

fn draws(profile: &Profile, seed: u64, dilation: f64, n: usize) -> Vec<u64> {
    let mut sampler = Sampler::new(profile, seed, dilation);
    (0..n).map(|_| sampler.draw(POINT, ENGINE)).collect()
}

/// The text of a distribution, as a profile would hold it.
fn text(delay: &Distribution) -> String {
    match delay {
        Distribution::Constant(ns) => format!("\"{ns}ns\""),
        Distribution::Uniform { low, high } => format!("{{ uniform = [\"{low}ns\", \"{high}ns\"] }}"),
        Distribution::Mixture(arms) => {
            let arm = |a: &Arm| format!("{{ weight = {:?}, delay = {} }}", a.weight, text(&a.delay));
            format!("{{ mixture = [{}] }}", arms.iter().map(arm).collect::<Vec<_>>().join(", "))
        }
        other => panic!("no text for {other:?}"),
    }
}

fn any_delay() -> impl Strategy<Value = Distribution> {
    let length = || prop_oneof![0..100u64, 0..=60_000_000_000u64];
    let leaf = prop_oneof![
        length().prop_map(Distribution::Constant),
        (length(), length()).prop_map(|(a, b)| Distribution::Uniform { low: a.min(b), high: a.max(b) }),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        let arm = (1e-6..1e6f64, inner).prop_map(|(weight, delay)| Arm { weight, delay });
        prop::collection::vec(arm, 1..4).prop_map(Distribution::Mixture)
    })
}

proptest! {
    #[test]
    fn the_text_of_a_delay_is_read_back_as_that_delay(delay in any_delay()) {
        let read = profile(&text(&delay));
        prop_assert_eq!(read.delay(POINT, ENGINE), Some(&delay));
    }

    #[test]
    fn every_sample_stays_in_the_range_of_its_distribution(delay in any_delay(), seed: u64) {
        let (low, high) = delay.range();
        for ns in draws(&profile(&text(&delay)), seed, 1.0, 100) {
            prop_assert!((low..=high).contains(&ns), "{} not in {}..={}", ns, low, high);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_draws(delay in any_delay(), seed: u64) {
        let profile = profile(&text(&delay));
        prop_assert_eq!(draws(&profile, seed, 1.0, 50), draws(&profile, seed, 1.0, 50));
    }

    #[test]
    fn dilation_scales_every_draw_to_the_nearest_nanosecond(
        delay in any_delay(), seed: u64, dilation in 0.01..1000.0f64,
    ) {
        let profile = profile(&text(&delay));
        let plain = draws(&profile, seed, 1.0, 50);
        for (plain, dilated) in plain.into_iter().zip(draws(&profile, seed, dilation, 50)) {
            // One part in 2^52 of rounding in the product, and half a nanosecond of rounding to a whole number.
            let exact = plain as f64 * dilation;
            prop_assert!((dilated as f64 - exact).abs() <= 0.5 + exact * f64::EPSILON);
        }
    }

    #[test]
    fn a_whole_dilation_multiplies_exactly(delay in any_delay(), seed: u64, dilation in 1..1000u32) {
        let profile = profile(&text(&delay));
        let plain = draws(&profile, seed, 1.0, 50);
        let dilated = draws(&profile, seed, f64::from(dilation), 50);
        prop_assert_eq!(plain.iter().map(|ns| ns * u64::from(dilation)).collect::<Vec<_>>(), dilated);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "(?s).{0,200}") {
        let _ = Profile::parse(&text, "x");
    }

    #[test]
    fn no_quantity_makes_the_reader_panic(text in "[-+0-9.eE nusmµ]{0,24}") {
        let _ = Profile::parse(&format!("delay.\"csb.visible\" = \"{text}\""), "x");
    }
}

#[test]
fn a_constant_gives_that_length_every_time() {
    assert_eq!(draws(&profile("\"20us\""), 1, 1.0, 100), [20_000; 100]);
    assert_eq!(draws(&profile("\"20us\""), 1, 2.5, 100), [50_000; 100]);
}

#[test]
fn both_ends_of_a_uniform_delay_are_drawn() {
    let seen = draws(&profile("{ uniform = [\"3ns\", \"5ns\"] }"), 1, 1.0, 1000);
    for ns in 3..=5 {
        assert!(seen.contains(&ns), "{ns}");
    }
}

/// Fails if `counts` would come from `expected` less often than once in a thousand seeds.
fn assert_chi_square(counts: &[u64], expected: &[f64]) {
    let statistic: f64 = counts.iter().zip(expected).map(|(n, e)| (*n as f64 - e).powi(2) / e).sum();
    let p = 1.0 - ChiSquared::new((counts.len() - 1) as f64).unwrap().cdf(statistic);
    assert!(p > 1e-3, "chi-square {statistic}, p {p}: {counts:?} against {expected:?}");
}

#[test]
fn the_arms_of_a_mixture_are_taken_as_often_as_their_weights_say() {
    let profile = profile(
        "{ mixture = [{ weight = 99, delay = \"1ns\" }, { weight = 0.9, delay = \"2ns\" }, \
         { weight = 0.1, delay = \"3ns\" }] }",
    );
    const N: usize = 200_000;
    let mut counts = [0; 3];
    for ns in draws(&profile, 20_180_628, 1.0, N) {
        counts[ns as usize - 1] += 1;
    }
    assert_chi_square(&counts, &[0.99, 0.009, 0.001].map(|p| p * N as f64));
}

#[test]
fn a_uniform_delay_fills_its_range_evenly() {
    const N: usize = 100_000;
    let mut counts = [0; 20];
    for ns in draws(&profile("{ uniform = [\"1us\", \"2999ns\"] }"), 20_180_628, 1.0, N) {
        counts[(ns as usize - 1000) / 100] += 1;
    }
    assert_chi_square(&counts, &[N as f64 / 20.0; 20]);
}

#[test]
fn draws_at_one_point_do_not_move_the_sequence_of_another() {
    let profile = Profile::builtin("kbl-2018").unwrap();
    let alone: Vec<_> = {
        let mut sampler = Sampler::new(&profile, 7, 1.0);
        (0..100).map(|_| sampler.draw(Point::IrqDeliver, Engine::Bcs0)).collect()
    };
    let mut sampler = Sampler::new(&profile, 7, 1.0);
    let among: Vec<_> = (0..100)
        .map(|_| {
            for (point, engine) in Point::ALL.into_iter().flat_map(|p| Engine::ALL.map(|e| (p, e))) {
                if (point, engine) != (Point::IrqDeliver, Engine::Bcs0) {
                    let _ = sampler.draw(point, engine);
                }
            }
            sampler.draw(Point::IrqDeliver, Engine::Bcs0)
        })
        .collect();
    assert_eq!(alone, among);
}

#[test]
fn engines_points_and_seeds_have_different_sequences() {
    let text = "[delay]\n\"csb.visible\" = { uniform = [\"0ns\", \"1s\"] }\n\
                \"irq.deliver\" = { uniform = [\"0ns\", \"1s\"] }";
    let profile = Profile::parse(text, "test.toml").unwrap();
    let mut first: Vec<u64> = [1, 2]
        .into_iter()
        .flat_map(|seed| {
            let mut sampler = Sampler::new(&profile, seed, 1.0);
            [Point::CsbVisible, Point::IrqDeliver]
                .into_iter()
                .flat_map(|point| Engine::ALL.map(|engine| sampler.draw(point, engine)))
                .collect::<Vec<_>>()
        })
        .collect();
    first.sort_unstable();
    first.dedup();
    assert_eq!(first.len(), 2 * 2 * 4);
}

/// A printed seed must give the same run in later versions: this list may only change with a note in the history.
#[test]
fn the_sequence_of_a_seed_is_fixed() {
    let profile = profile("{ uniform = [\"0ns\", \"1ms\"] }");
    assert_eq!(draws(&profile, 42, 1.0, 4), [960897, 966576, 618456, 933684]);
}

#[test]
fn an_engines_own_delay_replaces_that_for_all() {
    let text = "[delay]\ncsb.visible = \"1us\"\n[engine.vcs0.delay]\n\"csb.visible\" = \"2us\"";
    let mut sampler = Sampler::new(&Profile::parse(text, "x.toml").unwrap(), 0, 1.0);
    assert_eq!(Engine::ALL.map(|e| sampler.draw(POINT, e)), [1000, 1000, 2000, 1000]);
}

#[test]
fn the_zero_sampler_delays_nothing_and_costs_nothing() {
    let mut sampler = Sampler::zero();
    for (point, engine) in Point::ALL.into_iter().flat_map(|p| Engine::ALL.map(|e| (p, e))) {
        assert_eq!(sampler.draw(point, engine), 0);
    }
    assert_eq!(sampler.bus(), BusNs::default());
    assert_eq!(sampler.scale(u64::MAX), u64::MAX);
}

#[test]
fn a_dilation_that_is_no_factor_counts_as_one() {
    for dilation in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(Sampler::new(&Profile::default(), 0, dilation).dilation(), 1.0);
    }
}

#[test]
fn bus_costs_are_dilated() {
    let text = "bus = { mmio_read = \"1us\", mmio_write = \"100ns\", forcewake = \"20us\" }";
    let sampler = Sampler::new(&Profile::parse(text, "x.toml").unwrap(), 0, 3.0);
    assert_eq!(sampler.bus(), BusNs { read: 3000, write: 300, forcewake: 60_000 });
}
