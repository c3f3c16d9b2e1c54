//! The short-lived directory for sockets and images of one run.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::Error;

const PREFIX: &str = "execlab-";

/// A private directory with a short path (a socket's path holds 107 bytes), removed on drop.
#[derive(Debug)]
pub struct WorkDir(TempDir);

impl WorkDir {
    /// Makes one, and removes those that killed processes of ours have left.
    ///
    /// # Errors
    /// [`Error::File`] when it cannot be made.
    pub fn create() -> Result<Self, Error> {
        let base = base();
        sweep(&base);
        let prefix = format!("{PREFIX}{}-", std::process::id());
        tempfile::Builder::new()
            .prefix(&prefix)
            .tempdir_in(&base)
            .map(Self)
            .map_err(Error::file("creating a directory in", &base))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// A file in it.
    #[must_use]
    pub fn join(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

/// `TMPDIR` if it is set, else the user's runtime directory, else `/tmp`; one whose path is too long for sockets in it is
/// passed over.
fn base() -> PathBuf {
    let chosen = |name| env::var_os(name).map(PathBuf::from);
    let usable = |path: &PathBuf| path.is_dir() && path.as_os_str().len() < 60;
    let candidates = [chosen("TMPDIR"), chosen("XDG_RUNTIME_DIR"), Some(env::temp_dir())];
    candidates.into_iter().flatten().find(usable).unwrap_or_else(|| "/tmp".into())
}

/// Removes directories whose process no longer exists. Failures do not matter: they may be another user's.
fn sweep(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-')?.0.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_work_directory_vanishes_on_drop_and_a_dead_process_s_one_is_swept() {
        let base = tempfile::tempdir().unwrap();
        // Beyond the largest pid that Linux gives.
        let stale = base.path().join("execlab-4999999-x");
        let other = base.path().join("execlab-notes");
        fs::create_dir(&stale).unwrap();
        fs::create_dir(&other).unwrap();
        sweep(base.path());
        assert!(!stale.exists() && other.exists());

        let work = WorkDir::create().unwrap();
        let path = work.path().to_owned();
        fs::write(work.join("x"), "").unwrap();
        drop(work);
        assert!(!path.exists());
    }
}
