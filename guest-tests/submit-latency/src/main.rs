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
            eprintln!("submit-latency: {}", words(&error));
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
        Err(error) => Line::Failure(Failure { message: words(error) }),
    };
    let written = output.line(&last).context("the results cannot be written");
    // The first error explains the second.
    outcome.and(written)
}

/// An error with its causes in one line. Some errors say their cause themselves; it is not said twice.
fn words(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |mut said, cause| {
        let cause = cause.to_string();
        if !said.contains(&cause) {
            if !said.is_empty() {
                said.push_str(": ");
            }
            said.push_str(&cause);
        }
        said
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_that_was_said_already_is_not_repeated() {
        let io = || std::io::Error::other("broken");
        assert_eq!(
            words(&anyhow::Error::new(io()).context("cannot open: broken; do this")),
            "cannot open: broken; do this"
        );
        assert_eq!(words(&anyhow::Error::new(io()).context("block 3")), "block 3: broken");
    }
}
