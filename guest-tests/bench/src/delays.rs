//! Injected delays: never early, and how late in each way of waiting.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::Args as ClapArgs;
use execlab_access::floors;
use execlab_posix::pin;
use serde::Serialize;

use crate::quantiles::Quantiles;
use crate::rig::{Rig, Watch};
use crate::write_json;

/// What is injected, in nanoseconds.
const DELAYS_NS: [u64; 5] = [0, 20_000, 100_000, 1_000_000, 10_000_000];
/// Where, and what shows that the delay is over.
const POINTS: [(&str, Watch); 3] = [
    ("elsp.accept", Watch::FirstEvent),
    ("context.restore", Watch::SecondEvent),
    ("irq.deliver", Watch::InterruptPolled),
];
const WAITS: [&str; 3] = ["sleep", "hybrid", "poll"];

/// `delays`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// The program execlab-device.
    #[arg(long, value_name = "PATH")]
    device: PathBuf,
    /// Most submissions per delay, point and way of waiting; long delays get fewer.
    #[arg(long, default_value_t = 300)]
    samples: u64,
    /// CPU of the driver.
    #[arg(long, default_value_t = 0, value_name = "N")]
    cpu: usize,
    /// CPU of the device, and of the floors.
    #[arg(long, default_value_t = 1, value_name = "N")]
    device_cpu: usize,
    /// Write the numbers as JSON to FILE (`-` for standard output).
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Serialize)]
struct Row {
    wait: &'static str,
    point: &'static str,
    delay_ns: u64,
    /// From the ELSP write to the end of the delay as the driver sees it, less the delay.
    seen_late: Quantiles,
    early: usize,
    /// The device's own record over all its deadlines.
    device: serde_json::Value,
}

/// Measures and prints.
///
/// # Errors
/// When a delay ended early, or something could not be measured.
pub fn run(args: &Args) -> Result<()> {
    pin(args.cpu, "driver")?;
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    println!("lateness in ns: `seen` by the driver, `met` as the device recorded it");
    println!(
        "{:<7} {:<16} {:>9} {:>6} | {:>9} {:>9} | {:>9} {:>9} {:>9}",
        "wait", "point", "delay", "n", "seen p50", "p99", "met p50", "p99", "max"
    );
    let mut rows = Vec::new();
    for wait in WAITS {
        for (point, watch) in POINTS {
            for delay_ns in DELAYS_NS {
                let row = measure(args, folder.path(), wait, point, watch, delay_ns)?;
                print(&row);
                rows.push(row);
            }
        }
        floors(args, wait)?;
    }
    write_json(args.json.as_deref(), &rows)?;
    let early: usize = rows.iter().map(|row| row.early).sum();
    if early > 0 {
        bail!("{early} delays ended early");
    }
    println!("no delay ended early");
    Ok(())
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
    let (_device, mut rig) = start(args, wait, &profile, &socket)?;
    // About a second for each row.
    let count = args.samples.min(1_000_000_000 / delay_ns.max(1)).max(20);
    let mut late = Vec::new();
    let mut early = 0;
    for _ in 0..count {
        let took = rig.submission(watch)?;
        early += usize::from(took < delay_ns);
        late.push(took.saturating_sub(delay_ns));
    }
    let statistics: serde_json::Value = serde_json::from_str(&rig.device.statistics()?)?;
    let device = statistics.get("lateness").cloned().unwrap_or_default();
    Ok(Row { wait, point, delay_ns, seen_late: Quantiles::of(late), early, device })
}

/// A profile with one delay.
fn profile_text(point: &str, delay_ns: u64) -> String {
    format!("name = \"one-delay\"\n[delay]\n\"{point}\" = \"{delay_ns}ns\"\n")
}

fn print(row: &Row) {
    let device = |key: &str| row.device.get(key).and_then(serde_json::Value::as_u64).unwrap_or(0);
    let q = row.seen_late;
    println!(
        "{:<7} {:<16} {:>9} {:>6} | {:>9} {:>9} | {:>9} {:>9} {:>9}{}",
        row.wait,
        row.point,
        row.delay_ns,
        q.n,
        q.p50,
        q.p99,
        device("p50_ns"),
        device("p99_ns"),
        device("max_ns"),
        if row.early > 0 { "  EARLY" } else { "" }
    );
}

/// A bare sleep and a bare spin on the device's core.
fn floors(args: &Args, after: &str) -> Result<()> {
    let ahead = Duration::from_micros(100);
    let count = 300;
    let sleep = Quantiles::of(floors::sleep_lateness(args.device_cpu, ahead, count)?);
    let spin = Quantiles::of(floors::spin_lateness(args.device_cpu, ahead, count)?);
    for (name, q) in [("clock_nanosleep", sleep), ("spin", spin)] {
        println!(
            "{:<7} {name:<16} {:>9} {:>6} | {:>9} {:>9} | {:>9} {:>9} {:>9}",
            format!("({after})"),
            "bare",
            q.n,
            "",
            "",
            q.p50,
            q.p99,
            q.max
        );
    }
    Ok(())
}

/// A device process that ends with this value.
struct Device(Child);

/// Starts a device and connects to it as soon as it listens.
fn start(args: &Args, wait: &str, profile: &Path, socket: &Path) -> Result<(Device, Rig)> {
    let mut command = Command::new(&args.device);
    command.arg("--socket").arg(socket).arg("--profile").arg(profile).args(["--wait", wait]);
    if wait == "poll" {
        command.args(["--cpu", &args.device_cpu.to_string()]);
    }
    command.env("EXECLAB_LOG", "error").stdin(Stdio::null());
    let child = command.spawn().with_context(|| format!("cannot start {}", args.device.display()))?;
    let mut device = Device(child);
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        match Rig::connect(socket) {
            Ok(rig) => return Ok((device, rig)),
            Err(error) if Instant::now() > deadline => {
                return Err(error.context("the device does not answer after 10 s"));
            }
            // Not listening yet.
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
        if let Some(status) = device.0.try_wait()? {
            bail!("the device process ended with {status}");
        }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // Both fail only if it has ended already. Its socket lies in a folder that is removed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_profile_names_its_point_and_its_delay() {
        assert_eq!(
            profile_text("irq.deliver", 20_000),
            "name = \"one-delay\"\n[delay]\n\"irq.deliver\" = \"20000ns\"\n"
        );
    }
}
