//! Requests as lists of steps: what each command costs and does, and how it is encoded.

use execlab_abi::{lab, mi};

/// One command of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// MI_NOOP.
    Noop,
    /// MI_ARB_CHECK.
    ArbCheck,
    /// Busy for that many nanoseconds.
    Busy(u32),
    /// Store of a seqno.
    Store(u32),
    /// MI_USER_INTERRUPT.
    User,
}

impl Step {
    /// Appends the command; `seqno` is the GGTT address that stores go to.
    pub fn encode(self, seqno: u32, to: &mut Vec<u32>) {
        match self {
            Self::Noop => to.push(mi::NOOP),
            Self::ArbCheck => to.push(mi::ARB_CHECK),
            Self::Busy(ns) => to.extend([mi::load_register_imm(1), lab::CS_BUSY, ns]),
            Self::Store(value) => to.extend([mi::STORE_DWORD_GGTT, seqno, 0, value]),
            Self::User => to.push(mi::USER_INTERRUPT),
        }
    }

    /// Dwords of the command.
    pub fn dwords(self) -> usize {
        match self {
            Self::Noop | Self::ArbCheck | Self::User => 1,
            Self::Busy(_) => 3,
            Self::Store(_) => 4,
        }
    }
}

/// A request that stores `seqno`: four shapes, padded to an even number of dwords.
pub fn request(shape: u64, seqno: u32) -> Vec<Step> {
    let mut steps = match shape {
        0 => vec![Step::Store(seqno), Step::User, Step::ArbCheck],
        1 => vec![Step::Busy(3_000), Step::Store(seqno), Step::User],
        2 => vec![Step::Busy(2_000), Step::ArbCheck, Step::Busy(2_000), Step::Store(seqno), Step::User],
        _ => vec![Step::Noop, Step::Noop, Step::Store(seqno), Step::User, Step::ArbCheck, Step::Noop],
    };
    if !steps.iter().map(|s| s.dwords()).sum::<usize>().is_multiple_of(2) {
        steps.push(Step::Noop);
    }
    steps
}
