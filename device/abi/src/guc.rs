//! The GuC mailbox registers (gen9; `intel_guc_reg.h`).

/// SOFT_SCRATCH(0): requests and replies; sixteen dwords.
pub const SOFT_SCRATCH0: u32 = 0xc180;
/// Number of SOFT_SCRATCH dwords.
pub const SOFT_SCRATCH_COUNT: u32 = 16;
/// GUC_SEND_INTERRUPT: bit 0 rings the GuC's doorbell.
pub const SEND_INTERRUPT: u32 = 0xc4c8;
/// Bit 0 of [`SEND_INTERRUPT`].
pub const SEND_TRIGGER: u32 = 1 << 0;

/// Offset of SOFT_SCRATCH(n), `n <` [`SOFT_SCRATCH_COUNT`].
#[must_use]
pub const fn soft_scratch(n: u32) -> u32 {
    SOFT_SCRATCH0 + 4 * n
}
