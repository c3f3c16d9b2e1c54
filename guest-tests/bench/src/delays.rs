//! Injected delays: never early, and how late in each way of waiting.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args as ClapArgs;
use execlab_access::floors;
use execlab_posix::pin;
use serde::{Deserialize, Serialize};

use crate::child::{Device, Start};
use crate::output::Output;
use crate::quantiles::Quantiles;
use crate::rig::{Rig, Watch};

/// What is injected, in nanoseconds.
const DELAYS_NS: [u64; 5] = [0, 20_000, 100_000, 1_000_000, 10_000_000];
/// Where, and what shows that the delay is over.
const POINTS: [(&str, Watch); 3] = [
    ("elsp.accept", Watch::FirstEvent),
    ("context.restore", Watch::SecondEvent),
    ("irq.deliver", Watch::InterruptPolled),
];
/// The ways of waiting, each with the median lateness in nanoseconds that it should not exceed.
const WAITS: [(&str, Option<u64>); 3] = [("sleep", None), ("hybrid", Some(2_000)), ("poll", Some(500))];
/// Longest time that one row's delays add up to.
const ROW_NS: u64 = 1_000_000_000;
/// Deadlines of a floor, and how far ahead they are.
const FLOOR: (usize, Duration) = (300, Duration::from_micros(100));

/// `delays`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// The program execlab-device.
    #[arg(long, value_name = "PATH")]
    device: PathBuf,
    /// Submissions for each delay, point and way of waiting; of long delays at most as many as fit into a second.
    #[arg(long, default_value_t = 300, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    samples: u64,
    /// CPU of the driver.
    #[arg(long, default_value_t = 0, value_name = "N")]
    cpu: usize,
    /// CPU of the device, and of the floors.
    #[arg(long, default_value_t = 1, value_name = "N")]
    device_cpu: usize,
    #[command(flatten)]
    output: Output,
}

/// The device's own record of its deadlines, as it reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Lateness {
    count: u64,
    p50_ns: u64,
    p99_ns: u64,
    max_ns: u64,
}

#[derive(Debug, Serialize)]
struct Row {
    wait: &'static str,
    point: &'static str,
    delay_ns: u64,
    /// From the ELSP write to the end of the delay as the driver sees it, less the delay.
    seen_late: Quantiles,
    /// Delays that the driver saw the end of too early.
    early: usize,
    /// Lateness of the device's deadlines. No deadline is set for a delay of 0.
    met: Lateness,
}

/// Lateness without a device, on its CPU.
#[derive(Debug, Serialize)]
struct Floors {
    /// The way of waiting after whose rows these were measured.
    after: &'static str,
    clock_nanosleep: Quantiles,
    spin: Quantiles,
}

#[derive(Debug, Default, Serialize)]
struct Report {
    rows: Vec<Row>,
    floors: Vec<Floors>,
    early: usize,
}

/// Measures and prints.
///
/// # Errors
/// When a delay ended early, or something could not be measured. Lateness is none: it is printed.
pub fn run(args: &Args) -> Result<()> {
    ensure!(
        args.cpu != args.device_cpu,
        "driver and device need a CPU each: --cpu and --device-cpu are the same"
    );
    pin(args.cpu, "driver")?;
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let output = &args.output;
    output.line(
        "lateness in ns: `seen` by the driver from its ELSP write on, `met` as the device recorded it",
    )?;
    output.line(&format!(
        "{:<8} {:<15} {:>9} {:>6} | {:>9} {:>9} | {:>9} {:>9} {:>9}",
        "wait", "point", "delay", "n", "seen p50", "p99", "met p50", "p99", "max"
    ))?;
    let mut report = Report::default();
    for (wait, aim) in WAITS {
        let first = report.rows.len();
        for (point, watch) in POINTS {
            for delay_ns in DELAYS_NS {
                let row = measure(args, folder.path(), wait, point, watch, delay_ns)?;
                output.line(&text(&row))?;
                report.rows.push(row);
            }
        }
        let floors = floors_after(args.device_cpu, wait)?;
        output.line(&floor_text(wait, "clock_nanosleep", &floors.clock_nanosleep))?;
        output.line(&floor_text(wait, "spin", &floors.spin))?;
        report.floors.push(floors);
        if let Some(aim) = aim {
            let (within, of) = within(&report.rows[first..], aim);
            output.line(&format!("{wait:<8} met p50 at most {aim} ns (the aim): {within} of {of} delays"))?;
        }
    }
    report.early = report.rows.iter().map(|row| row.early).sum();
    output.numbers(&report)?;
    if report.early > 0 {
        bail!("{} delays ended early", report.early);
    }
    output.line("no delay ended early")
}

fn measure(
    args: &Args,
    folder: &Path,
    wait: &'static str,
    point: &'static str,
    watch: Watch,
    delay_ns: u64,
) -> Result<Row> {
    let profile = folder.join("profile.toml");
    fs::write(&profile, profile_text(point, delay_ns)).context("cannot write a profile")?;
    // A socket of its own: the file of the one before still lies there.
    let socket = folder.join(format!("{wait}-{point}-{delay_ns}"));
    let (program, cpu) = (args.device.as_path(), args.device_cpu);
    let (_device, mut rig) = Device::start(Start { program, socket: &socket, profile: &profile, wait, cpu })?;
    let count = count(args.samples, delay_ns);
    let took = (0..count).map(|_| rig.submission(watch)).collect::<Result<Vec<u64>>>()?;
    let met = lateness(&rig)?;
    ensure!(
        delay_ns == 0 || met.count >= count,
        "{wait}, {point}: the device met {} deadlines for {count} delays of {delay_ns} ns",
        met.count
    );
    let early = took.iter().filter(|took| **took < delay_ns).count();
    let seen_late = Quantiles::of(took.into_iter().map(|took| took.saturating_sub(delay_ns)).collect());
    Ok(Row { wait, point, delay_ns, seen_late, early, met })
}

fn lateness(rig: &Rig) -> Result<Lateness> {
    #[derive(Deserialize)]
    struct Statistics {
        lateness: Lateness,
    }
    let text = rig.device.statistics()?;
    let statistics: Statistics = serde_json::from_str(&text).context("the device's statistics")?;
    Ok(statistics.lateness)
}

/// How many submissions with such a delay.
fn count(samples: u64, delay_ns: u64) -> u64 {
    samples.min(ROW_NS / delay_ns.max(1)).max(1)
}

/// A profile with one delay.
fn profile_text(point: &str, delay_ns: u64) -> String {
    format!("name = \"one-delay\"\n[delay]\n\"{point}\" = \"{delay_ns}ns\"\n")
}

/// How many of the rows with a delay have a median lateness of at most `aim`, and how many such rows there are.
fn within(rows: &[Row], aim: u64) -> (usize, usize) {
    let delayed = || rows.iter().filter(|row| row.delay_ns > 0);
    (delayed().filter(|row| row.met.p50_ns <= aim).count(), delayed().count())
}

fn floors_after(cpu: usize, after: &'static str) -> Result<Floors> {
    let (count, ahead) = FLOOR;
    let clock_nanosleep = Quantiles::of(floors::sleep_lateness(cpu, ahead, count)?);
    let spin = Quantiles::of(floors::spin_lateness(cpu, ahead, count)?);
    Ok(Floors { after, clock_nanosleep, spin })
}

fn text(row: &Row) -> String {
    let (seen, met) = (row.seen_late, row.met);
    // No deadline, no lateness.
    let cell = |ns: u64| if met.count == 0 { "-".to_owned() } else { ns.to_string() };
    format!(
        "{:<8} {:<15} {:>9} {:>6} | {:>9} {:>9} | {:>9} {:>9} {:>9}{}",
        row.wait,
        row.point,
        row.delay_ns,
        seen.n,
        seen.p50,
        seen.p99,
        cell(met.p50_ns),
        cell(met.p99_ns),
        cell(met.max_ns),
        if row.early > 0 { format!("  {} EARLY", row.early) } else { String::new() }
    )
}

fn floor_text(after: &str, name: &str, q: &Quantiles) -> String {
    let ahead = FLOOR.1.as_nanos();
    format!(
        "{after:<8} {name:<15} {ahead:>9} {:>6} | {:>9} {:>9} | {:>9} {:>9} {:>9}  bare",
        q.n, "", "", q.p50, q.p99, q.max
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(delay_ns: u64, p50_ns: u64) -> Row {
        let met = Lateness { count: 1, p50_ns, p99_ns: p50_ns, max_ns: p50_ns };
        let seen_late = Quantiles::of(vec![p50_ns]);
        Row { wait: "poll", point: "elsp.accept", delay_ns, seen_late, early: 0, met }
    }

    #[test]
    fn each_profile_names_its_point_and_its_delay() {
        assert_eq!(
            profile_text("irq.deliver", 20_000),
            "name = \"one-delay\"\n[delay]\n\"irq.deliver\" = \"20000ns\"\n"
        );
    }

    #[cfg(not(target_env = "musl"))]
    #[test]
    fn every_profile_delays_its_point_and_no_other() {
        use execlab_profile::{Point, Profile, Sampler};
        for (name, _) in POINTS {
            let profile = Profile::parse(&profile_text(name, 20_000), "profile.toml").unwrap();
            let mut sampler = Sampler::new(&profile, 1, 1.0);
            for point in [Point::ElspAccept, Point::ContextRestore, Point::IrqDeliver, Point::BatchExecute] {
                let expected = if point.name() == name { 20_000 } else { 0 };
                assert_eq!(sampler.draw(point, execlab_abi::engine::Engine::Bcs0), expected, "{name}");
            }
        }
    }

    #[test]
    fn long_delays_get_as_many_submissions_as_fit_into_a_second() {
        assert_eq!(count(300, 0), 300);
        assert_eq!(count(300, 1_000_000), 300);
        assert_eq!(count(300, 10_000_000), 100);
        assert_eq!(count(5, 10_000_000), 5);
    }

    #[test]
    fn rows_without_a_delay_count_neither_for_nor_against_the_aim() {
        assert_eq!(within(&[row(0, 9_999), row(20_000, 500), row(100_000, 501)], 500), (1, 2));
    }

    #[test]
    fn a_row_without_deadlines_shows_no_lateness_and_early_ones_are_marked() {
        let mut quiet = row(0, 7);
        quiet.met.count = 0;
        assert!(text(&quiet).ends_with("-         -         -"), "{}", text(&quiet));
        let early = Row { early: 3, ..row(20_000, 7) };
        assert!(text(&early).ends_with("3 EARLY"), "{}", text(&early));
    }
}
