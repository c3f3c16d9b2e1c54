//! The driver as a whole.

use alloc::boxed::Box;
use alloc::string::ToString as _;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::AtomicBool;

use atomic_refcell::AtomicRefCell;
use execlab_abi::engine::{ENGINE_COUNT, Engine};
use execlab_abi::wire::{IrqRecord, PostedWrite};
use execlab_abi::{csb, irq, lab};

use crate::bus::{Bus, Dma as _};
use crate::context::{Context, ContextHw, IMAGE_PAGES, passed};
use crate::counters::{Counters, Counting};
use crate::engine::{EngineState, FIRST_CSB_HEAD};
use crate::error::{DriverError, SubmitError, WaitError};
use crate::ggtt::Ggtt;
use crate::kernel::{Kernel, SpinLock, Step, WaitQueue};
use crate::mmio::Mmio;
use crate::planted::{Bug, Planted};
use crate::ports::Ports;
use crate::queue::Queue;
use crate::request::{self, Batch, MIN_BYTES, RequestSpec};
use crate::variant::Variant;

/// Longest ring that RING_CTL can describe, in pages: 2 MiB.
const RING_PAGES_MAX: usize = 512;

/// What a driver is made with.
#[derive(Debug, Clone)]
pub struct DriverConfig {
    /// Where each step runs.
    pub variant: Variant,
    /// Engines to drive, each once.
    pub engines: Vec<Engine>,
}

/// The engines by index; those that are not driven are none.
type Engines<K, B> = [Option<Arc<EngineState<K, B>>>; ENGINE_COUNT];

/// An execlists driver for one device.
pub struct Driver<K: Kernel, B: Bus> {
    kernel: Arc<K>,
    bus: Arc<B>,
    mmio: Arc<Mmio<K, B>>,
    variant: Variant,
    engines: Engines<K, B>,
    ggtt: K::SpinLock<(Ggtt, u32)>,
    counting: Arc<Counting>,
    planted: Planted,
}

impl<K: Kernel, B: Bus> Driver<K, B> {
    /// Sets the device up: status pages, execlists, interrupts.
    ///
    /// # Errors
    /// [`DriverError`] when memory is short or the engines make no sense.
    pub fn new(kernel: Arc<K>, bus: Arc<B>, config: &DriverConfig) -> Result<Arc<Self>, DriverError> {
        Self::build(kernel, bus, config, Planted::default())
    }

    /// As [`new`](Self::new), a driver with a known mistake.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    #[cfg(feature = "planted")]
    pub fn with_bug(
        kernel: Arc<K>,
        bus: Arc<B>,
        config: &DriverConfig,
        bug: crate::Bug,
    ) -> Result<Arc<Self>, DriverError> {
        Self::build(kernel, bus, config, Planted::with(bug))
    }

    fn build(
        kernel: Arc<K>,
        bus: Arc<B>,
        config: &DriverConfig,
        planted: Planted,
    ) -> Result<Arc<Self>, DriverError> {
        let mmio = Arc::new(Mmio::new(Arc::clone(&kernel), Arc::clone(&bus)));
        let counting = Arc::new(Counting::default());
        let mut ggtt = Ggtt::new();
        let mut engines: Engines<K, B> = [const { None }; ENGINE_COUNT];
        for engine in &config.engines {
            if engines[engine.index()].is_some() {
                return Err(DriverError::Engines);
            }
            let hwsp = alloc(&*bus, 1, "a status page")?;
            let hwsp_ggtt = ggtt.map(&mmio, &hwsp)?;
            let state = Arc::new_cyclic(|weak: &Weak<EngineState<K, B>>| {
                let weak = Weak::clone(weak);
                EngineState {
                    engine: *engine,
                    variant: config.variant,
                    kernel: Arc::clone(&kernel),
                    mmio: Arc::clone(&mmio),
                    counting: Arc::clone(&counting),
                    planted,
                    hwsp,
                    timeline: kernel.new_lock("timeline", Queue::new()),
                    ports: AtomicRefCell::new(Ports::new(FIRST_CSB_HEAD)),
                    ports_active: AtomicBool::new(false),
                    tasklet: kernel.new_tasklet(Box::new(move |place| {
                        if let Some(engine) = weak.upgrade() {
                            engine.tasklet(place);
                        }
                    })),
                    waiters: kernel.new_wait_queue(),
                    irq_users: kernel.new_lock("irq_users", 0),
                }
            });
            state.enable(hwsp_ggtt);
            engines[engine.index()] = Some(state);
        }
        if config.engines.is_empty() {
            return Err(DriverError::Engines);
        }
        enable_interrupts(&mmio);
        let ggtt = kernel.new_lock("ggtt", (ggtt, 1));
        Ok(Arc::new(Self { kernel, bus, mmio, variant: config.variant, engines, ggtt, counting, planted }))
    }

    /// Creates a context on `engine` with a ring of `ring_pages` pages (1 to 512), and makes room in the engine's
    /// queue for all that the ring can hold: submitting allocates nothing.
    ///
    /// # Errors
    /// [`DriverError`] when memory or GGTT is short, the engine is not driven, or there is no such ring.
    pub fn context_create(&self, engine: Engine, ring_pages: usize) -> Result<Context<B::Dma>, DriverError> {
        let state = self.engines[engine.index()].as_ref().ok_or(DriverError::NoSuchEngine(engine.name()))?;
        if !(1..=RING_PAGES_MAX).contains(&ring_pages) {
            return Err(DriverError::RingSize { pages: ring_pages });
        }
        let image = alloc(&*self.bus, IMAGE_PAGES, "a context image")?;
        let ring = alloc(&*self.bus, ring_pages, "a ring")?;
        let (image_ggtt, ring_ggtt, id) = self.ggtt.with_irqsave(|(ggtt, next_id)| {
            let id = *next_id;
            *next_id += 1;
            Ok::<_, DriverError>((ggtt.map(&self.mmio, &image)?, ggtt.map(&self.mmio, &ring)?, id))
        })?;
        let hw = ContextHw::new(image, image_ggtt, id, engine, ring, ring_ggtt);
        state.reserve(hw.ring_bytes as usize / MIN_BYTES);
        Ok(Context::new(hw, engine, self.planted))
    }

    /// Creates a batch that keeps its engine busy for `busy_ns` modelled nanoseconds; 0 is an empty batch.
    ///
    /// # Errors
    /// [`DriverError`] when memory or GGTT is short.
    pub fn batch_create(&self, busy_ns: u32) -> Result<Batch<B::Dma>, DriverError> {
        let memory = alloc(&*self.bus, 1, "a batch")?;
        let address = self.ggtt.with_irqsave(|(ggtt, _)| ggtt.map(&self.mmio, &memory))?;
        let batch = Batch { memory, address };
        batch.fill(busy_ns);
        Ok(batch)
    }

    /// Submits a request and returns its seqno; it does not wait.
    ///
    /// # Errors
    /// [`SubmitError::RingFull`] when the ring has no room even after retiring: the caller decides how to wait.
    pub fn submit(&self, context: &mut Context<B::Dma>, spec: RequestSpec) -> Result<u32, SubmitError> {
        let engine = self.engine_of(context).ok_or(SubmitError::RingFull)?;
        let request = request::emit(context, spec).ok_or(SubmitError::RingFull)?;
        self.kernel.step(Step::Emit);
        engine.submit_request(request);
        Ok(context.last_seqno())
    }

    /// Submits a request and returns its seqno. While the ring is full it sleeps as i915's `wait_for_space` does:
    /// until the first request has completed that leaves enough room, or until `deadline_ns`.
    ///
    /// # Errors
    /// [`WaitError::TimedOut`] with the request that it waited for; nothing was submitted.
    pub fn submit_waiting(
        &self,
        context: &mut Context<B::Dma>,
        spec: RequestSpec,
        deadline_ns: u64,
    ) -> Result<u32, WaitError> {
        loop {
            if let Ok(seqno) = self.submit(context, spec) {
                return Ok(seqno);
            }
            let seqno = context.seqno_before_room(request::bytes(context.engine(), spec));
            self.wait(context, seqno.unwrap_or(context.last_seqno()), deadline_ns)?;
        }
    }

    /// Waits until request `seqno` of the context is complete, or until `deadline_ns`, with the user interrupt on.
    ///
    /// # Errors
    /// [`WaitError::TimedOut`].
    pub fn wait(&self, context: &Context<B::Dma>, seqno: u32, deadline_ns: u64) -> Result<(), WaitError> {
        let without_wrap = self.planted.has(Bug::SeqnoWithoutWrap);
        let complete = || match context.hw.seqno() {
            reached if without_wrap => reached >= seqno,
            reached => passed(reached, seqno),
        };
        if complete() {
            return Ok(());
        }
        let timed_out = || WaitError::TimedOut { seqno, reached: context.hw.seqno() };
        let engine = self.engine_of(context).ok_or_else(timed_out)?;
        engine.user_irq(true);
        let before = self.counting.user_interrupts.get();
        let told = || !self.planted.has(Bug::LostWakeUp) || self.counting.user_interrupts.get() != before;
        let done = engine.waiters.wait_until(deadline_ns, &mut || told() && complete());
        engine.user_irq(false);
        if done { Ok(()) } else { Err(timed_out()) }
    }

    /// The interrupt handler's half that runs with interrupts off. Call it in interrupt context.
    pub fn handle_irq(&self, record: &IrqRecord) {
        let banks = record.iir.iter().filter(|bits| **bits != 0).count();
        self.mmio.spend_irq_ack(banks as u32);
        self.counting.interrupts.add(1);
        self.kernel.step(Step::Irq);
        for engine in self.engines.iter().flatten() {
            let bits = engine.engine.irq_bits(&record.iir);
            if bits & irq::USER != 0 {
                self.counting.user_interrupts.add(1);
                engine.waiters.wake_all();
            }
            if bits & irq::CONTEXT_SWITCH != 0 {
                self.counting.context_switch_interrupts.add(1);
                engine.cs_irq();
            }
        }
    }

    /// Index of the CSB entry that `engine` wrote last (0 to 5), out of its status page: one load, from any context.
    /// `None` for an engine that is not driven. What times the way to a CSB entry watches it; the driver itself reads
    /// it where it processes the CSB.
    #[must_use]
    pub fn csb_write_index(&self, engine: Engine) -> Option<u32> {
        let state = self.engines[engine.index()].as_ref()?;
        Some(state.hwsp.load32_acquire(csb::HWSP_WRITE_INDEX as usize))
    }

    /// Whether no engine has a request in a port or in its queue.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.engines.iter().flatten().all(|engine| engine.is_idle())
    }

    /// What was counted so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counting.snapshot()
    }

    /// The kernel under the driver.
    #[must_use]
    pub const fn kernel(&self) -> &Arc<K> {
        &self.kernel
    }

    /// Where each step runs.
    #[must_use]
    pub const fn variant(&self) -> Variant {
        self.variant
    }

    /// The engines that are driven, in index order.
    pub fn engines(&self) -> impl Iterator<Item = Engine> {
        self.engines.iter().flatten().map(|engine| engine.engine)
    }

    /// Looks at the device's error state, and at what the driver could make no sense of.
    ///
    /// # Errors
    /// [`DriverError::Violation`] when the device has recorded one, [`DriverError::StrayEvents`],
    /// [`DriverError::Disorder`].
    pub fn check_device(&self) -> Result<(), DriverError> {
        let count = self.counting.stray_events.get();
        if count > 0 {
            return Err(DriverError::StrayEvents { count });
        }
        let unexpected = self.counting.unexpected_last_events.get();
        let early = self.counting.events_before_seqno.get();
        if unexpected + early > 0 {
            return Err(DriverError::Disorder { unexpected, early });
        }
        let read = |offset| self.bus.read32(offset);
        let count = read(lab::ERROR_COUNT);
        if count == 0 {
            return Ok(());
        }
        Err(DriverError::Violation {
            violation: lab::Violation::from_code(read(lab::ERROR_CODE)),
            count,
            engine: read(lab::ERROR_ENGINE),
            addr: read(lab::ERROR_ADDR),
            words: [0, 4, 8, 12].map(|at| read(lab::ERROR_WORDS + at)),
        })
    }

    fn engine_of(&self, context: &Context<B::Dma>) -> Option<&EngineState<K, B>> {
        self.engines[context.engine().index()].as_deref()
    }
}

impl<K: Kernel, B: Bus> Drop for Driver<K, B> {
    /// Silences the device: no interrupt comes for a driver that is gone.
    fn drop(&mut self) {
        self.mmio.write(&[PostedWrite { offset: irq::MASTER, value: 0 }]);
    }
}

fn alloc<B: Bus>(bus: &B, pages: usize, what: &'static str) -> Result<B::Dma, DriverError> {
    bus.alloc(pages).map_err(|error| DriverError::Memory { what, reason: error.to_string() })
}

/// `gen8_gt_irq_postinstall`: everything unmasked in the GT banks (each engine masks for itself), master on.
fn enable_interrupts<K: Kernel, B: Bus>(mmio: &Mmio<K, B>) {
    let mut writes = [PostedWrite::default(); 2 * irq::BANKS + 1];
    for bank in 0..irq::BANKS {
        writes[2 * bank] = PostedWrite { offset: irq::imr(bank), value: 0 };
        writes[2 * bank + 1] = PostedWrite { offset: irq::ier(bank), value: u32::MAX };
    }
    writes[2 * irq::BANKS] = PostedWrite { offset: irq::MASTER, value: irq::MASTER_ENABLE };
    mmio.write(&writes);
}
