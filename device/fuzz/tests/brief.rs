//! A few seconds of every target. `cargo run --profile fuzz -p execlab-fuzz` runs more.
#![allow(clippy::unwrap_used, reason = "a helper of tests, which the lint does not see as a test")]

use std::time::Duration;

use execlab_fuzz::Target;
use execlab_fuzz::campaign::{self, Config};

/// Fails if five seconds on `name` find something, or fail to reach nine in ten of its named outcomes.
fn brief(name: &str) {
    let target = Target::named(name).unwrap();
    let config = Config {
        seed: 20_180_628,
        cases: u64::MAX,
        time: Some(Duration::from_secs(5)),
        jobs: 1,
        case_limit: Duration::from_secs(10),
    };
    let summary = campaign::run(target, &config, |_| ());
    println!("{name}: {} cases", summary.cases);
    assert_eq!(summary.finding, None, "again: --target {name} --replay {}:CASE", config.seed);
    let named = target.labels.iter().enumerate().filter(|(_, label)| !label.is_empty());
    let (met, missing): (Vec<_>, Vec<_>) = named.partition(|(at, _)| summary.reached.has(*at));
    assert!(missing.len() * 9 <= met.len(), "not reached: {missing:?}");
}

#[test]
fn the_profile_reader_survives_five_seconds() {
    brief("profile");
}

#[test]
fn the_gpu_survives_five_seconds_of_register_writes() {
    brief("mmio");
}

#[test]
fn the_gpu_survives_five_seconds_of_corrupt_contexts() {
    brief("context");
}

#[test]
fn the_door_survives_five_seconds_of_chains_and_messages() {
    brief("wire");
}
