//! What all parts of a simulation share, and how time passes.
//!
//! A CPU is the coroutine of its current thread. An interrupt, with the bottom halves behind it, is a call on top of
//! whatever that coroutine was doing, as on a real CPU. Code between two calls of [`Core::busy`] takes no time, hence
//! is atomic.

use std::sync::Arc;

use atomic_refcell::AtomicRefCell;
use spin::mutex::SpinMutex;

use crate::choice::Choice;
use crate::costs::CpuCosts;
use crate::cpu::Cpu;
use crate::error::SimError;
use crate::events::{Events, Source};
use crate::machine::Machine;
use crate::sched::Sched;
use crate::softirq::Tasklets;
use crate::trace::{Trace, Vector, What};
use crate::word::Word;
use crate::{coroutine, devices};

/// Simulated time when the machine has booted: one second, so that a time of 0 is always a mistake.
pub(crate) const BOOT_NS: u64 = 1_000_000_000;
/// Calls of a device's `advance` at one time before it counts as stuck.
const ADVANCES_MAX: u32 = 100_000;

pub(crate) struct Core {
    pub machine: Machine,
    pub costs: Box<[CpuCosts]>,
    pub cpus: Box<[Cpu]>,
    /// The clock, in nanoseconds.
    now: Word,
    /// Before this time nothing happens, and a burst that ends before it is no more than an addition. 0 when there is
    /// another reason to look closely.
    horizon: Word,
    /// Time of the first event, as the heap has it: asked far more often than it changes.
    next_event: Word,
    /// The CPU whose coroutine runs.
    me: Word,
    /// A coroutine runs, and the call comes from it.
    live: Word,
    /// An interrupt may have come for the CPU that runs.
    urgent: Word,
    /// The simulation is being taken apart.
    pub closed: Word,
    stretches: Word,
    pub trace: Trace,
    pub choice: AtomicRefCell<Choice>,
    pub events: AtomicRefCell<Events>,
    pub sched: AtomicRefCell<Sched>,
    pub tasklets: AtomicRefCell<Tasklets>,
    pub irq: crate::irq::Line,
    pub next_lock: Word,
    /// Threads that have no fiber yet.
    pub starts: SpinMutex<Vec<(usize, Start)>>,
    failure: SpinMutex<Option<SimError>>,
    pub failed: Word,
}

/// What a new fiber runs.
pub(crate) type Start = Box<dyn FnOnce() + Send>;

impl Core {
    pub fn new(machine: &Machine, seed: u64) -> Arc<Self> {
        let cpus = machine.cpu.len();
        Arc::new(Self {
            machine: machine.clone(),
            costs: (0..cpus).map(|cpu| CpuCosts::new(machine, cpu)).collect(),
            cpus: (0..cpus).map(|_| Cpu::default()).collect(),
            now: Word::new(BOOT_NS),
            horizon: Word::default(),
            next_event: Word::new(u64::MAX),
            me: Word::default(),
            live: Word::default(),
            urgent: Word::default(),
            closed: Word::default(),
            stretches: Word::default(),
            trace: Trace::new(),
            choice: AtomicRefCell::new(Choice::new(seed)),
            events: AtomicRefCell::new(Events::new(cpus)),
            sched: AtomicRefCell::new(Sched::new(machine)),
            tasklets: AtomicRefCell::new(Tasklets::new(cpus)),
            irq: crate::irq::Line::default(),
            next_lock: Word::default(),
            starts: SpinMutex::default(),
            failure: SpinMutex::new(None),
            failed: Word::default(),
        })
    }

    /// The clock.
    #[inline]
    pub fn now(&self) -> u64 {
        self.now.get()
    }

    /// The CPU that runs.
    #[inline]
    pub fn me(&self) -> usize {
        self.me.get() as usize
    }

    /// What the CPU that runs is in the middle of.
    #[inline]
    pub fn my_cpu(&self) -> &Cpu {
        &self.cpus[self.me()]
    }

    /// The costs of the CPU that runs.
    #[inline]
    pub fn my_costs(&self) -> &CpuCosts {
        &self.costs[self.me()]
    }

    /// Whether the call comes from a simulated thread. Elsewhere (before and after a run, in a device, while a panic
    /// unwinds) calls of the kernel cost nothing and wait for nothing.
    #[inline]
    pub fn is_live(&self) -> bool {
        self.live.is_set()
    }

    #[inline]
    pub fn note(&self, what: What) {
        self.trace.add(self.now(), self.me(), what);
    }

    /// Sets the event of a source.
    pub fn arm(&self, source: Source, time: u64) {
        let tie = self.choice.borrow_mut().tie();
        let mut events = self.events.borrow_mut();
        events.set(source, time, tie);
        self.next_event.set(events.next());
        self.look_ahead();
    }

    /// Removes the event of a source.
    pub fn disarm(&self, source: Source) {
        let mut events = self.events.borrow_mut();
        events.clear(source);
        self.next_event.set(events.next());
        self.look_ahead();
    }

    /// Sets the horizon.
    fn look_ahead(&self) {
        let closely = !self.is_live() || self.urgent.is_set() || self.stretches.is_set();
        self.horizon.set(if closely { 0 } else { self.next_event.get() });
    }

    /// Takes over the choice's settings.
    pub fn perturbed(&self) {
        self.stretches.set(u64::from(self.choice.borrow().stretches()));
        self.look_ahead();
    }

    /// The clock goes on to `time`, unless it is past it.
    pub fn reach(&self, time: u64) {
        self.now.set(self.now().max(time));
    }

    /// Keeps the CPU that runs busy for `ns`. Interrupts come in meanwhile if they are on, and other CPUs do what they
    /// do.
    #[inline]
    pub fn busy(&self, ns: u64) {
        let end = self.now().saturating_add(ns);
        if end < self.horizon.get() && end < devices::due() {
            self.now.set(end);
        } else {
            self.busy_slowly(ns);
        }
    }

    #[cold]
    fn busy_slowly(&self, ns: u64) {
        if !self.is_live() || std::thread::panicking() {
            return;
        }
        let cpu = self.me();
        let mut left = if self.stretches.is_set() { self.choice.borrow_mut().stretch(ns) } else { ns };
        loop {
            self.take_interrupts(cpu);
            let end = self.now().saturating_add(left);
            let (next, due) = (self.next_event.get(), devices::due());
            if end < next && end < due {
                self.now.set(end);
                break;
            }
            if due <= next {
                self.reach(due);
                self.advance_devices(end.min(next));
            } else if let Some(source) = self.clockwork() {
                self.reach(next);
                self.fire(source);
            } else {
                // Another coroutine's turn. Back at the end of the burst it is over, even if others are due at the same
                // time: they have had their turn, or two bursts of no length would wait for each other.
                self.park(cpu, Some(end));
                if self.now() >= end {
                    self.take_interrupts(cpu);
                    break;
                }
            }
            left = end.saturating_sub(self.now());
        }
        self.look_ahead();
    }

    /// The first event, if it is one that needs no coroutine of its own.
    fn clockwork(&self) -> Option<Source> {
        let (_, source) = self.events.borrow().peek()?;
        matches!(source, Source::Tick(_) | Source::Timer(_)).then_some(source)
    }

    /// Lets the devices do what is due, and what is due next until `until`, as long as no interrupt comes of it.
    pub fn advance_devices(&self, until: u64) {
        let live = self.live.get();
        self.live.set(0);
        self.horizon.set(0);
        let (mut advances, mut since) = (0, self.now());
        loop {
            self.note(What::Device);
            devices::advance(self.now());
            let due = devices::due();
            // Whoever an interrupt is for, it may have changed what comes first.
            if self.urgent.is_set() || due == u64::MAX || due > until.min(self.next_event.get()) {
                break;
            }
            if due > since {
                (advances, since) = (0, due);
            }
            advances += 1;
            if advances == ADVANCES_MAX {
                self.fail(SimError::DeviceStuck { deadline_ns: due });
                break;
            }
            self.reach(due);
        }
        self.set_live(live);
    }

    /// A tick or a timer is due: an interrupt for its CPU.
    pub fn fire(&self, source: Source) {
        match source {
            Source::Tick(cpu) => {
                self.arm(source, self.now() + self.machine.tick_ns());
                self.cpus[cpu].tick_due.set(1);
                self.raise(cpu, Vector::Timer);
            }
            Source::Timer(thread) => {
                self.disarm(source);
                let cpu = self.sched.borrow().threads[thread].cpu;
                self.raise(cpu, Vector::Timer);
            }
            Source::Cpu(_) | Source::Limit => {}
        }
    }

    /// An interrupt for a CPU. It is delivered as soon as that CPU has interrupts on; one that is pending already is
    /// one still.
    pub fn raise(&self, cpu: usize, vector: Vector) {
        let target = &self.cpus[cpu];
        target.pending.set(target.pending.get() | vector as u64);
        if !target.parked.is_set() {
            self.urgent.set(1);
            self.look_ahead();
        } else if target.takes_interrupts() {
            let at = self.now() + target.exit_latency.get();
            let planned = self.events.borrow().time(Source::Cpu(cpu));
            if planned.is_none_or(|planned| planned > at) {
                self.arm(Source::Cpu(cpu), at);
            }
        }
    }

    /// Delivers what is pending for the CPU that runs, if interrupts are on.
    pub fn take_interrupts(&self, cpu: usize) {
        let this = &self.cpus[cpu];
        while this.pending.is_set() && this.takes_interrupts() {
            self.interrupt(cpu);
        }
        if self.urgent.is_set() {
            self.urgent.set(0);
            self.look_ahead();
        }
    }

    /// Gives the OS thread away until `until`, or an interrupt, or whoever else arms this CPU.
    pub fn park(&self, cpu: usize, until: Option<u64>) {
        match until {
            Some(time) => self.arm(Source::Cpu(cpu), time),
            None => self.disarm(Source::Cpu(cpu)),
        }
        self.suspend(cpu);
    }

    /// Gives the OS thread away.
    pub fn suspend(&self, cpu: usize) {
        self.cpus[cpu].parked.set(1);
        coroutine::suspend();
    }

    /// The coroutine of `cpu` is about to run.
    pub fn enter(&self, cpu: usize) {
        self.disarm(Source::Cpu(cpu));
        self.me.set(cpu as u64);
        self.cpus[cpu].parked.set(0);
        self.urgent.set(0);
        self.set_live(1);
    }

    /// Whether kernel calls are those of a simulated thread from now on.
    pub fn set_live(&self, live: u64) {
        self.live.set(live);
        self.look_ahead();
    }

    /// Ends the run.
    pub fn fail(&self, error: SimError) {
        self.failed.set(1);
        self.failure.lock().get_or_insert(error);
    }

    /// Why the run has ended early.
    pub fn failure(&self) -> Option<SimError> {
        self.failure.lock().clone()
    }
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core")
            .field("machine", &self.machine.name)
            .field("now", &self.now())
            .finish_non_exhaustive()
    }
}
