//! What a delay may look like.

/// The longest delay that a profile may ask for, in nanoseconds (60 s: beyond every time-out of i915).
pub const MAX_DELAY_NS: u64 = 60_000_000_000;

/// The longest that one bus access may cost, in nanoseconds (10 ms). The driver spends it as busy time, so more
/// would only stop its CPU.
pub const MAX_BUS_NS: u64 = 10_000_000;

/// How the lengths of one delay are spread. All lengths are undilated nanoseconds in `0..=MAX_DELAY_NS`.
///
/// Callers never match on it: they ask a [`Sampler`](crate::Sampler) for lengths, so further kinds can be added.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Distribution {
    /// Always the same length.
    Constant(u64),
    /// Every whole number of nanoseconds in `low..=high`, equally likely.
    Uniform {
        /// Shortest length.
        low: u64,
        /// Longest length, at least `low`.
        high: u64,
    },
    /// One of several distributions, chosen anew at each draw. Never empty.
    Mixture(Vec<Arm>),
}

/// One arm of a [`Distribution::Mixture`].
#[derive(Debug, Clone, PartialEq)]
pub struct Arm {
    /// How often this arm is taken, relative to the sum over all arms. Above 0 and finite.
    pub weight: f64,
    /// Where the length then comes from.
    pub delay: Distribution,
}

impl Distribution {
    /// The shortest and the longest length that a draw can give, in nanoseconds.
    #[must_use]
    pub fn range(&self) -> (u64, u64) {
        match self {
            Self::Constant(ns) => (*ns, *ns),
            Self::Uniform { low, high } => (*low, *high),
            Self::Mixture(arms) => arms
                .iter()
                .map(|arm| arm.delay.range())
                .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
                .unwrap_or((0, 0)),
        }
    }

    /// The mean length in nanoseconds.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match self {
            Self::Constant(ns) => *ns as f64,
            Self::Uniform { low, high } => (*low as f64 + *high as f64) / 2.0,
            Self::Mixture(arms) => {
                let total: f64 = arms.iter().map(|arm| arm.weight).sum();
                arms.iter().map(|arm| arm.weight / total * arm.delay.mean()).sum()
            }
        }
    }
}
