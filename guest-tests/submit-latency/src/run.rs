//! The whole run, from the first line of results to the last.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, Result};
use execlab_driver::kernel::Policy;
use execlab_probe::{Config as ProbeConfig, Probe, Schedule};
use execlab_report::{Block, Hello, Line, PROTOCOL, Progress, Samples};

use crate::bench::{Bench, Measured};
use crate::order::slots;
use crate::output::Output;
use crate::setting::{EXPERIMENT, Setting};
use crate::world::World;

/// Follows the plan in the world that `open` makes, and writes everything but the last line. With `talk` a line about
/// each block goes to standard error.
///
/// # Errors
/// Whatever made it impossible to go on, in words for a person.
pub fn run<W: World>(
    setting: &Setting,
    open: impl FnOnce(&Setting) -> Result<W>,
    cancel: &Arc<AtomicBool>,
    output: &mut Output,
    talk: bool,
) -> Result<()> {
    let plan = &setting.plan;
    output.line(&Line::Hello(Hello {
        protocol: PROTOCOL,
        experiment: EXPERIMENT.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        plan: plan.clone(),
    }))?;
    let world = open(setting)?;
    let probe = Probe::new(world.kernel().clone(), probe_config(setting), Arc::clone(cancel))?;
    let cost = probe.clock_cost_ns();
    let notes = vec![format!("{cost} ns for reading the clock are subtracted from each sample")];
    output.line(&Line::Environment(world.environment(notes)?))?;
    let bench = Bench::new(setting, &world, probe, Arc::clone(cancel));
    let slots = slots(setting.arms.len(), plan.blocks);
    let total = u32::try_from(slots.len()).context("too many blocks")?;
    for (index, slot) in (0..).zip(slots) {
        let arm = &setting.arms[slot.arm];
        let what = arm.name.clone();
        output.line(&Line::Progress(Progress { done: index, total, what }))?;
        let measured = bench
            .block(arm.variant, index)
            .with_context(|| format!("block {} of {total}, arm {}", index + 1, arm.name))?;
        if talk {
            eprintln!("{}", summary(index, total, &arm.name, &measured));
        }
        output.line(&Line::Block(Block {
            index,
            round: slot.round,
            arm: arm.name.clone(),
            start_ns: measured.measurement.start_ns,
            duration_ns: measured.measurement.duration_ns,
            samples: Samples(measured.measurement.samples),
            counters: measured.counters,
        }))?;
    }
    Ok(())
}

fn probe_config(setting: &Setting) -> ProbeConfig {
    let probe = &setting.plan.probe;
    ProbeConfig {
        cpu: probe.cpu as usize,
        policy: Policy::Fifo(u8::try_from(probe.priority).unwrap_or(u8::MAX)),
        schedule: Schedule::Random {
            min_ns: u64::from(probe.min_interval_us) * 1000,
            random_ns: u64::from(probe.random_interval_us) * 1000,
        },
        seed: setting.plan.seed,
    }
}

/// One line about a block, for a person who looks on.
fn summary(index: u32, total: u32, arm: &str, measured: &Measured) -> String {
    let block = &measured.measurement;
    let mut sorted = block.samples.clone();
    sorted.sort_unstable();
    let at = |part: f64| {
        let index = ((sorted.len().max(1) - 1) as f64 * part).round() as usize;
        sorted.get(index).map_or(f64::NAN, |ns| f64::from(*ns) / 1000.0)
    };
    let seconds = block.duration_ns as f64 / 1e9;
    let rate = |name: &str| measured.counters.get(name).map_or(0.0, |count| *count as f64 / seconds);
    format!(
        "{:>4}/{total} {arm:<12} n {:>6}  mean {:>8.2}  median {:>8.2}  p99 {:>8.2}  max {:>9.2} us  \
         {:>8.0} submissions/s {:>8.0} interrupts/s",
        index + 1,
        sorted.len(),
        block.summary.mean() / 1000.0,
        at(0.5),
        at(0.99),
        at(1.0),
        rate("submissions"),
        rate("interrupts"),
    )
}
