//! The register page: a copy of the registers that a driver polls, in guest memory.

use std::sync::atomic::Ordering;

use execlab_abi::mirror::{self, SLOTS};
use execlab_abi::{PAGE_SIZE, engine::Engine};
use vm_memory::{GuestAddress, GuestMemoryMmap};

use crate::memory;

/// Dwords in an engine's 4 KiB of registers.
const ENGINE_DWORDS: usize = 0x400;
/// Mark of a register that has no slot.
const NO_SLOT: u16 = u16::MAX;

/// Where the page is, and which register goes where. The slots of engine registers are looked up in a table:
/// a search through [`mirror::slot`] for every register that changes would be felt.
#[derive(Debug)]
pub struct RegisterPage {
    page: Option<GuestAddress>,
    engine_slots: Box<[[u16; ENGINE_DWORDS]]>,
}

/// Why a page was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// Not the start of a page.
    #[error("the register page must start at a multiple of {PAGE_SIZE}")]
    Misaligned,
    /// Not guest memory.
    #[error("the register page is not guest memory")]
    NotMemory,
}

impl Default for RegisterPage {
    fn default() -> Self {
        let mut engine_slots = vec![[NO_SLOT; ENGINE_DWORDS]; Engine::ALL.len()];
        for slot in 0..SLOTS {
            if let Some((engine, relative)) = mirror::register(slot).and_then(Engine::decode) {
                engine_slots[engine.index()][relative as usize / 4] = slot as u16;
            }
        }
        Self { page: None, engine_slots: engine_slots.into_boxed_slice() }
    }
}

impl RegisterPage {
    /// Takes `address` for the page, or takes the page away if it is 0. The caller stores every slot after it.
    ///
    /// # Errors
    /// [`PageError`]; the old page then stays.
    pub fn set(&mut self, address: u64, memory: &GuestMemoryMmap) -> Result<(), PageError> {
        if address == 0 {
            self.page = None;
            return Ok(());
        }
        if !address.is_multiple_of(PAGE_SIZE) {
            return Err(PageError::Misaligned);
        }
        if !memory::contains(memory, GuestAddress(address), PAGE_SIZE) {
            return Err(PageError::NotMemory);
        }
        self.page = Some(GuestAddress(address));
        Ok(())
    }

    /// Forgets the page.
    pub fn clear(&mut self) {
        self.page = None;
    }

    /// Whether there is a page.
    #[must_use]
    pub const fn is_set(&self) -> bool {
        self.page.is_some()
    }

    /// Stores the register at BAR 0 `offset` with release order, if there is a page and it has a slot. A page
    /// whose memory has been taken away is forgotten.
    #[inline]
    pub fn store(&mut self, offset: u32, value: u32, memory: &GuestMemoryMmap) {
        let Some(page) = self.page else { return };
        let slot = match Engine::decode(offset) {
            Some((engine, relative)) => match self.engine_slots[engine.index()][relative as usize / 4] {
                NO_SLOT => return,
                slot => u64::from(slot),
            },
            None => match mirror::slot(offset) {
                Some(slot) => slot as u64,
                None => return,
            },
        };
        // The page lies inside guest memory (see `set`), so the sum cannot wrap.
        let address = GuestAddress(page.0 + 4 * slot);
        if memory::store(memory, address, value.to_le(), Ordering::Release).is_err() {
            self.page = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use execlab_abi::{lab, ring};
    use vm_memory::Bytes as _;

    fn memory() -> GuestMemoryMmap {
        GuestMemoryMmap::from_ranges(&[(GuestAddress(0x1000), 0x3000)]).unwrap()
    }

    #[test]
    fn every_mirrored_register_lands_in_its_slot() {
        let memory = memory();
        let mut page = RegisterPage::default();
        page.set(0x2000, &memory).unwrap();
        for slot in 0..SLOTS {
            page.store(mirror::register(slot).unwrap(), 0x1000 + slot as u32, &memory);
        }
        for slot in 0..SLOTS {
            let value: u32 = memory.read_obj(GuestAddress(0x2000 + 4 * slot as u64)).unwrap();
            assert_eq!(value, 0x1000 + slot as u32, "slot {slot}");
        }
    }

    #[test]
    fn registers_without_a_slot_and_misaligned_ones_store_nothing_outside() {
        let memory = memory();
        let mut page = RegisterPage::default();
        page.set(0x2000, &memory).unwrap();
        for offset in [ring::ELSP + 0x2000, 0xffff_ffff, 0x2fff, 0x0, lab::CS_BUSY] {
            page.store(offset, 0xdead_beef, &memory);
        }
        let mut bytes = [0_u8; 0x1000];
        memory.read_slice(&mut bytes, GuestAddress(0x2000)).unwrap();
        assert!(bytes.iter().all(|b| *b == 0));
    }

    #[test]
    fn bad_pages_are_refused_and_zero_takes_the_page_away() {
        let memory = memory();
        let mut page = RegisterPage::default();
        assert_eq!(page.set(0x2004, &memory), Err(PageError::Misaligned));
        assert_eq!(page.set(0x4000, &memory), Err(PageError::NotMemory));
        assert_eq!(page.set(u64::MAX - 0xfff, &memory), Err(PageError::NotMemory));
        page.set(0x3000, &memory).unwrap();
        assert!(page.is_set());
        page.set(0, &memory).unwrap();
        assert!(!page.is_set());
    }
}
