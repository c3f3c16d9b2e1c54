//! The timerfd that wakes the timeline thread for the earliest deadline.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

use vmm_sys_util::timerfd::TimerFd;

use crate::timeline::NEVER;

/// A one-shot timer on device time. Any thread that holds it may set it: there is no need to wake the thread that
/// waits for it.
///
/// Its descriptor is never read. A read would block if somebody had set the timer again since it came up, and
/// setting or clearing makes the descriptor unreadable just as well.
pub struct Alarm {
    timer: TimerFd,
    at: u64,
}

impl Alarm {
    /// An alarm that is not set.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn new() -> io::Result<Self> {
        Ok(Self { timer: TimerFd::new().map_err(io::Error::from)?, at: NEVER })
    }

    /// Sets it to come up at device time `at`, never before; at once if that has passed. `now` is the time now.
    pub fn set(&mut self, at: u64, now: u64) {
        if at == self.at {
            return;
        }
        // Zero would disarm the timer.
        let ns = at.saturating_sub(now).max(1);
        if let Err(e) = self.timer.reset(Duration::from_nanos(ns), None) {
            tracing::error!("cannot set the timer: {}", io::Error::from(e));
        }
        self.at = at;
    }

    /// Makes it not come up.
    pub fn clear(&mut self) {
        if self.at == NEVER {
            return;
        }
        if let Err(e) = self.timer.clear() {
            tracing::error!("cannot clear the timer: {}", io::Error::from(e));
        }
        self.at = NEVER;
    }
}

impl AsRawFd for Alarm {
    fn as_raw_fd(&self) -> RawFd {
        self.timer.as_raw_fd()
    }
}

impl std::fmt::Debug for Alarm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Alarm").field("at", &self.at).finish_non_exhaustive()
    }
}
