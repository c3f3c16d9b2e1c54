//! Benchmarks of the doorbell's path and of the device's delays.

mod delays;
mod doorbell;
mod kernel;
mod quantiles;
mod rig;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};
use serde::Serialize;

/// What the lab itself costs, each figure beside a floor of the same run.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// ELSP write to CSB entry seen, and to interrupt seen, against a device that runs already.
    Doorbell(doorbell::Args),
    /// Injected delays in each way of waiting: never early, and how late.
    Delays(delays::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Doorbell(args) => doorbell::run(&args),
        Command::Delays(args) => delays::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("execlab-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Writes `value` as JSON to `target`, `-` being standard output; nothing without a target.
fn write_json(target: Option<&Path>, value: &impl Serialize) -> Result<()> {
    let Some(target) = target else { return Ok(()) };
    let text = serde_json::to_string_pretty(value)? + "\n";
    if target == Path::new("-") {
        print!("{text}");
        return Ok(());
    }
    std::fs::write(target, text).with_context(|| format!("cannot write {}", target.display()))
}
