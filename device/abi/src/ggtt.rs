//! The global GTT: 64-bit entries in the upper half of BAR 0 (gen8 and later).

/// Offset of entry 0 in BAR 0. Entry `n` maps GGTT address `n · 4096` and lies at `GSM_OFFSET + 8·n`.
pub const GSM_OFFSET: u32 = 0x80_0000;
/// Bytes of entries: 8 MiB, which map 4 GiB.
pub const GSM_SIZE: u32 = 0x80_0000;
/// Number of entries.
pub const ENTRIES: u32 = GSM_SIZE / 8;
/// Entry bit 0: present.
pub const PTE_PRESENT: u64 = 1;
/// Entry bits 38:12: page address.
pub const PTE_ADDR_MASK: u64 = 0x7f_ffff_f000;

/// The entry that maps the page at guest-physical `gpa`.
#[must_use]
pub const fn pte(gpa: u64) -> u64 {
    (gpa & PTE_ADDR_MASK) | PTE_PRESENT
}

/// BAR 0 offset of the low dword of the entry for GGTT address `ggtt`.
#[must_use]
pub const fn pte_offset(ggtt: u32) -> u32 {
    GSM_OFFSET + (ggtt >> 12) * 8
}
