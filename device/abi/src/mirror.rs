//! The register page: a page of guest memory in which the device keeps a copy of the registers that a driver
//! reads or polls, so that a read costs no exit. The device stores with release order; a driver loads with
//! acquire order.
//!
//! A slot is one little-endian dword. RING_TIMESTAMP is as old as the engine's last event: a clock does not
//! tick in memory. A driver that needs the time reads it through a command, or with
//! [`crate::wire::Op::ClockPing`].

use crate::engine::{ENGINE_COUNT, Engine};
use crate::{csb, gt, guc, irq, lab, ring};

/// Bytes of the page that hold slots.
pub const SIZE: usize = 4 * SLOTS;

/// Per-engine registers in slot order.
pub const ENGINE_REGS: [u32; ENGINE_SLOTS] = [
    ring::EXECLIST_STATUS_LO,
    ring::EXECLIST_STATUS_HI,
    ring::CONTEXT_STATUS_PTR,
    ring::MI_MODE,
    ring::RESET_CTL,
    ring::HEAD,
    ring::TAIL,
    ring::START,
    ring::CTL,
    ring::ACTHD,
    ring::EIR,
    ring::TIMESTAMP,
    ring::CONTEXT_STATUS_BUF,
    ring::CONTEXT_STATUS_BUF + 4,
    ring::CONTEXT_STATUS_BUF + 8,
    ring::CONTEXT_STATUS_BUF + 12,
    ring::CONTEXT_STATUS_BUF + 16,
    ring::CONTEXT_STATUS_BUF + 20,
    ring::CONTEXT_STATUS_BUF + 24,
    ring::CONTEXT_STATUS_BUF + 28,
    ring::CONTEXT_STATUS_BUF + 32,
    ring::CONTEXT_STATUS_BUF + 36,
    ring::CONTEXT_STATUS_BUF + 40,
    ring::CONTEXT_STATUS_BUF + 44,
];
const ENGINE_SLOTS: usize = 12 + 2 * csb::ENTRIES as usize;

/// Registers outside the engines in slot order, after all engines' slots.
pub const GLOBAL_REGS: [u32; GLOBAL_SLOTS] = [
    irq::MASTER,
    irq::iir(0),
    irq::iir(1),
    irq::iir(2),
    irq::iir(3),
    gt::GDRST,
    gt::FORCEWAKE_ACK[0],
    gt::FORCEWAKE_ACK[1],
    gt::FORCEWAKE_ACK[2],
    guc::SEND_INTERRUPT,
    lab::ERROR_COUNT,
    lab::ERROR_CODE,
    lab::ERROR_ENGINE,
    lab::ERROR_ADDR,
    lab::ERROR_WORDS,
    lab::ERROR_WORDS + 4,
    lab::ERROR_WORDS + 8,
    lab::ERROR_WORDS + 12,
    lab::ERROR_TIME_LO,
    lab::ERROR_TIME_HI,
];
const GLOBAL_SLOTS: usize = 20;
const GLOBAL_FIRST: usize = ENGINE_COUNT * ENGINE_SLOTS;
const SCRATCH_FIRST: usize = GLOBAL_FIRST + GLOBAL_SLOTS;

/// Number of slots.
pub const SLOTS: usize = SCRATCH_FIRST + guc::SOFT_SCRATCH_COUNT as usize;

/// The slot of the register at BAR 0 `offset`, or `None` when it is not mirrored.
#[must_use]
pub fn slot(offset: u32) -> Option<usize> {
    if let Some((engine, relative)) = Engine::decode(offset) {
        let at = ENGINE_REGS.iter().position(|r| *r == relative)?;
        return Some(engine.index() * ENGINE_SLOTS + at);
    }
    if let Some(at) = GLOBAL_REGS.iter().position(|r| *r == offset) {
        return Some(GLOBAL_FIRST + at);
    }
    let scratch = offset.checked_sub(guc::SOFT_SCRATCH0)? / 4;
    (scratch < guc::SOFT_SCRATCH_COUNT).then(|| SCRATCH_FIRST + scratch as usize)
}

/// The register that slot `slot` holds; the inverse of [`slot`].
#[must_use]
pub fn register(slot: usize) -> Option<u32> {
    if slot < GLOBAL_FIRST {
        let engine = Engine::ALL[slot / ENGINE_SLOTS];
        return Some(engine.reg(ENGINE_REGS[slot % ENGINE_SLOTS]));
    }
    if slot < SCRATCH_FIRST {
        return Some(GLOBAL_REGS[slot - GLOBAL_FIRST]);
    }
    (slot < SLOTS).then(|| guc::soft_scratch((slot - SCRATCH_FIRST) as u32))
}
