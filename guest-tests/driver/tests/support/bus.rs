//! The device model behind the driver's bus, with posted writes that take their time to arrive.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use execlab_abi::engine::Engine;
use execlab_abi::wire::{IrqRecord, PostedWrite};
use execlab_abi::{csb, ggtt, irq, mirror, ring};
use execlab_driver::bus::{Bus, BusCosts, Dma};
use execlab_driver::kernel::Kernel as _;
use execlab_model::{BadAddress, Config, Env, Gpu, TraceEvent};
use execlab_profile::{Profile, Sampler};

use super::kernel::{Level, TestKernel};

/// Bytes of guest memory.
const MEMORY: usize = 16 << 20;

/// How often something was done where: interrupts off or on, level.
pub type Places = BTreeMap<(bool, Level), u64>;

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Reads of a CSB write index.
    pub csb: Places,
    /// ELSP submissions.
    pub elsp: Places,
    /// Times a seqno was looked at.
    pub seqno: Places,
}

struct Memory(Mutex<Vec<u8>>);

impl Memory {
    fn range<R>(&self, gpa: u64, len: usize, f: impl FnOnce(&mut [u8]) -> R) -> Result<R, BadAddress> {
        let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let start = usize::try_from(gpa).map_err(|_| BadAddress)?;
        let end = start.checked_add(len).ok_or(BadAddress)?;
        bytes.get_mut(start..end).map(f).ok_or(BadAddress)
    }
}

/// Guest memory, interrupt line and mirror as the model sees them.
struct Outside {
    memory: Arc<Memory>,
    line: bool,
    mirror: BTreeMap<u32, u32>,
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
    /// Writes under way, with the time of their arrival.
    posted: VecDeque<(u64, PostedWrite)>,
    next_page: usize,
    sequence: u64,
}

impl Device {
    fn advance(&mut self, now: u64) {
        while let Some((at, write)) = self.posted.front().copied().filter(|(at, _)| *at <= now) {
            self.posted.pop_front();
            self.gpu.mmio_write(write.offset, write.value, at, &mut self.outside);
        }
        self.gpu.advance(now, &mut self.outside);
    }
}

/// The bus.
pub struct ModelBus {
    device: Mutex<Device>,
    kernel: TestKernel,
    post_ns: u64,
    costs: BusCosts,
    seen: Arc<Mutex<Seen>>,
}

impl ModelBus {
    pub fn new(
        kernel: &TestKernel,
        profile: &Profile,
        seed: u64,
        post_ns: u64,
        costs: BusCosts,
    ) -> Arc<Self> {
        let gpu = Gpu::new(Config { sampler: Sampler::new(profile, seed, 1.0), ..Default::default() });
        let memory = Arc::new(Memory(Mutex::new(vec![0; MEMORY])));
        let outside = Outside { memory, line: false, mirror: BTreeMap::new() };
        let device = Device { gpu, outside, posted: VecDeque::new(), next_page: 1, sequence: 0 };
        let kernel = kernel.clone();
        Arc::new(Self { device: Mutex::new(device), kernel, post_ns, costs, seen: Arc::default() })
    }

    fn device(&self) -> MutexGuard<'_, Device> {
        self.device.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn seen(&self) -> Seen {
        self.seen.lock().unwrap().clone()
    }

    /// Puts an event into the engine's status page that the device never sent.
    pub fn forge_event(&self, engine: Engine, entry: csb::Entry) {
        let now = self.kernel.now();
        let device = &mut *self.device();
        device.advance(now);
        let hwsp = device.gpu.mmio_read(engine.reg(ring::HWS_PGA), now);
        let pte = device.gpu.mmio_read(ggtt::pte_offset(hwsp), now);
        let page = u64::from(pte) & ggtt::PTE_ADDR_MASK;
        let index_at = page + u64::from(csb::HWSP_WRITE_INDEX);
        let index = csb::next_index(device.outside.read_u32(index_at).unwrap());
        let at = page + u64::from(csb::Entry::hwsp_offset(index));
        device.outside.store64_release(at, entry.to_qword()).unwrap();
        device.outside.store32_release(index_at, index).unwrap();
    }

    pub fn due(&self) -> Option<u64> {
        let device = self.device();
        let arrival = device.posted.front().map(|(at, _)| *at);
        arrival.into_iter().chain(device.gpu.next_deadline()).min()
    }

    pub fn advance(&self, now: u64) {
        self.device().advance(now);
    }
}

impl Bus for ModelBus {
    type Dma = ModelDma;
    type Error = &'static str;

    fn read32(&self, offset: u32) -> u32 {
        let now = self.kernel.now();
        let mut device = self.device();
        if mirror::slot(offset).is_some() {
            device.advance(now);
            return device.outside.mirror.get(&offset).copied().unwrap_or(0);
        }
        // A read pushes posted writes ahead of itself.
        for (at, _) in &mut device.posted {
            *at = (*at).min(now);
        }
        device.advance(now);
        device.gpu.mmio_read(offset, now)
    }

    fn write(&self, writes: &[PostedWrite]) {
        let elsp = Engine::ALL.map(|engine| engine.reg(ring::ELSP));
        if writes.iter().any(|write| elsp.contains(&write.offset)) {
            assert_eq!(writes.len(), 4, "one ELSP submission is one batch of four writes");
            *self.seen.lock().unwrap().elsp.entry(self.kernel.whereabouts()).or_default() += 1;
        }
        let now = self.kernel.now();
        let mut device = self.device();
        device.posted.extend(writes.iter().map(|write| (now + self.post_ns, *write)));
        device.advance(now);
    }

    fn take_irq(&self) -> Option<IrqRecord> {
        let now = self.kernel.now();
        let device = &mut *self.device();
        if !std::mem::take(&mut device.outside.line) {
            return None;
        }
        let iir: [u32; irq::BANKS] = device.gpu.take_interrupts(now, &mut device.outside)?;
        device.sequence += 1;
        Some(IrqRecord { iir, sequence: device.sequence, time_ns: now })
    }

    fn costs(&self) -> BusCosts {
        self.costs
    }

    fn alloc(&self, pages: usize) -> Result<ModelDma, &'static str> {
        let mut device = self.device();
        let first = device.next_page;
        if (first + pages) * 4096 > MEMORY {
            return Err("guest memory is used up");
        }
        device.next_page += pages;
        Ok(ModelDma {
            memory: Arc::clone(&device.outside.memory),
            first: first as u64 * 4096,
            pages,
            kernel: self.kernel.clone(),
            seen: Arc::clone(&self.seen),
        })
    }
}

/// Guest memory.
pub struct ModelDma {
    memory: Arc<Memory>,
    first: u64,
    pages: usize,
    kernel: TestKernel,
    seen: Arc<Mutex<Seen>>,
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
    /// The only dwords that the driver loads with acquire order: the write index of a status page (one page), and
    /// the seqno in an image (two pages).
    fn note(&self, offset: usize) {
        let mut seen = self.seen.lock().unwrap();
        let places = match (self.pages, offset as u32) {
            (1, csb::HWSP_WRITE_INDEX) => &mut seen.csb,
            (2, _) => &mut seen.seqno,
            other => panic!("load with acquire order of {other:?}"),
        };
        *places.entry(self.kernel.whereabouts()).or_default() += 1;
    }
}

impl Dma for ModelDma {
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
        self.note(offset);
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
