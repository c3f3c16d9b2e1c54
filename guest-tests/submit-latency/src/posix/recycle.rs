//! A bus whose memory comes back: every block has a driver of its own, and the access library gives memory out
//! once only.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use execlab_abi::PAGE_SIZE;
use execlab_abi::wire::{IrqRecord, PostedWrite};
use execlab_access::{AnyDevice, Error, Pages};
use execlab_driver::bus::{Bus, BusCosts, Dma};

/// Memory that no driver uses, by number of pages.
type Free = Arc<Mutex<BTreeMap<usize, Vec<Pages>>>>;

fn lock(free: &Free) -> MutexGuard<'_, BTreeMap<usize, Vec<Pages>>> {
    free.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The device, with memory that is used again. Reset the device before a driver is dropped: it must not write
/// to what the next driver gets.
#[derive(Debug)]
pub struct Recycler {
    device: Arc<AnyDevice>,
    free: Free,
}

impl Recycler {
    /// Around `device`.
    pub fn new(device: Arc<AnyDevice>) -> Self {
        Self { device, free: Free::default() }
    }
}

impl Bus for Recycler {
    type Dma = Recycled;
    type Error = Error;

    fn read32(&self, offset: u32) -> u32 {
        self.device.read32(offset)
    }

    fn write(&self, writes: &[PostedWrite]) {
        self.device.write(writes);
    }

    fn take_irq(&self) -> Option<IrqRecord> {
        self.device.take_irq()
    }

    fn dilation_milli(&self) -> u32 {
        self.device.dilation_milli()
    }
    fn costs(&self) -> BusCosts {
        self.device.costs()
    }

    fn alloc(&self, pages: usize) -> Result<Recycled, Error> {
        let used = lock(&self.free).get_mut(&pages).and_then(Vec::pop);
        let memory = match used {
            Some(memory) => {
                (0..pages * PAGE_SIZE as usize).step_by(8).for_each(|at| memory.store64_release(at, 0));
                memory
            }
            None => self.device.alloc(pages)?,
        };
        Ok(Recycled { memory, free: Arc::clone(&self.free) })
    }
}

/// Memory that goes back when dropped.
#[derive(Debug)]
pub struct Recycled {
    memory: Pages,
    free: Free,
}

impl Drop for Recycled {
    fn drop(&mut self) {
        lock(&self.free).entry(self.memory.pages()).or_default().push(self.memory.clone());
    }
}

impl Dma for Recycled {
    fn pages(&self) -> usize {
        self.memory.pages()
    }
    fn page_addr(&self, page: usize) -> u64 {
        self.memory.page_addr(page)
    }
    fn read32(&self, offset: usize) -> u32 {
        self.memory.read32(offset)
    }
    fn write32(&self, offset: usize, value: u32) {
        self.memory.write32(offset, value);
    }
    fn load32_acquire(&self, offset: usize) -> u32 {
        self.memory.load32_acquire(offset)
    }
    fn store32_release(&self, offset: usize, value: u32) {
        self.memory.store32_release(offset, value);
    }
    fn load64_acquire(&self, offset: usize) -> u64 {
        self.memory.load64_acquire(offset)
    }
    fn store64_release(&self, offset: usize, value: u64) {
        self.memory.store64_release(offset, value);
    }
}
