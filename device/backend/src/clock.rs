//! Device time.

use std::time::Instant;

/// Device time: nanoseconds of `CLOCK_MONOTONIC` since the process made this clock.
///
/// Reading it is a vDSO call where the host's clock source allows it, so it costs tens of nanoseconds and no
/// system call. It never steps back.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock that reads 0 now.
    #[must_use]
    pub fn start() -> Self {
        Self { origin: Instant::now() }
    }

    /// Nanoseconds since [`Clock::start`]. Good for 584 years.
    #[inline]
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "584 years of nanoseconds fit")]
    pub fn now(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }
}
