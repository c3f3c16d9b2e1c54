//! Wait queues.

use std::sync::Arc;

use atomic_refcell::AtomicRefCell;
use execlab_driver::kernel::WaitQueue;

use crate::core::Core;
use crate::cpu::Point;
use crate::sched::Why;

/// A wait queue. A wake-up between the test of the condition and the sleep is not lost: who waits is on the queue, and
/// marked as about to sleep, before it tests.
#[derive(Debug)]
pub struct SimWaitQueue {
    core: Arc<Core>,
    waiters: AtomicRefCell<Vec<usize>>,
}

impl SimWaitQueue {
    pub(crate) const fn new(core: Arc<Core>) -> Self {
        Self { core, waiters: AtomicRefCell::new(Vec::new()) }
    }

    fn leave(&self, thread: usize) {
        self.waiters.borrow_mut().retain(|waiter| *waiter != thread);
    }
}

impl WaitQueue for SimWaitQueue {
    /// # Panics
    /// Where sleeping is a bug: "scheduling while atomic".
    fn wait_until(&self, deadline_ns: u64, condition: &mut dyn FnMut() -> bool) -> bool {
        let core = &*self.core;
        if condition() {
            return true;
        }
        if !core.is_live() {
            return false; // Nobody could change it.
        }
        core.might_sleep();
        let current = core.current();
        let met = loop {
            // Woken early or at the deadline, the condition is tested once more.
            self.waiters.borrow_mut().push(current);
            core.prepare_to_sleep();
            let met = condition();
            if met || core.now() >= deadline_ns {
                self.leave(current);
                break met;
            }
            if !core.was_woken(current) {
                core.sleep(Why::Queue, (deadline_ns < u64::MAX).then_some(deadline_ns));
            }
            self.leave(current);
        };
        core.preempt_point(Point::Call);
        met
    }

    fn wake_all(&self) {
        // One at a time, looking again: a wake-up takes time, and others come and go meanwhile.
        let mut at = 0;
        loop {
            let Some(thread) = self.waiters.borrow().get(at).copied() else { break };
            self.core.wake(thread);
            at += 1;
        }
        self.core.preempt_point(Point::Call);
    }
}
