//! Some thousand cases of every target, the same ones each time: a few seconds. `cargo run --profile fuzz -p
//! execlab-fuzz` runs more and others.
#![allow(clippy::unwrap_used, reason = "a helper of tests, which the lint does not see as a test")]

use std::time::Duration;

use execlab_fuzz::Target;
use execlab_fuzz::campaign::{self, Config};

/// Fails if `cases` on `name` find something, or fail to reach nine in ten of its named outcomes.
fn brief(name: &str, cases: u64) {
    let target = Target::named(name).unwrap();
    let config = Config { seed: 20_180_628, cases, time: None, jobs: 1, case_limit: Duration::from_secs(60) };
    let summary = campaign::run(target, &config, |_| ());
    assert_eq!(summary.finding, None, "again: --target {name} --replay {}:CASE", config.seed);
    assert_eq!(summary.cases, cases);
    let named = target.labels.iter().enumerate().filter(|(_, label)| !label.is_empty());
    let (met, missing): (Vec<_>, Vec<_>) = named.partition(|(at, _)| summary.reached.has(*at));
    assert!(missing.len() * 9 <= met.len(), "not reached: {missing:?}");
}

#[test]
fn the_profile_reader_survives_60000_texts() {
    brief("profile", 60000);
}

#[test]
fn the_gpu_survives_12000_cases_of_register_writes() {
    brief("mmio", 12000);
}

#[test]
fn the_gpu_survives_8000_cases_of_corrupt_contexts() {
    brief("context", 8000);
}

#[test]
fn the_door_survives_5000_cases_of_chains_and_messages() {
    brief("wire", 5000);
}
