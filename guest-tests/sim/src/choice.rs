//! Where the seed has a say.

use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

/// How far a run may leave the plain model, for exploring what else could happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Perturb {
    /// Events of one time happen in an order that is drawn. (Otherwise in that in which they were set.)
    pub ties: bool,
    /// Every burst takes up to this many thousandths longer, drawn evenly.
    pub stretch_permille: u32,
}

/// The random stream of a simulation, with all that is drawn from it.
#[derive(Debug)]
pub(crate) struct Choice {
    rng: SmallRng,
    pub perturb: Perturb,
}

impl Choice {
    pub fn new(seed: u64) -> Self {
        Self { rng: SmallRng::seed_from_u64(seed), perturb: Perturb::default() }
    }

    /// Whether a burst may take longer than planned.
    pub fn stretches(&self) -> bool {
        self.perturb.stretch_permille > 0
    }

    /// Phase of a CPU's tick within a period.
    pub fn phase(&mut self, period_ns: u64) -> u64 {
        self.rng.random_range(0..period_ns)
    }

    /// Rank of an event among those of the same time.
    pub fn tie(&mut self) -> u32 {
        if self.perturb.ties { self.rng.random() } else { 0 }
    }

    /// A burst's length.
    pub fn stretch(&mut self, ns: u64) -> u64 {
        let most = ns.saturating_mul(u64::from(self.perturb.stretch_permille)) / 1000;
        if most == 0 { ns } else { ns.saturating_add(self.rng.random_range(0..=most)) }
    }
}
