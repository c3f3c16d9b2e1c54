//! Per-process page tables (gen8 and later; `gen8_ppgtt.c`): four levels of 512 qword entries.

/// Entry bit 0: present.
pub const PRESENT: u64 = 1 << 0;
/// Bit 7 of a page-directory entry: a 2 MiB page (`GEN8_PDE_PS_2M`).
pub const PAGE_2M: u64 = 1 << 7;
/// Entry bits 38:12: address of the next table or of the page.
pub const ADDR_MASK: u64 = 0x7f_ffff_f000;
/// Address bits that the tables translate: 47:0.
pub const VA_MASK: u64 = 0xffff_ffff_ffff;

/// Number of the lowest address bit that an entry of `level` translates: 12 for a page table (level 0), 21, 30 and
/// 39 for the PML4 (level 3).
#[must_use]
pub const fn level_shift(level: u32) -> u32 {
    12 + 9 * level
}
