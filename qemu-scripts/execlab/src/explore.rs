//! `execlab explore`: the simulator's own search, built first if need be.

use std::path::Path;

use anyhow::Result;

use crate::cli::ExploreArgs;
use crate::prepare;
use crate::workspace::run;

/// The simulator: its package, and its program.
pub const SIM: &str = "execlab-sim";

/// Builds the simulator and lets it search.
///
/// # Errors
/// When it cannot be built, or found something; it says what.
pub fn explore(root: &Path, args: &ExploreArgs) -> Result<()> {
    let mut command = prepare::host_program(root, SIM, SIM)?;
    command.arg("explore").args(&args.rest);
    run(command)
}
