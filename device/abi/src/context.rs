//! The logical ring context image (`intel_lrc_reg.h`, gen8/gen9 layout).
//!
//! The page at the LRCA is the per-process status page; the register state follows one page later. Indices
//! below are dwords from the start of the register-state page and name *value* slots; the dword before each
//! holds the register's MMIO offset, as the image is a list of MI_LOAD_REGISTER_IMM payloads.

/// Distance of the register-state page from the LRCA in bytes (`LRC_STATE_OFFSET`).
pub const STATE_OFFSET: u32 = 4096;
/// Smallest size in bytes of an image the model may touch: status page and register-state page.
pub const MIN_SIZE: u32 = 2 * 4096;
/// First dword of the register-state page: MI_NOOP, then MI_LOAD_REGISTER_IMM.
pub const LRI_HEADER: usize = 1;
/// CTX_CONTEXT_CONTROL, masked value.
pub const CONTEXT_CONTROL: usize = 3;
/// RING_HEAD; saved by hardware on switch-out.
pub const RING_HEAD: usize = 5;
/// RING_TAIL; written by the driver before a submission, sampled by hardware after it.
pub const RING_TAIL: usize = 7;
/// RING_START: GGTT address of the ring.
pub const RING_START: usize = 9;
/// RING_CTL.
pub const RING_CTL: usize = 11;
/// BB_HEAD_U: high dword of the address at which the first-level batch goes on.
pub const BB_HEAD_UDW: usize = 13;
/// BB_HEAD_L: low dword, with [`BB_HEAD_VALID`] if the context was left inside a batch. Whoever moves RING_HEAD of
/// such an image must clear it too.
pub const BB_HEAD_LDW: usize = 15;
/// BB_STATE: [`BB_STATE_PPGTT`].
pub const BB_STATE: usize = 17;
/// SECOND_BB_HEAD_U, of the second-level batch.
pub const SECOND_BB_HEAD_UDW: usize = 19;
/// SECOND_BB_HEAD_L.
pub const SECOND_BB_HEAD_LDW: usize = 21;
/// SECOND_BB_STATE.
pub const SECOND_BB_STATE: usize = 23;
/// CTX_TIMESTAMP; saved by hardware on switch-out.
pub const CTX_TIMESTAMP: usize = 35;
/// PDP3 upper dword; the lower one and the other three pairs follow every two dwords down to PDP0.
pub const PDP3_UDW: usize = 37;
/// PDP0 upper dword: high half of the PML4 address with four-level PPGTT.
pub const PDP0_UDW: usize = 49;
/// PDP0 lower dword: low half of the PML4 address with four-level PPGTT.
pub const PDP0_LDW: usize = 51;

/// BB_HEAD_L bit 0: the address is valid.
pub const BB_HEAD_VALID: u32 = 1 << 0;
/// BB_STATE bit 5: the batch lies in the PPGTT (`RING_BB_PPGTT`).
pub const BB_STATE_PPGTT: u32 = 1 << 5;

/// CTX_CONTEXT_CONTROL: do not restore the engine context (bit 0).
pub const CTL_RESTORE_INHIBIT: u32 = 1 << 0;
/// CTX_CONTEXT_CONTROL: do not save the context on switch-out (bit 2).
pub const CTL_SAVE_INHIBIT: u32 = 1 << 2;
/// CTX_CONTEXT_CONTROL: do not switch on a synchronous wait (bit 3).
pub const CTL_INHIBIT_SYN_CTX_SWITCH: u32 = 1 << 3;
