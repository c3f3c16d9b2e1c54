//! From the ELSP write to what the driver sees of it.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args as ClapArgs;
use execlab_access::floors;
use execlab_posix::pin;
use serde::Serialize;

use crate::quantiles::Quantiles;
use crate::rig::{Rig, Watch};
use crate::write_json;

/// Parts into which the rounds are dealt, so that paths and floors alternate.
const TURNS: u32 = 10;

/// `doorbell`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Socket of a device that runs (with the profile `instant`, or its delays are measured too).
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,
    /// Submissions per path, and round trips per floor.
    #[arg(long, default_value_t = 20_000)]
    rounds: u32,
    /// CPU of the driver.
    #[arg(long, default_value_t = 0, value_name = "N")]
    cpu: usize,
    /// CPU of the device, where the floors have their other end.
    #[arg(long, default_value_t = 1, value_name = "N")]
    device_cpu: usize,
    /// Write the numbers as JSON to FILE (`-` for standard output).
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Serialize)]
struct Path {
    name: &'static str,
    ns: Quantiles,
    floor: &'static str,
    ratio_p50: f64,
}

#[derive(Serialize)]
struct Report {
    wait: String,
    profile: String,
    cache_line: Quantiles,
    eventfd: Quantiles,
    paths: Vec<Path>,
}

/// Measures and prints.
pub fn run(args: &Args) -> Result<()> {
    pin(args.cpu, "driver")?;
    let mut rig = Rig::connect(&args.socket)?;
    let (wait, profile) = (rig.described("wait"), rig.described("profile"));
    let watches = [
        ("ELSP write to CSB entry, spinning", Watch::FirstEvent),
        ("ELSP write to interrupt, spinning", Watch::InterruptPolled),
        ("ELSP write to interrupt, blocked", Watch::InterruptBlocked),
    ];
    let mut samples = watches.map(|_| Vec::new());
    let (mut line, mut event) = (Vec::new(), Vec::new());
    let each = (args.rounds / TURNS).max(1);
    for _ in 0..TURNS {
        line.extend(floors::cache_line_round_trips(args.cpu, args.device_cpu, each as usize)?);
        // A blocked round trip takes a hundred times longer.
        event.extend(floors::eventfd_round_trips(args.cpu, args.device_cpu, (each / 10).max(1) as usize)?);
        for ((_, watch), samples) in watches.iter().zip(&mut samples) {
            let count = if *watch == Watch::InterruptBlocked { (each / 10).max(1) } else { each };
            for _ in 0..count {
                samples.push(rig.submission(*watch)?);
            }
        }
    }
    let (cache_line, eventfd) = (Quantiles::of(line), Quantiles::of(event));
    let paths = watches
        .iter()
        .zip(samples)
        .map(|((name, watch), samples)| {
            let ns = Quantiles::of(samples);
            // A device that polls answers through memory; one that is kicked, or a driver that blocks, through eventfds.
            let memory = wait == "poll" && *watch != Watch::InterruptBlocked;
            let (floor, base) = if memory { ("cache line", cache_line) } else { ("eventfd", eventfd) };
            Path { name, ns, floor, ratio_p50: ns.p50 as f64 / base.p50.max(1) as f64 }
        })
        .collect();
    let report = Report { wait, profile, cache_line, eventfd, paths };
    print(&report);
    write_json(args.json.as_deref(), &report)
}

fn print(report: &Report) {
    println!("device waits: {}, profile {}; times in ns", report.wait, report.profile);
    println!("{:<36} {:>8} {:>9} {:>9} {:>9}  ratio of p50", "", "n", "p50", "p90", "p99");
    for (name, q) in
        [("floor: cache-line round trip", report.cache_line), ("floor: eventfd round trip", report.eventfd)]
    {
        println!("{name:<36} {:>8} {:>9} {:>9} {:>9}", q.n, q.p50, q.p90, q.p99);
    }
    for path in &report.paths {
        let q = path.ns;
        println!(
            "{:<36} {:>8} {:>9} {:>9} {:>9}  {:.1} x {}",
            path.name, q.n, q.p50, q.p90, q.p99, path.ratio_p50, path.floor
        );
    }
}
