//! How a run in a VM ended.

use std::fmt;
use std::time::Duration;

use execlab_init::GuestExit;

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The program in the guest ended by itself (or PID 1 could not start it).
    Finished(GuestExit),
    /// The guest said nothing, or ran, for too long.
    Hang {
        /// The limit that was exceeded.
        limit: Duration,
        /// True for the limit on silence, false for the limit on the whole run.
        silent: bool,
    },
    /// The guest's kernel panicked, or the machine ended without saying how.
    Panic {
        /// The console's line that says so, if there is one.
        reason: Option<String>,
    },
    /// The results channel carried something that is no result.
    Rubbish {
        /// What the parser disliked, and how the text begins.
        problem: String,
    },
    /// QEMU itself failed.
    QemuFailed {
        /// How it ended.
        status: String,
        /// The end of its standard error.
        stderr: String,
    },
    /// The device process ended while the guest ran.
    DeviceDied {
        /// How it ended.
        status: String,
        /// The end of its log.
        log: String,
    },
    /// Ctrl-C.
    Interrupted,
}

impl Outcome {
    /// True if the program in the guest ended with status 0.
    #[must_use]
    pub fn success(&self) -> bool {
        matches!(self, Self::Finished(exit) if exit.success())
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished(GuestExit::Code(code)) => {
                write!(f, "the guest's program ended with status {code}")
            }
            Self::Finished(GuestExit::Signal(signal)) => {
                write!(f, "the guest's program was killed by signal {signal}")
            }
            Self::Finished(GuestExit::InitFailed(reason)) => write!(f, "the guest's PID 1 failed: {reason}"),
            Self::Hang { limit, silent: true } => {
                write!(f, "the guest hangs: no output for {} s", limit.as_secs())
            }
            Self::Hang { limit, silent: false } => {
                write!(f, "the guest did not end within {} s", limit.as_secs())
            }
            Self::Panic { reason: Some(reason) } => write!(f, "the guest's kernel panicked: {reason}"),
            Self::Panic { reason: None } => f.write_str("the guest ended without saying how"),
            Self::Rubbish { problem } => write!(f, "the guest wrote rubbish: {problem}"),
            Self::QemuFailed { status, stderr } => write!(f, "QEMU failed ({status}): {stderr}"),
            Self::DeviceDied { status, log } => {
                write!(f, "the device process died ({status}); its last words: {log}")
            }
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

/// A finished run, with what is needed to explain it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// How it ended.
    pub outcome: Outcome,
    /// The last lines of the guest's console.
    pub console_tail: Vec<String>,
    /// What QEMU wrote on its standard error: warnings, if all went well.
    pub qemu_stderr: String,
    /// Wall time from QEMU's start to the first words of PID 1. The guest's own clock is no measure of it: an
    /// emulated timer that is late loses ticks until the kernel has found a better clock.
    pub boot: Option<Duration>,
    /// Wall time from QEMU's start to the end.
    pub elapsed: Duration,
    /// The line that started QEMU.
    pub qemu_line: String,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.outcome)?;
        if self.outcome.success() {
            return Ok(());
        }
        if !self.qemu_stderr.is_empty() && !matches!(self.outcome, Outcome::QemuFailed { .. }) {
            write!(f, "\nQEMU wrote: {}", self.qemu_stderr)?;
        }
        if self.console_tail.is_empty() {
            return Ok(());
        }
        write!(f, "\nThe end of the guest's console:")?;
        self.console_tail.iter().try_for_each(|line| write!(f, "\n  | {line}"))
    }
}
