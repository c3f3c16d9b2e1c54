//! Registers that no hardware has. This is the one table of them.
//!
//! They lie at 0x1f_0000 and above inside the register BAR, where gen9 has nothing. A driver for real hardware
//! must not touch them; the model treats every other unused offset as plain storage.
//!
//! | offset | name | access | meaning |
//! |---|---|---|---|
//! | 0x1f_0000 | [`CS_BUSY`] | MI_LOAD_REGISTER_IMM | the executing engine is busy for that many nanoseconds |
//! | 0x1f_0010 | [`ERROR_COUNT`] | read | protocol violations since reset |
//! | 0x1f_0014 | [`ERROR_CODE`] | read | code of the last one, see [`Violation`] |
//! | 0x1f_0018 | [`ERROR_ENGINE`] | read | engine index of the last one, or 0xff |
//! | 0x1f_001c | [`ERROR_ADDR`] | read | register offset or GGTT address at fault |
//! | 0x1f_0020… | [`ERROR_WORDS`] | read | four offending dwords |
//! | 0x1f_0030 | [`ERROR_TIME_LO`] | read | device time of the last one, low dword of nanoseconds |
//! | 0x1f_0034 | [`ERROR_TIME_HI`] | read | high dword |
//! | 0x1f_0038 | [`ERROR_CLEAR`] | write | any value forgets the state above |

/// CS_BUSY, for MI_LOAD_REGISTER_IMM only: makes the command streamer busy for the loaded number of modelled
/// nanoseconds (multiplied by the dilation), so that a batch has a length.
pub const CS_BUSY: u32 = 0x1f_0000;
/// Number of protocol violations since reset or [`ERROR_CLEAR`].
pub const ERROR_COUNT: u32 = 0x1f_0010;
/// Code of the last violation: a [`Violation`] as `u32`, 0 for none.
pub const ERROR_CODE: u32 = 0x1f_0014;
/// Engine of the last violation, or [`NO_ENGINE`].
pub const ERROR_ENGINE: u32 = 0x1f_0018;
/// Register offset or GGTT address of the last violation.
pub const ERROR_ADDR: u32 = 0x1f_001c;
/// First of four offending dwords.
pub const ERROR_WORDS: u32 = 0x1f_0020;
/// Device time of the last violation in nanoseconds, low dword.
pub const ERROR_TIME_LO: u32 = 0x1f_0030;
/// High dword of [`ERROR_TIME_LO`].
pub const ERROR_TIME_HI: u32 = 0x1f_0034;
/// Write: forget the error state.
pub const ERROR_CLEAR: u32 = 0x1f_0038;
/// [`ERROR_ENGINE`] when no engine is concerned.
pub const NO_ENGINE: u32 = 0xff;

/// What a driver did that hardware leaves undefined or cannot do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Violation {
    /// ELSP was written again before the last submission was acknowledged. Words: both submissions' element-0
    /// low and high dwords.
    ElspBeforeAck = 1,
    /// Element 0 is not valid, or reserved bits of a descriptor are set. Words: the four ELSP dwords.
    InvalidDescriptor = 2,
    /// Both elements name the same context. Words: the four ELSP dwords.
    SameContextTwice = 3,
    /// A GGTT address without a present entry, or one whose page is not guest memory. Words: address, entry
    /// low, entry high, access length.
    UnmappedPage = 4,
    /// RING_START, RING_CTL, head or tail of an image make no ring. Words: start, control, head, tail.
    BadRing = 5,
    /// A command that the streamer cannot take (wrong length, unknown class). Words: the command's first four
    /// dwords.
    BadCommand = 6,
    /// A batch that starts itself without an end, or nests too deep. Words: batch address low and high, depth.
    SelfReference = 7,
    /// ELSP was written while execlists were off (RING_MODE), or while the engine was held in reset.
    ElspWhileOff = 8,
    /// A CSB entry overwrote one the driver's read pointer had not passed. Informational; hardware does it too.
    CsbOverrun = 9,
    /// A PPGTT address without a present entry. Words: address low, high, level, entry low.
    UnmappedPpgtt = 10,
    /// A register offset outside the BAR, or not dword aligned. Words: offset, value.
    BadOffset = 11,
    /// A malformed virtqueue chain or request on the vhost-user door.
    BadDescriptorChain = 12,
}

impl Violation {
    /// Every code.
    pub const ALL: [Self; 12] = [
        Self::ElspBeforeAck,
        Self::InvalidDescriptor,
        Self::SameContextTwice,
        Self::UnmappedPage,
        Self::BadRing,
        Self::BadCommand,
        Self::SelfReference,
        Self::ElspWhileOff,
        Self::CsbOverrun,
        Self::UnmappedPpgtt,
        Self::BadOffset,
        Self::BadDescriptorChain,
    ];

    /// The violation with that code.
    #[must_use]
    pub fn from_code(code: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|v| *v as u32 == code)
    }

    /// A short name for messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ElspBeforeAck => "ELSP written before the last submission was acknowledged",
            Self::InvalidDescriptor => "invalid context descriptor",
            Self::SameContextTwice => "both ELSP elements name the same context",
            Self::UnmappedPage => "unmapped GGTT page",
            Self::BadRing => "impossible ring registers in a context image",
            Self::BadCommand => "command the streamer cannot take",
            Self::SelfReference => "batch buffers nest without end",
            Self::ElspWhileOff => "ELSP written while execlists are off",
            Self::CsbOverrun => "CSB entry overwritten before it was read",
            Self::UnmappedPpgtt => "unmapped PPGTT page",
            Self::BadOffset => "register offset outside the BAR or not aligned",
            Self::BadDescriptorChain => "malformed virtqueue chain",
        }
    }
}
