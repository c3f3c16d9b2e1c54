//! A CPU: its flags and its preempt count, and the sections that move them.

use execlab_driver::kernel::Place;

use crate::core::Core;
use crate::machine::Preemption;

use crate::switch::Leave;
use crate::word::Word;

/// What a CPU is in the middle of. The counts are those of everything that is stacked on it; a thread switch happens
/// only where all of them are 0, so they need not be saved with the thread.
#[derive(Debug, Default)]
pub(crate) struct Cpu {
    /// Nested sections with interrupts off, handlers among them.
    pub irq_off: Word,
    /// Nested sections with bottom halves off.
    pub bh_off: Word,
    /// In an interrupt handler.
    pub hardirq: Word,
    /// Running bottom halves.
    pub softirq: Word,
    /// Pending interrupts, one bit per vector.
    pub pending: Word,
    /// When its tick comes, within a period.
    pub tick_phase: Word,
    /// The tick is among them.
    pub tick_due: Word,
    /// Bottom halves are pending (`local_softirq_pending`).
    pub softirqs: Word,
    /// TIF_NEED_RESCHED.
    pub need_resched: Word,
    /// On its way from one thread to the next, with interrupts off.
    pub switching: Word,
    /// Its coroutine is suspended.
    pub parked: Word,
    /// Idle: how long it takes from an interrupt to the first instruction.
    pub exit_latency: Word,
    /// How long it was idle of late: a moving mean.
    pub idle_mean: Word,
}

impl Cpu {
    /// Whether an interrupt would be delivered.
    #[inline]
    pub fn takes_interrupts(&self) -> bool {
        !self.irq_off.is_set() && !self.switching.is_set()
    }

    /// `in_interrupt()`: in a handler, in a bottom half, or in a bh-off section.
    #[inline]
    pub fn in_interrupt(&self) -> bool {
        self.hardirq.is_set() || self.softirq.is_set() || self.bh_off.is_set()
    }

    /// Whether a thread may be switched here (`preempt_count() == 0 && !irqs_disabled()`).
    #[inline]
    pub fn is_preemptible(&self) -> bool {
        !self.in_interrupt() && !self.irq_off.is_set()
    }
}

/// Where in a thread its CPU may be given to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    /// At the end of a driver's step.
    Step,
    /// At the end of any other call.
    Call,
}

impl Core {
    /// `local_irq_save`.
    #[inline]
    pub fn irq_save(&self) {
        self.my_cpu().irq_off.up();
    }

    /// `local_irq_restore`: what came meanwhile is delivered now.
    #[inline]
    pub fn irq_restore(&self) {
        let cpu = self.my_cpu();
        cpu.irq_off.down();
        if cpu.pending.is_set() && !std::thread::panicking() {
            self.take_interrupts(self.me());
        }
    }

    /// Runs `section` with interrupts off.
    #[inline]
    pub fn irq_off<R>(&self, section: impl FnOnce() -> R) -> R {
        if !self.is_live() {
            return section();
        }
        self.irq_save();
        let result = section();
        self.irq_restore();
        self.preempt_point(Point::Call);
        result
    }

    /// Runs `section` with bottom halves off, and those that are pending behind it.
    #[inline]
    pub fn bh_off<R>(&self, section: impl FnOnce() -> R) -> R {
        if !self.is_live() {
            return section();
        }
        self.my_cpu().bh_off.up();
        let result = section();
        let cpu = self.my_cpu();
        cpu.bh_off.down();
        if cpu.softirqs.is_set() && !cpu.in_interrupt() {
            if cpu.irq_off.is_set() {
                // A bug of the caller, which Linux warns of; do not lose the work.
                self.wake_ksoftirqd();
            } else {
                self.irq_save();
                self.do_softirq(Place::BhEnable);
                self.irq_restore();
            }
        }
        self.preempt_point(Point::Call);
        result
    }

    /// Gives the CPU to a thread that shall preempt the current one, where the preemption model allows it.
    #[inline]
    pub fn preempt_point(&self, point: Point) {
        if self.my_cpu().need_resched.is_set() && self.is_live() {
            self.maybe_preempt(point);
        }
    }

    #[cold]
    fn maybe_preempt(&self, point: Point) {
        let allowed = point == Point::Call || self.machine.preemption != Preemption::None;
        if allowed && self.my_cpu().is_preemptible() && !std::thread::panicking() {
            self.schedule(Leave::Preempted);
        }
    }
}
