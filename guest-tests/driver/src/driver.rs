//! The driver as a whole.

use alloc::collections::VecDeque;
use alloc::string::ToString as _;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use atomic_refcell::AtomicRefCell;
use execlab_abi::PAGE_SIZE;
use execlab_abi::engine::{ENGINE_COUNT, Engine};
use execlab_abi::wire::{IrqRecord, PostedWrite};
use execlab_abi::{irq, lab};

use crate::bus::Bus;
use crate::context::{Context, ContextHw, IMAGE_PAGES, passed};
use crate::counters::{Counters, Counting};
use crate::engine::{EngineState, FIRST_CSB_HEAD};
use crate::error::{DriverError, SubmitError, WaitError};
use crate::ggtt::Ggtt;
use crate::kernel::{Kernel, SpinLock, WaitQueue};
use crate::mmio::Mmio;
use crate::ports::Ports;
use crate::queue::Queue;
use crate::request::{self, Batch, RequestSpec};
use crate::variant::Variant;

/// Requests for which a queue has room without allocating.
const QUEUE_CAPACITY: usize = 1024;

/// What a driver is made with.
#[derive(Debug, Clone)]
pub struct DriverConfig {
    /// Where each step runs.
    pub variant: Variant,
    /// Engines to drive, each once.
    pub engines: Vec<Engine>,
}

/// An execlists driver for one device.
pub struct Driver<K: Kernel, B: Bus> {
    kernel: Arc<K>,
    bus: Arc<B>,
    mmio: Arc<Mmio<K, B>>,
    engines: [Option<Arc<EngineState<K, B>>>; ENGINE_COUNT],
    ggtt: K::SpinLock<(Ggtt, u32)>,
    counting: Arc<Counting>,
}

impl<K: Kernel, B: Bus> Driver<K, B> {
    /// Sets the device up: status pages, execlists, interrupts.
    ///
    /// # Errors
    /// [`DriverError`] when memory is short or the engines make no sense.
    pub fn new(kernel: Arc<K>, bus: Arc<B>, config: &DriverConfig) -> Result<Arc<Self>, DriverError> {
        let mmio = Arc::new(Mmio::new(Arc::clone(&kernel), Arc::clone(&bus)));
        let counting = Arc::new(Counting::default());
        let mut ggtt = Ggtt::new();
        let mut engines: [Option<Arc<EngineState<K, B>>>; ENGINE_COUNT] = [const { None }; ENGINE_COUNT];
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
                    hwsp,
                    timeline: kernel.new_lock("timeline", Queue::new(QUEUE_CAPACITY)),
                    ports: AtomicRefCell::new(Ports::new(FIRST_CSB_HEAD)),
                    tasklet: kernel.new_tasklet(alloc::boxed::Box::new(move |place| {
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
        Ok(Arc::new(Self { kernel, bus, mmio, engines, ggtt, counting }))
    }

    /// Creates a context on `engine` with a ring of `ring_pages` pages (1 to 512).
    ///
    /// # Errors
    /// [`DriverError`] when memory or GGTT is short, or the engine is not driven.
    pub fn context_create(&self, engine: Engine, ring_pages: usize) -> Result<Context<B::Dma>, DriverError> {
        self.engine(engine)?;
        let image = alloc(&*self.bus, IMAGE_PAGES, "a context image")?;
        let ring = alloc(&*self.bus, ring_pages, "a ring")?;
        let (image_ggtt, ring_ggtt, id) = self.ggtt.with_irqsave(|(ggtt, next_id)| {
            let id = *next_id;
            *next_id += 1;
            Ok::<_, DriverError>((ggtt.map(&self.mmio, &image)?, ggtt.map(&self.mmio, &ring)?, id))
        })?;
        let ring_bytes = (ring_pages * PAGE_SIZE as usize) as u32;
        let hw = ContextHw::new(image, image_ggtt, id, engine, ring_ggtt, ring_bytes);
        Ok(Context {
            hw: Arc::new(hw),
            engine: engine.index(),
            ring,
            ring_bytes,
            emit: 0,
            retired: 0,
            pending: VecDeque::with_capacity(ring_bytes as usize / 32),
            last_seqno: 0,
            priority: 0,
        })
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
        let Some(engine) = &self.engines[context.engine] else { return Err(SubmitError::RingFull) };
        let request = request::emit(context, engine.engine, spec)?;
        engine.submit_request(request);
        Ok(context.last_seqno)
    }

    /// Waits until request `seqno` of the context is complete, or until `deadline_ns`, with the user interrupt on.
    ///
    /// # Errors
    /// [`WaitError::TimedOut`].
    pub fn wait(&self, context: &Context<B::Dma>, seqno: u32, deadline_ns: u64) -> Result<(), WaitError> {
        let mut complete = || passed(context.hw.seqno(), seqno);
        if complete() {
            return Ok(());
        }
        let Some(engine) = &self.engines[context.engine] else {
            return Err(WaitError::TimedOut { seqno, reached: context.hw.seqno() });
        };
        engine.user_irq(true);
        let done = engine.waiters.wait_until(deadline_ns, &mut complete);
        engine.user_irq(false);
        if done { Ok(()) } else { Err(WaitError::TimedOut { seqno, reached: context.hw.seqno() }) }
    }

    /// The interrupt handler's half that runs with interrupts off. Call it in interrupt context.
    pub fn handle_irq(&self, record: &IrqRecord) {
        let banks = record.iir.iter().filter(|bits| **bits != 0).count();
        self.mmio.spend_irq_ack(banks as u32);
        self.counting.interrupts.add(1);
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

    /// Whether no engine has a request in a port or in its queue.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.engines
            .iter()
            .flatten()
            .all(|engine| engine.irq_off(|queue| queue.is_empty() && !engine.ports.borrow().active()))
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

    /// Looks at the device's error state, and at what the driver could make no sense of.
    ///
    /// # Errors
    /// [`DriverError::Violation`] when the device has recorded one, [`DriverError::StrayEvents`].
    pub fn check_device(&self) -> Result<(), DriverError> {
        let count = self.counting.stray_events.get();
        if count > 0 {
            return Err(DriverError::StrayEvents { count });
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

    fn engine(&self, engine: Engine) -> Result<&Arc<EngineState<K, B>>, DriverError> {
        self.engines[engine.index()].as_ref().ok_or(DriverError::NoSuchEngine(engine.name()))
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
