//! A wait queue that may be woken from any context.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use rustix::thread::futex::{self, Flags};

use crate::clock::{now_ns, timespec};

/// A wait queue on a futex.
///
/// No mutex: the waker may run at priority 99 and hold a spinlock, and must not block on something that a
/// preempted SCHED_OTHER sleeper holds.
#[derive(Debug, Default)]
pub struct WaitQueue {
    /// Changes with every wake-up.
    sequence: AtomicU32,
    sleepers: AtomicU32,
}

/// Any sleeper.
const ANY: NonZeroU32 = NonZeroU32::MAX;

impl WaitQueue {
    /// Sleeps while the sequence is `seen`, or until the deadline.
    fn sleep(&self, seen: u32, deadline_ns: u64) {
        self.sleepers.fetch_add(1, SeqCst);
        // Whatever ends it (wake-up, deadline, signal, sequence already changed), the caller looks again.
        let _ = futex::wait_bitset(&self.sequence, Flags::PRIVATE, seen, Some(&timespec(deadline_ns)), ANY);
        self.sleepers.fetch_sub(1, SeqCst);
    }
}

impl execlab_driver::kernel::WaitQueue for WaitQueue {
    fn wait_until(&self, deadline_ns: u64, condition: &mut dyn FnMut() -> bool) -> bool {
        loop {
            let seen = self.sequence.load(SeqCst);
            if condition() {
                return true;
            }
            if now_ns() >= deadline_ns {
                return false;
            }
            self.sleep(seen, deadline_ns);
        }
    }

    fn wake_all(&self) {
        self.sequence.fetch_add(1, SeqCst);
        if self.sleepers.load(SeqCst) > 0 {
            let _ = futex::wake(&self.sequence, Flags::PRIVATE, i32::MAX.cast_unsigned());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use execlab_driver::kernel::WaitQueue as _;

    use super::*;

    #[test]
    fn a_false_condition_ends_at_the_deadline_and_not_before() {
        let deadline = now_ns() + 2_000_000;
        assert!(!WaitQueue::default().wait_until(deadline, &mut || false));
        assert!(now_ns() >= deadline);
    }

    #[test]
    fn a_condition_made_true_by_another_thread_ends_the_wait() {
        let shared = Arc::new((WaitQueue::default(), AtomicBool::new(false)));
        let waker = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            waker.1.store(true, SeqCst);
            waker.0.wake_all();
        });
        let deadline = now_ns() + 10_000_000_000;
        assert!(shared.0.wait_until(deadline, &mut || shared.1.load(SeqCst)));
        thread.join().unwrap();
    }
}
