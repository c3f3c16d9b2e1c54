//! [`Kernel`] for the simulated machine.

use std::sync::Arc;

use execlab_driver::kernel::{Kernel, Policy, Step, TaskletBody, TaskletId, Threads};

use crate::core::Core;
use crate::cpu::Point;
use crate::error::SimError;
use crate::lock::SimLock;
use crate::thread::SimThread;
use crate::trace::What;
use crate::wait::SimWaitQueue;

/// A handle on a simulation: the kernel that a driver, a load or a probe gets. Clones share the machine.
///
/// Called from a simulated thread, each call takes the time that it costs on the CPU of that thread. Called from
/// elsewhere (before and after a run, by a device) it takes none, and what would wait does not.
#[derive(Debug, Clone)]
pub struct SimKernel {
    pub(crate) core: Arc<Core>,
}

impl SimKernel {
    /// The simulated time in nanoseconds, for who looks from outside, such as a device: unlike a reading of the clock
    /// ([`Kernel::now`]) it costs nothing.
    #[must_use]
    pub fn time(&self) -> u64 {
        self.core.now()
    }

    /// The CPU that the caller runs on.
    #[must_use]
    pub fn cpu(&self) -> usize {
        self.core.me()
    }

    /// Connects the device's interrupt line to a CPU. `handler` is called there with interrupts off; what it leaves
    /// to bottom halves follows. It replaces the handler before.
    ///
    /// # Panics
    /// When the machine has no such CPU.
    pub fn connect_irq(&self, cpu: usize, handler: Box<dyn FnMut() + Send>) {
        assert!(cpu < self.core.cpus.len(), "there is no CPU {cpu}");
        self.core.connect_irq(cpu, handler);
    }

    /// An edge on the device's interrupt line. While the CPU has interrupts off it stays pending; several that are
    /// pending are one.
    pub fn raise_irq(&self) {
        self.core.raise_irq();
    }
}

impl Kernel for SimKernel {
    type SpinLock<T: Send + 'static> = SimLock<T>;
    type WaitQueue = SimWaitQueue;

    fn new_lock<T: Send + 'static>(&self, class: &'static str, value: T) -> SimLock<T> {
        SimLock::new(Arc::clone(&self.core), class, value)
    }

    fn new_wait_queue(&self) -> SimWaitQueue {
        SimWaitQueue::new(Arc::clone(&self.core))
    }

    #[inline]
    fn now(&self) -> u64 {
        if self.core.is_live() {
            self.core.busy(self.core.my_costs().clock_read);
            self.core.preempt_point(Point::Call);
        }
        self.core.now()
    }

    fn irq_off<R>(&self, section: impl FnOnce() -> R) -> R {
        self.core.irq_off(section)
    }

    fn bh_off<R>(&self, section: impl FnOnce() -> R) -> R {
        self.core.bh_off(section)
    }

    fn new_tasklet(&self, body: TaskletBody) -> TaskletId {
        self.core.new_tasklet(body)
    }

    fn tasklet_hi_schedule(&self, tasklet: TaskletId) {
        self.core.schedule_tasklet(tasklet);
    }

    #[inline]
    fn spend(&self, ns: u64) {
        self.core.busy(ns);
        self.core.preempt_point(Point::Call);
    }

    #[inline]
    fn step(&self, step: Step) {
        if self.core.is_live() {
            self.core.note(What::Step(step));
            self.core.busy(self.core.my_costs().steps[step as usize]);
            self.core.preempt_point(Point::Step);
        }
    }

    #[inline]
    fn cpu_relax(&self) {
        self.core.busy(self.core.my_costs().cpu_relax);
        self.core.preempt_point(Point::Call);
    }

    /// # Panics
    /// Where sleeping is a bug: "scheduling while atomic".
    fn sleep_until(&self, deadline_ns: u64) {
        if self.core.is_live() {
            self.core.sleep_until(deadline_ns);
        }
    }
}

impl Threads for SimKernel {
    type Error = SimError;
    type Thread<R: Send + 'static> = SimThread<R>;

    fn spawn<R, F>(&self, name: &str, cpu: usize, policy: Policy, body: F) -> Result<SimThread<R>, SimError>
    where
        R: Send + 'static,
        F: FnOnce() -> R + Send + 'static,
    {
        SimThread::spawn(&self.core, name, cpu, policy, body)
    }

    fn yield_now(&self) {
        if self.core.is_live() {
            self.core.yield_now();
        }
    }

    fn clock_cost_ns(&self) -> u64 {
        0
    }
}
