//! Interrupts: a call on top of whatever the CPU was doing.

use execlab_driver::kernel::Place;
use spin::mutex::SpinMutex;

use crate::core::Core;
use crate::machine::Preemption;
use crate::switch::Leave;
use crate::trace::{Vector, What};
use crate::word::Word;

/// What an interrupt runs.
pub(crate) type Handler = Box<dyn FnMut() + Send>;

/// The device's interrupt line.
#[derive(Default)]
pub(crate) struct Line {
    /// The CPU that takes it.
    cpu: Word,
    handler: SpinMutex<Option<Handler>>,
}

impl Core {
    pub fn connect_irq(&self, cpu: usize, handler: Handler) {
        self.irq.cpu.set(cpu as u64);
        let before = self.irq.handler.lock().replace(handler);
        drop(before); // After the lock is free: it may hold the last handle on a driver.
    }

    pub fn disconnect_irq(&self) {
        let before = self.irq.handler.lock().take();
        drop(before);
    }

    pub fn raise_irq(&self) {
        self.raise(self.irq.cpu.get() as usize, Vector::Device);
    }

    /// Takes the pending interrupt of the highest vector, and what follows it: bottom halves, and a preemption.
    /// Interrupts must be on.
    pub fn interrupt(&self, cpu: usize) {
        let this = &self.cpus[cpu];
        let pending = this.pending.get();
        // As the local APIC ranks them: RESCHEDULE_VECTOR 0xfd, LOCAL_TIMER_VECTOR 0xec, devices below.
        let ranked = [Vector::Reschedule, Vector::Timer, Vector::Device];
        let Some(vector) = ranked.into_iter().find(|vector| pending & *vector as u64 != 0) else { return };
        this.pending.set(pending & !(vector as u64));
        let costs = &self.costs[cpu];

        this.irq_off.up();
        this.hardirq.up();
        self.note(What::IrqEnter(vector));
        self.busy(costs.irq_entry);
        match vector {
            Vector::Device => self.handle_device(),
            Vector::Timer => self.timer_interrupt(cpu),
            Vector::Reschedule => {}
        }
        self.busy(costs.irq_exit);
        self.note(What::IrqExit(vector));
        this.hardirq.down();
        if this.softirqs.is_set() && !this.in_interrupt() {
            self.do_softirq(Place::IrqExit);
        }
        this.irq_off.down();

        // preempt_schedule_irq(); the idle thread looks by itself.
        let full = self.machine.preemption == Preemption::Full;
        if full && this.need_resched.is_set() && this.is_preemptible() && !self.is_idle(cpu) {
            self.schedule(Leave::Preempted);
        }
    }

    fn handle_device(&self) {
        // Taken out, so that a handler may connect another one.
        let handler = self.irq.handler.lock().take();
        if let Some(mut handler) = handler {
            handler();
            self.irq.handler.lock().get_or_insert(handler);
        }
    }

    /// `hrtimer_interrupt`: wakes whose timer has reached its soft expiry, and does the tick if that is due.
    fn timer_interrupt(&self, cpu: usize) {
        self.busy(self.costs[cpu].timer_irq);
        while let Some(thread) = self.expired(cpu) {
            self.wake(thread);
        }
        if self.cpus[cpu].tick_due.is_set() {
            self.cpus[cpu].tick_due.set(0);
            let mut sched = self.sched.borrow_mut();
            sched.count(cpu, self.now());
            if sched.slice_is_over(cpu) {
                self.cpus[cpu].need_resched.set(1);
            }
        }
    }

    /// The thread of `cpu` whose soft expiry is the first and has passed.
    fn expired(&self, cpu: usize) -> Option<usize> {
        let sched = self.sched.borrow();
        let here = sched.threads.iter().enumerate().filter(|(_, thread)| thread.cpu == cpu);
        let expiries = here.filter_map(|(number, thread)| Some((thread.soft_expiry?, number)));
        let (_, thread) = expiries.min().filter(|(expiry, _)| *expiry <= self.now())?;
        Some(thread)
    }

    fn is_idle(&self, cpu: usize) -> bool {
        let sched = self.sched.borrow();
        sched.queues[cpu].current == sched.queues[cpu].idle
    }
}
