//! Variants: for each step of a submission, where it runs. The steps themselves are the same for all.

/// What happens at the end of `submit_request`, under the timeline lock or after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OnSubmit {
    /// `tasklet_hi_schedule`; the tasklet usually runs when the submitter enables bottom halves.
    Tasklet,
    /// CSB and dequeue at once, under the timeline lock with interrupts off.
    CsbAndDequeue,
}

/// What the interrupt handler does about a context-switch interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OnIrq {
    /// `tasklet_hi_schedule`.
    Tasklet,
}

/// Where the tasklet reads the CSB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CsbSection {
    /// Before it takes the timeline lock: interrupts on.
    OutsideLock,
    /// Inside the timeline lock: interrupts off.
    InsideLock,
}

/// A way of submitting that i915 had, named by what it did and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Variant {
    /// Linux 4.9 to 4.18: everything in the tasklet, also for new requests. Parent of commit 9512f985c32d.
    Tasklet,
    /// Linux 4.19, commit 9512f985c32d (June 2018): new requests go to the port from the submitter, with the CSB
    /// processed under the irq-off timeline lock on both paths.
    Direct2018,
}

impl Variant {
    /// Every variant, oldest first.
    pub const ALL: [Self; 2] = [Self::Tasklet, Self::Direct2018];

    /// The name for command lines and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tasklet => "tasklet",
            Self::Direct2018 => "direct-2018",
        }
    }

    /// The variant of that [`name`](Self::name).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|variant| variant.name() == name)
    }

    /// What a submission does.
    #[must_use]
    pub const fn on_submit(self) -> OnSubmit {
        match self {
            Self::Tasklet => OnSubmit::Tasklet,
            Self::Direct2018 => OnSubmit::CsbAndDequeue,
        }
    }

    /// What a context-switch interrupt does.
    #[must_use]
    pub const fn on_irq(self) -> OnIrq {
        match self {
            Self::Tasklet | Self::Direct2018 => OnIrq::Tasklet,
        }
    }

    /// Where the tasklet reads the CSB.
    #[must_use]
    pub const fn csb_section(self) -> CsbSection {
        match self {
            Self::Tasklet => CsbSection::OutsideLock,
            Self::Direct2018 => CsbSection::InsideLock,
        }
    }
}
