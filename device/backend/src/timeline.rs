//! Deciding how to wait for a deadline. Pure: time comes in as a number.

use std::fmt;

/// No deadline.
pub const NEVER: u64 = u64::MAX;

/// How the device waits for its deadlines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitMode {
    /// A nanosecond timerfd for the deadline itself. Costs no CPU; comes as late as the kernel's timers.
    Sleep,
    /// A timerfd `spin_ns` short of the deadline, then spinning.
    Hybrid {
        /// How long before a deadline spinning begins, in nanoseconds: more than the kernel's timers are late.
        spin_ns: u64,
    },
    /// A thread that watches the posted-write queue and the deadlines without a system call while a guest's rings
    /// are live. It takes a whole core.
    Poll,
}

impl WaitMode {
    /// The name on the command line and in statistics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sleep => "sleep",
            Self::Hybrid { .. } => "hybrid",
            Self::Poll => "poll",
        }
    }

    /// What to do about `deadline` (or [`NEVER`]) at time `now`, both device nanoseconds.
    ///
    /// In poll mode this is what the sleeping threads do while no ring is live: nothing is spun for there.
    #[inline]
    #[must_use]
    pub const fn step(self, deadline: u64, now: u64) -> Step {
        if deadline == NEVER {
            return Step::Idle;
        }
        if deadline <= now {
            return Step::Due;
        }
        match self {
            Self::Hybrid { spin_ns } => match deadline.saturating_sub(spin_ns) {
                start if start <= now => Step::Spin,
                start => Step::SleepUntil(start),
            },
            Self::Sleep | Self::Poll => Step::SleepUntil(deadline),
        }
    }
}

impl fmt::Display for WaitMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What to do about a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// There is none: wait for something else.
    Idle,
    /// Sleep until that device time.
    SleepUntil(u64),
    /// It is near: look at the clock until it has come.
    Spin,
    /// It has come.
    Due,
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: WaitMode = WaitMode::Hybrid { spin_ns: 100 };

    #[test]
    fn no_deadline_is_idle_in_every_mode() {
        for mode in [WaitMode::Sleep, HYBRID, WaitMode::Poll] {
            assert_eq!(mode.step(NEVER, 5), Step::Idle);
        }
    }

    #[test]
    fn a_deadline_is_due_at_its_time_and_not_a_nanosecond_before() {
        for mode in [WaitMode::Sleep, HYBRID, WaitMode::Poll] {
            assert_ne!(mode.step(1000, 999), Step::Due);
            assert_eq!(mode.step(1000, 1000), Step::Due);
            assert_eq!(mode.step(1000, 5000), Step::Due);
        }
    }

    #[test]
    fn sleep_sleeps_to_the_deadline_itself() {
        assert_eq!(WaitMode::Sleep.step(1000, 999), Step::SleepUntil(1000));
    }

    #[test]
    fn hybrid_sleeps_short_of_the_deadline_and_then_spins() {
        assert_eq!(HYBRID.step(1000, 0), Step::SleepUntil(900));
        assert_eq!(HYBRID.step(1000, 899), Step::SleepUntil(900));
        assert_eq!(HYBRID.step(1000, 900), Step::Spin);
        assert_eq!(HYBRID.step(50, 0), Step::Spin);
    }
}
