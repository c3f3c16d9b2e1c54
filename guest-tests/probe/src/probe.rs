//! The probe thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use execlab_driver::kernel::{Kernel, Policy, Thread as _, Threads};

use crate::Welford;
use crate::schedule::{Deadlines, Schedule};

/// How to probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// CPU to measure.
    pub cpu: usize,
    /// Policy and priority; SCHED_FIFO 98 is just below irq-off work, and 99 is gem_syslatency's own.
    pub policy: Policy,
    /// When to wake up.
    pub schedule: Schedule,
    /// Seed of the random phase.
    pub seed: u64,
}

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// CPU or priority refused.
    #[error(transparent)]
    Refused(Box<dyn std::error::Error + Send + Sync>),
    /// The shortest interval is below a microsecond.
    #[error("{0:?} wakes up more often than once per microsecond; choose a longer shortest interval")]
    TooOften(Schedule),
    /// The probe thread is gone.
    #[error("the probe's thread has ended; it must have panicked, see its message")]
    Gone,
}

/// One block of samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// Start on CLOCK_MONOTONIC, in nanoseconds.
    pub start_ns: u64,
    /// How long it lasted, in nanoseconds.
    pub duration_ns: u64,
    /// Latencies in nanoseconds, in order: time of wake-up minus deadline minus the cost of reading the clock,
    /// never below 0; a sample beyond 4.29 s is `u32::MAX`.
    pub samples: Vec<u32>,
    /// Mean, deviation and maximum of the same.
    pub summary: Welford,
    /// Deadlines of a fixed schedule that were skipped because they had passed.
    pub missed: u64,
}

/// A real-time thread that measures when told to, in whatever world `K` stands for. There is one only while it measures.
#[derive(Debug)]
pub struct Probe<K> {
    kernel: K,
    config: Config,
    clock_cost_ns: u64,
    /// Blocks begun so far: each has a random phase of its own.
    begun: AtomicU64,
    cancel: Arc<AtomicBool>,
}

impl<K: Threads + Clone> Probe<K> {
    /// Tries whether a thread may be what the probe must be, and measures what a reading of the clock costs. `cancel`
    /// ends a block early.
    ///
    /// # Errors
    /// [`Error::Refused`] when CPU or priority is refused; there is no fallback. [`Error::TooOften`].
    pub fn new(kernel: K, config: Config, cancel: Arc<AtomicBool>) -> Result<Self, Error> {
        if !config.schedule.is_sane() {
            return Err(Error::TooOften(config.schedule));
        }
        let probe = Self { kernel, config, clock_cost_ns: 0, begun: AtomicU64::new(0), cancel };
        let seen = probe.kernel.clone();
        let cost = probe.spawn(move || seen.clock_cost_ns())?.join().ok_or(Error::Gone)?;
        Ok(Self { clock_cost_ns: cost, ..probe })
    }

    /// What is subtracted from each sample.
    #[must_use]
    pub const fn clock_cost_ns(&self) -> u64 {
        self.clock_cost_ns
    }

    /// Measures for `duration_ns`, or until cancelled, and waits for it.
    ///
    /// # Errors
    /// [`Error::Gone`] when the thread has ended, [`Error::Refused`] when there is none any more.
    pub fn measure(&self, duration_ns: u64) -> Result<Measurement, Error> {
        self.begin(duration_ns)?.finish()
    }

    /// Starts a block and returns at once.
    ///
    /// # Errors
    /// [`Error::Refused`] when there is no such thread to be had any more.
    pub fn begin(&self, duration_ns: u64) -> Result<Running<K>, Error> {
        let most = usize::try_from(self.config.schedule.most_wakes(duration_ns)).unwrap_or(usize::MAX);
        // Written once, so that the probe takes no page fault.
        let mut ring = vec![u32::MAX; most];
        ring.clear();
        let block = self.begun.fetch_add(1, Relaxed);
        let run = Run {
            kernel: self.kernel.clone(),
            duration_ns,
            ring,
            deadlines: Deadlines::new(self.config.schedule, seed_of_block(self.config.seed, block)),
            clock_cost_ns: self.clock_cost_ns,
            cancel: Arc::clone(&self.cancel),
        };
        Ok(Running(self.spawn(move || run.measure())?))
    }

    fn spawn<R: Send + 'static>(
        &self,
        body: impl FnOnce() -> R + Send + 'static,
    ) -> Result<K::Thread<R>, Error> {
        let Config { cpu, policy, .. } = self.config;
        self.kernel.spawn("probe", cpu, policy, body).map_err(|error| Error::Refused(Box::new(error)))
    }
}

/// The seed of block `block` of a probe with `seed`: each its own, and each run the same.
const fn seed_of_block(seed: u64, block: u64) -> u64 {
    // An odd constant (2^64 over the golden ratio), so that no two blocks share a seed.
    seed.wrapping_add(block.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// A block that is being measured.
#[must_use = "the block's samples come with `finish`"]
pub struct Running<K: Threads>(K::Thread<Measurement>);

impl<K: Threads> Running<K> {
    /// Waits for its end.
    ///
    /// # Errors
    /// [`Error::Gone`] when the thread has panicked.
    pub fn finish(self) -> Result<Measurement, Error> {
        self.0.join().ok_or(Error::Gone)
    }
}

impl<K: Threads> std::fmt::Debug for Running<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").finish_non_exhaustive()
    }
}

/// All that the thread needs for one block.
struct Run<K> {
    kernel: K,
    duration_ns: u64,
    /// Where the samples go; it is never made larger.
    ring: Vec<u32>,
    deadlines: Deadlines,
    clock_cost_ns: u64,
    cancel: Arc<AtomicBool>,
}

impl<K: Kernel> Run<K> {
    /// The measuring loop: no allocation, no lock, one system call per sample.
    fn measure(self) -> Measurement {
        let Self { kernel, duration_ns, ring: mut samples, mut deadlines, clock_cost_ns, cancel } = self;
        let mut summary = Welford::default();
        let start_ns = kernel.now();
        let end_ns = start_ns.saturating_add(duration_ns);
        let (mut deadline, mut woke) = (start_ns, start_ns);
        while !cancel.load(Relaxed) && samples.len() < samples.capacity() {
            deadline = deadlines.next(deadline, woke);
            if deadline >= end_ns {
                kernel.sleep_until(end_ns);
                break;
            }
            kernel.sleep_until(deadline);
            woke = kernel.now();
            let latency = woke.saturating_sub(deadline).saturating_sub(clock_cost_ns);
            samples.push(u32::try_from(latency).unwrap_or(u32::MAX));
            summary.add(latency);
        }
        let duration_ns = kernel.now() - start_ns;
        Measurement { start_ns, duration_ns, samples, summary, missed: deadlines.missed }
    }
}
