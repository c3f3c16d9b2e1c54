//! The device process; everything of interest is in the library.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::Parser as _;
use execlab_device::cli::{Cli, profile_list};
use execlab_device::{Server, sys};
use tracing_subscriber::EnvFilter;

/// Environment variable with the log filter.
const LOG: &str = "EXECLAB_LOG";

fn main() -> ExitCode {
    let cli = Cli::parse();
    if cli.list_profiles {
        print!("{}", profile_list());
        return ExitCode::SUCCESS;
    }
    match log_to_stderr().and_then(|()| serve(&cli)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("execlab-device: {e:#}");
            ExitCode::FAILURE
        }
    }
}

/// Sends tracing's events, and the `log` records of the vhost crates with them, to stderr.
fn log_to_stderr() -> anyhow::Result<()> {
    let filter = match std::env::var(LOG) {
        Ok(text) => EnvFilter::try_new(&text).map_err(|e| anyhow::anyhow!("{LOG}={text}: {e}"))?,
        Err(_) => EnvFilter::new("info"),
    };
    // `init` also puts the bridge from `log` in place.
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    Ok(())
}

fn serve(cli: &Cli) -> anyhow::Result<()> {
    // Before any thread is there: threads inherit what is blocked.
    let signals = sys::ending_signals()?;
    let Some(socket) = &cli.socket else { anyhow::bail!("--socket is missing") };
    Server::start(socket, cli.settings()?, Some(signals))?.run()?;
    Ok(())
}
