//! The probe on an idle CPU, beside cyclictest if it is installed.
//!
//! Both run with the same interval and priority on the same CPU, in alternating blocks (probe, cyclictest,
//! cyclictest, probe). Prints one JSON object. With `--check`, the exit status is 1 when the medians differ by
//! more than `--tolerance`.

use std::process::{Command, ExitCode};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::Parser;
use execlab_posix::{Config as CpuConfig, Cpu, Policy, System};
use execlab_probe::{Config, KeepAwake, Probe, Schedule};
use serde::Serialize;

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
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..10_000_000))]
    loops: u64,
    /// Rounds of four blocks.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..1000))]
    rounds: u32,
    /// Keep the CPU out of idle states for both, with a thread of SCHED_IDLE.
    #[arg(long)]
    awake: bool,
    /// Fail when the medians differ by more than the tolerance, or cyclictest is missing.
    #[arg(long)]
    check: bool,
    /// Largest difference of the medians, as a part of cyclictest's.
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
    probe: Tool,
    /// Nothing when it is not installed.
    cyclictest: Option<Tool>,
    /// Difference of the medians as a part of cyclictest's.
    median_difference: Option<f64>,
    agrees: Option<bool>,
    notes: Vec<String>,
}

fn main() -> anyhow::Result<ExitCode> {
    let options = Options::parse();
    let system = System::prepare(options.cpu)?;
    let awake = options.awake.then(|| KeepAwake::start(options.cpu)).transpose()?;
    let interval_ns = options.interval_us * 1000;
    let policy = Policy::Fifo(options.priority);
    let config = Config { cpu: options.cpu, policy, schedule: Schedule::Fixed { interval_ns }, seed: 0 };
    let cpu = Cpu::start(CpuConfig { cpu: options.cpu, ..CpuConfig::default() })?;
    let probe = Probe::new(cpu.kernel(), config, Arc::default())?;
    let clock_cost_ns = probe.clock_cost_ns();
    let (mut ours, mut theirs) = (Vec::new(), Some(Vec::new()));
    for _ in 0..options.rounds {
        for cyclictest in [false, true, true, false] {
            if cyclictest {
                theirs = match (theirs, run_cyclictest(&options)?) {
                    (Some(mut all), Some(block)) => {
                        all.extend(block);
                        Some(all)
                    }
                    _ => None,
                };
            } else {
                ours.extend(probe.measure(interval_ns * options.loops)?.samples);
            }
        }
    }
    drop(awake);
    let probe = summary(ours).context("the probe took no sample")?;
    let cyclictest = theirs.and_then(summary);
    let median_difference = cyclictest
        .as_ref()
        .map(|c| (f64::from(probe.median_ns) - f64::from(c.median_ns)).abs() / f64::from(c.median_ns.max(1)));
    let agrees = median_difference.map(|d| d <= options.tolerance);
    let outcome = Outcome {
        interval_us: options.interval_us,
        priority: options.priority,
        awake: options.awake,
        clock_cost_ns,
        probe,
        cyclictest,
        median_difference,
        agrees,
        notes: system.notes().to_vec(),
    };
    println!("{}", serde_json::to_string_pretty(&outcome)?);
    if outcome.cyclictest.is_none() {
        eprintln!("cyclictest is not installed; install rt-tests (apt-get install rt-tests) to compare");
    }
    Ok(if options.check && agrees != Some(true) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Samples of one run of cyclictest in nanoseconds, or nothing when it is not installed.
fn run_cyclictest(options: &Options) -> anyhow::Result<Option<Vec<u32>>> {
    let mut command = Command::new("cyclictest");
    command.args(["-m", "-N", "-v", "-t1"]);
    command.args(["-p", &options.priority.to_string(), "-a", &options.cpu.to_string()]);
    command.args(["-i", &options.interval_us.to_string(), "-l", &options.loops.to_string()]);
    let output = match command.output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).context("cyclictest"),
    };
    if !output.status.success() {
        bail!("cyclictest failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let samples: Vec<u32> = text.lines().filter_map(verbose_sample).collect();
    if samples.is_empty() {
        bail!("cyclictest printed no sample; its output begins with {:?}", text.chars().take(200));
    }
    Ok(Some(samples))
}

/// A line `task: count: value` of `cyclictest -v`.
fn verbose_sample(line: &str) -> Option<u32> {
    let mut fields = line.split(':').map(|field| field.trim().parse::<u32>());
    match (fields.next(), fields.next(), fields.next(), fields.next()) {
        (Some(Ok(_)), Some(Ok(_)), Some(Ok(value)), None) => Some(value),
        _ => None,
    }
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
