//! The experiment on real threads, against a device process: natively, or in a guest.

mod cli;
mod posix;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, Result};
use clap::Parser as _;
use execlab_report::words;
use execlab_submit_latency::{Output, Setting, run};

use cli::Cli;
use posix::PosixWorld;

fn main() -> ExitCode {
    match whole() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("submit-latency: {}", words(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

/// Runs, and sees to it that the results end with a word on how it went.
fn whole() -> Result<()> {
    let cancel = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&cancel)).context("signal handlers")?;
    }
    let cli = Cli::parse();
    let mut output = Output::open(cli.results.clone()).context("--results")?;
    let outcome = cli
        .to_plan()
        .and_then(Setting::new)
        .and_then(|setting| run(&setting, PosixWorld::open, &cancel, &mut output, cli.plan.is_none()));
    output.last(outcome)
}
