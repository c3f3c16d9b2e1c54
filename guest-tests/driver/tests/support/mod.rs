//! A machine for tests: one thread, a clock that only moves when told, the device model behind the bus.
#![allow(dead_code, reason = "each test binary uses its own part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a broken bench fails its test")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use execlab_abi::irq;
use execlab_abi::wire::{IrqRecord, PostedWrite};
use execlab_driver::bus::{self, BusCosts};
use execlab_driver::kernel::{Kernel, Place, SpinLock, TaskletBody, TaskletId, WaitQueue};
use execlab_driver::{Driver, DriverConfig, Variant};
use execlab_model::{BadAddress, Config, Env, Gpu, TraceEvent};
use execlab_profile::{Profile, Sampler};

type Shared<T> = Arc<Mutex<T>>;

fn with<T, R>(shared: &Mutex<T>, f: impl FnOnce(&mut T) -> R) -> R {
    f(&mut shared.lock().unwrap_or_else(PoisonError::into_inner))
}

/// State of the one CPU.
#[derive(Default)]
struct Cpu {
    now: u64,
    irq_off: u32,
    bh_off: u32,
    in_irq: bool,
    pending: VecDeque<TaskletId>,
    running: bool,
}

/// What happens while the CPU waits; returns false when nothing more will.
type Pump = Box<dyn Fn() -> bool + Send + Sync>;

pub struct TestKernel {
    cpu: Shared<Cpu>,
    tasklets: Mutex<Vec<Arc<TaskletBody>>>,
    pump: Arc<Mutex<Option<Arc<Pump>>>>,
    relax: Mutex<Option<Arc<dyn Fn() + Send + Sync>>>,
}

impl TestKernel {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            cpu: Default::default(),
            tasklets: Mutex::default(),
            pump: Arc::default(),
            relax: Mutex::default(),
        })
    }

    fn run_softirqs(&self, place: Place) {
        if with(&self.cpu, |cpu| std::mem::replace(&mut cpu.running, true)) {
            return;
        }
        while let Some(id) = with(&self.cpu, |cpu| cpu.pending.pop_front()) {
            let body = with(&self.tasklets, |all| Arc::clone(&all[id.0 as usize]));
            body(place);
        }
        with(&self.cpu, |cpu| cpu.running = false);
    }

    /// An interrupt: `handler` with interrupts off, then softirqs.
    fn interrupt(&self, handler: impl FnOnce()) {
        with(&self.cpu, |cpu| {
            assert_eq!(cpu.irq_off, 0, "interrupt in an irq-off section");
            cpu.in_irq = true;
        });
        handler();
        let soft = with(&self.cpu, |cpu| {
            cpu.in_irq = false;
            cpu.bh_off == 0
        });
        if soft {
            self.run_softirqs(Place::IrqExit);
        }
    }

    pub fn advance(&self, ns: u64) {
        with(&self.cpu, |cpu| cpu.now += ns);
    }

    pub fn cpu_now(&self) -> u64 {
        with(&self.cpu, |cpu| cpu.now)
    }

    pub fn irqs_are_off(&self) -> bool {
        with(&self.cpu, |cpu| cpu.irq_off > 0 || cpu.in_irq)
    }
}

impl Kernel for TestKernel {
    type SpinLock<T: Send + 'static> = TestLock<T>;
    type WaitQueue = TestWaitQueue;

    fn new_lock<T: Send + 'static>(&self, class: &'static str, value: T) -> TestLock<T> {
        TestLock { class, cpu: Arc::clone(&self.cpu), value: Mutex::new(value) }
    }
    fn new_wait_queue(&self) -> TestWaitQueue {
        TestWaitQueue { cpu: Arc::clone(&self.cpu), pump: Arc::clone(&self.pump) }
    }
    fn now(&self) -> u64 {
        with(&self.cpu, |cpu| cpu.now)
    }
    fn irq_off<R>(&self, section: impl FnOnce() -> R) -> R {
        with(&self.cpu, |cpu| cpu.irq_off += 1);
        let result = section();
        with(&self.cpu, |cpu| cpu.irq_off -= 1);
        result
    }
    fn bh_off<R>(&self, section: impl FnOnce() -> R) -> R {
        with(&self.cpu, |cpu| cpu.bh_off += 1);
        let result = section();
        let run = with(&self.cpu, |cpu| {
            cpu.bh_off -= 1;
            cpu.bh_off == 0 && cpu.irq_off == 0 && !cpu.in_irq
        });
        if run {
            self.run_softirqs(Place::BhEnable);
        }
        result
    }
    fn new_tasklet(&self, body: TaskletBody) -> TaskletId {
        with(&self.tasklets, |all| {
            all.push(Arc::new(body));
            TaskletId(all.len() as u32 - 1)
        })
    }
    fn tasklet_hi_schedule(&self, tasklet: TaskletId) {
        with(&self.cpu, |cpu| {
            if !cpu.pending.contains(&tasklet) {
                cpu.pending.push_back(tasklet);
            }
        });
    }
    fn spend(&self, ns: u64) {
        self.advance(ns);
    }
    fn cpu_relax(&self) {
        // Time passes for the device too; its interrupts wait, as this may be an irq-off section.
        self.advance(100);
        if let Some(relax) = with(&self.relax, |relax| relax.clone()) {
            relax();
        }
    }
    fn sleep_until(&self, deadline_ns: u64) {
        with(&self.cpu, |cpu| cpu.now = cpu.now.max(deadline_ns));
    }
}

pub struct TestLock<T> {
    class: &'static str,
    cpu: Shared<Cpu>,
    value: Mutex<T>,
}

impl<T: Send> SpinLock<T> for TestLock<T> {
    fn with_irqsave<R>(&self, section: impl FnOnce(&mut T) -> R) -> R {
        with(&self.cpu, |cpu| cpu.irq_off += 1);
        let mut value = self.value.try_lock().unwrap_or_else(|_| panic!("deadlock on {}", self.class));
        let result = section(&mut value);
        drop(value);
        with(&self.cpu, |cpu| cpu.irq_off -= 1);
        result
    }
}

pub struct TestWaitQueue {
    cpu: Shared<Cpu>,
    pump: Arc<Mutex<Option<Arc<Pump>>>>,
}

impl WaitQueue for TestWaitQueue {
    fn wait_until(&self, deadline_ns: u64, condition: &mut dyn FnMut() -> bool) -> bool {
        loop {
            if condition() {
                return true;
            }
            if with(&self.cpu, |cpu| cpu.now) >= deadline_ns {
                return false;
            }
            let pump = with(&self.pump, |pump| pump.clone());
            if !pump.is_some_and(|pump| pump()) {
                with(&self.cpu, |cpu| cpu.now = cpu.now.max(deadline_ns));
            }
        }
    }
    fn wake_all(&self) {}
}

/// Guest memory and the interrupt line.
struct Outside {
    memory: Arc<Memory>,
    line: bool,
    mirror: std::collections::HashMap<u32, u32>,
}

pub struct Memory(Mutex<Vec<u8>>);

impl Memory {
    fn range<R>(&self, gpa: u64, len: usize, f: impl FnOnce(&mut [u8]) -> R) -> Result<R, BadAddress> {
        with(&self.0, |bytes| {
            let start = usize::try_from(gpa).map_err(|_| BadAddress)?;
            let end = start.checked_add(len).ok_or(BadAddress)?;
            bytes.get_mut(start..end).map(f).ok_or(BadAddress)
        })
    }
}

impl Env for Outside {
    fn read(&mut self, gpa: u64, data: &mut [u8]) -> Result<(), BadAddress> {
        self.memory.range(gpa, data.len(), |bytes| data.copy_from_slice(bytes))
    }
    fn write(&mut self, gpa: u64, data: &[u8]) -> Result<(), BadAddress> {
        self.memory.range(gpa, data.len(), |bytes| bytes.copy_from_slice(data))
    }
    fn load32_acquire(&mut self, gpa: u64) -> Result<u32, BadAddress> {
        self.read_u32(gpa)
    }
    fn store32_release(&mut self, gpa: u64, value: u32) -> Result<(), BadAddress> {
        self.write(gpa, &value.to_le_bytes())
    }
    fn store64_release(&mut self, gpa: u64, value: u64) -> Result<(), BadAddress> {
        self.write(gpa, &value.to_le_bytes())
    }
    fn interrupt(&mut self) {
        self.line = true;
    }
    fn mirror(&mut self, offset: u32, value: u32) {
        self.mirror.insert(offset, value);
    }
    fn trace(&mut self, _: TraceEvent) {}
}

struct Device {
    gpu: Gpu,
    outside: Outside,
    next_page: usize,
}

/// The model behind the bus trait.
pub struct ModelBus {
    device: Mutex<Device>,
    kernel: Arc<TestKernel>,
    costs: BusCosts,
}

impl ModelBus {
    fn advance_device(&self) {
        let now = self.kernel.now();
        with(&self.device, |device| device.gpu.advance(now, &mut device.outside));
    }
}

/// Bytes of guest memory.
const MEMORY: usize = 16 << 20;

impl bus::Bus for ModelBus {
    type Dma = ModelDma;
    type Error = &'static str;

    fn read32(&self, offset: u32) -> u32 {
        let now = self.kernel.now();
        with(&self.device, |device| {
            device.gpu.advance(now, &mut device.outside);
            device.gpu.mmio_read(offset, now)
        })
    }
    fn write(&self, writes: &[PostedWrite]) {
        let now = self.kernel.now();
        with(&self.device, |device| {
            for write in writes {
                device.gpu.mmio_write(write.offset, write.value, now, &mut device.outside);
            }
        });
    }
    fn take_irq(&self) -> Option<IrqRecord> {
        let now = self.kernel.now();
        with(&self.device, |device| {
            if !std::mem::take(&mut device.outside.line) {
                return None;
            }
            let iir: [u32; irq::BANKS] = device.gpu.take_interrupts(now, &mut device.outside)?;
            Some(IrqRecord { iir, sequence: 0, time_ns: now })
        })
    }
    fn costs(&self) -> BusCosts {
        self.costs
    }
    fn alloc(&self, pages: usize) -> Result<ModelDma, &'static str> {
        with(&self.device, |device| {
            let first = device.next_page;
            device.next_page += pages;
            if device.next_page * 4096 > MEMORY {
                return Err("guest memory is used up");
            }
            Ok(ModelDma { memory: Arc::clone(&device.outside.memory), first: first as u64 * 4096, pages })
        })
    }
}

#[derive(Clone)]
pub struct ModelDma {
    memory: Arc<Memory>,
    first: u64,
    pages: usize,
}

impl ModelDma {
    fn get<const N: usize>(&self, offset: usize) -> [u8; N] {
        assert!(offset.is_multiple_of(N) && offset + N <= self.pages * 4096, "offset {offset:#x}");
        self.memory.range(self.first + offset as u64, N, |b| b.try_into().unwrap()).unwrap()
    }
    fn put(&self, offset: usize, data: &[u8]) {
        assert!(offset.is_multiple_of(data.len()) && offset + data.len() <= self.pages * 4096);
        self.memory.range(self.first + offset as u64, data.len(), |b| b.copy_from_slice(data)).unwrap();
    }
}

impl bus::Dma for ModelDma {
    fn pages(&self) -> usize {
        self.pages
    }
    fn page_addr(&self, page: usize) -> u64 {
        self.first + 4096 * page as u64
    }
    fn read32(&self, offset: usize) -> u32 {
        u32::from_le_bytes(self.get(offset))
    }
    fn write32(&self, offset: usize, value: u32) {
        self.put(offset, &value.to_le_bytes());
    }
    fn load32_acquire(&self, offset: usize) -> u32 {
        self.read32(offset)
    }
    fn store32_release(&self, offset: usize, value: u32) {
        self.write32(offset, value);
    }
    fn load64_acquire(&self, offset: usize) -> u64 {
        u64::from_le_bytes(self.get(offset))
    }
    fn store64_release(&self, offset: usize, value: u64) {
        self.put(offset, &value.to_le_bytes());
    }
}

/// Driver, kernel and device together.
pub struct Machine {
    pub kernel: Arc<TestKernel>,
    pub bus: Arc<ModelBus>,
    pub driver: Arc<Driver<TestKernel, ModelBus>>,
}

pub type Ctx = execlab_driver::Context<ModelDma>;

impl Machine {
    pub fn new(variant: Variant, profile: &str, seed: u64) -> Self {
        let profile = Profile::parse(profile, "test").unwrap();
        let kernel = TestKernel::new();
        let gpu = Gpu::new(Config { sampler: Sampler::new(&profile, seed, 1.0), ..Default::default() });
        let memory = Arc::new(Memory(Mutex::new(vec![0; MEMORY])));
        let outside = Outside { memory, line: false, mirror: Default::default() };
        let costs = BusCosts { read_ns: 100, write_ns: 10, forcewake_ns: 0 };
        let device = Mutex::new(Device { gpu, outside, next_page: 1 });
        let bus = Arc::new(ModelBus { device, kernel: Arc::clone(&kernel), costs });
        let config = DriverConfig { variant, engines: execlab_abi::engine::Engine::ALL.to_vec() };
        let driver = Driver::new(Arc::clone(&kernel), Arc::clone(&bus), &config).unwrap();
        let parts = (Arc::downgrade(&kernel), Arc::downgrade(&bus), Arc::downgrade(&driver));
        let pump: Pump = Box::new(move || step(&parts));
        with(&kernel.pump, |slot| *slot = Some(Arc::new(pump)));
        let device = Arc::downgrade(&bus);
        let relax = move || {
            if let Some(bus) = device.upgrade() {
                bus.advance_device();
            }
        };
        with(&kernel.relax, |slot| *slot = Some(Arc::new(relax)));
        Self { kernel, bus, driver }
    }

    /// Lets the device go on to its next deadline and handles what it raises; false when nothing is left to happen.
    pub fn step(&self) -> bool {
        step(&(Arc::downgrade(&self.kernel), Arc::downgrade(&self.bus), Arc::downgrade(&self.driver)))
    }

    /// Lets everything happen that will happen.
    pub fn settle(&self) {
        let mut left = 1_000_000;
        while self.step() {
            left -= 1;
            assert!(left > 0, "the machine never comes to rest");
        }
    }
}

type Parts = (Weak<TestKernel>, Weak<ModelBus>, Weak<Driver<TestKernel, ModelBus>>);

fn step((kernel, bus, driver): &Parts) -> bool {
    let (Some(kernel), Some(bus), Some(driver)) = (kernel.upgrade(), bus.upgrade(), driver.upgrade()) else {
        return false;
    };
    if let Some(record) = bus::Bus::take_irq(&*bus) {
        kernel.interrupt(|| driver.handle_irq(&record));
        return true;
    }
    let Some(due) = with(&bus.device, |device| device.gpu.next_deadline()) else { return false };
    with(&kernel.cpu, |cpu| cpu.now = cpu.now.max(due));
    bus.advance_device();
    true
}
