//! The global GTT: the entries that were written through the upper half of BAR 0.

use execlab_abi::ggtt::{self, PTE_ADDR_MASK, PTE_PRESENT};
use execlab_abi::lab::Violation;

use crate::error::{Fault, low};

/// The entries. 8 MiB of address space; pages that were never written cost no memory.
#[derive(Debug)]
pub(crate) struct Ggtt {
    entries: Vec<u64>,
}

impl Ggtt {
    /// No entry present.
    pub(crate) fn new() -> Self {
        Self { entries: vec![0; ggtt::ENTRIES as usize] }
    }

    /// Reads half an entry; `offset` is relative to [`ggtt::GSM_OFFSET`], 0 outside.
    pub(crate) fn read_half(&self, offset: u32) -> u32 {
        let entry = self.entries.get(offset as usize / 8).copied().unwrap_or(0);
        if offset & 4 == 0 { low(entry) } else { low(entry >> 32) }
    }

    /// Writes half an entry; `offset` as for [`read_half`](Self::read_half), ignored outside.
    pub(crate) fn write_half(&mut self, offset: u32, value: u32) {
        if let Some(entry) = self.entries.get_mut(offset as usize / 8) {
            *entry = if offset & 4 == 0 {
                (*entry & !0xffff_ffff) | u64::from(value)
            } else {
                (*entry & 0xffff_ffff) | (u64::from(value) << 32)
            };
        }
    }

    /// The guest-physical address behind `address`, for an access of `len` bytes that stays in its page.
    #[inline]
    pub(crate) fn translate(&self, address: u32, len: u32) -> Result<u64, Fault> {
        let entry = self.entries.get((address >> 12) as usize).copied().unwrap_or(0);
        if entry & PTE_PRESENT == 0 {
            return Err(self.fault(address, len));
        }
        Ok((entry & PTE_ADDR_MASK) | u64::from(address & 0xfff))
    }

    /// The violation for an access that [`translate`](Self::translate) let pass and memory refused.
    pub(crate) fn fault(&self, address: u32, len: u32) -> Fault {
        let at = (address >> 12) * 8;
        let words = [address, self.read_half(at), self.read_half(at + 4), len];
        Fault::new(Violation::UnmappedPage, address, words)
    }
}
