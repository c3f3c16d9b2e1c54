//! Bootstrap intervals.
//!
//! What is resampled is always the unit that was drawn independently: a whole block (its samples are neighbours in time and not independent), or a
//! whole round when arms are compared round by round. Intervals are percentile intervals, widened for few units as Hesterberg proposes
//! (*What Teachers Should Know About the Bootstrap*, 2015): the tail share α/2 becomes Φ(−√(n/(n−1))·t(α/2; n−1)), without which
//! five blocks at "95 %" would cover less than 85 %.

use rand::{Rng, SeedableRng, rngs::SmallRng};
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use crate::{
    BlockValue, Location, StatsError, Strata,
    blocks::{Stratum, aligned, difference, strata},
    error::{finite, probability},
    quantile,
};

/// How to resample.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Confidence of the interval, between 0 and 1.
    pub confidence: f64,
    /// Resamples, at least 100.
    pub resamples: u32,
    /// Seed.
    pub seed: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Self { confidence: 0.95, resamples: 2000, seed: 0 }
    }
}

/// An estimate and the interval around it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The statistic of the data themselves.
    pub estimate: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Confidence, between 0 and 1.
    pub confidence: f64,
    /// Independent units (blocks or rounds) behind it.
    pub units: usize,
}

impl Interval {
    /// Whether 0 lies outside.
    #[must_use]
    pub fn excludes_zero(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }

    /// The interval of the opposite difference.
    #[must_use]
    pub(crate) fn mirrored(self) -> Self {
        Self { estimate: -self.estimate, low: -self.high, high: -self.low, ..self }
    }
}

/// What of pooled samples is estimated.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Mean of all samples.
    Mean,
    /// Quantile of all samples, 0 ..= 1; see [`quantile`](mod@crate::quantile).
    Quantile(f64),
}

impl Quantity {
    /// The median.
    pub const MEDIAN: Self = Self::Quantile(0.5);
    /// The 99th percentile.
    pub const P99: Self = Self::Quantile(0.99);
}

/// Interval for a quantity of all samples of the blocks together, resampling whole blocks.
///
/// # Errors
/// Fewer than two blocks, an empty block, a value that is not finite, or a plan out of range.
pub fn of_blocks<T: Copy + Into<f64>>(
    blocks: &[&[T]],
    quantity: Quantity,
    plan: &Plan,
) -> Result<Interval, StatsError> {
    let pool = Pool::of(blocks)?;
    let n = blocks.len();
    let estimate = pool.value(&vec![1; n], quantity);
    resample(plan, n, estimate, |random| pool.value(&draw(n, random), quantity))
}

/// Interval for a quantity of independent values, each its own block.
///
/// # Errors
/// As [`of_blocks`].
pub fn of_values<T: Copy + Into<f64>>(
    values: &[T],
    quantity: Quantity,
    plan: &Plan,
) -> Result<Interval, StatsError> {
    of_blocks(&values.chunks(1).collect::<Vec<_>>(), quantity, plan)
}

/// Interval for second minus first of a quantity of pooled samples, resampling whole blocks of each arm.
///
/// # Errors
/// As [`of_blocks`], for either arm.
pub fn of_pool_difference<T: Copy + Into<f64>>(
    first: &[&[T]],
    second: &[&[T]],
    quantity: Quantity,
    plan: &Plan,
) -> Result<Interval, StatsError> {
    let pools = [Pool::of(first)?, Pool::of(second)?];
    let (n, m) = (first.len(), second.len());
    let value =
        |first: &[u32], second: &[u32]| pools[1].value(second, quantity) - pools[0].value(first, quantity);
    let estimate = value(&vec![1; n], &vec![1; m]);
    resample(plan, n.min(m), estimate, |random| value(&draw(n, random), &draw(m, random)))
}

/// Interval for second minus first of the arms' locations over block statistics: whole rounds are resampled with
/// [`Strata::Rounds`] (after taking each round's level out), single blocks of each arm with [`Strata::Pooled`].
///
/// # Errors
/// Fewer than two rounds with both arms (or blocks per arm), a value that is not finite, or a plan out of range.
pub fn of_arm_difference(
    first: &[BlockValue],
    second: &[BlockValue],
    kind: Strata,
    location: Location,
    plan: &Plan,
) -> Result<Interval, StatsError> {
    let strata = aligned(&strata(first, second, kind)?, location);
    let estimate = difference(strata.iter(), location);
    match (kind, strata.as_slice()) {
        (Strata::Pooled, [arms]) => {
            let units = arms.first.len().min(arms.second.len());
            resample(plan, units, estimate, |random| {
                let drawn =
                    Stratum { first: redraw(&arms.first, random), second: redraw(&arms.second, random) };
                difference(std::iter::once(&drawn), location)
            })
        }
        (_, rounds) => resample(plan, rounds.len(), estimate, |random| {
            let drawn: Vec<&Stratum> =
                (0..rounds.len()).map(|_| &rounds[random.random_range(0..rounds.len())]).collect();
            difference(drawn.into_iter(), location)
        }),
    }
}

/// Draws the statistic again and again and cuts the tails off.
fn resample(
    plan: &Plan,
    units: usize,
    estimate: f64,
    mut draw: impl FnMut(&mut SmallRng) -> f64,
) -> Result<Interval, StatsError> {
    let confidence = probability("confidence", plan.confidence)?;
    if plan.resamples < 100 {
        let value = f64::from(plan.resamples);
        return Err(StatsError::Setting { name: "bootstrap resamples", value, expected: "at least 100" });
    }
    if units < 2 {
        return Err(StatsError::TooFew { what: "independent units for an interval", got: units, need: 2 });
    }
    let mut random = SmallRng::seed_from_u64(plan.seed);
    let mut values: Vec<f64> = (0..plan.resamples).map(|_| draw(&mut random)).collect();
    values.sort_unstable_by(f64::total_cmp);
    let tail = tail((1.0 - confidence) / 2.0, units);
    let at = |q| quantile::quantile(&values, q).unwrap_or(estimate);
    Ok(Interval { estimate, low: at(tail), high: at(1.0 - tail), confidence, units })
}

/// Share to cut off at each end so that an interval from `units` units keeps its confidence.
fn tail(nominal: f64, units: usize) -> f64 {
    let n = units as f64;
    // Both distributions exist for n ≥ 2.
    match (StudentsT::new(0.0, 1.0, n - 1.0), Normal::new(0.0, 1.0)) {
        (Ok(t), Ok(normal)) => normal.cdf((n / (n - 1.0)).sqrt() * t.inverse_cdf(nominal)),
        _ => nominal,
    }
}

/// How often each of `n` units is drawn in one resample.
fn draw(n: usize, random: &mut impl Rng) -> Vec<u32> {
    let mut times = vec![0; n];
    for _ in 0..n {
        times[random.random_range(0..n)] += 1;
    }
    times
}

fn redraw(values: &[f64], random: &mut impl Rng) -> Vec<f64> {
    (0..values.len()).map(|_| values[random.random_range(0..values.len())]).collect()
}

/// All samples of the blocks, sorted once: a resample is then only a weight per block.
struct Pool {
    blocks: Vec<(f64, usize)>,
    sorted: Vec<(f64, u32)>,
}

impl Pool {
    fn of<T: Copy + Into<f64>>(blocks: &[&[T]]) -> Result<Self, StatsError> {
        let (mut sums, mut sorted) = (Vec::with_capacity(blocks.len()), Vec::new());
        for (number, block) in (0_u32..).zip(blocks) {
            let values = finite(block, "samples in a block", 1)?;
            sums.push((values.iter().sum(), values.len()));
            sorted.extend(values.into_iter().map(|value| (value, number)));
        }
        sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        Ok(Self { blocks: sums, sorted })
    }

    /// The quantity when block i counts `times[i]` times.
    fn value(&self, times: &[u32], quantity: Quantity) -> f64 {
        let total: usize =
            self.blocks.iter().zip(times).map(|(block, &times)| block.1 * times as usize).sum();
        match quantity {
            Quantity::Mean => {
                let sum: f64 =
                    self.blocks.iter().zip(times).map(|(block, &times)| block.0 * f64::from(times)).sum();
                sum / total as f64
            }
            Quantity::Quantile(q) => {
                let (rank, tie) = quantile::rank(total, q);
                let (low, high) = self.ranks(times, total, rank);
                if tie { quantile::midpoint(low, high) } else { low }
            }
        }
    }

    /// The values at `rank` (from 1) and `rank + 1` of the weighted samples, looked for from the nearer end.
    fn ranks(&self, times: &[u32], total: usize, rank: usize) -> (f64, f64) {
        let weight = |&(value, block): &(f64, u32)| (value, times[block as usize] as usize);
        if rank <= total / 2 {
            let (low, after) = find(self.sorted.iter().map(weight), rank);
            (low, after)
        } else {
            // Rank r from below is rank total + 1 − r from above; the one above it comes just before it.
            let above = total - rank;
            let (high, low) = find(self.sorted.iter().rev().map(weight), above.max(1));
            if above == 0 { (high, high) } else { (low, high) }
        }
    }
}

/// The value at `rank` (from 1) in a weighted sequence, and the value one rank on (the same one at the end).
fn find(weighted: impl Iterator<Item = (f64, usize)>, rank: usize) -> (f64, f64) {
    let (mut seen, mut found) = (0, None);
    for (value, weight) in weighted.filter(|(_, weight)| *weight > 0) {
        seen += weight;
        match found {
            None if seen > rank => return (value, value),
            None if seen == rank => found = Some(value),
            None => {}
            Some(found) => return (found, value),
        }
    }
    let last = found.unwrap_or(f64::NAN);
    (last, last)
}

#[cfg(test)]
mod tests;
