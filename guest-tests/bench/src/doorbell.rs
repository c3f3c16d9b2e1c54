//! From the ELSP write to what the driver sees of it.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Args as ClapArgs;
use execlab_access::floors;
use execlab_posix::pin;
use serde::Serialize;

use crate::output::Output;
use crate::quantiles::Quantiles;
use crate::rig::{Rig, Watch};

/// Parts into which the rounds are dealt, so that paths and floors alternate.
const TURNS: u32 = 10;
/// What blocks takes a hundred times longer than what spins, and gets one round for so many.
const BLOCKED: u32 = 10;
/// The paths, each with what ends it.
const PATHS: [(&str, Watch); 3] = [
    ("ELSP write to CSB entry, spinning", Watch::FirstEvent),
    ("ELSP write to interrupt, spinning", Watch::InterruptPolled),
    ("ELSP write to interrupt, blocked", Watch::InterruptBlocked),
];

/// `doorbell`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Socket of a device that runs (with the profile `instant`, or its delays are measured too).
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// Submissions for each path, and round trips for each floor; what blocks gets a tenth. Rounded up to tens.
    #[arg(long, default_value_t = 20_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    rounds: u32,
    /// CPU of the driver, and of one end of the floors.
    #[arg(long, default_value_t = 0, value_name = "N")]
    cpu: usize,
    /// CPU of the device, and of the other end. The device's own `--cpu` must say the same.
    #[arg(long, default_value_t = 1, value_name = "N")]
    device_cpu: usize,
    #[command(flatten)]
    output: Output,
}

/// A round trip without a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Floor {
    /// Two threads that spin, answering each other through memory.
    CacheLine,
    /// Two threads that block, waking each other through eventfds.
    Eventfd,
}

impl Floor {
    /// The one below a path: a device that polls answers a driver that spins through memory; where either is woken,
    /// it is by an eventfd.
    fn below(wait: &str, watch: Watch) -> Self {
        if wait == "poll" && watch != Watch::InterruptBlocked { Self::CacheLine } else { Self::Eventfd }
    }

    /// The most that a path should take, in medians of the floor.
    const fn aim(self) -> f64 {
        match self {
            Self::CacheLine => 8.0,
            Self::Eventfd => 1.5,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::CacheLine => "cache line",
            Self::Eventfd => "eventfd",
        }
    }
}

#[derive(Debug, Serialize)]
struct Path {
    name: &'static str,
    ns: Quantiles,
    floor: Floor,
    ratio_p50: f64,
    aim: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    wait: String,
    profile: String,
    cpu: usize,
    device_cpu: usize,
    cache_line: Quantiles,
    eventfd: Quantiles,
    paths: Vec<Path>,
}

/// Measures and prints.
///
/// # Errors
/// When there is no device, it loses a submission, or a CPU is not there. A missed aim is none: it is printed.
pub fn run(args: &Args) -> Result<()> {
    ensure!(
        args.cpu != args.device_cpu,
        "driver and device need a CPU each: --cpu and --device-cpu are the same"
    );
    let report = measure(args)?;
    print(&report, &args.output)?;
    args.output.numbers(&report)
}

fn measure(args: &Args) -> Result<Report> {
    let (cpu, device_cpu) = (args.cpu, args.device_cpu);
    pin(cpu, "driver")?;
    let mut rig = Rig::connect(&args.socket)?;
    let (wait, profile) = (rig.described("wait"), rig.described("profile"));
    let spinning = args.rounds.div_ceil(TURNS);
    let blocked = spinning.div_ceil(BLOCKED);
    let mut samples = PATHS.map(|_| Vec::new());
    let (mut line, mut event) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        line.extend(floors::cache_line_round_trips(cpu, device_cpu, spinning as usize)?);
        event.extend(floors::eventfd_round_trips(cpu, device_cpu, blocked as usize)?);
        for ((_, watch), samples) in PATHS.iter().zip(&mut samples) {
            let count = if *watch == Watch::InterruptBlocked { blocked } else { spinning };
            for _ in 0..count {
                samples.push(rig.submission(*watch)?);
            }
        }
    }
    let (cache_line, eventfd) = (Quantiles::of(line), Quantiles::of(event));
    let path = |((name, watch), samples)| {
        let ns = Quantiles::of(samples);
        let floor = Floor::below(&wait, watch);
        let base = if floor == Floor::CacheLine { &cache_line } else { &eventfd };
        Path { name, ns, floor, ratio_p50: ns.ratio_of_p50(base), aim: floor.aim() }
    };
    let paths = PATHS.into_iter().zip(samples).map(path).collect();
    Ok(Report { wait, profile, cpu, device_cpu, cache_line, eventfd, paths })
}

fn print(report: &Report, output: &Output) -> Result<()> {
    output.line(&format!(
        "device waits: {}, profile {}; driver on CPU {}, device on CPU {}; times in ns",
        report.wait, report.profile, report.cpu, report.device_cpu
    ))?;
    output.line(&format!("{:<36} {:>8} {:>9} {:>9} {:>9}  ratio of p50", "", "n", "p50", "p90", "p99"))?;
    let row = |name: &str, q: &Quantiles, rest: &str| {
        output.line(&format!("{name:<36} {:>8} {:>9} {:>9} {:>9}{rest}", q.n, q.p50, q.p90, q.p99))
    };
    row("floor: cache-line round trip", &report.cache_line, "")?;
    row("floor: eventfd round trip", &report.eventfd, "")?;
    for path in &report.paths {
        let met = if path.ratio_p50 <= path.aim { "met" } else { "missed" };
        let rest = format!("  {:.1} x {}, aim {} {met}", path.ratio_p50, path.floor.name(), path.aim);
        row(path.name, &path.ns, &rest)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_polling_device_and_a_spinning_driver_are_held_against_memory() {
        assert_eq!(Floor::below("poll", Watch::FirstEvent), Floor::CacheLine);
        assert_eq!(Floor::below("poll", Watch::InterruptPolled), Floor::CacheLine);
        assert_eq!(Floor::below("poll", Watch::InterruptBlocked), Floor::Eventfd);
        assert_eq!(Floor::below("sleep", Watch::FirstEvent), Floor::Eventfd);
        assert_eq!(Floor::below("hybrid", Watch::InterruptPolled), Floor::Eventfd);
    }
}
