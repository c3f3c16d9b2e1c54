//! The scheduler's books: threads, run queues, who is next. Nothing here lets time pass.

use execlab_driver::kernel::Policy;

use crate::machine::{Fair, Machine};

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Runs or wants to.
    Runnable,
    /// Sleeps, for the reason beside it.
    Asleep(Why),
    /// Has ended.
    Dead,
}

/// What a thread waits for, for reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// `sleep_until`.
    Sleep,
    /// A wait queue.
    Queue,
    /// The end of this thread.
    Join(usize),
    /// ksoftirqd without work.
    NoWork,
}

/// A simulated thread.
#[derive(Debug)]
pub(crate) struct Thread {
    pub name: String,
    pub cpu: usize,
    pub policy: Policy,
    /// The thread of a CPU that has nothing to do; not on any queue.
    pub is_idle: bool,
    pub state: State,
    /// Woken since it last began to wait (`TASK_RUNNING` set by the waker before it slept).
    pub woken: bool,
    /// From when on a timer interrupt that comes anyway wakes it: the hrtimer's soft expiry.
    pub soft_expiry: Option<u64>,
    /// Time on the CPU, compared within the fair class. All have nice 0.
    pub vruntime: u64,
    /// Since when its time has not been counted.
    counted_to: u64,
    /// Time on the CPU since it was picked.
    pub slice_used: u64,
    /// Threads that wait for its end.
    pub joiners: Vec<usize>,
    /// Class of the spinlock that it spins on, for reports.
    pub spins_on: Option<&'static str>,
}

impl Thread {
    pub fn new(name: &str, cpu: usize, policy: Policy) -> Self {
        Self {
            name: name.to_owned(),
            cpu,
            policy,
            is_idle: false,
            state: State::Runnable,
            woken: false,
            soft_expiry: None,
            vruntime: 0,
            counted_to: 0,
            slice_used: 0,
            joiners: Vec::new(),
            spins_on: None,
        }
    }

    /// Rank of its scheduling class and, for SCHED_FIFO, its priority.
    fn rank(&self) -> u16 {
        match self.policy {
            _ if self.is_idle => 0,
            Policy::Idle => 1,
            Policy::Other => 2,
            Policy::Fifo(priority) => 2 + u16::from(priority),
        }
    }
}

/// Where a thread joins those of its rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Before them: it was preempted (`sched(7)`: at the head of the list for its priority).
    Head,
    /// Behind them: it was woken, or yielded.
    Tail,
}

/// The run queue of a CPU.
#[derive(Debug)]
pub(crate) struct RunQueue {
    pub current: usize,
    pub idle: usize,
    pub ksoftirqd: usize,
    /// The runnable threads beside `current`, by rank; within the fair class in no order.
    queue: Vec<usize>,
    /// The fair class's floor: it only rises.
    min_vruntime: u64,
}

/// Threads and run queues.
#[derive(Debug)]
pub(crate) struct Sched {
    pub threads: Vec<Thread>,
    pub queues: Vec<RunQueue>,
    fair: Fair,
}

impl Sched {
    pub fn new(machine: &Machine) -> Self {
        Self { threads: Vec::new(), queues: Vec::new(), fair: machine.fair }
    }

    /// Adds a CPU that is idle, with its idle thread and its ksoftirqd: the next two numbers.
    pub fn add_cpu(&mut self) {
        let (cpu, idle) = (self.queues.len(), self.threads.len());
        let is_idle = true;
        self.threads.push(Thread { is_idle, ..Thread::new(&format!("idle/{cpu}"), cpu, Policy::Idle) });
        let mut ksoftirqd = Thread::new(&format!("ksoftirqd/{cpu}"), cpu, Policy::Other);
        ksoftirqd.state = State::Asleep(Why::NoWork);
        self.threads.push(ksoftirqd);
        let queue = Vec::with_capacity(8);
        self.queues.push(RunQueue { current: idle, idle, ksoftirqd: idle + 1, queue, min_vruntime: 0 });
    }

    /// Puts a runnable thread on its CPU's queue.
    pub fn enqueue(&mut self, thread: usize, place: Place) {
        let rank = self.threads[thread].rank();
        let queue = &mut self.queues[self.threads[thread].cpu].queue;
        let before = |other: &usize| match place {
            Place::Head => self.threads[*other].rank() > rank,
            Place::Tail => self.threads[*other].rank() >= rank,
        };
        let at = queue.iter().position(|other| !before(other)).unwrap_or(queue.len());
        queue.insert(at, thread);
    }

    /// Takes the next thread off the queue (`pick_next_task`); the idle thread when there is none.
    pub fn pick(&mut self, cpu: usize, now: u64) -> usize {
        let RunQueue { queue, idle, .. } = &self.queues[cpu];
        let idle = *idle;
        let threads = &self.threads;
        let fair = |thread: &usize| threads[*thread].policy == Policy::Other;
        let at = match queue.first() {
            None => return self.begin(cpu, idle, now),
            // The leftmost: least vruntime, and of equals the one that waits longest.
            Some(first) if fair(first) => {
                let candidates = queue.iter().enumerate().take_while(|(_, thread)| fair(thread));
                candidates
                    .min_by_key(|(at, thread)| (threads[**thread].vruntime, *at))
                    .map_or(0, |(at, _)| at)
            }
            Some(_) => 0,
        };
        let thread = self.queues[cpu].queue.remove(at);
        self.begin(cpu, thread, now)
    }

    fn begin(&mut self, cpu: usize, thread: usize, now: u64) -> usize {
        self.queues[cpu].current = thread;
        let thread_state = &mut self.threads[thread];
        thread_state.counted_to = now;
        thread_state.slice_used = 0;
        thread
    }

    /// Counts the current thread's time up to now (`update_curr`).
    pub fn count(&mut self, cpu: usize, now: u64) {
        let RunQueue { current, queue, min_vruntime, .. } = &mut self.queues[cpu];
        let thread = &mut self.threads[*current];
        let ran = now.saturating_sub(thread.counted_to);
        thread.counted_to = now;
        thread.slice_used += ran;
        if thread.policy == Policy::Other {
            thread.vruntime += ran;
            let own = thread.vruntime;
            let others = queue.iter().map(|other| &self.threads[*other]);
            let fair = others.filter(|other| other.policy == Policy::Other).map(|other| other.vruntime);
            *min_vruntime = (*min_vruntime).max(fair.fold(own, u64::min));
        }
    }

    /// Gives a woken thread its place in the fair class: a sleeper gets half a latency ahead, not more
    /// (GENTLE_FAIR_SLEEPERS of `place_entity`). A new one starts where the others are.
    pub fn place_fair(&mut self, thread: usize, is_new: bool) {
        let floor = self.queues[self.threads[thread].cpu].min_vruntime;
        let credit = if is_new { 0 } else { self.fair.latency.0 / 2 };
        let vruntime = &mut self.threads[thread].vruntime;
        *vruntime = (*vruntime).max(floor.saturating_sub(credit));
    }

    /// A thread that yields goes behind the one that is next in its class.
    pub fn step_back(&mut self, thread: usize) {
        let queue = &self.queues[self.threads[thread].cpu].queue;
        let others = queue.iter().map(|other| &self.threads[*other]);
        let first = others.filter(|other| other.policy == Policy::Other).map(|other| other.vruntime).min();
        if let Some(first) = first.filter(|_| self.threads[thread].policy == Policy::Other) {
            self.threads[thread].vruntime = self.threads[thread].vruntime.max(first);
        }
    }

    /// Whether `thread`, just woken, shall run instead of the current one (`check_preempt_curr`). The current
    /// thread's time must be counted.
    pub fn preempts(&self, thread: usize) -> bool {
        let woken = &self.threads[thread];
        let current = &self.threads[self.queues[woken.cpu].current];
        if woken.policy == Policy::Other && current.policy == Policy::Other {
            return current.vruntime > woken.vruntime + self.fair.wakeup_granularity.0;
        }
        woken.rank() > current.rank()
    }

    /// Whether the current thread's slice is over (`check_preempt_tick`). Its time must be counted.
    pub fn slice_is_over(&self, cpu: usize) -> bool {
        let RunQueue { current, queue, .. } = &self.queues[cpu];
        let current = &self.threads[*current];
        let same = queue.iter().filter(|other| self.threads[**other].policy == current.policy).count() as u64;
        if same == 0 || matches!(current.policy, Policy::Fifo(_)) {
            return false;
        }
        let slice = (self.fair.latency.0 / (same + 1)).max(self.fair.min_granularity.0);
        current.slice_used > slice
    }

    /// Name and state of every thread, for reports; idle threads are left out.
    pub fn describe(&self) -> Vec<String> {
        let threads = self.threads.iter().filter(|thread| !thread.is_idle);
        threads.map(|thread| self.describe_one(thread)).collect()
    }

    fn describe_one(&self, thread: &Thread) -> String {
        let state = match thread.state {
            State::Runnable => match thread.spins_on {
                Some(class) => format!("spins on the lock {class}"),
                None => "is runnable".to_owned(),
            },
            State::Asleep(Why::Sleep) => "sleeps".to_owned(),
            State::Asleep(Why::Queue) => "waits on a wait queue".to_owned(),
            State::Asleep(Why::Join(other)) => format!("waits for the end of {}", self.threads[other].name),
            State::Asleep(Why::NoWork) => "has no work".to_owned(),
            State::Dead => "has ended".to_owned(),
        };
        format!("  {} ({}, CPU {}) {state}", thread.name, thread.policy, thread.cpu)
    }
}
