//! Runs an experiment on a simulated machine, or explores its schedules.

mod explore;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};
use execlab_report::{Plan, words};
use execlab_sim::{Machine, experiment};
use execlab_submit_latency::{Output, Setting, Target, run};

/// Runs an experiment on a simulated machine: the driver, probe and load are the real ones, CPUs, kernel and device are
/// computed. The same plan gives the same results, bit for bit, on any host.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Cli {
    /// Plan in JSON, as `execlab run --on sim` writes it.
    #[arg(long, value_name = "FILE", required_unless_present = "list_machines")]
    plan: Option<PathBuf>,
    /// Where results go: a file, `fd:N` for an open descriptor, or `-` for standard output.
    #[arg(long, value_name = "FILE|fd:N|-")]
    results: Option<Target>,
    /// List the machines that ship, and end.
    #[arg(long)]
    list_machines: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the driver's conformance suite under many schedules, delays and bus costs, until something fails.
    Explore(explore::Args),
}

fn main() -> ExitCode {
    match whole(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("execlab-sim: {}", words(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

fn whole(cli: &Cli) -> Result<()> {
    if let Some(Command::Explore(args)) = &cli.command {
        return explore::explore(args);
    }
    let Some(plan) = &cli.plan else {
        list_machines();
        return Ok(());
    };
    let cancel = cancelled_by_signals()?;
    let mut output = Output::open(cli.results.clone()).context("--results")?;
    let setting = match read(plan) {
        Ok(setting) => setting,
        Err(error) => return output.last(Err(error)),
    };
    let (mut sim, world) = match experiment::machine_for(&setting) {
        Ok(made) => made,
        Err(error) => return output.last(Err(error)),
    };
    let ended = sim.run(move || {
        let outcome = run(&setting, |_| Ok(world), &cancel, &mut output, false);
        output.last(outcome)
    });
    // A machine that stopped has taken the output with it: what follows is the last line.
    ended.unwrap_or_else(|error| {
        let mut output = Output::reopen(cli.results.clone()).context("--results")?;
        output.last(Err(error.into()))
    })
}

/// Set when the process is told to end.
fn cancelled_by_signals() -> Result<Arc<AtomicBool>> {
    let cancel = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&cancel)).context("signal handlers")?;
    }
    Ok(cancel)
}

fn list_machines() {
    for machine in Machine::builtin_names().filter_map(Machine::builtin) {
        println!("{:<14} {}", machine.name, machine.description);
    }
}

fn read(plan: &PathBuf) -> Result<Setting> {
    let text = std::fs::read_to_string(plan).with_context(|| format!("plan {}", plan.display()))?;
    let plan: Plan = serde_json::from_str(&text).with_context(|| format!("plan {}", plan.display()))?;
    Setting::new(plan)
}
