//! The execlab command: set up, run, compare, report.

mod bench;
mod cli;
mod compare;
mod demo;
mod doctor;
mod explore;
mod lockfile;
mod out;
mod prepare;
mod progress;
mod run;
mod selftest;
mod settings;
mod test_cmd;
mod vm;
mod workspace;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser as _;
use execlab_launch::Interrupt;

use cli::{Cli, Command, Experiment};

/// Exit status of an interrupted command: what a shell gives for SIGINT, and what a second Ctrl-C yields.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let interrupt = match Interrupt::install() {
        Ok(interrupt) => interrupt,
        Err(error) => {
            say(&error.to_string());
            return ExitCode::FAILURE;
        }
    };
    match dispatch(cli.command, &interrupt) {
        Ok(()) => ExitCode::SUCCESS,
        // Ctrl-C reaches the programs that we started, too: what they and we say then is only a consequence.
        Err(_) if interrupt.is_set() => {
            say("interrupted");
            ExitCode::from(INTERRUPTED)
        }
        Err(error) => {
            say(&execlab_report::words(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

/// Says a last line on standard error; if nobody listens there, the exit status must do.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "execlab: {line}");
}

fn dispatch(command: Command, interrupt: &Interrupt) -> Result<()> {
    if let Command::Compare(args) = &command {
        return compare::compare(args);
    }
    let root = workspace::root()?;
    match command {
        Command::Demo(args) => demo::demo(&root, &args, interrupt),
        Command::Test(args) => test_cmd::test(&root, &args, interrupt),
        Command::Run(Experiment::SubmitLatency(args)) => {
            run::submit_latency::run(&root, &args, interrupt).map(|_| ())
        }
        Command::Compare(args) => compare::compare(&args),
        Command::Explore(args) => explore::explore(&root, &args),
        Command::Vm(args) => vm::vm(&root, &args, interrupt),
        Command::Bench(args) => bench::bench(&root, &args, interrupt),
        Command::Doctor(args) => doctor::doctor(&root, &args, interrupt),
        Command::Setup(args) => doctor::set_up(&root, &args, interrupt),
    }
}
