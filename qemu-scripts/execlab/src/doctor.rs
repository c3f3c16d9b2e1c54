//! `execlab doctor` and `execlab setup`.

use std::path::Path;

use anyhow::{Result, bail};
use execlab_launch::Interrupt;
use execlab_launch::doctor::{self, Check, Verdict};

use crate::cli::{DoctorArgs, SetupArgs};
use crate::{prepare, workspace};

/// Prints what is here, what is missing, and what to do.
///
/// # Errors
/// When something is missing without which nothing runs.
pub fn doctor(root: &Path, args: &DoctorArgs, interrupt: &Interrupt) -> Result<()> {
    let kernel = prepare::kernel_choice("cloud", None)?;
    let cache = workspace::cache(root);
    let diagnosis = doctor::doctor(root, &cache, args.qemu.as_deref(), &kernel, interrupt, &prepare::say);
    if args.json {
        println!("{}", serde_json::to_string_pretty(&diagnosis)?);
    } else {
        diagnosis.checks.iter().for_each(print);
    }
    match diagnosis.verdict() {
        Verdict::Missing => bail!("something is missing; the lines above say what to do"),
        Verdict::Good | Verdict::Limited => Ok(()),
    }
}

fn print(check: &Check) {
    let word = match check.verdict {
        Verdict::Good => "good",
        Verdict::Limited => "limited",
        Verdict::Missing => "MISSING",
    };
    println!("{word:<8} {:<20} {}", check.name, check.found);
    if let Some(advice) = &check.advice {
        println!("{:<29} {advice}", "");
    }
}

/// Sets everything up and says where it is.
///
/// # Errors
/// What is missing, and what to do.
pub fn set_up(root: &Path, args: &SetupArgs, interrupt: &Interrupt) -> Result<()> {
    let programs = prepare::guest_programs(root)?;
    let device = prepare::device(root)?;
    let parts = prepare::vm(root, &args.guest, &programs, interrupt)?;
    println!("device       {}", device.display());
    for (name, path) in &programs.tests {
        println!("test binary  {name}: {}", path.display());
    }
    println!(
        "qemu         {} ({}), carries the device as {}",
        parts.qemu.path.display(),
        parts.qemu.version,
        parts.carrier.name()
    );
    println!("kernel       {} ({})", parts.kernel.release, parts.kernel.vmlinuz.display());
    println!("accelerator  {}: {}", parts.accelerator.accelerator, parts.accelerator.reason);
    Ok(())
}
