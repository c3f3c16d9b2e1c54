//! CLOCK_MONOTONIC, read through the vDSO, and sleeping to a point of it.

use rustix::io::Errno;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Nanoseconds of CLOCK_MONOTONIC.
#[must_use]
pub fn now_ns() -> u64 {
    let t = clock_gettime(ClockId::Monotonic);
    // The clock counts up from boot: neither field is negative, and 64 bits of nanoseconds last 584 years.
    t.tv_sec.unsigned_abs() * 1_000_000_000 + u64::from(t.tv_nsec as u32)
}

/// As a `timespec`.
#[must_use]
pub fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000).cast_signed(), tv_nsec: (ns % 1_000_000_000) as _ }
}

/// Sleeps until `deadline_ns` of CLOCK_MONOTONIC or later; signals do not end it.
pub fn sleep_until_ns(deadline_ns: u64) {
    let deadline = timespec(deadline_ns);
    while clock_nanosleep_absolute(ClockId::Monotonic, &deadline) == Err(Errno::INTR) {}
}

/// Keeps the CPU busy until `deadline_ns` of CLOCK_MONOTONIC.
pub fn spin_until_ns(deadline_ns: u64) {
    while now_ns() < deadline_ns {
        std::hint::spin_loop();
    }
}

/// What one reading of the clock costs in nanoseconds: the median of many.
#[must_use]
pub fn clock_cost_ns() -> u64 {
    const RUNS: usize = 1001;
    const READS: u64 = 16;
    let mut runs: Vec<u64> = (0..RUNS)
        .map(|_| {
            let start = now_ns();
            for _ in 1..READS {
                std::hint::black_box(now_ns());
            }
            now_ns() - start
        })
        .collect();
    runs.sort_unstable();
    runs[RUNS / 2] / READS
}
