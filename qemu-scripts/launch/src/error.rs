//! What can go wrong outside the guest.

use std::io;
use std::path::{Path, PathBuf};

/// Why something on the host did not work. Each text says what, where and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A program that is needed is not there.
    #[error("{program} was not found; {advice}")]
    NotFound {
        /// Name or path of the program.
        program: String,
        /// What to do.
        advice: String,
    },
    /// What was named as a program is none.
    #[error("{program} {problem}; give the path of a QEMU: --qemu PATH")]
    NotExecutable {
        /// What was named.
        program: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A program did not answer.
    #[error("`{command}` did not end within {seconds} s: is this the right program?")]
    Silent {
        /// The command line.
        command: String,
        /// The limit.
        seconds: u64,
    },
    /// Packages are missing and may not be installed by this user.
    #[error("these packages are missing: {packages}. Run: {command}")]
    NeedPackages {
        /// Names of the packages.
        packages: String,
        /// The one line to run.
        command: String,
    },
    /// A program could not be started.
    #[error("starting {program}: {source}")]
    Start {
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// A program ended with a failure.
    #[error("`{command}` ended with {status}: {stderr}")]
    Command {
        /// The command line.
        command: String,
        /// How it ended.
        status: String,
        /// The end of what it wrote on standard error.
        stderr: String,
    },
    /// A file or socket operation failed.
    #[error("{what} {}: {source}", path.display())]
    File {
        /// What was being done.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// This QEMU cannot carry the device.
    #[error(
        "{} is QEMU {version}, which cannot carry the device: 7.2 or newer is needed, with vhost-user-blk-pci or \
         (from 10.2) vhost-user-test-device-pci; give another one with --qemu PATH",
        path.display()
    )]
    NoCarrier {
        /// The program.
        path: PathBuf,
        /// Its version.
        version: String,
    },
    /// A program's output is not what it should be.
    #[error("{program} answered something unexpected: {problem}")]
    Unexpected {
        /// The program.
        program: String,
        /// What was wrong.
        problem: String,
    },
    /// The device process did not come up.
    #[error("the device process {problem}; it wrote: {log}")]
    Device {
        /// What happened.
        problem: String,
        /// The end of its log.
        log: String,
    },
    /// Signal handlers could not be installed.
    #[error("installing the handler for Ctrl-C: {0}")]
    Signals(io::Error),
    /// A kernel or an image could not be had.
    #[error(transparent)]
    Image(#[from] execlab_images::Error),
}

impl Error {
    /// For `map_err` on file operations: `Error::file("reading", path)`.
    pub(crate) fn file(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { what, path, source }
    }
}
