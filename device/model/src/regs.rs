//! The register file: storage for the whole register BAR. Registers with behaviour keep their value here too, so
//! that one place answers reads and feeds the mirror.

use execlab_abi::{MMIO_SIZE, mirror};

use crate::env::Env;

/// All registers.
#[derive(Debug)]
pub(crate) struct Regs {
    // 2 MiB of zeroes, mapped lazily by the allocator.
    words: Vec<u32>,
}

impl Regs {
    pub(crate) fn new() -> Self {
        Self { words: vec![0; (MMIO_SIZE / 4) as usize] }
    }

    /// Value at `offset`; 0 outside the BAR.
    pub(crate) fn get(&self, offset: u32) -> u32 {
        self.words.get((offset / 4) as usize).copied().unwrap_or(0)
    }

    /// Stores without telling the mirror: for registers that are not mirrored.
    pub(crate) fn store(&mut self, offset: u32, value: u32) {
        if let Some(word) = self.words.get_mut((offset / 4) as usize) {
            *word = value;
        }
    }

    /// Stores, and tells the mirror when the value changed.
    pub(crate) fn set<E: Env>(&mut self, offset: u32, value: u32, env: &mut E) {
        if self.get(offset) != value {
            self.store(offset, value);
            env.mirror(offset, value);
        }
    }

    /// Everything to 0, and every mirrored register told.
    pub(crate) fn clear<E: Env>(&mut self, env: &mut E) {
        self.words.fill(0);
        for register in (0..mirror::SLOTS).filter_map(mirror::register) {
            env.mirror(register, 0);
        }
    }
}
