//! When the probe wants to wake up next.

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

/// How wake-ups follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schedule {
    /// gem_syslatency's: last wake-up + `min_ns` + uniform below `random_ns`. The phase is random towards
    /// anything periodic, so means are unbiased.
    Random {
        /// Shortest interval in nanoseconds, at least 1000.
        min_ns: u64,
        /// Bound of the random addition in nanoseconds; 0 for none.
        random_ns: u64,
    },
    /// cyclictest's: last deadline + `interval_ns`; deadlines that have passed already are skipped.
    Fixed {
        /// Interval in nanoseconds, at least 1000.
        interval_ns: u64,
    },
}

/// Shortest interval that makes sense: below it the probe is the load.
const MIN_INTERVAL_NS: u64 = 1000;

impl Schedule {
    /// Most wake-ups in `duration_ns`.
    pub(crate) fn most_wakes(self, duration_ns: u64) -> u64 {
        let (Self::Random { min_ns: shortest, .. } | Self::Fixed { interval_ns: shortest }) = self;
        duration_ns / shortest.max(MIN_INTERVAL_NS) + 2
    }

    /// Whether the shortest interval is long enough.
    pub(crate) const fn is_sane(self) -> bool {
        let (Self::Random { min_ns: shortest, .. } | Self::Fixed { interval_ns: shortest }) = self;
        shortest >= MIN_INTERVAL_NS
    }
}

/// A schedule with its random source.
#[derive(Debug)]
pub(crate) struct Deadlines {
    schedule: Schedule,
    random: SmallRng,
    /// Deadlines of a fixed schedule that had passed before the probe woke from an earlier one.
    pub missed: u64,
}

impl Deadlines {
    pub fn new(schedule: Schedule, seed: u64) -> Self {
        Self { schedule, random: SmallRng::seed_from_u64(seed), missed: 0 }
    }

    /// The deadline after `last` (deadline) and `woke` (when the probe really woke).
    pub fn next(&mut self, last: u64, woke: u64) -> u64 {
        match self.schedule {
            Schedule::Random { min_ns, random_ns: 0 } => woke + min_ns,
            Schedule::Random { min_ns, random_ns } => woke + min_ns + self.random.random_range(0..random_ns),
            Schedule::Fixed { interval_ns } => {
                let next = last + interval_ns;
                if next > woke {
                    return next;
                }
                let skip = (woke - next) / interval_ns + 1;
                self.missed += skip;
                next + skip * interval_ns
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_deadlines_stay_in_their_window_and_repeat_with_the_seed() {
        let schedule = Schedule::Random { min_ns: 100_000, random_ns: 1_000_000 };
        let draw = |seed| {
            let mut deadlines = Deadlines::new(schedule, seed);
            (0..1000).map(|_| deadlines.next(0, 0)).collect::<Vec<_>>()
        };
        let drawn = draw(7);
        assert!(drawn.iter().all(|d| (100_000..1_100_000).contains(d)));
        let mean = drawn.iter().sum::<u64>() / 1000;
        assert!((550_000..650_000).contains(&mean), "{mean}");
        assert_eq!(drawn, draw(7));
        assert_ne!(drawn, draw(8));
    }

    #[test]
    fn a_late_wake_up_skips_the_deadlines_that_have_passed() {
        let mut deadlines = Deadlines::new(Schedule::Fixed { interval_ns: 1000 }, 0);
        assert_eq!(deadlines.next(5000, 5400), 6000);
        assert_eq!(deadlines.next(6000, 8500), 9000);
        assert_eq!(deadlines.next(9000, 10_000), 11_000);
        assert_eq!(deadlines.missed, 3);
    }
}
