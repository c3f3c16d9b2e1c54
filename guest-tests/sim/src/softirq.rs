//! Bottom halves: tasklets, and the rules of `kernel/softirq.c` about who runs them.

use std::collections::VecDeque;
use std::sync::Arc;

use execlab_driver::kernel::{Place, TaskletBody, TaskletId};

use crate::core::Core;
use crate::sched::{State, Why};
use crate::switch::Leave;
use crate::trace::What;

struct Tasklet {
    body: Arc<TaskletBody>,
    /// TASKLET_STATE_SCHED.
    scheduled: bool,
    /// TASKLET_STATE_RUN.
    running: bool,
}

/// The tasklets, and the list of each CPU in the order in which they were scheduled.
pub(crate) struct Tasklets {
    all: Vec<Tasklet>,
    lists: Vec<VecDeque<usize>>,
}

impl Tasklets {
    pub fn new(cpus: usize) -> Self {
        Self { all: Vec::new(), lists: (0..cpus).map(|_| VecDeque::with_capacity(16)).collect() }
    }

    /// Forgets the bodies: they usually hold a driver, and that holds the simulation.
    pub fn take_bodies(&mut self) -> Vec<Arc<TaskletBody>> {
        self.lists.iter_mut().for_each(VecDeque::clear);
        self.all.drain(..).map(|tasklet| tasklet.body).collect()
    }
}

impl Core {
    pub fn new_tasklet(&self, body: TaskletBody) -> TaskletId {
        let mut tasklets = self.tasklets.borrow_mut();
        tasklets.all.push(Tasklet { body: Arc::new(body), scheduled: false, running: false });
        TaskletId(tasklets.all.len() as u32 - 1)
    }

    /// `tasklet_hi_schedule`.
    pub fn schedule_tasklet(&self, tasklet: TaskletId) {
        if self.closed.is_set() {
            return;
        }
        let cpu = self.me();
        {
            let mut tasklets = self.tasklets.borrow_mut();
            let Tasklets { all, lists } = &mut *tasklets;
            let number = tasklet.0 as usize;
            if std::mem::replace(&mut all[number].scheduled, true) {
                return;
            }
            lists[cpu].push_back(number);
        }
        self.cpus[cpu].softirqs.set(1);
        // raise_softirq_irqoff(): inside an interrupt or a bh-off section, its exit will look.
        if !self.cpus[cpu].in_interrupt() {
            self.wake_ksoftirqd();
        }
    }

    /// `wakeup_softirqd`.
    pub fn wake_ksoftirqd(&self) {
        let thread = self.sched.borrow().queues[self.me()].ksoftirqd;
        self.wake(thread);
    }

    /// `__do_softirq`. Interrupts are off before and after, and on while the bodies run.
    pub fn do_softirq(&self, place: Place) {
        let cpu = self.me();
        let this = &self.cpus[cpu];
        if place != Place::Ksoftirqd && self.left_to_ksoftirqd(cpu) {
            return;
        }
        self.note(What::SoftirqEnter(place));
        this.softirq.up();
        let limits = self.machine.softirq;
        let end = self.jiffies() + limits.time.0.div_ceil(self.machine.tick_ns());
        let mut rounds = limits.rounds;
        let handed_over = loop {
            this.softirqs.set(0);
            self.irq_restore();
            self.busy(self.costs[cpu].softirq_entry);
            self.run_tasklets(cpu, place);
            self.irq_save();
            if !this.softirqs.is_set() {
                break false;
            }
            rounds -= 1;
            if self.jiffies() >= end || this.need_resched.is_set() || rounds == 0 {
                break true;
            }
        };
        this.softirq.down();
        if handed_over {
            self.wake_ksoftirqd();
        }
        self.note(What::SoftirqExit { handed_over });
    }

    /// `ksoftirqd_running()` of 4.9 to 4.15: what is pending is ksoftirqd's business as soon as that is runnable.
    fn left_to_ksoftirqd(&self, cpu: usize) -> bool {
        self.machine.kernel.leaves_tasklets_to_ksoftirqd() && {
            let sched = self.sched.borrow();
            sched.threads[sched.queues[cpu].ksoftirqd].state == State::Runnable
        }
    }

    /// `tasklet_hi_action`: the list as it is now, in its order.
    fn run_tasklets(&self, cpu: usize, place: Place) {
        let count = self.tasklets.borrow().lists[cpu].len();
        for _ in 0..count {
            let Some((number, body)) = self.next_tasklet(cpu) else { continue };
            body(place);
            if let Some(tasklet) = self.tasklets.borrow_mut().all.get_mut(number) {
                tasklet.running = false;
            }
        }
    }

    /// The first of the list; nothing if it runs on another CPU: then it goes back to the list (`tasklet_trylock`).
    fn next_tasklet(&self, cpu: usize) -> Option<(usize, Arc<TaskletBody>)> {
        let mut tasklets = self.tasklets.borrow_mut();
        let Tasklets { all, lists } = &mut *tasklets;
        let number = lists[cpu].pop_front()?;
        let tasklet = &mut all[number];
        if tasklet.running {
            lists[cpu].push_back(number);
            self.cpus[cpu].softirqs.set(1);
            return None;
        }
        tasklet.scheduled = false;
        tasklet.running = true;
        Some((number, Arc::clone(&tasklet.body)))
    }

    /// The kernel's clock of ticks.
    fn jiffies(&self) -> u64 {
        self.now().saturating_sub(self.cpus[0].tick_phase.get()) / self.machine.tick_ns()
    }

    /// The body of ksoftirqd (`run_ksoftirqd`).
    pub fn ksoftirqd(&self) {
        let cpu = self.me();
        loop {
            self.irq_save();
            let pending = self.cpus[cpu].softirqs.is_set();
            if pending {
                self.do_softirq(Place::Ksoftirqd);
            }
            self.irq_restore();
            if !pending && !self.cpus[cpu].softirqs.is_set() {
                self.sleep(Why::NoWork, None);
            } else if self.cpus[cpu].need_resched.is_set() {
                self.schedule(Leave::Preempted); // cond_resched()
            }
        }
    }
}
