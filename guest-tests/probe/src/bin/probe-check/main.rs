//! The probe on an idle CPU, beside cyclictest if it is installed.
//!
//! Both run with the same interval and priority on the same CPU, in rounds of four blocks (probe, cyclictest,
//! cyclictest, probe). Prints one JSON object. With `--check`, the exit status is 1 when the medians differ by
//! more than `--tolerance`, three comparisons in a row.

#[path = "../common/mod.rs"]
mod common;
mod comparison;
mod cyclictest;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use clap::Parser;
use execlab_posix::{Config as CpuConfig, Cpu, Policy, System};
use execlab_probe::{Config, KeepAwake, Probe, Schedule};
use serde::Serialize;

use common::{cancelled_by_signals, exit_of, go_on};
use comparison::{Comparison, Round};

/// How often the whole comparison is made before a disagreement counts: on a machine that others use, one may fail by
/// what they do, but hardly three.
const REPETITIONS: usize = 3;

/// Probe an idle CPU, and compare with cyclictest (package rt-tests).
#[derive(Debug, Parser)]
#[command(version)]
struct Options {
    /// CPU to measure on.
    #[arg(long, default_value_t = 0)]
    cpu: usize,
    /// Priority of both.
    #[arg(long, default_value_t = 98, value_parser = clap::value_parser!(u8).range(1..=99))]
    priority: u8,
    /// Interval in microseconds.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..1_000_000))]
    interval_us: u64,
    /// Wake-ups in one block.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..10_000_000))]
    loops: u64,
    /// Rounds of four blocks, each compared by itself: a machine that gets slower hits both alike.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..1000))]
    rounds: u32,
    /// Keep the CPU out of idle states for both, with a thread of SCHED_IDLE.
    #[arg(long)]
    awake: bool,
    /// Fail when the medians differ by more than the tolerance, or cyclictest is missing.
    #[arg(long)]
    check: bool,
    /// Largest difference of the medians, as a part of cyclictest's, in the median over the rounds.
    #[arg(long, default_value_t = 0.25)]
    tolerance: f64,
}

#[derive(Debug, Serialize)]
struct Tool {
    samples: usize,
    min_ns: u32,
    median_ns: u32,
    p99_ns: u32,
    max_ns: u32,
    mean_ns: f64,
}

#[derive(Debug, Serialize)]
struct Outcome {
    interval_us: u64,
    priority: u8,
    awake: bool,
    /// Subtracted from each of the probe's samples; cyclictest subtracts nothing.
    clock_cost_ns: u64,
    /// Of the last comparison, as the next one.
    probe: Tool,
    /// Nothing when it is not installed.
    cyclictest: Option<Tool>,
    /// One after the other, until one agrees.
    comparisons: Vec<Comparison>,
    agrees: Option<bool>,
    notes: Vec<String>,
}

fn main() -> ExitCode {
    exit_of("probe-check", whole)
}

fn whole() -> anyhow::Result<ExitCode> {
    let options = Options::parse();
    let cancel = cancelled_by_signals()?;
    let system = System::prepare(options.cpu)?;
    let awake = options.awake.then(|| KeepAwake::start(options.cpu)).transpose()?;
    let cpu = Cpu::start(CpuConfig { cpu: options.cpu, ..CpuConfig::default() })?;
    let policy = Policy::Fifo(options.priority);
    let schedule = Schedule::Fixed { interval_ns: options.interval_us * 1000 };
    let config = Config { cpu: options.cpu, policy, schedule, seed: 0 };
    let mut comparisons: Vec<Comparison> = Vec::new();
    let (clock_cost_ns, rounds) = loop {
        let probe = Probe::new(cpu.kernel(), config, Arc::clone(&cancel))?;
        let rounds = (0..options.rounds)
            .map(|_| run_round(&options, &probe, &cancel))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let Some(comparison) = Comparison::of(&rounds, options.tolerance) else {
            break (probe.clock_cost_ns(), rounds);
        };
        let done = comparison.agrees || comparisons.len() + 1 == REPETITIONS;
        if !comparison.agrees {
            let next = if done { "" } else { "; comparing once more" };
            eprintln!("comparison {} of {REPETITIONS}: {comparison}{next}", comparisons.len() + 1);
        }
        comparisons.push(comparison);
        if done {
            break (probe.clock_cost_ns(), rounds);
        }
    };
    drop(awake);
    let agrees = comparisons.last().map(|comparison| comparison.agrees);
    let outcome = Outcome {
        interval_us: options.interval_us,
        priority: options.priority,
        awake: options.awake,
        clock_cost_ns,
        probe: summary(rounds.iter().flat_map(|r| &r.probe).copied().collect())
            .context("the probe took no sample")?,
        cyclictest: summary(rounds.iter().flat_map(|r| &r.cyclictest).copied().collect()),
        comparisons,
        agrees,
        notes: system.notes().to_vec(),
    };
    println!("{}", serde_json::to_string_pretty(&outcome)?);
    match outcome.comparisons.last() {
        None => {
            eprintln!("cyclictest is not installed; install rt-tests (apt-get install rt-tests) to compare");
        }
        Some(last) if last.agrees => eprintln!("{last}"),
        Some(_) => eprintln!("probe and cyclictest disagree in {REPETITIONS} comparisons of {REPETITIONS}"),
    }
    Ok(if options.check && agrees != Some(true) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Probe, cyclictest, cyclictest, probe: a drift of the machine hits both alike.
fn run_round(
    options: &Options,
    probe: &Probe<execlab_posix::Posix>,
    cancel: &AtomicBool,
) -> anyhow::Result<Round> {
    let mut round = Round::default();
    for cyclictest in [false, true, true, false] {
        if cyclictest {
            let block = cyclictest::run(options);
            // Ctrl-C ends cyclictest too, and its complaint is none.
            go_on(cancel)?;
            round.cyclictest.extend(block?.unwrap_or_default());
        } else {
            let block = probe.measure(options.interval_us * 1000 * options.loops)?;
            go_on(cancel)?;
            round.probe.extend(block.samples);
        }
    }
    Ok(round)
}

fn summary(mut samples: Vec<u32>) -> Option<Tool> {
    samples.sort_unstable();
    let at = |part: f64| samples.get(((samples.len().max(1) - 1) as f64 * part).round() as usize).copied();
    Some(Tool {
        samples: samples.len(),
        min_ns: at(0.0)?,
        median_ns: at(0.5)?,
        p99_ns: at(0.99)?,
        max_ns: at(1.0)?,
        mean_ns: samples.iter().map(|s| f64::from(*s)).sum::<f64>() / samples.len() as f64,
    })
}
