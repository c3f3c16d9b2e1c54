//! gen8/gen9 GT interrupts (`i915_reg.h`, `intel_gt_regs.h`): four banks behind one master register.

use crate::engine::Engine;

/// GEN8_MASTER_IRQ: [`MASTER_ENABLE`] and one summary bit per source.
pub const MASTER: u32 = 0x4_4200;
/// Master bit 31: deliver interrupts.
pub const MASTER_ENABLE: u32 = 1 << 31;
/// Number of GT banks.
pub const BANKS: usize = 4;

/// Interrupt status register of bank `n` (read only: the level of each source).
#[must_use]
pub const fn isr(bank: usize) -> u32 {
    0x4_4300 + 0x10 * bank as u32
}
/// Interrupt mask register of bank `n` (a set bit keeps the event from IIR).
#[must_use]
pub const fn imr(bank: usize) -> u32 {
    0x4_4304 + 0x10 * bank as u32
}
/// Interrupt identity register of bank `n` (write 1 to clear).
#[must_use]
pub const fn iir(bank: usize) -> u32 {
    0x4_4308 + 0x10 * bank as u32
}
/// Interrupt enable register of bank `n` (a clear bit keeps an identity from the master).
#[must_use]
pub const fn ier(bank: usize) -> u32 {
    0x4_430c + 0x10 * bank as u32
}

/// Engine bit 0: MI_USER_INTERRUPT (`GT_RENDER_USER_INTERRUPT`).
pub const USER: u32 = 1 << 0;
/// Engine bit 3: command streamer error (`GT_CS_MASTER_ERROR_INTERRUPT`).
pub const CS_ERROR: u32 = 1 << 3;
/// Engine bit 8: context switch, a CSB entry was written (`GT_CONTEXT_SWITCH_INTERRUPT`).
pub const CONTEXT_SWITCH: u32 = 1 << 8;
/// Engine bit 11: waiting for a semaphore (`GT_WAIT_SEMAPHORE_INTERRUPT`).
pub const WAIT_SEMAPHORE: u32 = 1 << 11;
/// Bank that holds the GuC's bits, in its upper half; bit 15 of that half is GuC→host.
pub const GUC_BANK: usize = 2;
/// Bit of [`GUC_BANK`] for GuC→host.
pub const GUC_TO_HOST: u32 = 1 << 31;

impl Engine {
    /// Bank and shift of the engine's sixteen bits.
    #[must_use]
    pub const fn irq_bank(self) -> (usize, u32) {
        match self {
            Self::Rcs0 => (0, 0),
            Self::Bcs0 => (0, 16),
            Self::Vcs0 => (1, 0),
            Self::Vecs0 => (3, 0),
        }
    }

    /// The RING_IMR value that lets only `bits` (engine bits such as [`USER`]) through. The register's bits lie
    /// where the bank has them (`irq_shift` in `intel_engine_cs.c`).
    #[must_use]
    pub const fn ring_imr(self, bits: u32) -> u32 {
        !(bits << self.irq_bank().1)
    }

    /// The engine's own sixteen bits out of the four banks' identities.
    #[must_use]
    pub const fn irq_bits(self, iir: &[u32; BANKS]) -> u32 {
        let (bank, shift) = self.irq_bank();
        (iir[bank] >> shift) & 0xffff
    }

    /// Summary bit of the engine in the master register.
    #[must_use]
    pub const fn master_bit(self) -> u32 {
        match self {
            Self::Rcs0 => 1 << 0,
            Self::Bcs0 => 1 << 1,
            Self::Vcs0 => 1 << 2,
            Self::Vecs0 => 1 << 6,
        }
    }
}
