//! How the clock of the driver and the clock of the device are related.

use rustix::time::{ClockId, clock_gettime};

/// This side's clock: CLOCK_MONOTONIC in nanoseconds.
#[must_use]
pub fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// Device time minus this side's time, and how wrong that may be. True for the moment of the measurement: two
/// machines' clocks drift, so a long run measures at its beginning and at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockRelation {
    /// Device time = CLOCK_MONOTONIC + this, in nanoseconds.
    pub offset_ns: i64,
    /// Bound on the error of the offset: half of the time that a ping was on its way.
    pub error_ns: u64,
}

impl ClockRelation {
    /// From the four times of one ping: sent and received on our clock, taken and answered on the device's.
    /// The device's interval lies inside ours; where inside is what cannot be known.
    pub(crate) fn from_ping(sent: u64, taken: u64, answered: u64, received: u64) -> Self {
        let ours = i128::from(sent) + i128::from(received);
        let theirs = i128::from(taken) + i128::from(answered);
        let travel = received.saturating_sub(sent).saturating_sub(answered.saturating_sub(taken));
        let offset = (theirs - ours).div_euclid(2);
        Self { offset_ns: i64::try_from(offset).unwrap_or(i64::MAX), error_ns: travel.div_ceil(2) }
    }

    /// A device time on this side's clock.
    #[must_use]
    pub fn to_ours(self, device_ns: u64) -> u64 {
        device_ns.saturating_add_signed(self.offset_ns.saturating_neg())
    }

    /// A time of this side on the device's clock.
    #[must_use]
    pub fn to_device(self, ours_ns: u64) -> u64 {
        ours_ns.saturating_add_signed(self.offset_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_symmetric_ping_gives_the_exact_offset() {
        // The device is 1000 ahead; 10 each way, 4 inside the device.
        let relation = ClockRelation::from_ping(500, 1510, 1514, 524);
        assert_eq!(relation, ClockRelation { offset_ns: 1000, error_ns: 10 });
        assert_eq!(relation.to_ours(1510), 510);
        assert_eq!(relation.to_device(510), 1510);
    }

    proptest! {
        #[test]
        fn the_true_offset_is_within_the_bound(
            offset in -1_000_000_000_i64..1_000_000_000, sent in 2_000_000_000_u64..1 << 60,
            there in 0_u64..1_000_000, inside in 0_u64..1_000_000, back in 0_u64..1_000_000,
        ) {
            let taken = (sent + there).saturating_add_signed(offset);
            let relation = ClockRelation::from_ping(sent, taken, taken + inside, sent + there + inside + back);
            prop_assert!(relation.offset_ns.abs_diff(offset) <= relation.error_ns);
        }
    }
}
