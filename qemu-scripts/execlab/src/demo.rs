//! `execlab demo`: the main job with its usual settings.

use std::path::Path;

use anyhow::Result;
use execlab_launch::Interrupt;

use crate::cli::{DemoArgs, RunArgs};
use crate::{out, run};

/// Runs `submit-latency` in a VM with the defaults of the command line, so that the demo shows what a person gets.
///
/// # Errors
/// As the experiment's.
pub fn demo(root: &Path, args: &DemoArgs, interrupt: &Interrupt) -> Result<()> {
    let run = RunArgs { guest: args.guest.clone(), ..RunArgs::from_words(&["--on=vm"])? };
    run::submit_latency::run(root, &run, interrupt)?;
    out::print("Next: cargo lab run submit-latency --help; README.md says how to read the report.\n")
}
