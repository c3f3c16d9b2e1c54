//! Properties over random submissions: what a driver that obeys the acknowledgement submits, and what comes of it.
//!
//! `reference` says from the history of submissions alone what must become visible and when; `grammar` says what
//! any run must look like whatever the delays are. Neither shares code with the model.

#[path = "../support/mod.rs"]
mod support;

mod drive;
mod grammar;
mod program;
mod reference;

use drive::Lab;
use execlab_profile::Sampler;
use support::Random;

/// Cases against the exact reference.
const EXACT: u64 = 60_000;
/// Cases with random delays, against the grammar.
const LOOSE: u64 = 50_000;

#[test]
fn constant_delays_give_exactly_the_events_stores_and_interrupts_of_the_reference() {
    let mut random = Random::new(0x5eed);
    let delays: Vec<_> = (0..200).map(|n| reference::Delays::draw(&mut random, n)).collect();
    let samplers: Vec<_> = delays.iter().map(|d| Sampler::new(&d.profile(), 0, 1.0)).collect();
    let mut lab = Lab::new();
    let mut seen = 0;
    for case in 0..EXACT {
        let pick = random.below(delays.len() as u64) as usize;
        lab.bench.gpu.set_sampler(samplers[pick].clone());
        let run = lab.run(case, &mut random);
        let expected = reference::expected(&run.history, &run.appended, &delays[pick]);
        let visible = reference::in_order(run.visible, &delays[pick]);
        assert_eq!(visible, expected, "case {case}: {:?}\n{:?}", run.history, delays[pick]);
        seen += expected.len();
    }
    assert!(seen > 10 * EXACT as usize, "the cases are not empty: {seen}");
    let stats = *lab.bench.gpu.stats();
    let kinds = [
        stats.csb_idle_active,
        stats.csb_element_switch,
        stats.csb_active_idle,
        stats.csb_preempted,
        stats.csb_lite_restore,
    ];
    assert!(kinds.iter().all(|kind| *kind > 1_000), "each row of the event table comes often: {kinds:?}");
    assert_eq!((stats.violations, stats.hangs), (0, 0));
}

#[test]
fn random_delays_keep_every_rule_of_the_grammar() {
    let mut random = Random::new(0xfeed);
    let mut lab = Lab::new();
    for case in 0..LOOSE {
        if case % 100 == 0 {
            lab.bench.gpu.set_sampler(Sampler::new(&grammar::profile(&mut random), case, 1.0));
        }
        let run = lab.run(case, &mut random);
        if let Err(broken) = grammar::check(&run) {
            panic!("case {case}: {broken}\n{:?}\n{:?}", run.history, run.visible);
        }
    }
    assert_eq!(lab.bench.gpu.stats().violations, 0);
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_one_does_not() {
    let trace = |seed| {
        let mut random = Random::new(7);
        let mut lab = Lab::new();
        let profile = grammar::profile(&mut random);
        lab.bench.gpu.set_sampler(Sampler::new(&profile, seed, 1.0));
        (0..20).map(|case| lab.run(case, &mut random).visible).collect::<Vec<_>>()
    };
    assert_eq!(trace(1), trace(1));
    assert_ne!(trace(1), trace(2));
}
