//! Child processes that do not outlive us.
#![allow(unsafe_code)] // One pre_exec hook: PR_SET_PDEATHSIG can be set nowhere else.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, set_parent_process_death_signal};

use crate::Error;

/// How long a child may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(3);
/// How often an ending child is looked at. There is no event for it that would not need another thread.
const STEP: Duration = Duration::from_millis(10);

/// A running child in a process group of its own, ended on drop. It is killed when the thread that started it ends.
#[derive(Debug)]
pub struct Guarded {
    child: Child,
    stderr: PathBuf,
    ended: Option<ExitStatus>,
}

impl Guarded {
    /// Starts `command` with no standard input and its standard error in the file `stderr`.
    ///
    /// # Errors
    /// [`Error::Start`], or the file cannot be made.
    pub fn spawn(mut command: Command, stderr: &Path) -> Result<Self, Error> {
        let log = File::create(stderr).map_err(Error::file("cannot write", stderr))?;
        command.stdin(Stdio::null()).stderr(log).process_group(0);
        // SAFETY: the hook makes one system call between fork and exec; it takes no lock and no memory.
        unsafe {
            command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
        }
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command.spawn().map_err(|source| Error::Start { program, source })?;
        Ok(Self { child, stderr: stderr.to_owned(), ended: None })
    }

    /// The process itself, for its standard output.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            // An error means that somebody else reaped it: then it has ended, and nobody knows how.
            self.ended = self.child.try_wait().ok().flatten();
        }
        self.ended
    }

    /// Waits for its end until `deadline`.
    pub fn wait_until(&mut self, deadline: Instant) -> Option<ExitStatus> {
        while self.ended().is_none() && Instant::now() < deadline {
            thread::sleep(STEP);
        }
        self.ended()
    }

    /// The last lines of its standard error.
    #[must_use]
    pub fn last_words(&self) -> String {
        tail(&self.stderr, 12)
    }

    /// Asks it to end, and makes it end.
    pub fn stop(&mut self) {
        if self.ended().is_some() {
            return;
        }
        let group = Pid::from_child(&self.child);
        // Both fail only if it has just ended by itself.
        let _ = kill_process_group(group, Signal::TERM);
        if self.wait_until(Instant::now() + GRACE).is_none() {
            let _ = kill_process_group(group, Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The last `lines` lines of a text file, at most 4 KiB of it; empty if it cannot be read.
#[must_use]
pub fn tail(path: &Path, lines: usize) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let len = file.metadata()?.len();
        file.seek(SeekFrom::Start(len.saturating_sub(4096)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let text = String::from_utf8_lossy(&read().unwrap_or_default()).replace('\r', "");
    let all: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
