//! The search finds what it is there to find, and nothing else.

#![allow(clippy::unwrap_used, reason = "a broken machine fails its test")]

use std::sync::atomic::AtomicBool;

use execlab_driver::Bug;
use execlab_sim::Machine;
use execlab_sim::explore::{Budget, Found, Trial, record, run_trial, search, shrink};

fn machine() -> Machine {
    Machine::builtin("kbl-2018").unwrap()
}

/// What the first `seeds` seeds find in a driver with `bug`.
fn find(bug: Option<Bug>, seeds: u64) -> Option<Found> {
    let budget = Budget { first_seed: 1, seeds, time: None, jobs: 2 };
    search(&machine(), bug, &budget, &AtomicBool::new(false), &mut |_| ()).unwrap().0
}

#[test]
fn every_planted_bug_is_found_and_shrunk_to_a_trial_that_fails() {
    for bug in Bug::ALL {
        let found = find(Some(bug), 2000).unwrap_or_else(|| panic!("{} is not found", bug.name()));
        let shrunk = shrink(&machine(), &found).unwrap();
        let again: Trial = shrunk.trial.to_string().parse().unwrap();
        let outcome = run_trial(&machine(), &again, |_, _| ()).unwrap();
        assert_eq!(outcome.finding, Some(shrunk.finding), "{again}");
    }
}

#[test]
fn nothing_is_found_in_the_driver_as_it_is() {
    let found = find(None, 1500);
    assert_eq!(found.map(|found| found.trial.to_string()), None);
}

#[test]
fn a_trial_recorded_twice_is_the_same_to_the_letter() {
    let trial = "seed=5,case=0,variant=tasklet".parse().unwrap();
    let run = || {
        let mut text = Vec::new();
        let outcome = record(&machine(), &trial, &mut text).unwrap().unwrap();
        (outcome, String::from_utf8(text).unwrap())
    };
    let (first, again) = (run(), run());
    assert_eq!(first, again);
    assert!(first.0.finding.is_none());
    for word in ["irq enter Device", "step emit", "rcs0 Submit", "softirq enter", "switch"] {
        assert!(first.1.contains(word), "{word}");
    }
}

/// Trials that once failed: the case, what the trial is beside it, and the machine.
#[test]
fn what_was_found_once_stays_mended() {
    let regressions = [
        // The suite judged an order by a waiter that sleeps deeper than a request is long.
        ("a higher priority goes first", "seed=4,variant=direct-2018,ties=0,stretch=0,bus=free", "kbl-2018"),
        // The suite wanted lite restores of an engine that was faster than its submitter.
        ("a flood of one context", "seed=77,variant=direct-2018,ties=0,stretch=0,bus=slow", "kbl-2018"),
        // It wanted requests to be coalesced that came one by one.
        ("a flood of one context", "seed=99,variant=direct-2018,ties=0,stretch=0,bus=free", "bxt-2017"),
        // It wanted a ring to be full before the engine took the first request.
        ("a full ring refuses", "seed=1,variant=direct-2018,ties=0,stretch=0,bus=free", "biglittle-2017"),
    ];
    for (case, text, machine) in regressions {
        let machine = Machine::builtin(machine).unwrap();
        let mut trial: Trial = text.parse().unwrap();
        let numbers: Vec<usize> =
            (0..100).filter(|case_number| named(&trial, *case_number).starts_with(case)).collect();
        assert!(!numbers.is_empty(), "{case}");
        for number in numbers {
            trial.case = number;
            let outcome = run_trial(&machine, &trial, |_, _| ()).unwrap();
            assert_eq!(outcome.finding, None, "{trial}");
        }
    }
}

fn named(trial: &Trial, case: usize) -> &'static str {
    Trial { case, ..*trial }.case_name()
}
