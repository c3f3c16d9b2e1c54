//! `execlab-sim explore`.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::Args as ClapArgs;
use execlab_driver::Bug;
use execlab_sim::Machine;
use execlab_sim::explore::{Budget, Found, Trial, record, search, shrink};
use serde::Serialize;

use crate::cancelled_by_signals;

/// `explore`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Seeds to try; each chooses a case of the suite, a variant, a schedule, delays and bus costs.
    #[arg(long, default_value_t = 20_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 1, value_name = "N")]
    first_seed: u64,
    /// Longest time, for example `60s` or `5m`; whatever comes first ends the search.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    budget: Option<Duration>,
    /// Simulations at once. Default: one for each CPU of this machine.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    /// The machine that is simulated, a shipped name or a TOML file.
    #[arg(long, default_value = "kbl-2018", value_name = "NAME|FILE")]
    machine: String,
    /// A driver with this known mistake, to see that it is found.
    #[arg(long, value_name = "NAME", value_parser = bug)]
    bug: Option<Bug>,
    /// Run one trial again, as a search prints it, with everything that happens in it on standard output.
    #[arg(long, value_name = "TRIAL", conflicts_with_all = ["seeds", "first_seed", "budget", "jobs", "bug"])]
    replay: Option<Trial>,
    /// Write the outcome as JSON to FILE (`-` for standard output).
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn bug(name: &str) -> Result<Bug, String> {
    Bug::from_name(name).ok_or_else(|| format!("there are {}", Bug::ALL.map(Bug::name).join(", ")))
}

/// What `--json` writes.
#[derive(Debug, Serialize)]
struct Report {
    machine: String,
    /// Trials made.
    trials: u64,
    seconds: f64,
    /// Whether the search was ended by a signal.
    cancelled: bool,
    found: Option<Failure>,
}

#[derive(Debug, Serialize)]
struct Failure {
    /// The case in words.
    case: &'static str,
    /// What went wrong.
    what: String,
    /// The trial as it was found.
    trial: String,
    /// The plainest one that fails as well.
    shrunk: String,
}

/// Searches, or replays one trial.
///
/// # Errors
/// When something was found, arguments make no sense, or output cannot be written.
pub fn explore(args: &Args) -> Result<()> {
    let machine = Machine::load(&args.machine)?;
    if let Some(trial) = &args.replay {
        return replay(&machine, trial);
    }
    let cancel = cancelled_by_signals()?;
    let jobs = args
        .jobs
        .map_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get), usize::from);
    let budget = Budget { first_seed: args.first_seed, seeds: args.seeds, time: args.budget, jobs };
    let begin = Instant::now();
    let terminal = io::stderr().is_terminal();
    let (found, progress) = search(&machine, args.bug, &budget, &cancel, &mut |now| {
        if terminal {
            eprint!("\r{} of {} trials", now.trials, args.seeds);
        }
    })?;
    if terminal {
        eprint!("\r\x1b[K");
    }
    let failure = found.as_ref().map(|found| shrunk(&machine, found)).transpose()?;
    let seconds = begin.elapsed().as_secs_f64();
    let cancelled = cancel.load(Relaxed);
    println!("{} trials on {} in {seconds:.1} s", progress.trials, machine.name);
    if let Some(failure) = &failure {
        println!("{}: {}", failure.case, failure.what);
        println!("found as  {}", failure.trial);
        println!("shrunk to {}", failure.shrunk);
        println!("replay    cargo lab explore --machine {} --replay {}", args.machine, failure.shrunk);
    }
    if let Some(file) = &args.json {
        let report = Report {
            machine: machine.name.clone(),
            trials: progress.trials,
            seconds,
            cancelled,
            found: failure,
        };
        write_json(file, &report)?;
    }
    if found.is_some() {
        bail!("a trial failed");
    }
    if cancelled {
        bail!("stopped by a signal after {} trials, none of which failed", progress.trials);
    }
    println!("nothing found");
    Ok(())
}

fn shrunk(machine: &Machine, found: &Found) -> Result<Failure> {
    let shrunk = shrink(machine, found)?;
    Ok(Failure {
        case: shrunk.finding.case,
        what: shrunk.finding.what.clone(),
        trial: found.trial.to_string(),
        shrunk: shrunk.trial.to_string(),
    })
}

fn replay(machine: &Machine, trial: &Trial) -> Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let outcome = record(machine, trial, &mut out)?.context("standard output")?;
    writeln!(out, "trace hash {:016x}", outcome.hash)?;
    match outcome.finding {
        None => writeln!(out, "{}: passed", trial.case_name())?,
        Some(finding) => {
            writeln!(out, "{finding}")?;
            out.flush()?;
            bail!("the trial failed");
        }
    }
    Ok(out.flush()?)
}

fn write_json(file: &PathBuf, report: &Report) -> Result<()> {
    let text = serde_json::to_string_pretty(report)? + "\n";
    if file.as_os_str() == "-" {
        print!("{text}");
        return Ok(());
    }
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}
