//! How a driver reaches its device: register reads, posted writes, memory that the device can see.

use execlab_abi::wire::{IrqRecord, PostedWrite};

/// What accesses cost the driver, in nanoseconds; the driver spends them as busy time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BusCosts {
    /// One MMIO read.
    pub read_ns: u32,
    /// One posted MMIO write.
    pub write_ns: u32,
    /// Taking forcewake.
    pub forcewake_ns: u32,
}

/// A device behind a bus. Methods are callable from any context, also concurrently.
pub trait Bus: Send + Sync + 'static {
    /// Memory shared with the device.
    type Dma: Dma;
    /// Why memory could not be had.
    type Error: core::fmt::Display + core::fmt::Debug + Send + Sync + 'static;

    /// MMIO read. A mirrored register (see `execlab_abi::mirror`) comes from the register page with acquire
    /// order; any other costs a round trip, and as on PCI Express the device has then applied every write that the
    /// caller posted before.
    fn read32(&self, offset: u32) -> u32;

    /// Posted MMIO writes, applied by the device in this order, with one doorbell at most. Waits, spinning, for
    /// room when the posted-write queue is full.
    fn write(&self, writes: &[PostedWrite]);

    /// The next interrupt that the device has delivered, without waiting.
    fn take_irq(&self) -> Option<IrqRecord>;

    /// What accesses cost.
    fn costs(&self) -> BusCosts;

    /// By how much the device's modelled times are stretched, in thousandths. What the driver grants the hardware is
    /// stretched alike; the costs above are already.
    fn dilation_milli(&self) -> u32 {
        1000
    }

    /// Zeroed memory of `pages` pages of 4 KiB, kept until the bus is dropped.
    ///
    /// # Errors
    /// When the memory shared with the device is used up.
    fn alloc(&self, pages: usize) -> Result<Self::Dma, Self::Error>;
}

/// Memory that driver and device share. Offsets are in bytes and naturally aligned; an offset outside the memory
/// is a bug of the driver and panics.
pub trait Dma: Send + Sync + 'static {
    /// Number of pages.
    fn pages(&self) -> usize;
    /// Address of page `page` as the device sees it.
    fn page_addr(&self, page: usize) -> u64;
    /// Plain load.
    fn read32(&self, offset: usize) -> u32;
    /// Plain store.
    fn write32(&self, offset: usize, value: u32);
    /// Load of a dword with acquire order.
    fn load32_acquire(&self, offset: usize) -> u32;
    /// Store of a dword with release order.
    fn store32_release(&self, offset: usize, value: u32);
    /// Load of a qword with acquire order.
    fn load64_acquire(&self, offset: usize) -> u64;
    /// Store of a qword with release order.
    fn store64_release(&self, offset: usize, value: u64);
}
