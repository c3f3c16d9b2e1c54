//! `execlab doctor` and `execlab setup`.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Result, bail};
use execlab_launch::Interrupt;
use execlab_launch::doctor::{self, Check, Verdict};

use crate::cli::{DoctorArgs, SetupArgs};
use crate::{out, prepare, workspace};

/// Prints what is here, what is missing, and what to do.
///
/// # Errors
/// When something is missing without which nothing runs.
pub fn doctor(root: &Path, args: &DoctorArgs, interrupt: &Interrupt) -> Result<()> {
    let kernel = prepare::kernel_choice("cloud", None)?;
    let cache = workspace::cache(root);
    let diagnosis = doctor::doctor(root, &cache, args.qemu.as_deref(), &kernel, interrupt, &prepare::say);
    if args.json {
        out::print(&(serde_json::to_string_pretty(&diagnosis)? + "\n"))?;
    } else {
        out::print(&diagnosis.checks.iter().map(lines).collect::<String>())?;
    }
    match diagnosis.verdict() {
        Verdict::Missing => bail!("something is missing; the lines above say what to do"),
        Verdict::Good | Verdict::Limited => Ok(()),
    }
}

fn lines(check: &Check) -> String {
    let word = match check.verdict {
        Verdict::Good => "good",
        Verdict::Limited => "limited",
        Verdict::Missing => "MISSING",
    };
    let advice = check.advice.as_ref().map(|advice| format!("{:<29} {advice}\n", "")).unwrap_or_default();
    format!("{word:<8} {:<20} {}\n{advice}", check.name, check.found)
}

/// Sets everything up and says where it is.
///
/// # Errors
/// What is missing, and what to do.
pub fn set_up(root: &Path, args: &SetupArgs, interrupt: &Interrupt) -> Result<()> {
    let programs = prepare::guest_programs(root)?;
    let device = prepare::device(root)?;
    let parts = prepare::vm(root, &args.guest, &programs, interrupt)?;
    // Writing to a String cannot fail.
    let mut text = format!("device       {}\n", device.display());
    for (name, path) in &programs.tests {
        let _ = writeln!(text, "test binary  {name}: {}", path.display());
    }
    let (qemu, kernel, accelerator) = (&parts.qemu, &parts.kernel, &parts.accelerator);
    let carrier = parts.carrier.name();
    let _ = writeln!(
        text,
        "qemu         {} ({}), carries the device as {carrier}",
        qemu.path.display(),
        qemu.version
    );
    let _ = writeln!(text, "kernel       {} ({})", kernel.release, kernel.vmlinuz.display());
    let _ = writeln!(text, "accelerator  {}: {}", accelerator.accelerator, accelerator.reason);
    out::print(&text)
}
