//! Making everything ready that a run needs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::cargo::{Build, StaticTarget};
use crate::{Error, Qemu, Say, tools};

const INIT: &str = "execlab-init";
const DEVICE: &str = "execlab-device";

/// A QEMU that can carry the device: the one given, or the distribution's, installed if it is missing.
///
/// # Errors
/// [`Error`] when there is none or it cannot carry the device.
pub fn qemu(given: Option<&Path>, say: &Say<'_>) -> Result<Qemu, Error> {
    if given.is_none() {
        tools::install(&[tools::QEMU], say)?;
    }
    let qemu = Qemu::find(given)?;
    qemu.carrier(None)?;
    Ok(qemu)
}

/// Builds the device process's program. Native runs need no more than this.
///
/// # Errors
/// [`Error`] when it does not build.
pub fn device(root: &Path, say: &Say<'_>) -> Result<PathBuf, Error> {
    say("building the device process");
    let mut programs = Build { root, packages: &[DEVICE], target: None }.run()?;
    take(&mut programs, DEVICE)
}

/// Builds PID 1 and the packages named, as static programs.
///
/// # Errors
/// [`Error`] when there is no target for static programs, or they do not build.
pub fn guest_binaries(
    root: &Path,
    packages: &[&str],
    say: &Say<'_>,
) -> Result<BTreeMap<String, PathBuf>, Error> {
    let target = StaticTarget::ensure(say)?;
    say("building the guest's programs");
    let packages: Vec<&str> = std::iter::once(INIT).chain(packages.iter().copied()).collect();
    Build { root, packages: &packages, target: Some(target) }.run()
}

fn take(programs: &mut BTreeMap<String, PathBuf>, name: &str) -> Result<PathBuf, Error> {
    programs.remove(name).ok_or_else(|| Error::Unexpected {
        program: "cargo".into(),
        problem: format!("the build yields no program {name}"),
    })
}
