//! The probe measures when told to. These tests use SCHED_OTHER, so they need no privilege.

#![allow(clippy::unwrap_used)] // Helpers of tests count as no tests to clippy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use execlab_posix::{Config as CpuConfig, Cpu, Policy, Posix, now_ns};
use execlab_probe::{Config, Error, KeepAwake, Probe, Schedule};

fn config(schedule: Schedule) -> Config {
    Config { cpu: 0, policy: Policy::Other, schedule, seed: 1 }
}

/// A probe in the world of POSIX threads.
fn probe(config: Config, cancel: Arc<AtomicBool>) -> Result<Probe<Posix>, Error> {
    let cpu = Cpu::start(CpuConfig { priorities: false, ..CpuConfig::default() }).unwrap();
    Probe::new(cpu.kernel(), config, cancel)
}

#[test]
fn a_block_has_as_many_samples_as_its_length_allows_and_a_summary_that_fits() {
    let schedule = Schedule::Random { min_ns: 100_000, random_ns: 200_000 };
    let probe = probe(config(schedule), Arc::default()).unwrap();
    let before = now_ns();
    let block = probe.measure(50_000_000).unwrap();
    assert!(block.start_ns >= before && block.duration_ns >= 50_000_000, "{block:?}");
    assert!((1..=500).contains(&block.samples.len()), "{}", block.samples.len());
    assert_eq!(block.summary.count(), block.samples.len() as u64);
    assert_eq!(block.summary.max(), u64::from(*block.samples.iter().max().unwrap()));
    assert!(probe.clock_cost_ns() < 100_000);
}

#[test]
fn a_fixed_schedule_counts_each_deadline_as_a_sample_or_as_missed() {
    let probe = probe(config(Schedule::Fixed { interval_ns: 500_000 }), Arc::default()).unwrap();
    let block = probe.measure(50_000_000).unwrap();
    let all = block.samples.len() as u64 + block.missed;
    // The last deadlines may lie beyond the end, when the probe woke late.
    assert!(all >= 99, "{all}");
}

#[test]
fn a_cancelled_block_ends_early() {
    let cancel = Arc::new(AtomicBool::new(false));
    let schedule = Schedule::Random { min_ns: 100_000, random_ns: 0 };
    let probe = probe(config(schedule), Arc::clone(&cancel)).unwrap();
    let running = probe.begin(100_000_000_000).unwrap();
    cancel.store(true, SeqCst);
    assert!(running.finish().unwrap().duration_ns < 100_000_000_000);
}

#[test]
fn an_interval_of_nothing_is_refused() {
    let error = probe(config(Schedule::Fixed { interval_ns: 0 }), Arc::default()).unwrap_err();
    assert!(matches!(error, Error::TooOften(_)), "{error}");
}

#[test]
fn a_cpu_that_does_not_exist_is_an_error_and_no_fallback() {
    let config = Config { cpu: 1000, ..config(Schedule::Fixed { interval_ns: 1_000_000 }) };
    let error = probe(config, Arc::default()).unwrap_err();
    assert!(error.to_string().contains("CPU 1000"), "{error}");
    assert!(KeepAwake::start(1000).is_err());
}
