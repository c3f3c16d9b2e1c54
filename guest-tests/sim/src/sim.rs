//! The simulation: the loop that gives each CPU its turn.

use std::sync::Arc;

use execlab_driver::kernel::{Policy, Thread as _};

use crate::choice::Perturb;
use crate::core::{BOOT_NS, Core};
use crate::coroutine::{Fiber, Stack};
use crate::devices::{self, Device};
use crate::error::SimError;
use crate::events::Source;
use crate::kernel::SimKernel;
use crate::machine::Machine;
use crate::thread::{self, SimThread};
use crate::trace::{Sink, What};

/// A simulated machine that has booted. It stays on the OS thread that made it; others may have their own.
pub struct Sim {
    core: Arc<Core>,
    /// The coroutine of each thread that has begun and not ended.
    fibers: Vec<Option<Fiber>>,
    /// Stacks of those that have.
    stacks: Vec<Stack>,
    devices: Vec<Arc<dyn Device>>,
}

impl Sim {
    /// Boots a machine, at a simulated time of one second. The seed chooses what the machine leaves open: the phases
    /// of the ticks, and what [`Sim::perturb`] allows.
    #[must_use]
    pub fn new(machine: &Machine, seed: u64) -> Self {
        let core = Core::new(machine, seed);
        for cpu in 0..machine.cpu.len() {
            core.sched.borrow_mut().add_cpu();
            let phase = core.choice.borrow_mut().phase(machine.tick_ns());
            core.cpus[cpu].tick_phase.set(phase);
            core.trace.add(core.now(), cpu, What::Boot { tick_phase: phase });
            core.cpus[cpu].parked.set(1);
            // Idle threads find the ticks running, and stop them.
            core.arm(Source::Tick(cpu), core.next_tick(cpu));
            core.arm(Source::Cpu(cpu), BOOT_NS);
            let (idle, ksoftirqd) = {
                let queue = &core.sched.borrow().queues[cpu];
                (queue.idle, queue.ksoftirqd)
            };
            let (one, two) = (Arc::clone(&core), Arc::clone(&core));
            let mut starts = core.starts.lock();
            starts.push((idle, Box::new(move || thread::run(&one, || one.idle()))));
            starts.push((ksoftirqd, Box::new(move || thread::run(&two, || two.ksoftirqd()))));
        }
        Self { core, fibers: Vec::new(), stacks: Vec::new(), devices: Vec::new() }
    }

    /// What a driver gets.
    #[must_use]
    pub fn kernel(&self) -> SimKernel {
        SimKernel { core: Arc::clone(&self.core) }
    }

    /// Adds a device.
    pub fn attach(&mut self, device: Arc<dyn Device>) {
        self.devices.push(device);
    }

    /// A run is an error when it goes on for more than `limit_ns` of simulated time from now on.
    pub fn set_time_limit(&mut self, limit_ns: u64) {
        self.core.arm(Source::Limit, self.core.now().saturating_add(limit_ns));
    }

    /// Allows other schedules than the plain model's.
    pub fn perturb(&mut self, perturb: Perturb) {
        self.core.choice.borrow_mut().perturb = perturb;
        self.core.perturbed();
    }

    /// Sends what happens from now on to `sink`, which must not call the kernel; nothing ends that.
    pub fn set_trace(&mut self, sink: Option<Sink>) {
        self.core.trace.set_sink(sink);
    }

    /// A hash over everything that has happened: each thread switch, wake-up, interrupt, run of bottom halves, wait
    /// for a lock and step of the driver, with its time and CPU. The same machine, seed and code give the same one.
    #[must_use]
    pub fn trace_hash(&self) -> u64 {
        self.core.trace.hash()
    }

    /// Name of a thread of the trace.
    #[must_use]
    pub fn thread_name(&self, thread: usize) -> Option<String> {
        self.core.sched.borrow().threads.get(thread).map(|thread| thread.name.clone())
    }

    /// Runs `main` as a SCHED_OTHER thread on CPU 0 until it returns. Threads that are left then stand still until the
    /// next run.
    ///
    /// # Errors
    /// [`SimError`] when the run cannot come to its end. The simulation is of no more use then: another run gives the
    /// same error.
    pub fn run<R, F>(&mut self, main: F) -> Result<R, SimError>
    where
        R: Send + 'static,
        F: FnOnce() -> R + Send + 'static,
    {
        self.core.failure().map_or(Ok(()), Err)?;
        let _installed = devices::install(self.devices.clone());
        let main = SimThread::spawn(&self.core, "main", 0, Policy::Other, main)?;
        loop {
            self.turn()?;
            if main.is_finished()
                && let Some(result) = main.take()
            {
                return Ok(result);
            }
        }
    }

    /// The next event.
    fn turn(&mut self) -> Result<(), SimError> {
        let core = &*self.core;
        let due = devices::due();
        let next = core.events.borrow().peek();
        match next {
            Some((time, source)) if time < due => {
                let clockwork = matches!(source, Source::Tick(_) | Source::Limit);
                if clockwork && due == u64::MAX && !core.events.borrow().has_work() {
                    return Err(self.deadlock());
                }
                core.reach(time);
                match source {
                    Source::Cpu(cpu) => self.resume(cpu),
                    Source::Limit => return Err(self.over_time(time)),
                    Source::Tick(_) | Source::Timer(_) => core.fire(source),
                }
            }
            None if due == u64::MAX => return Err(self.deadlock()),
            _ => {
                core.reach(due);
                core.advance_devices(u64::MAX);
            }
        }
        if self.core.failed.is_set() { self.core.failure().map_or(Ok(()), Err) } else { Ok(()) }
    }

    /// Lets the coroutine of a CPU's current thread run until it gives the CPU away.
    fn resume(&mut self, cpu: usize) {
        self.begin_new();
        let current = self.core.sched.borrow().queues[cpu].current;
        let Some(Some(fiber)) = self.fibers.get_mut(current) else { return };
        self.core.enter(cpu);
        let ended = fiber.resume();
        self.core.set_live(0);
        if ended {
            let fiber = self.fibers[current].take();
            self.stacks.extend(fiber.and_then(Fiber::into_stack));
        }
    }

    /// Makes the coroutines of new threads.
    fn begin_new(&mut self) {
        let mut starts = self.core.starts.lock();
        for (thread, start) in starts.drain(..) {
            if self.fibers.len() <= thread {
                self.fibers.resize_with(thread + 1, || None);
            }
            self.fibers[thread] = Some(Fiber::new(self.stacks.pop(), start));
        }
    }

    fn deadlock(&self) -> SimError {
        let error =
            SimError::Deadlock { time_ns: self.core.now(), threads: self.core.sched.borrow().describe() };
        self.core.fail(error.clone());
        error
    }

    fn over_time(&self, limit_ns: u64) -> SimError {
        let error = SimError::TimeLimit { limit_ns, threads: self.core.sched.borrow().describe() };
        self.core.fail(error.clone());
        error
    }
}

impl Drop for Sim {
    /// Unwinds the threads that are left, and cuts the rings of handles: tasklets and handler hold drivers, and these
    /// hold the simulation.
    fn drop(&mut self) {
        self.core.closed.set(1);
        self.fibers.clear();
        self.core.starts.lock().clear();
        self.core.disconnect_irq();
        let bodies = self.core.tasklets.borrow_mut().take_bodies();
        drop(bodies);
        self.core.trace.set_sink(None);
    }
}

impl std::fmt::Debug for Sim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sim")
            .field("core", &self.core)
            .field("fibers", &self.fibers.len())
            .finish_non_exhaustive()
    }
}
