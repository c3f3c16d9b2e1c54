//! Programs from the host's package manager.

use std::path::Path;
use std::process::Command;

use crate::run::output_of;
use crate::{Error, Say};

/// A program and the Debian package that holds it (Ubuntu's have the same names).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tool {
    /// Program on the search path.
    pub program: &'static str,
    /// Package.
    pub package: &'static str,
    /// What it is for.
    pub purpose: &'static str,
}

/// Needed for every VM.
pub const QEMU: Tool =
    Tool { program: crate::qemu::PROGRAM, package: "qemu-system-x86", purpose: "runs the guests" };

/// Needed by tests only.
pub const MINISTAT: Tool =
    Tool { program: "ministat", package: "ministat", purpose: "oracle for the statistics" };

/// Needed by tests only.
pub const CYCLICTEST: Tool =
    Tool { program: "cyclictest", package: "rt-tests", purpose: "oracle for the probe" };

/// Those of `tools` that are not on the search path.
#[must_use]
pub fn missing(tools: &[Tool]) -> Vec<Tool> {
    tools.iter().copied().filter(|tool| which::which(tool.program).is_err()).collect()
}

/// Installs those of `tools` that are missing. Says what before it does.
///
/// # Errors
/// [`Error::NeedPackages`] with the line to run, when this user may not install; [`Error::NotFound`] without
/// apt; [`Error::Command`] when apt fails.
pub fn install(tools: &[Tool], say: &Say<'_>) -> Result<(), Error> {
    let missing = missing(tools);
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<&str> = missing.iter().map(|tool| tool.package).collect();
    if which::which("apt-get").is_err() {
        let programs: Vec<&str> = missing.iter().map(|tool| tool.program).collect();
        return Err(Error::NotFound {
            program: programs.join(", "),
            advice: "install it with this system's package manager (there is no apt-get here)".into(),
        });
    }
    if !is_root() {
        return Err(Error::NeedPackages {
            packages: packages.join(" "),
            command: format!("sudo apt-get install --no-install-recommends {}", packages.join(" ")),
        });
    }
    say(&format!("installing {} with apt-get", packages.join(", ")));
    if apt_install(&packages).is_err() {
        // Lists that are absent (a fresh container) or older than the mirror.
        say("fetching package lists");
        output_of(apt_get().arg("update"))?;
        apt_install(&packages)?;
    }
    Ok(())
}

fn apt_install(packages: &[&str]) -> Result<String, Error> {
    output_of(apt_get().args(["install", "--yes", "--no-install-recommends"]).args(packages))
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command.arg("--quiet").env("DEBIAN_FRONTEND", "noninteractive").env("LC_ALL", "C");
    command.stdin(std::process::Stdio::null());
    command
}

/// Whether this process is root.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The host's name and version, as os-release has it.
#[must_use]
pub fn host_system() -> String {
    let paths = [Path::new("/etc/os-release"), Path::new("/usr/lib/os-release")];
    let text = paths.iter().find_map(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.map_or_else(|| "unknown".to_owned(), |name| name.trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absent_programs_are_missing() {
        let here = Tool { program: "sh", package: "dash", purpose: "x" };
        let absent = Tool { program: "no-such-program-here", package: "nothing", purpose: "x" };
        assert_eq!(missing(&[here, absent]), [absent]);
        install(&[here], &|text| panic!("nothing to say, but: {text}")).unwrap();
    }
}
