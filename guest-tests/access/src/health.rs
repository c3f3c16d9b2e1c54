//! Whether the device still answers, and what reaching it has cost.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Error;

/// Set once, by the first who notices that the device is gone. From then on reads give all ones, as on a PCIe
/// link that is down, and writes are dropped.
#[derive(Debug, Default)]
pub(crate) struct Health {
    lost: OnceLock<String>,
    pub(crate) counters: Counters,
}

impl Health {
    pub(crate) fn lose(&self, why: impl FnOnce() -> String) {
        self.lost.get_or_init(why);
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lost.get().is_some()
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        self.lost.get().map_or(Ok(()), |why| Err(Error::Lost(why.clone())))
    }
}

/// What was done since opening. Counting is relaxed: exact when nobody works at the same time.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) notifications: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) full_waits: AtomicU64,
    pub(crate) slow_reads: AtomicU64,
    pub(crate) interrupts: AtomicU64,
    pub(crate) wakeups: AtomicU64,
}

/// What was done since the device was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AccessCounters {
    /// Notifications sent (each a system call natively, an exit in a guest).
    pub notifications: u64,
    /// Posted writes.
    pub writes: u64,
    /// Posted writes that found the queue full and had to wait.
    pub full_waits: u64,
    /// Register reads that were not mirrored and went through the control queue.
    pub slow_reads: u64,
    /// Interrupt records taken.
    pub interrupts: u64,
    /// Times that a thread slept for an interrupt and was woken.
    pub wakeups: u64,
}

pub(crate) fn count(counter: &AtomicU64, by: usize) {
    counter.fetch_add(by as u64, Ordering::Relaxed);
}

impl Counters {
    pub(crate) fn read(&self) -> AccessCounters {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        AccessCounters {
            notifications: load(&self.notifications),
            writes: load(&self.writes),
            full_waits: load(&self.full_waits),
            slow_reads: load(&self.slow_reads),
            interrupts: load(&self.interrupts),
            wakeups: load(&self.wakeups),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_stays() {
        let health = Health::default();
        assert!(health.check().is_ok());
        health.lose(|| "first".into());
        health.lose(|| "second".into());
        assert!(health.check().unwrap_err().to_string().contains("first"));
    }
}
