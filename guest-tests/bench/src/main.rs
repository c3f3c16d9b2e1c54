//! Benchmarks of the doorbell's path and of the device's delays.

mod child;
mod delays;
mod doorbell;
mod kernel;
mod output;
mod quantiles;
mod rig;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
