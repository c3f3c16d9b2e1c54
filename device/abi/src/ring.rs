//! Per-engine registers, relative to [`crate::engine::Engine::mmio_base`] (`intel_engine_regs.h`).

/// RING_TAIL, live copy; the driver writes the tail into the context image instead.
pub const TAIL: u32 = 0x030;
/// RING_HEAD, live copy: offset of the next command in the ring, in bytes.
pub const HEAD: u32 = 0x034;
/// RING_START, live copy: GGTT address of the ring.
pub const START: u32 = 0x038;
/// RING_CTL, live copy: see [`CTL_VALID`] and [`ctl_size`].
pub const CTL: u32 = 0x03c;
/// RING_ACTHD: GGTT/PPGTT address being executed, low dword.
pub const ACTHD: u32 = 0x074;
/// RING_HWS_PGA: GGTT address of the engine's status page (HWSP).
pub const HWS_PGA: u32 = 0x080;
/// RING_HWSTAM: status page write mask; all ones under execlists.
pub const HWSTAM: u32 = 0x098;
/// RING_MI_MODE, masked: [`MI_MODE_STOP_RING`], [`MI_MODE_IDLE`].
pub const MI_MODE: u32 = 0x09c;
/// RING_IMR: per-engine interrupt mask (a set bit suppresses), shifted like the engine's half of its GT bank: see
/// [`crate::engine::Engine::ring_imr`]. All ones after power-on.
pub const IMR: u32 = 0x0a8;
/// RING_EIR: error identity; bit 0 is an instruction error.
pub const EIR: u32 = 0x0b0;
/// RING_EMR: error mask.
pub const EMR: u32 = 0x0b4;
/// RING_ESR: error status.
pub const ESR: u32 = 0x0b8;
/// RING_RESET_CTL, masked: [`RESET_CTL_REQUEST`], [`RESET_CTL_READY`].
pub const RESET_CTL: u32 = 0x0d0;
/// RING_ELSP: execlist submit port, write only; four dwords make one submission, in the order element 1
/// high, element 1 low, element 0 high, element 0 low. The fourth write submits.
pub const ELSP: u32 = 0x230;
/// RING_EXECLIST_STATUS_LO: see the `EXECLIST_*` bits.
pub const EXECLIST_STATUS_LO: u32 = 0x234;
/// RING_EXECLIST_STATUS_HI: context id (descriptor's high dword) now running.
pub const EXECLIST_STATUS_HI: u32 = 0x238;
/// RING_CONTEXT_CONTROL, masked.
pub const CONTEXT_CONTROL: u32 = 0x244;
/// RING_MODE_GEN7, masked: [`MODE_RUN_LIST_ENABLE`].
pub const MODE: u32 = 0x29c;
/// RING_TIMESTAMP: free running, [`TIMESTAMP_NS_NUM`]/[`TIMESTAMP_NS_DEN`] nanoseconds a tick, low dword.
pub const TIMESTAMP: u32 = 0x358;
/// RING_TIMESTAMP_UDW: high dword.
pub const TIMESTAMP_UDW: u32 = 0x35c;
/// RING_CONTEXT_STATUS_BUF: MMIO copy of the CSB; entry `i` (status, then context id) at `+ 8·i`, `i < 6`.
pub const CONTEXT_STATUS_BUF: u32 = 0x370;
/// RING_CONTEXT_STATUS_PTR: write pointer in bits 2:0, read pointer in bits 10:8, upper half is a write mask.
pub const CONTEXT_STATUS_PTR: u32 = 0x3a0;
/// RING_FORCE_TO_NONPRIV slots, plain storage (`i < 12`, `+ 4·i`).
pub const FORCE_TO_NONPRIV: u32 = 0x4d0;

/// MI_MODE: stop the ring at the next command.
pub const MI_MODE_STOP_RING: u32 = 1 << 8;
/// MI_MODE: the engine is idle (read only).
pub const MI_MODE_IDLE: u32 = 1 << 9;

/// RESET_CTL: prepare for reset.
pub const RESET_CTL_REQUEST: u32 = 1 << 0;
/// RESET_CTL: ready for reset (read only).
pub const RESET_CTL_READY: u32 = 1 << 1;

/// RING_MODE: execlists on (GFX_RUN_LIST_ENABLE).
pub const MODE_RUN_LIST_ENABLE: u32 = 1 << 15;

/// EIR/ESR: a bad command was met (instruction error).
pub const ERROR_INSTRUCTION: u32 = 1 << 0;

/// CONTEXT_STATUS_PTR: write pointer, bits 2:0.
pub const CSB_WRITE_PTR_MASK: u32 = 0x7;
/// CONTEXT_STATUS_PTR: read pointer, bits 10:8; software's, hardware only compares.
pub const CSB_READ_PTR_MASK: u32 = 0x700;
/// Position of [`CSB_READ_PTR_MASK`].
pub const CSB_READ_PTR_SHIFT: u32 = 8;

/// RING_CTL: the ring may be executed.
pub const CTL_VALID: u32 = 1 << 0;
/// RING_CTL: mask of the size field; size in bytes is the field plus one page.
pub const CTL_SIZE_MASK: u32 = 0x001f_f000;

/// RING_HEAD: byte offset inside the ring (`HEAD_ADDR`); the upper bits count wraps.
pub const HEAD_ADDR_MASK: u32 = 0x001f_fffc;
/// RING_TAIL: byte offset inside the ring (`TAIL_ADDR`), qword aligned.
pub const TAIL_ADDR_MASK: u32 = 0x001f_fff8;

/// RING_CTL of a ring of `bytes` bytes: a multiple of a page, at most 2 MiB.
#[must_use]
pub const fn ctl(bytes: u32) -> u32 {
    ((bytes - 0x1000) & CTL_SIZE_MASK) | CTL_VALID
}

/// Size in bytes of the ring that a RING_CTL value describes.
#[must_use]
pub const fn ctl_size(ctl: u32) -> u32 {
    (ctl & CTL_SIZE_MASK) + 0x1000
}

/// EXECLIST_STATUS_LO: which of the two internal lists runs.
pub const EXECLIST_CURRENT_LIST: u32 = 1 << 0;
/// EXECLIST_STATUS_LO: which of the two lists takes the next submission.
pub const EXECLIST_WRITE_POINTER: u32 = 1 << 1;
/// EXECLIST_STATUS_LO: both lists are taken.
pub const EXECLIST_QUEUE_FULL: u32 = 1 << 2;
/// EXECLIST_STATUS_LO: list 1 holds a submission.
pub const EXECLIST_LIST1_VALID: u32 = 1 << 3;
/// EXECLIST_STATUS_LO: list 0 holds a submission.
pub const EXECLIST_LIST0_VALID: u32 = 1 << 4;
/// EXECLIST_STATUS_LO: position of the last switch reason (bits 13:5).
pub const EXECLIST_LAST_SWITCH_SHIFT: u32 = 5;
/// EXECLIST_STATUS_LO: position of the active element (bits 15:14): 0 none, 1 element 0, 2 element 1.
pub const EXECLIST_ACTIVE_ELEMENT_SHIFT: u32 = 14;
/// EXECLIST_STATUS_LO: arbitration is enabled.
pub const EXECLIST_ARB_ENABLE: u32 = 1 << 16;
/// EXECLIST_STATUS_LO: list 1 is active.
pub const EXECLIST_LIST1_ACTIVE: u32 = 1 << 17;
/// EXECLIST_STATUS_LO: list 0 is active.
pub const EXECLIST_LIST0_ACTIVE: u32 = 1 << 18;

/// One tick of RING_TIMESTAMP is 250/3 ns = 83.33 ns on a 12 MHz part (Skylake to Coffee Lake).
pub const TIMESTAMP_NS_NUM: u64 = 250;
/// Denominator of [`TIMESTAMP_NS_NUM`].
pub const TIMESTAMP_NS_DEN: u64 = 3;

/// A masked-register write that sets `bits` (`_MASKED_BIT_ENABLE`).
#[must_use]
pub const fn masked_set(bits: u32) -> u32 {
    (bits << 16) | bits
}

/// A masked-register write that clears `bits` (`_MASKED_BIT_DISABLE`).
#[must_use]
pub const fn masked_clear(bits: u32) -> u32 {
    bits << 16
}

/// What a masked write of `value` leaves of `old`.
#[must_use]
pub const fn masked_apply(old: u32, value: u32) -> u32 {
    let mask = value >> 16;
    (old & !mask) | (value & mask)
}
