//! The global GTT: handing out addresses and mapping pages.

use execlab_abi::wire::PostedWrite;
use execlab_abi::{PAGE_SIZE, ggtt};

use crate::bus::{Bus, Dma};
use crate::error::DriverError;
use crate::kernel::Kernel;
use crate::mmio::Mmio;

/// First address handed out: the lowest pages stay unmapped, so that address 0 faults.
const FIRST_PAGE: u32 = 16;
/// Entries per batch of posted writes.
const BATCH: usize = 32;

/// An allocator that only grows: the driver frees nothing before it ends.
#[derive(Debug)]
pub(crate) struct Ggtt {
    next_page: u32,
}

impl Ggtt {
    pub(crate) const fn new() -> Self {
        Self { next_page: FIRST_PAGE }
    }

    /// Maps all pages of `memory` at consecutive addresses and returns the first.
    pub(crate) fn map<K: Kernel, B: Bus>(
        &mut self,
        mmio: &Mmio<K, B>,
        memory: &B::Dma,
    ) -> Result<u32, DriverError> {
        let pages = memory.pages();
        let first = self.next_page;
        let end = u32::try_from(pages).ok().and_then(|pages| first.checked_add(pages));
        let Some(end) = end.filter(|end| *end <= ggtt::ENTRIES) else {
            return Err(DriverError::GgttFull { pages });
        };
        let mut writes = [PostedWrite::default(); 2 * BATCH];
        let mut used = 0;
        for (page, number) in (first..end).zip(0..) {
            let pte = ggtt::pte(memory.page_addr(number));
            let offset = ggtt::pte_offset(page * PAGE_SIZE as u32);
            writes[used] = PostedWrite { offset, value: pte as u32 };
            writes[used + 1] = PostedWrite { offset: offset + 4, value: (pte >> 32) as u32 };
            used += 2;
            if used == writes.len() {
                mmio.write_combined(&writes);
                used = 0;
            }
        }
        mmio.write_combined(&writes[..used]);
        self.next_page = end;
        Ok(first * PAGE_SIZE as u32)
    }
}
