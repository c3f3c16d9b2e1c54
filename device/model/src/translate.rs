//! Address translation: GGTT through the entries the driver wrote, PPGTT through four levels in memory.

use execlab_abi::ggtt;

use crate::env::Env;

/// Why an address has no page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// GGTT: address and entry.
    Ggtt { address: u32, entry: u64 },
    /// PPGTT: address, level (3 = PML4 … 0) and entry.
    Ppgtt { address: u64, level: u32, entry: u64 },
    /// A page or a table lies outside guest memory: streamer address and guest-physical address.
    Memory { address: u64, gpa: u64 },
}

/// An address of the command streamer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Address {
    Ggtt(u32),
    Ppgtt(u64),
}

/// The GGTT's entries.
#[derive(Debug)]
pub(crate) struct Ggtt {
    // 8 MiB of zeroes, which the allocator maps lazily: only pages of entries in use take memory.
    entries: Vec<u64>,
}

impl Ggtt {
    pub(crate) fn new() -> Self {
        Self { entries: vec![0; ggtt::ENTRIES as usize] }
    }

    /// Half of an entry, at byte `offset` from the first one.
    pub(crate) fn write_half(&mut self, offset: u32, value: u32) {
        let shift = (offset & 4) * 8;
        if let Some(entry) = self.entries.get_mut((offset / 8) as usize) {
            *entry = (*entry & !(0xffff_ffff << shift)) | (u64::from(value) << shift);
        }
    }

    /// Half of an entry, at byte `offset` from the first one.
    pub(crate) fn read_half(&self, offset: u32) -> u32 {
        let entry = self.entries.get((offset / 8) as usize).copied().unwrap_or(0);
        let halves = [entry as u32, (entry >> 32) as u32];
        halves[usize::from(offset & 4 != 0)]
    }

    /// Guest-physical address behind GGTT address `address`.
    pub(crate) fn translate(&self, address: u32) -> Result<u64, Fault> {
        let entry = self.entries[(address >> 12) as usize];
        if entry & ggtt::PTE_PRESENT == 0 {
            return Err(Fault::Ggtt { address, entry });
        }
        Ok((entry & ggtt::PTE_ADDR_MASK) | u64::from(address & 0xfff))
    }
}

/// Entry bit 7 at the page-directory level: a 2 MiB page.
const PDE_PAGE_2M: u64 = 1 << 7;

/// Guest-physical address behind `address` of the address space whose PML4 lies at guest-physical `pml4`. Levels
/// are indexed by bits 47:39, 38:30, 29:21 and 20:12.
pub(crate) fn translate_ppgtt<E: Env>(env: &mut E, pml4: u64, address: u64) -> Result<u64, Fault> {
    let mut table = pml4 & ggtt::PTE_ADDR_MASK;
    for level in (0..4_u32).rev() {
        let shift = 12 + 9 * level;
        let index = (address >> shift) & 0x1ff;
        let gpa = table + 8 * index;
        let entry = env.read_u64(gpa).map_err(|_| Fault::Memory { address, gpa })?;
        if entry & ggtt::PTE_PRESENT == 0 {
            return Err(Fault::Ppgtt { address, level, entry });
        }
        let base = entry & ggtt::PTE_ADDR_MASK;
        if level == 0 {
            return Ok(base | (address & 0xfff));
        }
        if level == 1 && entry & PDE_PAGE_2M != 0 {
            return Ok((base & !0x1f_ffff) | (address & 0x1f_ffff));
        }
        table = base;
    }
    Err(Fault::Ppgtt { address, level: 0, entry: 0 })
}
