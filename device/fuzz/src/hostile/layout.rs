//! Where a case's guest keeps its things: a small memory in which every other page is used. The ones in between are
//! never given to the device, so that an access that runs over the end of a page shows.

use execlab_abi::PAGE_SIZE;
use execlab_abi::engine::{ENGINE_COUNT, Engine};

/// Guest-physical address of the first page of guest memory. Not 0, so that an address computed from nothing falls
/// outside.
pub const BASE: u64 = 0x4000_0000;
/// Pages that the guest uses.
pub const PAGES: u32 = 48;
/// Bytes of guest memory.
pub const SIZE: usize = PAGES as usize * STRIDE;
/// From one page to the next.
pub const STRIDE: usize = 2 * PAGE_SIZE as usize;
/// GGTT address of page 0; the pages that follow are mapped in order and without gaps.
pub const GGTT: u32 = 0x0010_0000;
/// Contexts for each engine.
pub const CONTEXTS: u32 = 3;

/// First page of the contexts' images, of two pages each.
const IMAGES: u32 = ENGINE_COUNT as u32;
/// First page of the rings, of one page each.
const RINGS: u32 = IMAGES + 2 * CONTEXTS;
/// First page of the batch buffers.
const BATCHES: u32 = RINGS + CONTEXTS;
/// Pages of batch buffers.
const BATCH_PAGES: u32 = 4;
/// Page for seqnos.
const SEQNOS: u32 = BATCHES + BATCH_PAGES;
/// First of the four pages of the page tables, PML4 first.
const TABLES: u32 = SEQNOS + 1;

/// Guest-physical address of a page.
#[must_use]
pub const fn gpa(page: u32) -> u64 {
    BASE + page as u64 * STRIDE as u64
}

/// GGTT address of a page.
#[must_use]
pub const fn ggtt(page: u32) -> u32 {
    GGTT + page * PAGE_SIZE as u32
}

/// The page of an engine's status page.
#[must_use]
pub const fn hwsp(engine: Engine) -> u32 {
    engine.index() as u32
}

/// The first page of a context's image.
#[must_use]
pub const fn image(context: u32) -> u32 {
    IMAGES + 2 * (context % CONTEXTS)
}

/// The page of a context's ring.
#[must_use]
pub const fn ring(context: u32) -> u32 {
    RINGS + context % CONTEXTS
}

/// The page of a batch buffer.
#[must_use]
pub const fn batch(n: u32) -> u32 {
    BATCHES + n % BATCH_PAGES
}

/// The page of the seqnos.
#[must_use]
pub const fn seqnos() -> u32 {
    SEQNOS
}

/// The page of the page table of `level`: 3 is the PML4, 0 the last.
#[must_use]
pub const fn table(level: u32) -> u32 {
    TABLES + 3 - level % 4
}
