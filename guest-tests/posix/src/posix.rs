//! [`Kernel`] for the modelled CPU.

use std::sync::Arc;

use execlab_driver::kernel::{self, Kernel, TaskletBody, TaskletId};
use spin::mutex::TicketMutex;

use crate::clock::{clock_cost_ns, now_ns, sleep_until_ns, spin_until_ns};
use crate::cpu::State;
use crate::{Policy, RtHandle, RtThread, SchedError, WaitQueue};

/// A handle on a [`crate::Cpu`]: the [`Kernel`] that a driver gets. Clones share the CPU.
#[derive(Debug, Clone)]
pub struct Posix {
    pub(crate) state: Arc<State>,
}

impl Posix {
    /// One interrupt: irq enter, `handler`, irq exit with the bottom halves. The interrupt thread does this;
    /// it is public for those who bring a thread of their own. `more` is called between two rounds of bottom
    /// halves, with interrupts on, and hands every interrupt that has come meanwhile to [`Posix::hardirq`].
    pub fn interrupt(&self, handler: impl FnOnce(), more: &mut dyn FnMut()) {
        self.state.interrupt(handler, more);
    }

    /// An interrupt on top of bottom halves: they are looked at again when the handler has returned.
    pub fn hardirq(&self, handler: impl FnOnce()) {
        self.state.hardirq(handler);
    }
}

impl Kernel for Posix {
    type SpinLock<T: Send + 'static> = SpinLock<T>;
    type WaitQueue = WaitQueue;

    fn new_lock<T: Send + 'static>(&self, class: &'static str, value: T) -> SpinLock<T> {
        SpinLock { state: Arc::clone(&self.state), class, inner: TicketMutex::new(value) }
    }

    fn new_wait_queue(&self) -> WaitQueue {
        WaitQueue::default()
    }

    fn now(&self) -> u64 {
        now_ns()
    }

    fn irq_off<R>(&self, section: impl FnOnce() -> R) -> R {
        self.state.irq_off(section)
    }

    fn bh_off<R>(&self, section: impl FnOnce() -> R) -> R {
        self.state.bh_off(section)
    }

    /// # Panics
    /// With more than 64 tasklets.
    fn new_tasklet(&self, body: TaskletBody) -> TaskletId {
        self.state.new_tasklet(body)
    }

    fn tasklet_hi_schedule(&self, tasklet: TaskletId) {
        self.state.schedule(tasklet);
    }

    fn spend(&self, ns: u64) {
        if ns > 0 {
            spin_until_ns(now_ns().saturating_add(ns));
        }
    }

    fn cpu_relax(&self) {
        std::hint::spin_loop();
    }

    fn sleep_until(&self, deadline_ns: u64) {
        sleep_until_ns(deadline_ns);
    }
}

impl kernel::Threads for Posix {
    type Error = SchedError;
    type Thread<R: Send + 'static> = RtHandle<R>;

    fn spawn<R, F>(&self, name: &str, cpu: usize, policy: Policy, body: F) -> Result<RtHandle<R>, SchedError>
    where
        R: Send + 'static,
        F: FnOnce() -> R + Send + 'static,
    {
        RtThread::new(name).cpu(cpu).policy(policy).spawn(body)
    }

    fn yield_now(&self) {
        std::thread::yield_now();
    }

    fn clock_cost_ns(&self) -> u64 {
        clock_cost_ns()
    }
}

impl<R> kernel::Thread<R> for RtHandle<R> {
    fn join(self) -> Option<R> {
        Self::join(self)
    }

    fn is_finished(&self) -> bool {
        Self::is_finished(self)
    }
}

/// A ticket spinlock (the kernel's until 4.1; first come, first served, as its queued successor) whose holder
/// has interrupts off, hence is never scheduled away from its CPU by a thread of ours.
pub struct SpinLock<T> {
    state: Arc<State>,
    class: &'static str,
    inner: TicketMutex<T, Relax>,
}

impl<T: Send> kernel::SpinLock<T> for SpinLock<T> {
    fn with_irqsave<R>(&self, section: impl FnOnce(&mut T) -> R) -> R {
        self.state.irq_off(|| section(&mut self.inner.lock()))
    }
}

impl<T> std::fmt::Debug for SpinLock<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SpinLock").field("class", &self.class).finish_non_exhaustive()
    }
}

/// Turns of a busy-wait on a lock before the CPU is offered to others of the same priority.
const TURNS_BEFORE_YIELD: u32 = 128;

/// PAUSE, and now and then `sched_yield`: on one CPU a lock is never contended as long as the priorities are
/// in force, and without them (or with real-time throttling) a spinner must let the holder run.
struct Relax;

impl spin::RelaxStrategy for Relax {
    fn relax() {
        thread_local!(static TURN: std::cell::Cell<u32> = const { std::cell::Cell::new(0) });
        let turn = TURN.get().wrapping_add(1);
        TURN.set(turn);
        if turn.is_multiple_of(TURNS_BEFORE_YIELD) {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
}
