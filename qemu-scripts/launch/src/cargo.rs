//! Building the other programs of the workspace.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::run::{output_of, shell_line};
use crate::{Error, Say};

/// The target whose binaries run in a guest without any library.
pub const MUSL_TARGET: &str = "x86_64-unknown-linux-musl";

/// The fallback: glibc, linked statically.
const GLIBC_TARGET: &str = "x86_64-unknown-linux-gnu";

/// How guest binaries are built here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StaticTarget {
    /// musl: the usual way.
    Musl,
    /// glibc with `-Ctarget-feature=+crt-static`, where the toolchain has no musl target.
    StaticGlibc,
}

impl StaticTarget {
    /// The target that the toolchain has, or None when it has neither.
    #[must_use]
    pub fn installed() -> Option<Self> {
        let sysroot = output_of(Command::new("rustc").args(["--print", "sysroot"])).ok()?;
        let library = Path::new(sysroot.trim()).join("lib/rustlib");
        let has = |target: &str| library.join(target).join("lib").is_dir();
        if has(MUSL_TARGET) {
            return Some(Self::Musl);
        }
        has(GLIBC_TARGET).then_some(Self::StaticGlibc)
    }

    /// Installs the musl target if there is a rustup and the target is missing; then as
    /// [`installed`](Self::installed).
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no target for static binaries.
    pub fn ensure(say: &Say<'_>) -> Result<Self, Error> {
        if Self::installed() != Some(Self::Musl) && which::which("rustup").is_ok() {
            say(&format!("adding the Rust target {MUSL_TARGET}"));
            if let Err(error) = output_of(Command::new("rustup").args(["target", "add", MUSL_TARGET])) {
                say(&format!("{error}; guest binaries will be linked with glibc instead"));
            }
        }
        Self::installed().ok_or_else(|| Error::NotFound {
            program: format!("the Rust target {MUSL_TARGET}"),
            advice: "install it: rustup target add x86_64-unknown-linux-musl".into(),
        })
    }

    /// Its name for cargo.
    #[must_use]
    pub fn triple(self) -> &'static str {
        match self {
            Self::Musl => MUSL_TARGET,
            Self::StaticGlibc => GLIBC_TARGET,
        }
    }
}

/// A build of some packages of the workspace.
#[derive(Debug, Clone)]
pub struct Build<'a> {
    /// The workspace's root.
    pub root: &'a Path,
    /// Packages.
    pub packages: &'a [&'a str],
    /// For guests; None builds for this machine.
    pub target: Option<StaticTarget>,
}

impl Build<'_> {
    /// Builds in release mode and returns the programs by name. Cargo's messages go to our standard error.
    ///
    /// # Errors
    /// [`Error`] when cargo cannot be started or the build fails.
    pub fn run(&self) -> Result<BTreeMap<String, PathBuf>, Error> {
        let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(self.root).args(["build", "--release", "--quiet"]);
        command.arg("--message-format=json-render-diagnostics");
        self.packages.iter().for_each(|package| {
            command.args(["--package", package]);
        });
        if let Some(target) = self.target {
            command.args(["--target", target.triple()]).arg("--target-dir").arg(self.guest_target_dir());
            // Line tables stay outside the image: it is unpacked by an emulated processor.
            command.args(["--config", "profile.release.strip='debuginfo'"]);
            // A flag given on the environment is meant for the host.
            command.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
            if target == StaticTarget::StaticGlibc {
                command.env("RUSTFLAGS", "-Ctarget-feature=+crt-static");
            }
        }
        command.stderr(Stdio::inherit());
        let output = command.output().map_err(|source| Error::Start { program: "cargo".into(), source })?;
        if !output.status.success() {
            return Err(Error::Command {
                command: shell_line(&command),
                status: output.status.to_string(),
                stderr: "see the compiler's messages above".into(),
            });
        }
        Ok(executables(&String::from_utf8_lossy(&output.stdout)))
    }

    /// A directory of its own, so that a build for guests neither waits for one for the host nor undoes it.
    fn guest_target_dir(&self) -> PathBuf {
        let base = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| OsString::from("target"));
        self.root.join(base).join("guest")
    }
}

#[derive(Deserialize)]
struct Artifact {
    target: ArtifactTarget,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct ArtifactTarget {
    name: String,
}

/// The programs that cargo's JSON messages name.
fn executables(messages: &str) -> BTreeMap<String, PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Artifact>(line).ok())
        .filter_map(|artifact| Some((artifact.target.name, artifact.executable?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_among_cargo_s_messages() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","target":{"name":"serde"},"executable":null}"#,
            "\n",
            r#"{"reason":"compiler-artifact","target":{"name":"execlab-init"},"executable":"/t/execlab-init"}"#,
            "\n",
            r#"{"reason":"build-finished","success":true}"#,
        );
        let found = executables(messages);
        assert_eq!(found, BTreeMap::from([("execlab-init".to_owned(), PathBuf::from("/t/execlab-init"))]));
    }
}
