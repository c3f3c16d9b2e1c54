//! One engine's state, and its small timeline of what is due.

use execlab_abi::csb::Entry;

use crate::context::Context;
use crate::csb::Csb;
use crate::fifo::Fifo;
use crate::port::Port;
use crate::streamer::Line;

/// Effects of executed commands that are not visible yet. Their order is the order of execution, so an interrupt
/// never overtakes a seqno.
pub(crate) const EFFECTS: usize = 16;
/// Room that a step of the streamer needs at most: each command has at most two effects, a switch three.
pub(crate) const EFFECTS_PER_STEP: usize = 4;

/// What the engine's switching and executing half does, and when it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No context.
    Idle,
    /// The element's image is being read until `at`.
    Restore { at: u64 },
    /// The next command is executed at `at`.
    Execute { at: u64 },
    /// A semaphore does not hold; it is looked at again at `at`.
    Wait { at: u64 },
    /// The streamer has met an arbitration point with a list queued, and lets go at `at`.
    Yield { at: u64 },
    /// The context's image is being written until `at`.
    Save { at: u64, then: Leave },
    /// Held by STOP_RING or RESET_CTL at a command boundary.
    Stopped,
    /// Met an instruction error; only a reset helps.
    Hung,
}

/// Why a context leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leave {
    /// Its head reached its tail.
    Complete,
    /// Another context was submitted, or this one again with force restore.
    Preempted,
}

impl Phase {
    /// When it goes on; `u64::MAX` if something else must happen first.
    pub(crate) const fn due(self) -> u64 {
        match self {
            Self::Restore { at }
            | Self::Execute { at }
            | Self::Wait { at }
            | Self::Yield { at }
            | Self::Save { at, .. } => at,
            Self::Idle | Self::Stopped | Self::Hung => u64::MAX,
        }
    }
}

/// What a command or a context switch makes visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// A dword store.
    Store32 { gpa: u64, value: u32 },
    /// A qword store.
    Store64 { gpa: u64, value: u64 },
    /// Engine interrupt bits.
    Interrupt { bits: u32 },
    /// A CSB entry, and whether the context-switch interrupt follows it.
    Csb { entry: Entry, interrupt: bool },
}

/// An [`Effect`] under way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pending {
    /// When it becomes visible.
    pub due: u64,
    /// What.
    pub effect: Effect,
}

/// Interrupt bits under way to the GT bank.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Raised {
    /// When they arrive.
    pub due: u64,
    /// Engine bits.
    pub bits: u32,
}

/// A CSB entry whose index is visible already.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LateEntry {
    /// When it becomes visible.
    pub due: u64,
    /// Index in the CSB.
    pub index: u32,
    /// The entry.
    pub entry: Entry,
}

/// Which part of an engine acts next. The order is the order of acting at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// RESET_CTL becomes ready.
    ResetReady,
    /// The oldest effect becomes visible.
    Effect,
    /// A late CSB entry becomes visible.
    LateEntry,
    /// Interrupt bits arrive.
    Interrupt,
    /// The port takes a submission.
    Accept,
    /// The streamer goes on.
    Streamer,
}

/// One engine.
#[derive(Debug)]
pub(crate) struct EngineState {
    /// The execlist submit port and its lists.
    pub port: Port,
    /// The context on the engine, once its image is read.
    pub context: Option<Context>,
    /// What the engine does.
    pub phase: Phase,
    /// Not yet visible effects.
    pub effects: Fifo<Pending, EFFECTS>,
    /// Not yet visible CSB entries.
    pub late: Fifo<LateEntry, 8>,
    /// Not yet arrived interrupts.
    pub irqs: Fifo<Raised, 16>,
    /// The CSB's pointers.
    pub csb: Csb,
    /// Fetched commands.
    pub line: Line,
    /// STOP_RING is set.
    pub stop: bool,
    /// RESET_CTL's request bit is set.
    pub held: bool,
    /// A GDRST of this engine is under way.
    pub in_reset: bool,
    /// When RESET_CTL becomes ready, or `u64::MAX`.
    pub reset_ready: u64,
    /// Commands since modelled time last moved.
    pub streak: u32,
    /// Steps left in the current call.
    pub budget: u32,
}

impl EngineState {
    /// After reset.
    pub(crate) const fn new() -> Self {
        Self {
            port: Port::new(),
            context: None,
            phase: Phase::Idle,
            effects: Fifo::new(),
            late: Fifo::new(),
            irqs: Fifo::new(),
            csb: Csb::new(),
            line: Line::new(),
            stop: false,
            held: false,
            in_reset: false,
            reset_ready: u64::MAX,
            streak: 0,
            budget: 0,
        }
    }

    /// What acts next, and when; `u64::MAX` for never.
    pub(crate) fn next(&self) -> (u64, Source) {
        let mut first = (self.reset_ready, Source::ResetReady);
        let mut consider = |due: u64, source| {
            if due < first.0 {
                first = (due, source);
            }
        };
        if let Some(pending) = self.effects.front() {
            consider(pending.due, Source::Effect);
        }
        if let Some(late) = self.late.front() {
            consider(late.due, Source::LateEntry);
        }
        if let Some(raised) = self.irqs.front() {
            consider(raised.due, Source::Interrupt);
        }
        consider(self.port.accept_due(), Source::Accept);
        consider(self.phase.due(), Source::Streamer);
        first
    }
}
