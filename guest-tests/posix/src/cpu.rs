//! The modelled CPU: sections, tasklets and ksoftirqd of all threads that are pinned to one real CPU.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::Thread;

use execlab_driver::kernel::{Place, TaskletBody, TaskletId};

use crate::clock::now_ns;
use crate::level::{self, Kind, Raise, Section};
use crate::spans::{Counters, Span};
use crate::{CpuStats, Policy, Posix, RtHandle, RtThread, SchedError};

/// Tasklets that one CPU can have.
pub(crate) const TASKLETS_MAX: usize = 64;
/// `MAX_SOFTIRQ_RESTART` of `kernel/softirq.c`: rounds before the rest goes to ksoftirqd.
const MAX_SOFTIRQ_RESTART: u32 = 10;
/// `MAX_SOFTIRQ_TIME` of `kernel/softirq.c` (2 ms, counted in jiffies there, in nanoseconds here).
const MAX_SOFTIRQ_TIME_NS: u64 = 2_000_000;

/// How to model a CPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// The real CPU that stands for it. All threads that use the kernel should be pinned to it.
    pub cpu: usize,
    /// Whether sections really raise the thread's priority. Without, everything keeps its order and nothing
    /// its timing: for tests of logic without privileges, never for a measurement.
    pub priorities: bool,
    /// Factor on modelled durations, here on the 2 ms after which ksoftirqd takes over; 1 or more.
    pub dilation: f64,
}

impl Default for Config {
    fn default() -> Self {
        Self { cpu: 0, priorities: true, dilation: 1.0 }
    }
}

/// The modelled CPU. Dropping it stops its ksoftirqd and frees the tasklets; [`Posix`] handles that are left
/// still work, without bottom halves.
#[derive(Debug)]
pub struct Cpu {
    state: Arc<State>,
    ksoftirqd: Option<RtHandle<()>>,
}

impl Cpu {
    /// Checks that threads may be raised, and starts ksoftirqd.
    ///
    /// # Errors
    /// [`SchedError`] when the CPU or the priority is refused.
    pub fn start(config: Config) -> Result<Self, SchedError> {
        if config.priorities {
            // A thread of its own: the caller keeps its policy whatever happens.
            let trial = RtThread::new("raise-trial").policy(Policy::Fifo(crate::IRQ_OFF_PRIORITY));
            let _ = trial.cpu(config.cpu).spawn(|| ())?.join();
        }
        let state = Arc::new(State::new(config));
        let served = Arc::clone(&state);
        let thread = RtThread::new("ksoftirqd").policy(Policy::Other).cpu(config.cpu);
        let ksoftirqd = thread.spawn(move || served.ksoftirqd())?;
        *lock(&state.wake) = Some(ksoftirqd.thread().clone());
        Ok(Self { state, ksoftirqd: Some(ksoftirqd) })
    }

    /// What the driver gets.
    #[must_use]
    pub fn kernel(&self) -> Posix {
        Posix { state: Arc::clone(&self.state) }
    }

    /// What the CPU did so far.
    #[must_use]
    pub fn stats(&self) -> CpuStats {
        self.state.counters.snapshot()
    }
}

impl Drop for Cpu {
    fn drop(&mut self) {
        self.state.stop.store(true, SeqCst);
        self.state.wake_ksoftirqd();
        if let Some(thread) = self.ksoftirqd.take() {
            let _ = thread.join();
        }
        // A tasklet's body usually holds the driver, and the driver holds this state: cut the ring.
        let tasklets =
            std::mem::take(&mut *self.state.tasklets.write().unwrap_or_else(PoisonError::into_inner));
        drop(tasklets);
    }
}

/// A mutex that outlives a panic of its holder: none of ours guards an invariant over more than one store.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What all threads of the CPU share.
pub(crate) struct State {
    pub config: Config,
    pub counters: Counters,
    softirq_limit_ns: u64,
    /// TASKLET_STATE_SCHED, one bit per tasklet. A round takes all bits and runs them in the order of their
    /// numbers; the kernel's list keeps the order in which they were scheduled.
    pending: AtomicU64,
    /// Some thread runs bottom halves. As there is one CPU, this is also what keeps a tasklet from running
    /// concurrently with itself (TASKLET_STATE_RUN).
    serving: AtomicBool,
    tasklets: RwLock<Vec<Arc<Tasklet>>>,
    wake: Mutex<Option<Thread>>,
    stop: AtomicBool,
}

struct Tasklet(TaskletBody);

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("config", &self.config).field("pending", &self.pending).finish()
    }
}

/// A section that is accounted for when it ends, before the thread comes down.
struct Accounted<'a> {
    span: Option<&'a Span>,
    raised: Option<&'a Span>,
    start_ns: u64,
    _section: Section,
}

impl Drop for Accounted<'_> {
    fn drop(&mut self) {
        if self.span.is_some() || self.raised.is_some() {
            let ns = now_ns().saturating_sub(self.start_ns);
            self.span.iter().chain(&self.raised).for_each(|span| span.add(ns));
        }
    }
}

impl State {
    fn new(config: Config) -> Self {
        Self {
            config,
            counters: Counters::default(),
            softirq_limit_ns: (MAX_SOFTIRQ_TIME_NS as f64 * config.dilation.max(1.0)) as u64,
            pending: AtomicU64::new(0),
            serving: AtomicBool::new(false),
            tasklets: RwLock::default(),
            wake: Mutex::new(None),
            stop: AtomicBool::new(false),
        }
    }

    fn enter(&self, kind: Kind) -> Accounted<'_> {
        let section = Section::enter(kind, self.config.priorities);
        match section.raise {
            Raise::NotNeeded => 0,
            Raise::Done => self.counters.raises.fetch_add(1, Relaxed),
            Raise::Refused => self.counters.refused.fetch_add(1, Relaxed),
        };
        let irqs = matches!(kind, Kind::IrqOff | Kind::Hardirq) && section.outermost_of_kind;
        Accounted {
            span: irqs.then_some(&self.counters.irq_off),
            raised: section.outermost.then_some(&self.counters.raised),
            start_ns: if irqs || section.outermost { now_ns() } else { 0 },
            _section: section,
        }
    }

    pub fn irq_off<R>(&self, section: impl FnOnce() -> R) -> R {
        let _off = self.enter(Kind::IrqOff);
        section()
    }

    pub fn bh_off<R>(&self, section: impl FnOnce() -> R) -> R {
        // One span from here to the end of the bottom halves: in a kernel nothing preempts in between.
        let _span = self.enter(Kind::Span);
        let result = {
            let _off = self.enter(Kind::BhOff);
            section()
        };
        if self.pending.load(SeqCst) != 0 && !level::in_interrupt() {
            if level::irqs_off() {
                // A bug of the caller, which Linux warns of; do not lose the work.
                self.wake_ksoftirqd();
            } else {
                self.do_softirq(Place::BhEnable, &mut || yield_to_interrupts(self.config.priorities));
            }
        }
        result
    }

    /// irq enter, handler, irq exit. `more` handles an interrupt that has come meanwhile, if any.
    pub fn interrupt(&self, handler: impl FnOnce(), more: &mut dyn FnMut()) {
        let _span = self.enter(Kind::Span);
        self.hardirq(handler);
        if self.pending.load(SeqCst) != 0 && !level::in_interrupt() {
            self.do_softirq(Place::IrqExit, more);
        }
    }

    /// A handler on its own: bottom halves are left to whoever was interrupted.
    pub fn hardirq(&self, handler: impl FnOnce()) {
        let _irq = self.enter(Kind::Hardirq);
        self.counters.interrupts.fetch_add(1, Relaxed);
        handler();
    }

    pub fn new_tasklet(&self, body: TaskletBody) -> TaskletId {
        let mut tasklets = self.tasklets.write().unwrap_or_else(PoisonError::into_inner);
        assert!(tasklets.len() < TASKLETS_MAX, "a driver has at most {TASKLETS_MAX} tasklets here");
        tasklets.push(Arc::new(Tasklet(body)));
        TaskletId(tasklets.len() as u32 - 1)
    }

    pub fn schedule(&self, tasklet: TaskletId) {
        assert!((tasklet.0 as usize) < TASKLETS_MAX, "{tasklet:?} is of another kernel");
        let bit = 1 << tasklet.0;
        let newly = self.pending.fetch_or(bit, SeqCst) & bit == 0;
        // raise_softirq_irqoff(): inside an interrupt or a bh-off section, its exit will look.
        if newly && !level::in_interrupt() {
            self.wake_ksoftirqd();
        }
    }

    /// `__do_softirq`. `between` lets interrupts in, which are on while bottom halves run. The kernel also
    /// stops at need_resched, which user space cannot see: only the limits of time and rounds are modelled.
    fn do_softirq(&self, place: Place, between: &mut dyn FnMut()) {
        let end_ns = now_ns() + self.softirq_limit_ns;
        let mut restarts = MAX_SOFTIRQ_RESTART;
        loop {
            if self.serving.swap(true, SeqCst) {
                return; // Whoever serves will look again before it is done.
            }
            let handed_over = loop {
                self.pass(place);
                if self.pending.load(SeqCst) == 0 {
                    break false;
                }
                restarts -= 1;
                if restarts == 0 || now_ns() >= end_ns || place == Place::Ksoftirqd {
                    break true;
                }
                between();
            };
            self.serving.store(false, SeqCst);
            if handed_over {
                self.wake_ksoftirqd();
                return;
            }
            // Scheduled by a thread that saw `serving` just before it fell?
            if self.pending.load(SeqCst) == 0 {
                return;
            }
        }
    }

    /// One round through the pending tasklets.
    fn pass(&self, place: Place) {
        let _softirq = self.enter(Kind::Softirq);
        self.counters.softirq_passes.fetch_add(1, Relaxed);
        let mut bits = self.pending.swap(0, SeqCst);
        while bits != 0 {
            let index = bits.trailing_zeros() as usize;
            bits &= bits - 1;
            let tasklet = {
                let tasklets = self.tasklets.read().unwrap_or_else(PoisonError::into_inner);
                tasklets.get(index).map(Arc::clone)
            };
            let Some(tasklet) = tasklet else { continue };
            match place {
                Place::BhEnable => &self.counters.at_bh_enable,
                Place::IrqExit => &self.counters.at_irq_exit,
                Place::Ksoftirqd => &self.counters.in_ksoftirqd,
            }
            .fetch_add(1, Relaxed);
            (tasklet.0)(place);
        }
    }

    fn wake_ksoftirqd(&self) {
        self.counters.ksoftirqd_wakes.fetch_add(1, Relaxed);
        if let Some(thread) = lock(&self.wake).as_ref() {
            thread.unpark();
        }
    }

    /// The thread: scheduled as SCHED_OTHER, but each round runs with bottom halves off, hence raised, as in
    /// the kernel. It comes down after every round, where the kernel's would see need_resched.
    fn ksoftirqd(&self) {
        while !self.stop.load(SeqCst) {
            if self.pending.load(SeqCst) == 0 {
                std::thread::park();
            } else if self.serving.load(SeqCst) {
                std::thread::yield_now();
            } else {
                let _span = self.enter(Kind::Span);
                self.do_softirq(Place::Ksoftirqd, &mut || ());
            }
        }
    }
}

/// Lets the interrupt thread run if it waits for the CPU: it has the same priority as a section.
fn yield_to_interrupts(priorities: bool) {
    if priorities {
        std::thread::yield_now();
    }
}
