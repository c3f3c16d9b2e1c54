//! The probe thread.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, mpsc};

use execlab_posix::{Policy, RtHandle, RtThread, SchedError, clock_cost_ns, now_ns, sleep_until_ns};

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
    Sched(#[from] SchedError),
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

/// An order to the thread: measure until then, into this.
struct Order {
    duration_ns: u64,
    ring: Vec<u32>,
}

/// A real-time thread that measures when told to. Between blocks it sleeps. Dropping it ends it.
#[derive(Debug)]
pub struct Probe {
    config: Config,
    clock_cost_ns: u64,
    orders: Option<mpsc::Sender<Order>>,
    results: mpsc::Receiver<Measurement>,
    cancel: Arc<AtomicBool>,
    thread: Option<RtHandle<()>>,
}

impl Probe {
    /// Starts the thread, pinned and at its priority, and measures what a reading of the clock costs.
    ///
    /// # Errors
    /// [`Error::Sched`] when CPU or priority is refused; there is no fallback.
    pub fn start(config: Config, cancel: Arc<AtomicBool>) -> Result<Self, Error> {
        if !config.schedule.is_sane() {
            return Err(Error::TooOften(config.schedule));
        }
        let (orders, ordered) = mpsc::channel::<Order>();
        let (done, results) = mpsc::channel();
        let (costed, cost) = mpsc::channel();
        let seen = Arc::clone(&cancel);
        let thread = RtThread::new("probe").cpu(config.cpu).policy(config.policy).spawn(move || {
            let clock_cost_ns = clock_cost_ns();
            let _ = costed.send(clock_cost_ns);
            let mut deadlines = Deadlines::new(config.schedule, config.seed);
            while let Ok(order) = ordered.recv() {
                if done.send(measure(order, &mut deadlines, clock_cost_ns, &seen)).is_err() {
                    break;
                }
            }
        })?;
        let clock_cost_ns = cost.recv().map_err(|_| Error::Gone)?;
        Ok(Self { config, clock_cost_ns, orders: Some(orders), results, cancel, thread: Some(thread) })
    }

    /// What is subtracted from each sample.
    #[must_use]
    pub const fn clock_cost_ns(&self) -> u64 {
        self.clock_cost_ns
    }

    /// Measures for `duration_ns`, or until cancelled, and waits for it.
    ///
    /// # Errors
    /// [`Error::Gone`] when the thread has ended.
    pub fn measure(&self, duration_ns: u64) -> Result<Measurement, Error> {
        self.begin(duration_ns)?.finish()
    }

    /// Starts a block and returns at once.
    ///
    /// # Errors
    /// [`Error::Gone`] when the thread has ended.
    pub fn begin(&self, duration_ns: u64) -> Result<Running<'_>, Error> {
        let most = usize::try_from(self.config.schedule.most_wakes(duration_ns)).unwrap_or(usize::MAX);
        // Written once, so that the probe takes no page fault.
        let mut ring = vec![u32::MAX; most];
        ring.clear();
        let orders = self.orders.as_ref().ok_or(Error::Gone)?;
        orders.send(Order { duration_ns, ring }).map_err(|_| Error::Gone)?;
        Ok(Running(self))
    }
}

/// A block that is being measured.
#[derive(Debug)]
#[must_use = "the block's samples come with `finish`"]
pub struct Running<'a>(&'a Probe);

impl Running<'_> {
    /// Waits for its end.
    ///
    /// # Errors
    /// [`Error::Gone`] when the thread has ended.
    pub fn finish(self) -> Result<Measurement, Error> {
        self.0.results.recv().map_err(|_| Error::Gone)
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.orders = None;
        self.cancel.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The measuring loop: no allocation, no lock, one system call per sample.
fn measure(order: Order, deadlines: &mut Deadlines, clock_cost_ns: u64, cancel: &AtomicBool) -> Measurement {
    let Order { duration_ns, ring: mut samples } = order;
    let mut summary = Welford::default();
    let start_ns = now_ns();
    let end_ns = start_ns.saturating_add(duration_ns);
    deadlines.missed = 0;
    let (mut deadline, mut woke) = (start_ns, start_ns);
    while !cancel.load(Relaxed) && samples.len() < samples.capacity() {
        deadline = deadlines.next(deadline, woke);
        if deadline >= end_ns {
            sleep_until_ns(end_ns);
            break;
        }
        sleep_until_ns(deadline);
        woke = now_ns();
        let latency = woke.saturating_sub(deadline).saturating_sub(clock_cost_ns);
        samples.push(u32::try_from(latency).unwrap_or(u32::MAX));
        summary.add(latency);
    }
    let duration_ns = now_ns() - start_ns;
    Measurement { start_ns, duration_ns, samples, summary, missed: deadlines.missed }
}
