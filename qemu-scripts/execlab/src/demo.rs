//! `execlab demo`: the main job with its usual settings.

use std::path::Path;

use anyhow::Result;
use clap::Parser as _;
use execlab_launch::Interrupt;

use crate::cli::{Cli, Command, DemoArgs, Experiment};
use crate::run;

/// Runs `submit-latency` in a VM with the defaults of the command line, so that the demo shows what a person gets.
///
/// # Errors
/// As the experiment's.
pub fn demo(root: &Path, args: &DemoArgs, interrupt: &Interrupt) -> Result<()> {
    let mut words = vec!["execlab".into(), "run".into(), "submit-latency".into(), "--on=vm".into()];
    words.push(format!("--kernel={}", args.kernel));
    words.extend(args.modules.iter().map(|path| format!("--modules={}", path.display())));
    words.extend(args.qemu.iter().map(|path| format!("--qemu={}", path.display())));
    if let Command::Run(Experiment::SubmitLatency(run)) = Cli::try_parse_from(words)?.command {
        run::submit_latency::run(root, &run, interrupt)?;
    }
    println!("Next: cargo lab run submit-latency --help; README.md says how to read the report.");
    Ok(())
}
