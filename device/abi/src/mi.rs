//! Ring and batch commands (`intel_gpu_commands.h`): the encodings that driver and model use.
//!
//! An MI command has class 0 in bits 31:29 and its opcode in bits 28:23. Opcodes below 0x10 are one dword;
//! the others are `(length field) + 2` dwords. Which bits the length field takes differs by command, see
//! [`command_dwords`].

/// Class field, bits 31:29.
#[must_use]
pub const fn class(header: u32) -> u32 {
    header >> 29
}

/// Opcode field of an MI command, bits 28:23.
#[must_use]
pub const fn opcode(header: u32) -> u32 {
    (header >> 23) & 0x3f
}

/// Class of MI commands.
pub const CLASS_MI: u32 = 0;
/// Class of 2D (blitter) commands.
pub const CLASS_2D: u32 = 2;
/// Class of render, media and PIPE_CONTROL commands.
pub const CLASS_3D: u32 = 3;

const fn mi(op: u32) -> u32 {
    op << 23
}

/// MI_NOOP opcode.
pub const OP_NOOP: u32 = 0x00;
/// MI_USER_INTERRUPT opcode.
pub const OP_USER_INTERRUPT: u32 = 0x02;
/// MI_ARB_CHECK opcode.
pub const OP_ARB_CHECK: u32 = 0x05;
/// MI_ARB_ON_OFF opcode.
pub const OP_ARB_ON_OFF: u32 = 0x08;
/// MI_BATCH_BUFFER_END opcode.
pub const OP_BATCH_BUFFER_END: u32 = 0x0a;
/// MI_SEMAPHORE_WAIT opcode.
pub const OP_SEMAPHORE_WAIT: u32 = 0x1c;
/// MI_STORE_DATA_IMM opcode.
pub const OP_STORE_DATA_IMM: u32 = 0x20;
/// MI_LOAD_REGISTER_IMM opcode.
pub const OP_LOAD_REGISTER_IMM: u32 = 0x22;
/// MI_STORE_REGISTER_MEM opcode.
pub const OP_STORE_REGISTER_MEM: u32 = 0x24;
/// MI_FLUSH_DW opcode.
pub const OP_FLUSH_DW: u32 = 0x26;
/// MI_LOAD_REGISTER_MEM opcode.
pub const OP_LOAD_REGISTER_MEM: u32 = 0x29;
/// MI_BATCH_BUFFER_START opcode.
pub const OP_BATCH_BUFFER_START: u32 = 0x31;

/// MI_NOOP.
pub const NOOP: u32 = mi(OP_NOOP);
/// MI_USER_INTERRUPT.
pub const USER_INTERRUPT: u32 = mi(OP_USER_INTERRUPT);
/// MI_ARB_CHECK: an arbitration point.
pub const ARB_CHECK: u32 = mi(OP_ARB_CHECK);
/// MI_ARB_ON_OFF with arbitration disabled.
pub const ARB_DISABLE: u32 = mi(OP_ARB_ON_OFF);
/// MI_ARB_ON_OFF with arbitration enabled (bit 0).
pub const ARB_ENABLE: u32 = mi(OP_ARB_ON_OFF) | 1;
/// MI_BATCH_BUFFER_END.
pub const BATCH_BUFFER_END: u32 = mi(OP_BATCH_BUFFER_END);

/// Bit 22: the address is a GGTT address (SDI, SRM, LRM, SEMAPHORE_WAIT).
pub const USE_GGTT: u32 = 1 << 22;

/// MI_STORE_DATA_IMM of one dword to a GGTT address: header, address low, address high, value.
pub const STORE_DWORD_GGTT: u32 = mi(OP_STORE_DATA_IMM) | USE_GGTT | 2;
/// MI_STORE_DATA_IMM bit 21: the payload is a qword (length field 3).
pub const STORE_QWORD: u32 = 1 << 21;

/// MI_LOAD_REGISTER_IMM of `pairs` (offset, value) pairs, 1 to 126.
#[must_use]
pub const fn load_register_imm(pairs: u32) -> u32 {
    mi(OP_LOAD_REGISTER_IMM) | (2 * pairs - 1)
}

/// MI_STORE_REGISTER_MEM to a GGTT address: header, register, address low, address high.
pub const STORE_REGISTER_MEM_GGTT: u32 = mi(OP_STORE_REGISTER_MEM) | USE_GGTT | 2;
/// MI_LOAD_REGISTER_MEM from a GGTT address: header, register, address low, address high.
pub const LOAD_REGISTER_MEM_GGTT: u32 = mi(OP_LOAD_REGISTER_MEM) | USE_GGTT | 2;

/// MI_SEMAPHORE_WAIT (gen8: four dwords: header, data, address low, address high), polling, GGTT, without the
/// comparison: or it with a [`Compare`] through [`semaphore_wait`].
pub const SEMAPHORE_WAIT_POLL_GGTT: u32 = mi(OP_SEMAPHORE_WAIT) | USE_GGTT | SEMAPHORE_POLL | 2;
/// MI_SEMAPHORE_WAIT bit 15: poll memory until the comparison holds.
pub const SEMAPHORE_POLL: u32 = 1 << 15;
/// Position of the comparison (bits 14:12).
pub const SEMAPHORE_COMPARE_SHIFT: u32 = 12;

/// How MI_SEMAPHORE_WAIT compares: memory (SAD) on the left, inline data (SDD) on the right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Compare {
    /// Memory > data.
    Greater = 0,
    /// Memory ≥ data.
    GreaterOrEqual = 1,
    /// Memory < data.
    Less = 2,
    /// Memory ≤ data.
    LessOrEqual = 3,
    /// Memory = data.
    Equal = 4,
    /// Memory ≠ data.
    NotEqual = 5,
}

impl Compare {
    /// The comparison in a header; `None` for the two reserved encodings.
    #[must_use]
    pub const fn from_header(header: u32) -> Option<Self> {
        Some(match (header >> SEMAPHORE_COMPARE_SHIFT) & 7 {
            0 => Self::Greater,
            1 => Self::GreaterOrEqual,
            2 => Self::Less,
            3 => Self::LessOrEqual,
            4 => Self::Equal,
            5 => Self::NotEqual,
            _ => return None,
        })
    }

    /// Whether `memory` compared with `data` ends the wait.
    #[must_use]
    pub const fn holds(self, memory: u32, data: u32) -> bool {
        match self {
            Self::Greater => memory > data,
            Self::GreaterOrEqual => memory >= data,
            Self::Less => memory < data,
            Self::LessOrEqual => memory <= data,
            Self::Equal => memory == data,
            Self::NotEqual => memory != data,
        }
    }
}

/// Header of a polling MI_SEMAPHORE_WAIT on a GGTT address.
#[must_use]
pub const fn semaphore_wait(compare: Compare) -> u32 {
    SEMAPHORE_WAIT_POLL_GGTT | ((compare as u32) << SEMAPHORE_COMPARE_SHIFT)
}

/// MI_BATCH_BUFFER_START, gen8 form, three dwords, GGTT address space: header, address low, address high.
pub const BATCH_BUFFER_START_GGTT: u32 = mi(OP_BATCH_BUFFER_START) | 1;
/// MI_BATCH_BUFFER_START bit 8: the address is a PPGTT address.
pub const BATCH_PPGTT: u32 = 1 << 8;
/// MI_BATCH_BUFFER_START bit 22: second-level batch, MI_BATCH_BUFFER_END returns to the first level.
pub const BATCH_SECOND_LEVEL: u32 = 1 << 22;

/// MI_BATCH_BUFFER_START address bits that count: 47:2.
pub const BATCH_ADDRESS_MASK: u64 = 0xffff_ffff_fffc;
/// Register field of the register commands, bits 22:2.
pub const REGISTER_MASK: u32 = 0x007f_fffc;

/// Bits 15:14 of MI_FLUSH_DW and PIPE_CONTROL: what to write when the flush is done.
pub const POST_SYNC_SHIFT: u32 = 14;
/// Post-sync: nothing.
pub const POST_SYNC_NONE: u32 = 0;
/// Post-sync: immediate data (a qword for PIPE_CONTROL, dword or qword by length for MI_FLUSH_DW).
pub const POST_SYNC_IMMEDIATE: u32 = 1;
/// Post-sync: the timestamp.
pub const POST_SYNC_TIMESTAMP: u32 = 3;
/// Bit 21 of MI_FLUSH_DW and PIPE_CONTROL: the address is an offset into the HWSP.
pub const FLUSH_STORE_INDEX: u32 = 1 << 21;
/// Bit 8: raise the user interrupt when done (`MI_FLUSH_DW`/`PIPE_CONTROL` notify).
pub const FLUSH_NOTIFY: u32 = 1 << 8;

/// MI_FLUSH_DW that stores a dword: header, address low (see [`FLUSH_DW_GGTT`]), address high, value.
pub const FLUSH_DW_STORE: u32 = mi(OP_FLUSH_DW) | (POST_SYNC_IMMEDIATE << POST_SYNC_SHIFT) | 2;
/// MI_FLUSH_DW address-low bit 2: the address is a GGTT address.
pub const FLUSH_DW_GGTT: u32 = 1 << 2;

/// PIPE_CONTROL header, six dwords: header, flags, address low, address high, data low, data high.
pub const PIPE_CONTROL: u32 = (CLASS_3D << 29) | (3 << 27) | (2 << 24) | 4;
/// Bits of a header that tell PIPE_CONTROL from other class-3 commands.
pub const PIPE_CONTROL_MASK: u32 = 0xffff_0000;
/// PIPE_CONTROL flags bit 24: the address is a GGTT address.
pub const PIPE_CONTROL_GGTT: u32 = 1 << 24;
/// PIPE_CONTROL flags bit 20: command streamer stall.
pub const PIPE_CONTROL_CS_STALL: u32 = 1 << 20;

/// Length of a command in dwords, from its header; `None` for a class that does not exist.
///
/// MI_FLUSH_DW's length field is bits 5:0 only (bit 7 is a flag). A few class-3 commands are one dword
/// (`PIPELINE_SELECT`, `3DSTATE_…` of sub-type 1 opcode 1).
#[must_use]
pub const fn command_dwords(header: u32) -> Option<u32> {
    match class(header) {
        CLASS_MI => Some(match opcode(header) {
            0..0x10 => 1,
            OP_FLUSH_DW => (header & 0x3f) + 2,
            _ => (header & 0xff) + 2,
        }),
        CLASS_2D => Some((header & 0xff) + 2),
        CLASS_3D => Some(match header >> 16 {
            0x6904 | 0x680b | 0x6104 => 1,
            _ => (header & 0xff) + 2,
        }),
        _ => None,
    }
}
