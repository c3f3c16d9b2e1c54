//! What the model tells about itself as it goes.

use execlab_abi::{engine::Engine, lab::Violation};

/// Something that happened, with the modelled time at which it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceEvent {
    /// Device time in nanoseconds at which the event was due. What happened late carries the due time too.
    pub time: u64,
    /// The engine concerned, if any.
    pub engine: Option<Engine>,
    /// What happened.
    pub kind: TraceKind,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TraceKind {
    /// The fourth ELSP word arrived and the pair is well formed. Context ids; `None` is the empty element.
    Submit {
        /// Element 0.
        first: u32,
        /// Element 1.
        second: Option<u32>,
    },
    /// The execlist unit took the pair that was submitted last.
    Accept,
    /// A context's image was read and its ring starts at `head`.
    ContextStart {
        /// Context id.
        id: u32,
        /// Byte offset in the ring.
        head: u32,
        /// Byte offset in the ring.
        tail: u32,
    },
    /// A context left the engine (its image is saved).
    ContextStop {
        /// Context id.
        id: u32,
        /// Byte offset in the ring.
        head: u32,
    },
    /// The streamer entered a batch.
    BatchStart {
        /// Address in the batch's address space.
        address: u64,
    },
    /// A post-sync or immediate store became visible.
    Store {
        /// Guest-physical address.
        gpa: u64,
        /// Value, zero-extended.
        value: u64,
    },
    /// MI_SEMAPHORE_WAIT does not hold: the engine waits.
    SemaphoreBlocked,
    /// MI_SEMAPHORE_WAIT holds after a wait.
    SemaphorePassed,
    /// The CSB write index now names this entry.
    Csb {
        /// Index, 0 to 5.
        index: u32,
        /// Status bits, [`execlab_abi::csb`].
        status: u32,
        /// Context id.
        id: u32,
    },
    /// A CSB entry became visible later than its index (`csb.visible`).
    CsbEntryVisible {
        /// Index, 0 to 5.
        index: u32,
    },
    /// Engine bits ([`execlab_abi::irq`]) reached the GT bank.
    EngineInterrupt {
        /// The engine's sixteen bits.
        bits: u32,
    },
    /// The MSI was sent.
    Msi,
    /// A violation was recorded.
    Violation(Violation),
    /// An engine reset began (GDRST).
    Reset,
    /// The reset is done, or RESET_CTL reports ready.
    ResetReady,
    /// The command budget of one call ran out; the engine goes on later.
    Deferred,
}
