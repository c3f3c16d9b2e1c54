//! What a delay may look like.

/// The longest delay that a profile may ask for, in nanoseconds (60 s).
pub const MAX_DELAY_NS: u64 = 60_000_000_000;

/// How the lengths of one delay are spread. All lengths are undilated nanoseconds in `0..=MAX_DELAY_NS`.
///
/// Callers never match on it: they ask a [`Sampler`](crate::Sampler) for lengths, so further kinds can be added.
#[derive(Debug, Clone, PartialEq, Eq)]
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arm {
    /// How often this arm is taken, relative to the sum over all arms. At least 1.
    pub weight: u32,
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
}
