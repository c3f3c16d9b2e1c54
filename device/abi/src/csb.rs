//! The context status buffer and the rest of the hardware status page (`intel_engine.h`, gen8 to gen10).

/// Number of CSB entries.
pub const ENTRIES: u32 = 6;
/// Byte offset of entry 0 in the HWSP (`I915_HWS_CSB_BUF0_INDEX`, dword 0x10).
pub const HWSP_BUF0: u32 = 0x40;
/// Bytes per entry: status dword, then context id dword.
pub const ENTRY_SIZE: u32 = 8;
/// Byte offset of the write index in the HWSP (`I915_HWS_CSB_WRITE_INDEX`, dword 0x1f): index of the entry
/// written last, 0 to 5.
pub const HWSP_WRITE_INDEX: u32 = 0x7c;
/// Byte offset of the preempt semaphore in the HWSP (`I915_GEM_HWS_PREEMPT`, dword 0x32).
pub const HWSP_PREEMPT: u32 = 0xc8;
/// Write index after an engine reset: no entry has been written, and the next event lands in entry 0.
pub const RESET_WRITE_INDEX: u32 = 7;

/// Status bit 0: the engine left idle.
pub const IDLE_ACTIVE: u32 = 1 << 0;
/// Status bit 1: the context was preempted by a new submission.
pub const PREEMPTED: u32 = 1 << 1;
/// Status bit 2: the next element of the same list runs.
pub const ELEMENT_SWITCH: u32 = 1 << 2;
/// Status bit 3: the engine became idle.
pub const ACTIVE_IDLE: u32 = 1 << 3;
/// Status bit 4: the context ran to its tail.
pub const COMPLETE: u32 = 1 << 4;
/// Status bit 7: switched away while waiting for a semaphore.
pub const WAIT_SEMAPHORE: u32 = 1 << 7;
/// Status bit 15: the running context was resubmitted, its tail read again.
pub const LITE_RESTORE: u32 = 1 << 15;

/// One CSB entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Entry {
    /// Status bits.
    pub status: u32,
    /// Id of the context that was left; 0 for idle→active.
    pub context_id: u32,
}

impl Entry {
    /// What the driver writes into an entry it has consumed, and finds in one not yet visible.
    pub const POISON: u64 = u64::MAX;

    /// The entry as the qword that memory holds: status low, context id high.
    #[must_use]
    pub const fn to_qword(self) -> u64 {
        (self.status as u64) | ((self.context_id as u64) << 32)
    }

    /// The entry in a qword of memory.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "the two halves are taken apart")]
    pub const fn from_qword(qword: u64) -> Self {
        Self { status: qword as u32, context_id: (qword >> 32) as u32 }
    }

    /// Whether the event acknowledges the last ELSP write: idle→active or preempted (bits 0 and 1).
    #[must_use]
    pub const fn is_ack(self) -> bool {
        self.status & (IDLE_ACTIVE | PREEMPTED) != 0
    }

    /// Byte offset in the HWSP of entry `index`.
    #[must_use]
    pub const fn hwsp_offset(index: u32) -> u32 {
        HWSP_BUF0 + index * ENTRY_SIZE
    }
}

/// The index after `index`, with wrap. [`RESET_WRITE_INDEX`] is followed by 0.
#[must_use]
pub const fn next_index(index: u32) -> u32 {
    if index + 1 >= ENTRIES { 0 } else { index + 1 }
}
