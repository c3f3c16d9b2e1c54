//! One measurement at a time on a machine, and what a measurement that was killed left behind.
//!
//! Both are one file: whoever measures holds an flock(2) on it, which the kernel gives up for a process that dies, and
//! writes into it what it will have to put back. So a file that can be locked and has such a value in it is a dead
//! run's, and no process number has to be believed.

use std::env;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

const FILE: &str = "execlab-measurement";
/// Words before the numbers in the file.
const PID: &str = "pid";
const RT_RUNTIME: &str = "sched_rt_runtime_us";

/// Why this machine cannot be measured now.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// Somebody else measures.
    #[error(
        "another run of execlab measures on this machine ({}, it holds {}); wait for it",
        holder.map_or_else(|| "pid unknown".to_owned(), |pid| format!("pid {pid}")),
        file.display()
    )]
    Busy {
        /// The process, as far as it said so.
        holder: Option<u32>,
        /// The file that it has locked.
        file: PathBuf,
    },
}

/// The right to measure on this machine, as long as this lives.
#[derive(Debug)]
pub(crate) struct Claim {
    file: File,
    path: PathBuf,
    /// Value of `sched_rt_runtime_us` that a dead run was to put back.
    left: Option<String>,
}

impl Claim {
    /// Where the file may be: the first folder that lets us is taken. `/run` is emptied at each boot, as are the
    /// kernel's settings.
    pub(crate) fn places() -> [PathBuf; 2] {
        [PathBuf::from("/run"), env::temp_dir()]
    }

    /// Takes the claim in the first of `places` that has or takes the file. Without any, runs are not kept apart, and
    /// `notes` says so.
    ///
    /// # Errors
    /// [`ClaimError::Busy`].
    pub(crate) fn take(places: &[PathBuf], notes: &mut Vec<String>) -> Result<Option<Self>, ClaimError> {
        let mut reasons = Vec::new();
        for place in places {
            let path = place.join(FILE);
            match Self::take_file(path.clone()) {
                Ok(claim) => return claim.map(Some),
                Err(error) => reasons.push(format!("{}: {error}", path.display())),
            }
        }
        notes.push(format!("nothing keeps other runs away meanwhile ({})", reasons.join("; ")));
        Ok(None)
    }

    fn take_file(path: PathBuf) -> io::Result<Result<Self, ClaimError>> {
        let mut file = open(&path)?;
        let locked = flock(&file, FlockOperation::NonBlockingLockExclusive);
        let mut text = String::new();
        // What cannot be read says nothing; a few lines are all that we ever write.
        let _ = (&mut file).take(1024).read_to_string(&mut text);
        match locked {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let holder = number(&text, PID).and_then(|pid| pid.parse().ok());
                return Ok(Err(ClaimError::Busy { holder, file: path }));
            }
            Err(error) => return Err(error.into()),
        }
        let mut claim = Self { file, path, left: number(&text, RT_RUNTIME) };
        // A file of somebody else's can be locked but not written; then the holder stays unnamed.
        let _ = claim.write(claim.left.clone().as_deref());
        Ok(Ok(claim))
    }

    /// Value of `sched_rt_runtime_us` that a run was to put back and did not live to.
    pub(crate) const fn left(&self) -> Option<&String> {
        self.left.as_ref()
    }

    /// Writes down what is to be put back, should we be killed.
    pub(crate) fn remember(&mut self, rt_runtime: &str, notes: &mut Vec<String>) {
        if let Err(error) = self.write(Some(rt_runtime)) {
            notes.push(format!(
                "should this run be killed, nobody will know that sched_rt_runtime_us was {rt_runtime} ({}: {error})",
                self.path.display()
            ));
        }
    }

    /// The run is over; with `restored`, there is nothing left to put back.
    pub(crate) fn end(&mut self, restored: bool) {
        if restored {
            // An error leaves a value behind that the next run compares with what it finds.
            let _ = self.file.set_len(0);
        }
    }

    fn write(&mut self, rt_runtime: Option<&str>) -> io::Result<()> {
        let mut text = format!("{PID} {}\n", std::process::id());
        if let Some(value) = rt_runtime {
            text.push_str(&format!("{RT_RUNTIME} {value}\n"));
        }
        self.file.rewind()?;
        self.file.write_all(text.as_bytes())?;
        self.file.set_len(text.len() as u64)
    }
}

/// Opens the file for writing, or only for locking when it is another user's. The folder may be everybody's, so no
/// link is followed.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NOFOLLOW);
    let opened = options.clone().write(true).create(true).truncate(false).mode(0o644).open(path);
    match opened {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => options.open(path),
        other => other,
    }
}

/// The whole number after `word` at the begin of a line. Anything else is not ours, and no setting comes from it.
fn number(text: &str, word: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let value = line.strip_prefix(word)?.trim();
        value.parse::<i64>().ok().map(|number| number.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(folder: &Path) -> Result<Claim, ClaimError> {
        Ok(Claim::take(&[folder.to_owned()], &mut Vec::new())?.unwrap())
    }

    #[test]
    fn a_second_claim_is_refused_and_names_the_holder_until_the_first_ends() {
        let folder = tempfile::tempdir().unwrap();
        let first = take(folder.path()).unwrap();
        let error = take(folder.path()).unwrap_err().to_string();
        assert!(error.contains(&format!("pid {}", std::process::id())), "{error}");
        drop(first);
        assert!(take(folder.path()).is_ok());
    }

    #[test]
    fn a_run_that_ended_without_putting_back_leaves_its_value_to_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let mut killed = take(folder.path()).unwrap();
        killed.remember("950000", &mut Vec::new());
        drop(killed);
        // The second is killed before it comes to remember anything.
        assert_eq!(take(folder.path()).unwrap().left().unwrap(), "950000");
        assert_eq!(take(folder.path()).unwrap().left().unwrap(), "950000");
    }

    #[test]
    fn a_run_that_put_back_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut orderly = take(folder.path()).unwrap();
        orderly.remember("950000", &mut Vec::new());
        orderly.end(true);
        drop(orderly);
        assert!(take(folder.path()).unwrap().left().is_none());
    }

    #[test]
    fn a_file_with_anything_but_a_number_has_no_value() {
        assert_eq!(number("pid 7\nsched_rt_runtime_us 950000\n", RT_RUNTIME).as_deref(), Some("950000"));
        assert_eq!(number("sched_rt_runtime_us 1; reboot\n", RT_RUNTIME), None);
        assert_eq!(number("", PID), None);
    }

    #[test]
    fn a_folder_that_is_not_there_is_passed_over_and_none_at_all_is_noted() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing");
        let mut notes = Vec::new();
        assert!(Claim::take(&[missing.clone(), folder.path().to_owned()], &mut notes).unwrap().is_some());
        assert!(notes.is_empty());
        assert!(Claim::take(&[missing], &mut notes).unwrap().is_none());
        assert!(notes[0].contains("other runs"), "{notes:?}");
    }

    #[test]
    fn a_link_in_place_of_the_file_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        std::os::unix::fs::symlink(&target, folder.path().join(FILE)).unwrap();
        assert!(Claim::take(&[folder.path().to_owned()], &mut Vec::new()).unwrap().is_none());
        assert!(!target.exists());
    }
}
