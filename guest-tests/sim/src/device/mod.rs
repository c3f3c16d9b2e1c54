//! The device of the simulated machine: the model of the device process itself, on memory of its own, with time from
//! the simulation. A register access is a call, an interrupt an edge to the simulated CPU.

mod env;
mod memory;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use atomic_refcell::AtomicRefCell;
use execlab_abi::wire::{IrqRecord, PostedWrite};
use execlab_driver::bus::{Bus, BusCosts};
use execlab_model::{Config, Gpu, Stats, TraceEvent};
use execlab_profile::{BusNs, Profile, Sampler};

use crate::{Device, SimKernel};
use env::SimEnv;
use memory::Memory;
pub use memory::{OutOfMemory, Pages};

/// What a device is made with.
#[derive(Debug, Clone)]
pub struct DeviceConfig {
    /// Delays and bus costs.
    pub profile: Profile,
    /// Seed of every random delay.
    pub seed: u64,
    /// Factor on every modelled length; finite and above 0.
    pub dilation: f64,
    /// Pages of memory that driver and device share.
    pub pages: usize,
}

impl DeviceConfig {
    /// 16 MiB of memory, no dilation.
    #[must_use]
    pub const fn new(profile: Profile, seed: u64) -> Self {
        Self { profile, seed, dilation: 1.0, pages: 4096 }
    }
}

/// The device: the driver's [`Bus`], and the engine's [`Device`].
pub struct SimDevice {
    kernel: SimKernel,
    memory: Arc<Memory>,
    costs: BusCosts,
    /// The model's next deadline, or the end of time: the simulation asks before time passes.
    deadline: AtomicU64,
    inside: AtomicRefCell<Inside>,
}

struct Inside {
    gpu: Gpu,
    /// Interrupt records since the last reset.
    sequence: u64,
    /// The model's events, for who wants to see them.
    trace: Option<Vec<TraceEvent>>,
}

impl SimDevice {
    /// A device after power-on, whose interrupt goes to `kernel`. Attach it to the simulation.
    #[must_use]
    pub fn new(kernel: SimKernel, config: &DeviceConfig) -> Arc<Self> {
        let sampler = Sampler::new(&config.profile, config.seed, config.dilation);
        let costs = bus_costs(sampler.bus());
        let gpu = Gpu::new(Config { sampler, ..Config::default() });
        let inside = AtomicRefCell::new(Inside { gpu, sequence: 0, trace: None });
        Arc::new(Self {
            kernel,
            memory: Memory::new(config.pages),
            costs,
            deadline: AtomicU64::new(u64::MAX),
            inside,
        })
    }

    /// A full reset of the GPU, as after power-on. Counters and random streams go on.
    pub fn reset(&self) {
        self.with_gpu(|gpu, now, env| gpu.reset(now, env));
        self.inside.borrow_mut().sequence = 0;
    }

    /// What the model counted.
    #[must_use]
    pub fn stats(&self) -> Stats {
        *self.inside.borrow().gpu.stats()
    }

    /// Keeps the model's events from now on.
    pub fn keep_trace(&self) {
        self.inside.borrow_mut().trace.get_or_insert_default();
    }

    /// The model's events that were kept since the last time.
    #[must_use]
    pub fn take_trace(&self) -> Vec<TraceEvent> {
        self.inside.borrow_mut().trace.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Lets `f` do something to the model at the simulation's time, and passes its interrupt on.
    fn with_gpu<R>(&self, f: impl FnOnce(&mut Gpu, u64, &mut SimEnv<'_>) -> R) -> R {
        let now = self.kernel.time();
        let mut inside = self.inside.borrow_mut();
        let Inside { gpu, trace, .. } = &mut *inside;
        let mut env = SimEnv { memory: &self.memory, interrupt: false, trace: trace.as_mut() };
        let result = f(gpu, now, &mut env);
        self.deadline.store(gpu.next_deadline().unwrap_or(u64::MAX), Relaxed);
        if env.interrupt {
            self.kernel.raise_irq();
        }
        result
    }
}

impl Device for SimDevice {
    fn next_deadline(&self) -> Option<u64> {
        Some(self.deadline.load(Relaxed)).filter(|deadline| *deadline != u64::MAX)
    }

    fn advance(&self, now: u64) {
        self.with_gpu(|gpu, _, env| gpu.advance(now, env));
    }
}

impl Bus for SimDevice {
    type Dma = Pages;
    type Error = OutOfMemory;

    fn read32(&self, offset: u32) -> u32 {
        self.with_gpu(|gpu, now, env| {
            gpu.advance(now, env);
            gpu.mmio_read(offset, now)
        })
    }

    fn write(&self, writes: &[PostedWrite]) {
        self.with_gpu(|gpu, now, env| {
            for write in writes {
                gpu.mmio_write(write.offset, write.value, now, env);
            }
        });
    }

    fn take_irq(&self) -> Option<IrqRecord> {
        let (iir, time_ns) = self.with_gpu(|gpu, now, env| Some((gpu.take_interrupts(now, env)?, now)))?;
        let mut inside = self.inside.borrow_mut();
        inside.sequence += 1;
        Some(IrqRecord { iir, sequence: inside.sequence, time_ns })
    }

    fn costs(&self) -> BusCosts {
        self.costs
    }

    fn alloc(&self, pages: usize) -> Result<Pages, OutOfMemory> {
        self.memory.alloc(pages)
    }
}

/// The profile's costs as the driver takes them; a cost beyond 4.29 s counts as that.
fn bus_costs(bus: BusNs) -> BusCosts {
    let ns = |ns: u64| u32::try_from(ns).unwrap_or(u32::MAX);
    BusCosts { read_ns: ns(bus.read), write_ns: ns(bus.write), forcewake_ns: ns(bus.forcewake) }
}

impl std::fmt::Debug for SimDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimDevice").field("costs", &self.costs).finish_non_exhaustive()
    }
}
