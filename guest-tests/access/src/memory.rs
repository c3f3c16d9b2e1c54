//! Memory that driver and device share, given out page by page.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use execlab_driver::bus::Dma;
use vm_memory::{AtomicInteger, MmapRegion, VolatileMemory as _};

use crate::Error;

/// Bytes in a page.
pub(crate) const PAGE: usize = execlab_abi::PAGE_SIZE as usize;

/// A mapping of which the device knows every page, and a bump allocator over it: nothing is ever given back, so
/// what is given out is still zero.
#[derive(Debug)]
pub(crate) struct SharedMemory {
    region: MmapRegion,
    /// Address, as the device sees it, of each piece of `frame_pages` pages.
    frames: Vec<u64>,
    frame_pages: usize,
    used: AtomicUsize,
}

impl SharedMemory {
    /// Takes a zeroed mapping that consists of `frames.len()` pieces of equal size, contiguous each.
    pub(crate) fn new(region: MmapRegion, frames: Vec<u64>) -> Self {
        let frame_pages = region.size() / PAGE / frames.len().max(1);
        Self { region, frames, frame_pages, used: AtomicUsize::new(0) }
    }

    /// `pages` fresh pages.
    pub(crate) fn alloc(self: &Arc<Self>, pages: usize) -> Result<Pages, Error> {
        let total = self.frames.len() * self.frame_pages;
        let fit = |used: usize| used.checked_add(pages).filter(|end| *end <= total);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fit) {
            Ok(first) => Ok(Pages { memory: Arc::clone(self), first, pages }),
            Err(used) => Err(Error::OutOfMemory { asked: pages, left: total - used }),
        }
    }

    pub(crate) fn region(&self) -> &MmapRegion {
        &self.region
    }
}

/// Pages shared with the device: the [`Dma`] of this library. They stay valid until the last clone is dropped,
/// but a device writes to them only as long as the [`crate::AnyDevice`] lives.
#[derive(Debug, Clone)]
pub struct Pages {
    memory: Arc<SharedMemory>,
    first: usize,
    pages: usize,
}

impl Pages {
    /// Where `offset` lies, as the device sees it. Contiguous up to the end of the page only.
    pub(crate) fn addr(&self, offset: usize) -> u64 {
        self.page_addr(offset / PAGE) + (offset % PAGE) as u64
    }

    /// Where these pages lie in this process. For telling a vhost-user device, not for access.
    pub(crate) fn host_addr(&self) -> u64 {
        self.memory.region().as_ptr() as u64 + (self.first * PAGE) as u64
    }

    #[track_caller]
    fn at<A: AtomicInteger>(&self, offset: usize) -> &A {
        let inside = offset.checked_add(size_of::<A>()).is_some_and(|end| end <= self.pages * PAGE);
        assert!(inside, "offset {offset:#x} lies outside {} pages of DMA memory", self.pages);
        match self.memory.region.get_atomic_ref(self.first * PAGE + offset) {
            Ok(cell) => cell,
            Err(error) => out_of_contract(offset, &error),
        }
    }

    pub(crate) fn load16(&self, offset: usize, order: Ordering) -> u16 {
        self.at::<AtomicU16>(offset).load(order)
    }

    pub(crate) fn store16(&self, offset: usize, value: u16, order: Ordering) {
        self.at::<AtomicU16>(offset).store(value, order);
    }

    pub(crate) fn load64(&self, offset: usize) -> u64 {
        self.at::<AtomicU64>(offset).load(Ordering::Relaxed)
    }

    pub(crate) fn store64(&self, offset: usize, value: u64) {
        self.at::<AtomicU64>(offset).store(value, Ordering::Relaxed);
    }

    /// Copies bytes in. For control requests: the ring's release publishes them.
    #[track_caller]
    pub(crate) fn copy_in(&self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.pages * PAGE, "copy beyond DMA memory");
        match self.memory.region.get_slice(self.first * PAGE + offset, bytes.len()) {
            Ok(slice) => slice.copy_from(bytes),
            Err(error) => out_of_contract(offset, &error),
        }
    }

    /// Copies bytes out, after an acquire that says they are there.
    #[track_caller]
    pub(crate) fn copy_out(&self, offset: usize, bytes: &mut [u8]) {
        assert!(offset + bytes.len() <= self.pages * PAGE, "copy beyond DMA memory");
        match self.memory.region.get_slice(self.first * PAGE + offset, bytes.len()) {
            Ok(slice) => {
                slice.copy_to(bytes);
            }
            Err(error) => out_of_contract(offset, &error),
        }
    }
}

/// An unaligned access: the trait [`Dma`] promises a panic for such a bug of the driver.
#[allow(clippy::panic)]
#[track_caller]
fn out_of_contract(offset: usize, error: &vm_memory::VolatileMemoryError) -> ! {
    panic!("offset {offset:#x} in DMA memory: {error}")
}

impl Dma for Pages {
    fn pages(&self) -> usize {
        self.pages
    }

    #[track_caller]
    fn page_addr(&self, page: usize) -> u64 {
        assert!(page < self.pages, "page {page} of {}", self.pages);
        let at = self.first + page;
        let frame = self.memory.frames[at / self.memory.frame_pages];
        frame + ((at % self.memory.frame_pages) * PAGE) as u64
    }

    fn read32(&self, offset: usize) -> u32 {
        self.at::<AtomicU32>(offset).load(Ordering::Relaxed)
    }

    fn write32(&self, offset: usize, value: u32) {
        self.at::<AtomicU32>(offset).store(value, Ordering::Relaxed);
    }

    fn load32_acquire(&self, offset: usize) -> u32 {
        self.at::<AtomicU32>(offset).load(Ordering::Acquire)
    }

    fn store32_release(&self, offset: usize, value: u32) {
        self.at::<AtomicU32>(offset).store(value, Ordering::Release);
    }

    fn load64_acquire(&self, offset: usize) -> u64 {
        self.at::<AtomicU64>(offset).load(Ordering::Acquire)
    }

    fn store64_release(&self, offset: usize, value: u64) {
        self.at::<AtomicU64>(offset).store(value, Ordering::Release);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Anonymous memory that no device sees, in two frames that are not neighbours.
    pub(crate) fn private(pages: usize) -> Arc<SharedMemory> {
        let bytes = pages.next_multiple_of(2) * PAGE;
        let region = MmapRegion::new(bytes).unwrap();
        let frames = vec![0x1_0000_0000, 0x7_0000_0000];
        Arc::new(SharedMemory::new(region, frames))
    }

    /// What the device sees of such memory: bytes by the addresses it was given.
    pub(crate) struct DeviceView(Pages);

    impl DeviceView {
        pub(crate) fn new(memory: &Arc<SharedMemory>) -> Self {
            let pages = memory.region.size() / PAGE;
            Self(Pages { memory: Arc::clone(memory), first: 0, pages })
        }

        fn offset(&self, addr: u64) -> usize {
            let half = self.0.pages * PAGE / 2;
            (addr & 0xffff_ffff) as usize + if addr >> 32 == 7 { half } else { 0 }
        }

        pub(crate) fn read(&self, addr: u64, len: u32) -> Vec<u8> {
            let mut bytes = vec![0; len as usize];
            self.0.copy_out(self.offset(addr), &mut bytes);
            bytes
        }

        pub(crate) fn write(&self, addr: u64, bytes: &[u8]) {
            self.0.copy_in(self.offset(addr), bytes);
        }
    }

    #[test]
    fn pages_are_given_out_once_and_run_out_with_an_error() {
        let memory = private(8);
        let first = memory.alloc(3).unwrap();
        let second = memory.alloc(5).unwrap();
        assert_ne!(first.host_addr(), second.host_addr());
        let error = memory.alloc(1).unwrap_err();
        assert!(matches!(error, Error::OutOfMemory { asked: 1, left: 0 }), "{error}");
        assert!(memory.alloc(usize::MAX).is_err());
    }

    #[test]
    fn a_page_beyond_the_first_frame_has_the_second_frames_address() {
        let memory = private(8);
        let all = memory.alloc(8).unwrap();
        assert_eq!(all.page_addr(3), 0x1_0000_3000);
        assert_eq!(all.page_addr(4), 0x7_0000_0000);
        assert_eq!(all.addr(4 * PAGE + 0x18), 0x7_0000_0018);
    }

    #[test]
    fn what_is_stored_is_loaded_at_every_width() {
        let pages = private(2).alloc(1).unwrap();
        pages.store64_release(8, 0x1122_3344_5566_7788);
        assert_eq!(pages.read32(8), 0x5566_7788);
        assert_eq!(pages.load32_acquire(12), 0x1122_3344);
        assert_eq!(pages.load16(14, Ordering::Relaxed), 0x1122);
        let mut bytes = [0; 3];
        pages.copy_out(8, &mut bytes);
        assert_eq!(bytes, [0x88, 0x77, 0x66]);
    }

    #[test]
    #[should_panic(expected = "lies outside")]
    fn an_offset_beyond_the_pages_panics() {
        let memory = private(4);
        let (one, _two) = (memory.alloc(1).unwrap(), memory.alloc(1).unwrap());
        one.read32(PAGE);
    }

    #[test]
    #[should_panic(expected = "aligned")]
    fn an_unaligned_offset_panics() {
        private(2).alloc(1).unwrap().write32(2, 1);
    }
}
