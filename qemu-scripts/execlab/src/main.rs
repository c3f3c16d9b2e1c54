//! The execlab command: set up, run, compare, report.

mod bench;
mod cli;
mod compare;
mod demo;
mod doctor;
mod explore;
mod lockfile;
mod prepare;
mod progress;
mod run;
mod selftest;
mod test_cmd;
mod vm;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser as _;
use execlab_launch::Interrupt;

use cli::{Cli, Command, Experiment};

fn main() -> ExitCode {
    let cli = Cli::parse();
    match dispatch(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("execlab: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(command: Command) -> Result<()> {
    let interrupt = Interrupt::install()?;
    if let Command::Compare(args) = &command {
        return compare::compare(args);
    }
    let root = workspace::root()?;
    match command {
        Command::Demo(args) => demo::demo(&root, &args, &interrupt),
        Command::Test(args) => test_cmd::test(&root, &args, &interrupt),
        Command::Run(Experiment::SubmitLatency(args)) => {
            run::submit_latency::run(&root, &args, &interrupt).map(|_| ())
        }
        Command::Compare(args) => compare::compare(&args),
        Command::Explore(args) => explore::explore(&root, &args),
        Command::Vm(args) => vm::vm(&root, &args, &interrupt),
        Command::Bench(args) => bench::bench(&root, &args, &interrupt),
        Command::Doctor(args) => doctor::doctor(&root, &args, &interrupt),
        Command::Setup(args) => doctor::set_up(&root, &args, &interrupt),
    }
}
