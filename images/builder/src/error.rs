//! What can go wrong between the archive and the image.

use std::io;
use std::path::{Path, PathBuf};

/// Why there is no kernel or no image. Each text says what, where and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The host's distribution has no kernel packages that this crate knows.
    #[error(
        "this host runs {found}; guest kernels are fetched only on Debian and Ubuntu. Give a kernel of your own: \
         --kernel FILE --modules DIR"
    )]
    UnknownDistribution {
        /// `ID` of os-release, or what was found in its place.
        found: String,
    },
    /// The host's processor is not x86-64.
    #[error("this host is {found}, but guests are x86-64 only")]
    Architecture {
        /// The host's architecture.
        found: &'static str,
    },
    /// No configured mirror offers the package.
    #[error(
        "apt knows no package {package} on this host, even after an update; check /etc/apt/sources.list*, or give a \
         kernel of your own: --kernel FILE --modules DIR"
    )]
    NoPackage {
        /// Name of the package.
        package: String,
    },
    /// A program could not be started.
    #[error("starting {program}: {source}; is it installed?")]
    Start {
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// A program ended with a failure.
    #[error("`{command}` failed: {stderr}")]
    Command {
        /// The command line.
        command: String,
        /// The end of what it wrote on standard error.
        stderr: String,
    },
    /// A file operation failed.
    #[error("{what} {}: {source}", path.display())]
    File {
        /// What was being done.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{}: {problem}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        problem: String,
    },
}

impl Error {
    /// For `map_err` on file operations: `Error::file("reading", path)`.
    pub(crate) fn file(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { what, path, source }
    }

    pub(crate) fn content(path: &Path, problem: impl Into<String>) -> Self {
        Self::Content { path: path.to_owned(), problem: problem.into() }
    }
}
