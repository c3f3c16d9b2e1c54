//! Experiment: what does GPU submission do to an RT thread on the same CPU?

mod bench;
mod cli;
mod environment;
mod load;
mod order;
mod output;
mod recycle;
mod run;
mod setting;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, Result};
use clap::Parser as _;
use execlab_report::{Failure, Line};

use cli::Cli;
use output::Output;
use setting::Setting;

fn main() -> ExitCode {
    match whole() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("submit-latency: {error:#}");
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
        .and_then(|setting| run::run(&setting, &cancel, &mut output, cli.plan.is_none()));
    let last = match &outcome {
        Ok(()) => Line::Done,
        Err(error) => Line::Failure(Failure { message: format!("{error:#}") }),
    };
    let written = output.line(&last).context("the results cannot be written");
    // The first error explains the second.
    outcome.and(written)
}
