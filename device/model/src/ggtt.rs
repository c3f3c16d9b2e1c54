//! The global GTT: the entries that were written through the upper half of BAR 0.

use execlab_abi::ggtt::{self, PTE_ADDR_MASK, PTE_PRESENT};
use execlab_abi::lab::Violation;

use crate::error::{Fault, low};

/// The entries. 8 MiB of address space; pages that were never written cost no memory.
#[derive(Debug)]
pub(crate) struct Ggtt {
    entries: Vec<u64>,
    /// First entry that may differ from 0, and the one behind the last: a reset, which a guest may ask for as often
    /// as it likes, need not clear 8 MiB.
    written: (usize, usize),
}

/// No entry written.
const NONE: (usize, usize) = (usize::MAX, 0);

impl Ggtt {
    /// No entry present.
    pub(crate) fn new() -> Self {
        Self { entries: vec![0; ggtt::ENTRIES as usize], written: NONE }
    }

    /// Forgets all entries.
    pub(crate) fn clear(&mut self) {
        let (first, end) = std::mem::replace(&mut self.written, NONE);
        if let Some(written) = self.entries.get_mut(first..end) {
            written.fill(0);
        }
    }

    /// Reads half an entry; `offset` is relative to [`ggtt::GSM_OFFSET`], 0 outside.
    pub(crate) fn read_half(&self, offset: u32) -> u32 {
        let entry = self.entries.get(offset as usize / 8).copied().unwrap_or(0);
        if offset & 4 == 0 { low(entry) } else { low(entry >> 32) }
    }

    /// Writes half an entry; `offset` as for [`read_half`](Self::read_half), ignored outside.
    pub(crate) fn write_half(&mut self, offset: u32, value: u32) {
        let index = offset as usize / 8;
        if let Some(entry) = self.entries.get_mut(index) {
            let (first, end) = self.written;
            self.written = (first.min(index), end.max(index + 1));
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
