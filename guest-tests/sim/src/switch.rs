//! From one thread to another: schedule, sleep, wake, exit.

use execlab_driver::kernel::Policy;

use crate::core::Core;
use crate::cpu::Point;
use crate::events::Source;
use crate::sched::{Place, State, Why};
use crate::trace::{Vector, What};

/// Why a thread leaves its CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leave {
    /// Another shall run; it goes on when that is done.
    Preempted,
    /// `sched_yield`.
    Yields,
    /// It sleeps.
    Blocks,
    /// It has ended.
    Exits,
}

impl Core {
    /// `schedule()`: the CPU that runs turns to the next thread, which may be the same one. Returns when the caller's
    /// thread is on again; at once for one that has ended, whose coroutine must then end as well.
    pub fn schedule(&self, leave: Leave) {
        let cpu = self.me();
        let this = &self.cpus[cpu];
        this.need_resched.set(0);
        let (from, to) = {
            let now = self.now();
            let mut sched = self.sched.borrow_mut();
            sched.count(cpu, now);
            let from = sched.queues[cpu].current;
            if sched.threads[from].state == State::Runnable && !sched.threads[from].is_idle {
                let place = if leave == Leave::Preempted { Place::Head } else { Place::Tail };
                if leave == Leave::Yields {
                    sched.step_back(from);
                }
                sched.enqueue(from, place);
            }
            (from, sched.pick(cpu, now))
        };
        if from == to {
            return;
        }
        self.note(What::Switch { from, to });
        this.switching.set(1);
        self.arm(Source::Cpu(cpu), self.now().saturating_add(self.costs[cpu].context_switch));
        if leave == Leave::Exits {
            this.parked.set(1);
        } else {
            self.suspend(cpu);
            self.finish_switch();
        }
    }

    /// The end of a switch, on the thread that was switched to: interrupts are on again.
    pub fn finish_switch(&self) {
        self.my_cpu().switching.set(0);
        if self.my_cpu().pending.is_set() {
            self.take_interrupts(self.me());
        }
    }

    /// The thread that runs.
    pub fn current(&self) -> usize {
        self.sched.borrow().queues[self.me()].current
    }

    /// Refuses to sleep in a section.
    ///
    /// # Panics
    /// There: "scheduling while atomic".
    #[allow(
        clippy::panic,
        reason = "a bug in the code under test, which the run reports with the thread's name"
    )]
    pub fn might_sleep(&self) {
        if !self.my_cpu().is_preemptible() && !std::thread::panicking() {
            let cpu = self.my_cpu();
            panic!(
                "scheduling while atomic: irq-off {}, bh-off {}, hardirq {}, softirq {}",
                cpu.irq_off.get(),
                cpu.bh_off.get(),
                cpu.hardirq.get(),
                cpu.softirq.get()
            );
        }
    }

    /// The current thread begins to wait: a wake-up from here on is not lost, even before it sleeps
    /// (`set_current_state`).
    pub fn prepare_to_sleep(&self) -> usize {
        let current = self.current();
        self.sched.borrow_mut().threads[current].woken = false;
        current
    }

    /// Whether a wake-up has come since [`Core::prepare_to_sleep`].
    pub fn was_woken(&self, thread: usize) -> bool {
        self.sched.borrow().threads[thread].woken
    }

    /// Sleeps until woken, or until a timer that expires at `deadline`: no later for a SCHED_FIFO thread, up to the
    /// slack later for others (`kernel/sched/syscalls.c` sets the slack of real-time threads to 0), whenever a timer
    /// interrupt comes anyway.
    pub fn sleep(&self, why: Why, deadline: Option<u64>) {
        let current = self.current();
        let hard = {
            let mut sched = self.sched.borrow_mut();
            let thread = &mut sched.threads[current];
            thread.state = State::Asleep(why);
            thread.soft_expiry = deadline;
            let slack = if matches!(thread.policy, Policy::Fifo(_)) { 0 } else { self.machine.timer_slack.0 };
            deadline.map(|deadline| deadline.saturating_add(slack))
        };
        if let Some(hard) = hard {
            self.arm(Source::Timer(current), hard);
        }
        self.schedule(Leave::Blocks);
    }

    /// `try_to_wake_up`, paid by the CPU that runs.
    pub fn wake(&self, thread: usize) {
        let asleep = {
            let thread = &mut self.sched.borrow_mut().threads[thread];
            thread.woken = true;
            matches!(thread.state, State::Asleep(_))
        };
        if !asleep {
            return;
        }
        if self.is_live() {
            self.irq_save();
            self.busy(self.my_costs().wake);
            self.make_runnable(thread, false);
            self.irq_restore();
        } else {
            self.make_runnable(thread, false);
        }
    }

    /// Puts a thread on its CPU's queue, and asks for the CPU if it comes before who is there.
    pub fn make_runnable(&self, thread: usize, is_new: bool) {
        let (cpu, preempts, had_timer) = {
            let mut sched = self.sched.borrow_mut();
            let woken = &mut sched.threads[thread];
            if !is_new && !matches!(woken.state, State::Asleep(_)) {
                return; // Somebody else was faster.
            }
            woken.state = State::Runnable;
            let (cpu, had_timer) = (woken.cpu, woken.soft_expiry.take().is_some());
            sched.count(cpu, self.now());
            sched.place_fair(thread, is_new);
            sched.enqueue(thread, Place::Tail);
            (cpu, sched.preempts(thread), had_timer)
        };
        if had_timer {
            self.disarm(Source::Timer(thread));
        }
        self.note(What::Wake { thread });
        if preempts {
            self.cpus[cpu].need_resched.set(1);
            if self.cpus[cpu].parked.is_set() {
                self.raise(cpu, Vector::Reschedule);
            }
        }
    }

    /// `sched_yield`.
    pub fn yield_now(&self) {
        self.might_sleep();
        // The call itself takes a moment, or two threads that yield to each other would stop the clock.
        self.busy(self.my_costs().cpu_relax);
        self.schedule(Leave::Yields);
    }

    /// `sleep_until`.
    pub fn sleep_until(&self, deadline: u64) {
        self.might_sleep();
        if deadline <= self.now() {
            self.busy(self.my_costs().cpu_relax);
            self.preempt_point(Point::Call);
            return;
        }
        while self.now() < deadline {
            self.sleep(Why::Sleep, Some(deadline));
        }
    }

    /// `do_exit`: the thread that runs is no more. Its coroutine must end after this.
    pub fn exit(&self) {
        let thread = self.current();
        let joiners = {
            let mut sched = self.sched.borrow_mut();
            sched.threads[thread].state = State::Dead;
            std::mem::take(&mut sched.threads[thread].joiners)
        };
        self.note(What::Exit { thread });
        for joiner in joiners {
            self.wake(joiner);
        }
        self.schedule(Leave::Exits);
    }
}
