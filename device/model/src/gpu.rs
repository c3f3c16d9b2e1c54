//! The value that callers hold.

use execlab_abi::irq;
use execlab_profile::Sampler;

use crate::{Env, Stats};

/// What a [`Gpu`] is made with.
#[derive(Debug, Clone)]
pub struct Config {
    /// Source of every delay.
    pub sampler: Sampler,
    /// Modelled nanoseconds between two looks at the memory of a blocked MI_SEMAPHORE_WAIT, before dilation.
    /// Each MMIO write makes the engine look too. At least 1.
    pub semaphore_poll_ns: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self { sampler: Sampler::zero(), semaphore_poll_ns: 5_000 }
    }
}

/// The GPU. Times are device time in nanoseconds; one that lies before an earlier call's counts as that one.
#[derive(Debug)]
pub struct Gpu {
    config: Config,
    stats: Stats,
}

impl Gpu {
    /// A GPU after power-on.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config, stats: Stats::default() }
    }

    /// The value of the register at BAR 0 `offset` as of the last [`advance`](Self::advance).
    pub fn mmio_read(&mut self, _offset: u32, _now: u64) -> u32 {
        0
    }

    /// Writes a register or half a GGTT entry, after everything that is due; what follows from the write with
    /// no delay happens within the call.
    pub fn mmio_write<E: Env>(&mut self, _offset: u32, _value: u32, _now: u64, _env: &mut E) {}

    /// Executes everything due at or before `now`, in order of due time.
    pub fn advance<E: Env>(&mut self, _now: u64, _env: &mut E) {}

    /// When [`advance`](Self::advance) has something to do next.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        None
    }

    /// What the GT interrupt handler's first half finds with the master on: IIR & IER of each bank, moved out of
    /// IIR. `None` if that is nothing.
    pub fn take_interrupts<E: Env>(&mut self, _now: u64, _env: &mut E) -> Option<[u32; irq::BANKS]> {
        None
    }

    /// Power-on state: registers, GGTT, engines, error state. Counters and random streams go on.
    pub fn reset<E: Env>(&mut self, _now: u64, _env: &mut E) {}

    /// Counters.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.stats
    }
}
