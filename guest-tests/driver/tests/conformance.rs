//! The conformance suite, for every variant, on the device model with a strict and deterministic kernel.

#![allow(clippy::unwrap_used, reason = "a broken machine fails its test")]

mod support;

use execlab_driver::Variant;
use execlab_driver::conformance::{Case, Device, cases};
use support::bus::ModelBus;
use support::kernel::TestKernel;
use support::{Machine, profile};

/// Runs the cases that `wanted` picks for each variant and several seeds, and tells of all that fail.
fn run(wanted: impl Fn(&Case<TestKernel, ModelBus>) -> bool) {
    let mut failures = Vec::new();
    let mut count = 0;
    for case in cases().iter().filter(|case| wanted(case)) {
        for variant in Variant::ALL {
            for seed in 1..=5 {
                let (text, post_ns) = profile(case.device);
                let machine = Machine::new(variant, text, seed, post_ns);
                count += 1;
                if let Err(failure) = case.run(&machine.driver) {
                    let (variant, device) = (variant.name(), case.device);
                    failures.push(format!("{}: {variant}, {device:?}, seed {seed}: {failure}", case.name));
                }
            }
        }
    }
    assert!(count > 0);
    assert!(failures.is_empty(), "{} of {count}:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_case_passes_without_delays() {
    run(|case| case.device == Device::Instant);
}

#[test]
fn every_case_passes_with_usual_delays() {
    run(|case| case.device == Device::Usual);
}

#[test]
fn every_case_passes_with_late_csb_entries() {
    run(|case| matches!(case.device, Device::LateCsb | Device::VeryLateCsb | Device::ErraticCsb));
}

#[test]
fn every_case_passes_with_a_slow_or_stuck_engine() {
    run(|case| matches!(case.device, Device::SlowAccept | Device::Stuck));
}
