//! A load whose effect on the probe can be calculated: busy sections above it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use execlab_posix::{
    IRQ_OFF_PRIORITY, Policy, RtHandle, RtThread, SchedError, now_ns, sleep_until_ns, spin_until_ns,
};
use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

/// Sections to run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SectionPlan {
    /// CPU on which they run.
    pub cpu: usize,
    /// Length of each in nanoseconds.
    pub length_ns: u64,
    /// Mean gap between the end of one and the wake-up for the next, in nanoseconds; exponential, so sections
    /// come at random and never overlap.
    pub mean_gap_ns: u64,
    /// Seed of the gaps.
    pub seed: u64,
}

/// Sections that have run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SectionRecord {
    /// Lengths in nanoseconds as measured by the thread that ran them.
    pub lengths_ns: Vec<u64>,
    /// From the first wake-up to the end, in nanoseconds.
    pub duration_ns: u64,
}

impl SectionRecord {
    /// Mean delay in nanoseconds that these sections cause to a probe with random phase: λ·E\[L²\]/2. Sections
    /// longer than `longest_ns` are left out, as their length is the host's doing.
    #[must_use]
    pub fn predicted_extra_mean_ns(&self, longest_ns: u64) -> f64 {
        let squares: f64 =
            self.lengths_ns.iter().filter(|l| **l <= longest_ns).map(|l| (*l as f64).powi(2)).sum();
        if self.duration_ns == 0 { 0.0 } else { squares / (2.0 * self.duration_ns as f64) }
    }
}

/// A SCHED_FIFO 99 thread that runs sections until stopped.
#[derive(Debug)]
pub struct Sections {
    stop: Arc<AtomicBool>,
    thread: RtHandle<SectionRecord>,
}

impl Sections {
    /// Starts it.
    ///
    /// # Errors
    /// [`SchedError`] when CPU or priority is refused.
    pub fn start(plan: SectionPlan, expected: usize) -> Result<Self, SchedError> {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let mut lengths_ns = vec![0_u64; expected];
        lengths_ns.clear();
        let policy = Policy::Fifo(IRQ_OFF_PRIORITY);
        let thread = RtThread::new("sections").cpu(plan.cpu).policy(policy).spawn(move || {
            let mut random = SmallRng::seed_from_u64(plan.seed);
            let start = now_ns();
            while !seen.load(Relaxed) {
                let uniform: f64 = random.random();
                let gap = -(1.0 - uniform).ln() * plan.mean_gap_ns as f64;
                sleep_until_ns(now_ns() + gap as u64);
                let begin = now_ns();
                spin_until_ns(begin + plan.length_ns);
                lengths_ns.push(now_ns() - begin);
            }
            SectionRecord { lengths_ns, duration_ns: now_ns() - start }
        })?;
        Ok(Self { stop, thread })
    }

    /// Ends it and returns what ran; nothing if the thread died.
    #[must_use]
    pub fn finish(self) -> SectionRecord {
        self.stop.store(true, Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_sections_of_100_us_in_a_second_cost_5_us_on_average() {
        let mut record = SectionRecord { lengths_ns: vec![100_000; 1000], duration_ns: 1_000_000_000 };
        assert!((record.predicted_extra_mean_ns(u64::MAX) - 5000.0).abs() < 1e-6);
        record.lengths_ns.push(50_000_000);
        assert!((record.predicted_extra_mean_ns(300_000) - 5000.0).abs() < 1e-6);
    }

    #[test]
    fn no_time_gives_no_delay() {
        assert!(SectionRecord::default().predicted_extra_mean_ns(1).abs() < 1e-12);
    }
}
