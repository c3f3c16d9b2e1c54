//! The execlab command: set up, run, compare, report.

mod cli;
mod compare;
mod lockfile;
mod progress;
mod run;
mod workspace;

use clap::Parser as _;

fn main() -> anyhow::Result<()> {
    let cli = cli::Cli::parse();
    match cli.command {
        cli::Command::Compare(args) => compare::compare(&args),
        _ => Ok(()),
    }
}
