//! Child processes that cannot outlive us.

// `pre_exec` is the only way to run `prctl` in the child between fork and exec.
#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus};
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::Error;

/// A child process in a process group of its own. Dropping it kills the whole group; should this process be
/// killed (even with SIGKILL), the kernel kills the child.
#[derive(Debug)]
pub struct Process {
    child: Child,
    name: String,
    own_group: bool,
    status: Option<ExitStatus>,
}

impl Process {
    /// Starts `command`; `name` stands for it in messages.
    ///
    /// # Errors
    /// [`Error::Start`] when it cannot be started.
    pub fn spawn(mut command: Command, name: &str) -> Result<Self, Error> {
        command.process_group(0);
        Self::start(command, name, true)
    }

    /// As [`spawn`](Self::spawn), but in our own process group, so that the child may use the terminal.
    ///
    /// # Errors
    /// [`Error::Start`] when it cannot be started.
    pub fn spawn_on_terminal(command: Command, name: &str) -> Result<Self, Error> {
        Self::start(command, name, false)
    }

    fn start(mut command: Command, name: &str, own_group: bool) -> Result<Self, Error> {
        let us = rustix::process::getpid();
        // SAFETY: between fork and exec the closure makes two system calls and touches no memory of ours.
        unsafe {
            command.pre_exec(move || {
                rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
                // We may have ended before the call above took effect.
                if rustix::process::getppid() == Some(us) {
                    Ok(())
                } else {
                    Err(io::ErrorKind::NotFound.into())
                }
            });
        }
        let child = spawn_from_lasting_thread(command)
            .map_err(|source| Error::Start { program: name.to_owned(), source })?;
        Ok(Self { child, name: name.to_owned(), own_group, status: None })
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its standard output, if it was piped and not yet taken.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Its standard error, if it was piped and not yet taken.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// How it ended, or None while it runs.
    ///
    /// # Errors
    /// [`Error::Start`] when the system refuses to say.
    pub fn try_wait(&mut self) -> Result<Option<ExitStatus>, Error> {
        if self.status.is_none() {
            self.status = self
                .child
                .try_wait()
                .map_err(|source| Error::Start { program: self.name.clone(), source })?;
        }
        Ok(self.status)
    }

    /// Asks it to end (SIGTERM) and waits; after `patience` it is killed.
    pub fn terminate(&mut self, patience: Duration) {
        self.signal(Signal::TERM);
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            match self.try_wait() {
                Ok(None) => thread::sleep(Duration::from_millis(2)),
                _ => return,
            }
        }
        self.kill();
    }

    /// Kills it and all of its group, and reaps it.
    pub fn kill(&mut self) {
        if self.status.is_some() {
            return;
        }
        self.signal(Signal::KILL);
        self.status = self.child.wait().ok();
    }

    fn signal(&mut self, signal: Signal) {
        // After the child has been reaped its number may belong to somebody else.
        if self.status.is_some() {
            return;
        }
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // An error means that it has ended already.
            let _ = if self.own_group {
                rustix::process::kill_process_group(pid, signal)
            } else {
                rustix::process::kill_process(pid, signal)
            };
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The parent-death signal comes when the *thread* that forked ends, so all children are forked by one thread
/// that lasts as long as the process.
fn spawn_from_lasting_thread(command: Command) -> io::Result<Child> {
    type Job = (Command, SyncSender<io::Result<Child>>);
    static NURSERY: OnceLock<Mutex<Sender<Job>>> = OnceLock::new();
    let nursery = NURSERY.get_or_init(|| {
        let (jobs, queue) = channel::<Job>();
        thread::spawn(move || {
            for (mut command, answer) in queue {
                let _ = answer.send(command.spawn());
            }
        });
        Mutex::new(jobs)
    });
    let (answer, result) = sync_channel(1);
    let gone = || io::Error::other("the thread that starts processes has ended");
    let jobs = nursery.lock().map_err(|_| gone())?;
    jobs.send((command, answer)).map_err(|_| gone())?;
    result.recv().map_err(|_| gone())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper() -> Command {
        let mut command = Command::new("sleep");
        command.arg("1000");
        command
    }

    fn exists(pid: u32) -> bool {
        std::path::Path::new(&format!("/proc/{pid}")).exists()
    }

    #[test]
    fn a_dropped_process_is_gone() {
        let process = Process::spawn(sleeper(), "sleep").unwrap();
        let pid = process.id();
        assert!(exists(pid));
        drop(process);
        assert!(!exists(pid));
    }

    #[test]
    fn a_process_outlives_the_thread_that_asked_for_it() {
        let spawned = thread::spawn(|| Process::spawn(sleeper(), "sleep").unwrap());
        let mut process = spawned.join().unwrap();
        thread::sleep(Duration::from_millis(50));
        assert!(process.try_wait().unwrap().is_none());
    }

    #[test]
    fn a_process_that_ignores_sigterm_is_killed() {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' TERM; while :; do sleep 1000; done"]);
        let mut process = Process::spawn(command, "sh").unwrap();
        let pid = process.id();
        process.terminate(Duration::from_millis(100));
        assert!(!exists(pid));
    }

    #[test]
    fn a_missing_program_is_an_error_with_its_name() {
        let error = Process::spawn(Command::new("/nonexistent/x"), "the x").unwrap_err();
        assert!(error.to_string().contains("the x"), "{error}");
    }
}
