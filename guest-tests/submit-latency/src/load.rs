//! The load of gem_syslatency: a thread that submits empty batches to all engines, in an order shuffled anew each
//! turn, and never waits for one of them.
//!
//! Only a full ring holds it up. i915's `wait_for_space` sleeps there, with the user interrupt on until it wakes;
//! each request that completes meanwhile then raises one, and how many that are depends on how far the device
//! lags behind. That would drown what the variants differ in, so the load polls the seqno instead: it keeps the
//! CPU busy as a submission does, at no priority, with interrupts as they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use anyhow::{Context as _, Result, bail};
use execlab_abi::engine::Engine;
use execlab_driver::bus::Bus;
use execlab_driver::kernel::{Policy, Thread as _, Threads};
use execlab_driver::{Context, Driver, RequestSpec, SubmitError};
use rand::SeedableRng as _;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom as _;

/// Pages of a ring: i915 gave a context 16 KiB.
const RING_PAGES: usize = 4;
/// How long a request may take before the device counts as hung.
const PATIENCE_S: u64 = 10;
/// The same in nanoseconds.
const PATIENCE_NS: u64 = PATIENCE_S * 1_000_000_000;
/// How long a full ring is polled before others on the CPU get a chance.
const POLL_NS: u64 = 20_000;
/// Pause between two looks at whether the driver is idle.
const LOOK_NS: u64 = 50_000;

/// What to load.
#[derive(Debug, Clone)]
pub struct LoadSetting {
    /// CPU of the thread.
    pub cpu: usize,
    /// Engines, each with as many contexts.
    pub engines: Vec<Engine>,
    /// Contexts per engine.
    pub contexts: u32,
    /// Length of a batch in modelled nanoseconds.
    pub batch_ns: u32,
    /// Seed of the engine order.
    pub seed: u64,
}

/// An engine's contexts.
struct Lane<D> {
    engine: Engine,
    contexts: Vec<Context<D>>,
}

/// A running load.
pub struct Load<K: Threads> {
    stop: Arc<AtomicBool>,
    abandon: Arc<AtomicBool>,
    full: Arc<AtomicU64>,
    thread: K::Thread<Result<()>>,
}

impl<K: Threads> Load<K> {
    /// Creates contexts and batch, and starts the thread: SCHED_OTHER, pinned.
    pub fn start<B: Bus>(driver: &Arc<Driver<K, B>>, setting: &LoadSetting) -> Result<Self> {
        let lane = |engine: &Engine| -> Result<Lane<B::Dma>> {
            let create = |_| driver.context_create(*engine, RING_PAGES);
            let contexts = (0..setting.contexts).map(create).collect::<Result<_, _>>()?;
            Ok(Lane { engine: *engine, contexts })
        };
        let lanes = setting.engines.iter().map(lane).collect::<Result<Vec<_>>>()?;
        let batch = driver.batch_create(setting.batch_ns)?;
        let stop = Arc::new(AtomicBool::new(false));
        let abandon = Arc::new(AtomicBool::new(false));
        let full = Arc::new(AtomicU64::new(0));
        let mut worker = Worker {
            driver: Arc::clone(driver),
            stop: Arc::clone(&stop),
            abandon: Arc::clone(&abandon),
            full: Arc::clone(&full),
            spec: RequestSpec { batch: Some(batch.address()) },
            random: SmallRng::seed_from_u64(setting.seed),
        };
        let thread = driver.kernel().spawn("load", setting.cpu, Policy::Other, move || {
            let _kept = batch;
            worker.run(lanes)
        })?;
        Ok(Self { stop, abandon, full, thread })
    }

    /// Times so far that a ring was full.
    pub fn ring_full_waits(&self) -> u64 {
        self.full.load(Relaxed)
    }

    /// Whether the thread has given up.
    pub fn has_failed(&self) -> bool {
        self.thread.is_finished()
    }

    /// Stops submitting and waits until everything submitted is complete; with `abandon` it does not wait, as
    /// there is no device left to wait for.
    ///
    /// # Errors
    /// When a request is not complete after 10 s.
    pub fn finish(self, abandon: bool) -> Result<()> {
        self.abandon.store(abandon, Relaxed);
        self.stop.store(true, Relaxed);
        self.thread.join().context("the load's thread panicked; see its message")?
    }
}

struct Worker<K: Threads, B: Bus> {
    driver: Arc<Driver<K, B>>,
    stop: Arc<AtomicBool>,
    abandon: Arc<AtomicBool>,
    full: Arc<AtomicU64>,
    spec: RequestSpec,
    random: SmallRng,
}

impl<K: Threads, B: Bus> Worker<K, B> {
    fn run(&mut self, mut lanes: Vec<Lane<B::Dma>>) -> Result<()> {
        let mut turn = 0;
        while !self.stop.load(Relaxed) {
            lanes.shuffle(&mut self.random);
            for lane in &mut lanes {
                let at = turn % lane.contexts.len();
                self.submit(lane.engine, &mut lane.contexts[at])?;
            }
            turn += 1;
        }
        self.drain(&mut lanes)
    }

    fn submit(&self, engine: Engine, context: &mut Context<B::Dma>) -> Result<()> {
        loop {
            match self.driver.submit(context, self.spec) {
                Ok(_) => return Ok(()),
                Err(SubmitError::RingFull) => {
                    self.full.fetch_add(1, Relaxed);
                    if !self.wait_for_room(engine, context)? {
                        return Ok(());
                    }
                }
                Err(error @ SubmitError::Busy) => bail!("{}: {error}", engine.name()),
            }
        }
    }

    /// Polls until a request has retired: true. False when the load was told to stop meanwhile.
    fn wait_for_room(&self, engine: Engine, context: &mut Context<B::Dma>) -> Result<bool> {
        let kernel = self.driver.kernel();
        let start = kernel.now();
        while context.retire() == 0 {
            let waited = kernel.now() - start;
            if self.stop.load(Relaxed) {
                return Ok(false);
            }
            if waited >= PATIENCE_NS {
                bail!(
                    "the GPU hangs: {} has retired nothing of a full ring for {PATIENCE_S} s",
                    engine.name()
                );
            }
            if waited >= POLL_NS {
                // For ksoftirqd, which has the same policy.
                kernel.yield_now();
            }
            kernel.cpu_relax();
        }
        Ok(true)
    }

    /// Waits until everything is complete, by polling: interrupts stay as they were during the block.
    fn drain(&self, lanes: &mut [Lane<B::Dma>]) -> Result<()> {
        let kernel = self.driver.kernel();
        let patience = kernel.now() + PATIENCE_NS;
        let pause = || {
            kernel.sleep_until(kernel.now() + LOOK_NS);
            kernel.now() < patience && !self.abandon.load(Relaxed)
        };
        for lane in lanes {
            for context in &mut lane.contexts {
                while {
                    context.retire();
                    context.in_flight() > 0
                } {
                    if !pause() {
                        let (engine, left) = (lane.engine.name(), context.in_flight());
                        bail!(
                            "the GPU hangs: {left} requests on {engine} are not complete after {PATIENCE_S} s"
                        );
                    }
                }
            }
        }
        while !self.driver.is_idle() {
            if !pause() {
                bail!(
                    "all requests are complete, but the driver never heard of it: an interrupt or event is lost"
                );
            }
        }
        Ok(())
    }
}
