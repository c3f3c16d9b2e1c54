//! A distribution made ready for drawing: validated, dilated where that can be done ahead, and without a search
//! for the sum of weights at each draw.

use rand::Rng;
use rand::distr::{Distribution as _, Uniform};

use crate::Distribution;

/// A ready distribution. Lengths are dilated nanoseconds.
#[derive(Debug, Clone)]
pub(crate) enum Draw {
    /// Always this many. Needs no random number.
    Constant(u64),
    /// A whole number of undilated nanoseconds, then dilated.
    Uniform(Uniform<u64>),
    /// A choice among several.
    Mixture {
        /// The running sums of the weights; the last is their total.
        sums: Box<[f64]>,
        /// As many arms as sums.
        arms: Box<[Draw]>,
    },
}

/// `ns` nanoseconds dilated, to the nearest nanosecond; exactly `ns` for a dilation of 1.
pub(crate) fn scale(ns: u64, dilation: f64) -> u64 {
    if dilation == 1.0 {
        return ns;
    }
    // The cast saturates; adding one half instead of calling `round` keeps this to two instructions.
    (ns as f64 * dilation + 0.5) as u64
}

impl Draw {
    /// Makes `delay` ready.
    pub(crate) fn new(delay: &Distribution, dilation: f64) -> Self {
        match delay {
            Distribution::Constant(ns) => Self::Constant(scale(*ns, dilation)),
            Distribution::Uniform { low, high } => match Uniform::new_inclusive(*low, *high) {
                Ok(range) => Self::Uniform(range),
                // Only a hand-made value can have its bounds the wrong way round.
                Err(_) => Self::Constant(scale(*low, dilation)),
            },
            Distribution::Mixture(arms) => {
                let sums = arms
                    .iter()
                    .scan(0.0, |sum, arm| {
                        *sum += arm.weight;
                        Some(*sum)
                    })
                    .collect();
                Self::Mixture { sums, arms: arms.iter().map(|arm| Self::new(&arm.delay, dilation)).collect() }
            }
        }
    }

    /// One length.
    pub(crate) fn draw(&self, rng: &mut impl Rng, dilation: f64) -> u64 {
        match self {
            Self::Constant(ns) => *ns,
            Self::Uniform(range) => scale(range.sample(rng), dilation),
            Self::Mixture { sums, arms } => {
                let Some((last, total)) = arms.last().zip(sums.last()) else {
                    return 0;
                };
                let pick = rng.random::<f64>() * total;
                // Rounding can carry the product up to the total itself: that belongs to the last arm.
                let at = sums.partition_point(|sum| *sum <= pick);
                arms.get(at).unwrap_or(last).draw(rng, dilation)
            }
        }
    }
}
