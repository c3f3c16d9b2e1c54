//! Tests the probe against arithmetic: busy sections above it must raise its mean by λ·E[L²]/2.
//!
//! Prints one JSON object. With `--check`, the exit status is 1 when the measured extra mean is not within a
//! factor of 2 of the prediction.

mod common;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use clap::Parser;
use execlab_posix::{Config as CpuConfig, Cpu, Policy, Posix, System};
use execlab_probe::{Config, KeepAwake, Probe, Schedule, SectionPlan, SectionRecord, Sections};
use serde::Serialize;

use common::{cancelled_by_signals, exit_of, go_on, median};

/// Probe beside busy sections of known length, and without them, in alternating blocks.
#[derive(Debug, Parser)]
#[command(version)]
struct Options {
    /// CPU to measure on.
    #[arg(long, default_value_t = 0)]
    cpu: usize,
    /// Length of a section in microseconds.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..100_000))]
    length_us: u64,
    /// Mean gap between sections in microseconds (exponential).
    #[arg(long, default_value_t = 1500, value_parser = clap::value_parser!(u64).range(1..10_000_000))]
    gap_us: u64,
    /// Rounds; each is one block without sections, two with, one without.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..1000))]
    rounds: u32,
    /// Length of a block in milliseconds.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(10..100_000))]
    block_ms: u64,
    /// Seed of probe phase and sections.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Fail when the measurement is not within a factor of 2 of the prediction.
    #[arg(long)]
    check: bool,
}

/// The result. Means leave out samples and sections longer than `cut_ns`: those are the host's doing.
#[derive(Debug, Serialize)]
struct Outcome {
    rounds: u32,
    sections: usize,
    probe_samples: usize,
    left_out_samples: usize,
    cut_ns: u64,
    /// Median over the rounds, in nanoseconds.
    idle_mean_ns: f64,
    measured_extra_mean_ns: f64,
    predicted_extra_mean_ns: f64,
    /// Measured over predicted.
    ratio: f64,
    within_factor_2: bool,
    notes: Vec<String>,
}

/// One round: differences and predictions.
struct Round {
    idle_mean: f64,
    extra: f64,
    predicted: f64,
}

fn main() -> ExitCode {
    exit_of("probe-oracle", whole)
}

fn whole() -> anyhow::Result<ExitCode> {
    let options = Options::parse();
    let cancel = cancelled_by_signals()?;
    let system = System::prepare(options.cpu)?;
    let _awake = KeepAwake::start(options.cpu)?;
    let schedule = Schedule::Random { min_ns: 100_000, random_ns: 1_000_000 };
    let config = Config { cpu: options.cpu, policy: Policy::Fifo(98), schedule, seed: options.seed };
    let cpu = Cpu::start(CpuConfig { cpu: options.cpu, ..CpuConfig::default() })?;
    let probe = Probe::new(cpu.kernel(), config, Arc::clone(&cancel))?;
    let cut_ns = options.length_us * 1000 * 3;
    let mut tally = Tally { cut_ns, ..Tally::default() };
    let rounds = (0..options.rounds)
        .map(|round| run_round(&options, &probe, round, &mut tally, &cancel))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let median_of = |pick: fn(&Round) -> f64| median(rounds.iter().map(pick).collect()).unwrap_or(f64::NAN);
    let (measured, predicted) = (median_of(|r| r.extra), median_of(|r| r.predicted));
    anyhow::ensure!(predicted > 0.0, "no section ran; is CPU {} so busy?", options.cpu);
    let ratio = measured / predicted;
    let outcome = Outcome {
        rounds: options.rounds,
        sections: tally.sections,
        probe_samples: tally.samples,
        left_out_samples: tally.left_out,
        cut_ns,
        idle_mean_ns: median_of(|r| r.idle_mean),
        measured_extra_mean_ns: measured,
        predicted_extra_mean_ns: predicted,
        ratio,
        within_factor_2: (0.5..=2.0).contains(&ratio),
        notes: system.notes().to_vec(),
    };
    println!("{}", serde_json::to_string_pretty(&outcome)?);
    eprintln!(
        "sections add {:.1} us to the probe's mean, the formula says {:.1} us: {} a factor of 2",
        measured / 1000.0,
        predicted / 1000.0,
        if outcome.within_factor_2 { "within" } else { "not within" }
    );
    Ok(if options.check && !outcome.within_factor_2 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

#[derive(Default)]
struct Tally {
    cut_ns: u64,
    samples: usize,
    left_out: usize,
    sections: usize,
}

impl Tally {
    /// Mean of the samples below the cut.
    fn mean(&mut self, samples: &[u32]) -> anyhow::Result<f64> {
        let kept: Vec<f64> =
            samples.iter().filter(|s| u64::from(**s) <= self.cut_ns).map(|s| f64::from(*s)).collect();
        self.samples += samples.len();
        self.left_out += samples.len() - kept.len();
        anyhow::ensure!(!kept.is_empty(), "a block has no sample below {} ns", self.cut_ns);
        Ok(kept.iter().sum::<f64>() / kept.len() as f64)
    }
}

fn run_round(
    options: &Options,
    probe: &Probe<Posix>,
    round: u32,
    tally: &mut Tally,
    cancel: &AtomicBool,
) -> anyhow::Result<Round> {
    let block_ns = options.block_ms * 1_000_000;
    let mut means = [0.0; 2];
    let mut predicted = 0.0;
    // Idle, loaded, loaded, idle: a drift of the machine hits both alike.
    for (step, loaded) in [false, true, true, false].into_iter().enumerate() {
        let (measurement, record) = if loaded {
            let seed = options.seed ^ (u64::from(round) << 8) ^ step as u64;
            let (length_ns, mean_gap_ns) = (options.length_us * 1000, options.gap_us * 1000);
            let plan = SectionPlan { cpu: options.cpu, length_ns, mean_gap_ns, seed };
            let expected = (block_ns / length_ns.min(mean_gap_ns)) as usize + 1;
            let sections = Sections::start(plan, expected).context("the load")?;
            (probe.measure(block_ns)?, sections.finish())
        } else {
            (probe.measure(block_ns)?, SectionRecord::default())
        };
        go_on(cancel)?;
        tally.sections += record.lengths_ns.len();
        means[usize::from(loaded)] += tally.mean(&measurement.samples)? / 2.0;
        predicted += record.predicted_extra_mean_ns(tally.cut_ns) / 2.0;
    }
    Ok(Round { idle_mean: means[0], extra: means[1] - means[0], predicted })
}
