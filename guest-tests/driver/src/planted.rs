//! Mistakes that a test plants, to see that what is to find them does. Without the feature `planted` there is no way to
//! plant one, and nothing of this is left in the code.

/// A mistake that drivers have really had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bug {
    /// ELSP is written again before the hardware has answered the last write.
    SubmitBeforeAck,
    /// The CSB entries are read before the index that says which of them are there.
    EntryBeforeIndex,
    /// A waiter that has turned the interrupt on does not look again before it sleeps: it waits to be told.
    LostWakeUp,
    /// The interrupt is acknowledged after the CSB was read, and with it what came in between.
    AckAfterCsb,
    /// A ring is filled to the last byte, which looks like an empty one.
    RingFullOffByOne,
    /// A bottom half that leaves requests in the queue schedules itself, though only an event can help them.
    TaskletRearmed,
    /// Seqnos are compared as if they never wrapped.
    SeqnoWithoutWrap,
}

impl Bug {
    /// Every one.
    pub const ALL: [Self; 7] = [
        Self::SubmitBeforeAck,
        Self::EntryBeforeIndex,
        Self::LostWakeUp,
        Self::AckAfterCsb,
        Self::RingFullOffByOne,
        Self::TaskletRearmed,
        Self::SeqnoWithoutWrap,
    ];

    /// The name for command lines and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SubmitBeforeAck => "submit-before-ack",
            Self::EntryBeforeIndex => "entry-before-index",
            Self::LostWakeUp => "lost-wake-up",
            Self::AckAfterCsb => "ack-after-csb",
            Self::RingFullOffByOne => "ring-full-off-by-one",
            Self::TaskletRearmed => "tasklet-rearmed",
            Self::SeqnoWithoutWrap => "seqno-without-wrap",
        }
    }

    /// The bug of that [`name`](Self::name).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|bug| bug.name() == name)
    }
}

/// The bug that a driver has on purpose, if any.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Planted {
    #[cfg(feature = "planted")]
    bug: Option<Bug>,
}

impl Planted {
    /// With `bug` planted.
    #[cfg(feature = "planted")]
    pub(crate) const fn with(bug: Bug) -> Self {
        Self { bug: Some(bug) }
    }

    /// Whether `bug` was planted.
    #[inline]
    pub(crate) fn has(self, bug: Bug) -> bool {
        #[cfg(feature = "planted")]
        let has = self.bug == Some(bug);
        #[cfg(not(feature = "planted"))]
        let has = {
            let _ = bug;
            false
        };
        has
    }
}
