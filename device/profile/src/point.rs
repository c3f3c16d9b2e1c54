//! The injection points: the places in a submission's life where hardware takes time.

/// A place where a profile can put a delay. Named after what the hardware does, so that a profile reads like a
/// description of the part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Point {
    /// From the write that completes an ELSP submission (the fourth word) to the moment at which the execlist
    /// unit has taken the pair and `EXECLIST_STATUS` shows it.
    ElspAccept = 0,
    /// From accepting a context that is not yet running to its first ring command: the context image is read
    /// from memory (idle-to-active and every real context switch; never a lite restore).
    ContextRestore = 1,
    /// Writing the outgoing context's image back before its switch event is reported.
    ContextSave = 2,
    /// From one command to the moment at which the command streamer has seen that it must yield: the wait for an
    /// arbitration point when a new ELSP submission preempts a running context.
    Arbitration = 3,
    /// A batch's own length, added to each `MI_BATCH_BUFFER_START` that the streamer follows.
    BatchExecute = 4,
    /// Cost of each other command that the streamer executes.
    Command = 5,
    /// From the moment at which a CSB entry's write index is visible to the moment at which the entry itself
    /// is: the "late entry" fault of Tiger Lake. Zero on a well-behaved part.
    CsbVisible = 6,
    /// From an engine raising an interrupt to its bit in IIR and the message (MSI) that follows at once.
    IrqDeliver = 7,
    /// From the execution of a seqno store (`MI_STORE_DWORD_IMM`, `MI_FLUSH_DW`, `PIPE_CONTROL` post-sync) to its
    /// being visible to the CPU.
    SeqnoVisible = 8,
    /// From a reset request (`GEN6_GDRST`, `RING_RESET_CTL`) to the engine reporting that it is ready.
    ResetReady = 9,
}

impl Point {
    /// Number of points.
    pub const COUNT: usize = Self::ALL.len();

    /// Every point, in index order.
    pub const ALL: [Self; 10] = [
        Self::ElspAccept,
        Self::ContextRestore,
        Self::ContextSave,
        Self::Arbitration,
        Self::BatchExecute,
        Self::Command,
        Self::CsbVisible,
        Self::IrqDeliver,
        Self::SeqnoVisible,
        Self::ResetReady,
    ];

    /// Position in [`Point::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name that profiles, traces and statistics use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ElspAccept => "elsp.accept",
            Self::ContextRestore => "context.restore",
            Self::ContextSave => "context.save",
            Self::Arbitration => "arbitration",
            Self::BatchExecute => "batch.execute",
            Self::Command => "command.execute",
            Self::CsbVisible => "csb.visible",
            Self::IrqDeliver => "irq.deliver",
            Self::SeqnoVisible => "seqno.visible",
            Self::ResetReady => "reset.ready",
        }
    }

    /// The point of that [`name`](Self::name).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.name() == name)
    }
}
