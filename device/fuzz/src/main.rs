//! `execlab-fuzz`: runs the fuzz targets and says how to have a failing case again.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use clap::Parser;
use execlab_fuzz::campaign::{self, Config, Summary};
use execlab_fuzz::{TARGETS, Target, Verdict};
use indicatif::{ProgressBar, ProgressStyle};

/// Feed the device hostile input. Exits with 1 if something is wrong, with 2 if it could not be tried.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// Target to run, or `all`; `list` lists them.
    #[arg(long, default_value = "all")]
    target: String,
    /// Cases for each target.
    #[arg(long, default_value_t = 100_000)]
    cases: u64,
    /// Seed; without one, the clock gives it.
    #[arg(long)]
    seed: Option<u64>,
    /// Stop each target after that many seconds.
    #[arg(long)]
    seconds: Option<u64>,
    /// Threads; default: one for each CPU.
    #[arg(long)]
    jobs: Option<usize>,
    /// Seconds after which a case is said to hang.
    #[arg(long, default_value_t = 10)]
    limit: u64,
    /// Run this case only, of one target.
    #[arg(long, value_name = "SEED:CASE", conflicts_with = "input")]
    replay: Option<String>,
    /// Run the bytes of this file only, on one target.
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// With --replay: also write the input's bytes to this file.
    #[arg(long, value_name = "FILE", requires = "replay")]
    save: Option<PathBuf>,
}

fn main() -> ExitCode {
    run(&Args::parse()).unwrap_or_else(|error| {
        eprintln!("execlab-fuzz: {error:#}");
        ExitCode::from(2)
    })
}

fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.target == "list" {
        for target in TARGETS {
            println!("{:8} {}", target.name, target.about);
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(which) = &args.replay {
        let (seed, case) = which.split_once(':').context("--replay takes SEED:CASE")?;
        let (seed, case) = (seed.parse().context("SEED")?, case.parse().context("CASE")?);
        return replay(one(&args.target)?, seed, case, args.save.as_deref());
    }
    if let Some(path) = &args.input {
        let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
        let mut run = (one(&args.target)?.runner)();
        return Ok(say(&run(&bytes)));
    }
    let targets = if args.target == "all" { TARGETS.to_vec() } else { vec![one(&args.target)?] };
    let from_clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |d| d.as_millis() as u64);
    let config = Config {
        seed: args.seed.unwrap_or_else(from_clock),
        cases: args.cases,
        time: args.seconds.map(Duration::from_secs),
        jobs: args.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, Into::into)),
        case_limit: Duration::from_secs(args.limit),
    };
    println!("seed {}, {} jobs", config.seed, config.jobs);
    let mut code = ExitCode::SUCCESS;
    for target in targets {
        if !campaign(target, &config) {
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

/// The target of that name.
fn one(name: &str) -> anyhow::Result<Target> {
    let names = || TARGETS.iter().map(|t| t.name).collect::<Vec<_>>().join(", ");
    Target::named(name).with_context(|| format!("--target must name one of {}", names()))
}

/// Runs one target and reports; whether nothing was wrong.
fn campaign(target: Target, config: &Config) -> bool {
    let bar = ProgressBar::new(config.cases);
    let style = ProgressStyle::with_template("{msg:8} {bar:40} {human_pos}/{human_len} {per_sec} {eta}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_message(target.name);
    // Where nobody watches, a line now and then keeps a log readable and a CI job from being taken for dead.
    let watched = std::io::stderr().is_terminal();
    let mut told = Instant::now();
    let summary = campaign::run(target, config, |done| {
        bar.set_position(done);
        if !watched && told.elapsed() >= Duration::from_secs(10) {
            told = Instant::now();
            eprintln!("{}: {done} of {} cases", target.name, config.cases);
        }
    });
    bar.finish_and_clear();
    report(target, config.seed, &summary);
    summary.finding.is_none()
}

/// Prints how a campaign went.
fn report(target: Target, seed: u64, summary: &Summary) {
    let rate = summary.cases as f64 / summary.elapsed.as_secs_f64().max(1e-9);
    let named: Vec<_> = target.labels.iter().enumerate().filter(|(_, label)| !label.is_empty()).collect();
    let missing: Vec<_> =
        named.iter().filter(|(at, _)| !summary.reached.has(*at)).map(|(_, label)| **label).collect();
    println!(
        "{}: {} cases in {:.1} s ({rate:.0}/s), reached {} of {} named outcomes and {} states",
        target.name,
        summary.cases,
        summary.elapsed.as_secs_f64(),
        named.len() - missing.len(),
        named.len(),
        summary.reached.len(),
    );
    let (case, took) = summary.slowest;
    println!("{}: slowest case {seed}:{case}, {:.1} ms", target.name, took.as_secs_f64() * 1e3);
    if !missing.is_empty() {
        println!("{}: not reached: {}", target.name, missing.join(", "));
    }
    if let Some(finding) = &summary.finding {
        println!("{}: case {}: {}", target.name, finding.case, finding.what);
        println!("again: execlab-fuzz --target {} --replay {seed}:{}", target.name, finding.case);
    }
}

fn replay(target: Target, seed: u64, case: u64, save: Option<&std::path::Path>) -> anyhow::Result<ExitCode> {
    let mut saved = Ok(());
    let mut began = Instant::now();
    let verdict = campaign::replay(target, seed, case, |input| {
        println!("{} bytes: {}", input.len(), hex(input));
        if let Some(path) = save {
            saved = std::fs::write(path, input).with_context(|| path.display().to_string());
        }
        began = Instant::now();
    });
    println!("took {:?}", began.elapsed());
    saved?;
    Ok(say(&verdict))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn say(verdict: &Verdict) -> ExitCode {
    match verdict {
        Ok(reached) => {
            println!("nothing wrong; {} states", reached.len());
            ExitCode::SUCCESS
        }
        Err(what) => {
            println!("wrong: {what}");
            ExitCode::FAILURE
        }
    }
}
