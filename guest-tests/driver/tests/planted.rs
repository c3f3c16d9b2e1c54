//! The conformance suite finds what it is there to find: drivers with known mistakes fail it.

#![allow(clippy::unwrap_used, reason = "a broken machine fails its test")]

mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};

use execlab_driver::conformance::cases;
use execlab_driver::{Bug, Variant};
use support::bus::ModelBus;
use support::kernel::TestKernel;
use support::{Machine, profile};

/// Whether any case of the suite fails, panics included, for the variants and seeds of the suite's own test.
fn is_found(bug: Bug) -> bool {
    cases::<TestKernel, ModelBus>().iter().any(|case| {
        let (text, post_ns) = profile(case.device);
        Variant::ALL.into_iter().any(|variant| {
            (1..=5).any(|seed| {
                let run = || case.run(&Machine::with_bug(variant, text, seed, post_ns, bug).driver).is_err();
                catch_unwind(AssertUnwindSafe(run)).unwrap_or(true)
            })
        })
    })
}

#[test]
fn every_bug_under_which_time_goes_on_is_found() {
    // A bottom half that schedules itself ends only when time passes, and in this world none does meanwhile.
    for bug in Bug::ALL.into_iter().filter(|bug| *bug != Bug::TaskletRearmed) {
        assert!(is_found(bug), "{}", bug.name());
    }
}

#[test]
fn names_and_bugs_are_one_to_one() {
    for bug in Bug::ALL {
        assert_eq!(Bug::from_name(bug.name()), Some(bug));
    }
    assert_eq!(Bug::from_name("none"), None);
}
