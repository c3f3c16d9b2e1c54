//! What has to be there before something can run: programs, QEMU, a kernel, an accelerator.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use execlab_images::{Flavour, Initramfs, Kernel, KernelChoice, fetch};
use execlab_launch::cargo::Build;
use execlab_launch::{Accelerator, Carrier, Choice, Interrupt, Qemu, choose, setup};

use crate::cli::GuestArgs;
use crate::workspace;

/// Packages of which guests get the programs, beside PID 1.
const GUEST_PACKAGES: [&str; 1] = ["execlab-submit-latency"];

/// Says one line of progress on standard error.
pub fn say(line: &str) {
    // Nobody has to listen to progress.
    let _ = writeln!(std::io::stderr(), "execlab: {line}");
}

/// Builds the device process and says where it is.
///
/// # Errors
/// When the build fails.
pub fn device(root: &Path) -> Result<PathBuf> {
    Ok(setup::device(root, &say)?)
}

/// Builds a package for this machine and gives the command that runs its program `name`.
///
/// # Errors
/// When the build fails or yields no such program.
pub fn host_program(root: &Path, package: &str, name: &str) -> Result<Command> {
    let built = Build { root, packages: &[package], target: None }.run()?;
    Ok(Command::new(built.get(name).with_context(|| format!("cargo built no program {name}"))?))
}

/// Programs that run without any library, in a guest or here.
pub struct GuestPrograms {
    /// PID 1.
    pub init: PathBuf,
    /// The test binaries by name.
    pub tests: BTreeMap<String, PathBuf>,
}

/// Builds PID 1 and the test binaries.
///
/// # Errors
/// When there is no target for static binaries, or the build fails.
pub fn guest_programs(root: &Path) -> Result<GuestPrograms> {
    let mut tests = setup::guest_binaries(root, &GUEST_PACKAGES, &say)?;
    let init = tests.remove("execlab-init").context("cargo built no program execlab-init")?;
    Ok(GuestPrograms { init, tests })
}

/// Everything that a VM needs.
pub struct VmParts {
    /// QEMU.
    pub qemu: Qemu,
    /// What carries the device.
    pub carrier: Carrier,
    /// The guest's kernel.
    pub kernel: Kernel,
    /// The accelerator and why.
    pub accelerator: Choice,
    /// The image, without a plan.
    pub initramfs: Initramfs,
}

/// Finds or fetches what the guest needs, and tries the accelerator.
///
/// # Errors
/// What is missing, and what to do.
pub fn vm(root: &Path, args: &GuestArgs, programs: &GuestPrograms, interrupt: &Interrupt) -> Result<VmParts> {
    let cache = workspace::cache(root);
    let qemu = setup::qemu(args.qemu.as_deref(), &say)?;
    let carrier = qemu.carrier(None)?;
    let kernel =
        fetch(&kernel_choice(args.kernel(), args.modules.as_deref())?, &cache.join("kernels"), &say)?;
    let accelerator = accelerator(args.accel(), &qemu, &kernel, programs, &cache, interrupt)?;
    let binaries: Vec<(String, PathBuf)> = programs.tests.clone().into_iter().collect();
    let initramfs = Initramfs::build(&kernel, &programs.init, &binaries)?;
    Ok(VmParts { qemu, carrier, kernel, accelerator, initramfs })
}

/// The kernel that a person asked for.
///
/// # Errors
/// When it is neither a flavour nor a file.
pub fn kernel_choice(kernel: &str, modules: Option<&Path>) -> Result<KernelChoice> {
    match kernel.parse::<Flavour>() {
        Ok(_) if modules.is_some() => bail!("--modules goes with a kernel given as a file"),
        Ok(flavour) => Ok(KernelChoice::Distribution(flavour)),
        Err(_) => {
            let vmlinuz = PathBuf::from(kernel);
            if !vmlinuz.is_file() {
                bail!("--kernel {kernel}: give cloud, rt, or a bzImage that exists");
            }
            Ok(KernelChoice::Files { vmlinuz, modules: modules.map(Path::to_owned) })
        }
    }
}

fn accelerator(
    asked: &str,
    qemu: &Qemu,
    kernel: &Kernel,
    programs: &GuestPrograms,
    cache: &Path,
    interrupt: &Interrupt,
) -> Result<Choice> {
    if asked == "tcg" {
        return Ok(Choice { accelerator: Accelerator::Tcg, reason: "asked for".to_owned() });
    }
    let choice = choose(qemu, kernel, &programs.init, cache, interrupt, &say)?;
    if interrupt.is_set() {
        bail!("interrupted");
    }
    if asked == "kvm" && choice.accelerator != Accelerator::Kvm {
        bail!("KVM does not work here: {}. Use --accel tcg", choice.reason);
    }
    say(&format!("accelerator {}: {}", choice.accelerator, choice.reason));
    Ok(choice)
}
