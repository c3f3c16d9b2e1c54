//! Blocks of two arms, laid out by round.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{StatsError, quantile, summary::mean};

/// One block reduced to one number (its mean, its p99, its "max").
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BlockValue {
    /// Repetition of the interleaving pattern: blocks of one round were taken close together in time.
    pub round: u32,
    /// The block's statistic.
    pub value: f64,
}

impl BlockValue {
    /// Plain numbers without rounds, for [`Strata::Pooled`].
    #[must_use]
    pub fn unrounded(values: &[f64]) -> Vec<Self> {
        values.iter().map(|&value| Self { round: 0, value }).collect()
    }
}

/// Among which blocks the labels of the arms are exchangeable when the arms do not differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strata {
    /// Within a round only, because a machine drifts between rounds. Rounds that hold one arm only say nothing and are left out.
    #[default]
    Rounds,
    /// Among all blocks.
    Pooled,
}

/// What of an arm is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Location {
    /// The mean over blocks.
    #[default]
    Mean,
    /// The median over blocks: for heavy-tailed statistics such as maxima, where one disturbed block would decide a mean.
    Median,
}

impl Location {
    pub(crate) fn of(self, values: &[f64]) -> f64 {
        match self {
            Self::Mean => mean(values),
            Self::Median => {
                let mut sorted = values.to_vec();
                sorted.sort_unstable_by(f64::total_cmp);
                quantile::median(&sorted).unwrap_or(f64::NAN)
            }
        }
    }
}

/// The blocks of one stratum, the first arm's and the second's, each sorted: the order of arrival plays no part.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stratum {
    pub first: Vec<f64>,
    pub second: Vec<f64>,
}

/// Lays two arms out in strata. Strata without one of the arms are left out.
///
/// # Errors
/// A value that is not finite.
pub(crate) fn strata(
    first: &[BlockValue],
    second: &[BlockValue],
    kind: Strata,
) -> Result<Vec<Stratum>, StatsError> {
    let mut rounds: BTreeMap<u32, [Vec<f64>; 2]> = BTreeMap::new();
    for (arm, blocks) in [first, second].into_iter().enumerate() {
        for (index, block) in blocks.iter().enumerate() {
            if !block.value.is_finite() {
                return Err(StatsError::NotFinite { position: index + 1, value: block.value });
            }
            let key = if kind == Strata::Rounds { block.round } else { 0 };
            rounds.entry(key).or_default()[arm].push(block.value);
        }
    }
    Ok(rounds
        .into_values()
        .filter(|[first, second]| !first.is_empty() && !second.is_empty())
        .map(|[mut first, mut second]| {
            first.sort_unstable_by(f64::total_cmp);
            second.sort_unstable_by(f64::total_cmp);
            Stratum { first, second }
        })
        .collect())
}

/// Subtracts from every block the location of its stratum (both arms together), so that what remains is free of the drift between rounds.
/// With equal numbers of both arms in every stratum the difference of the arms' means stays what it was.
pub(crate) fn aligned(strata: &[Stratum], location: Location) -> Vec<Stratum> {
    strata
        .iter()
        .map(|stratum| {
            let level = location.of(&[stratum.first.as_slice(), stratum.second.as_slice()].concat());
            let less = |values: &[f64]| values.iter().map(|value| value - level).collect();
            Stratum { first: less(&stratum.first), second: less(&stratum.second) }
        })
        .collect()
}

/// Location of the second arm minus location of the first.
pub(crate) fn difference<'a>(strata: impl Iterator<Item = &'a Stratum> + Clone, location: Location) -> f64 {
    let first: Vec<f64> = strata.clone().flat_map(|stratum| stratum.first.iter().copied()).collect();
    let second: Vec<f64> = strata.flat_map(|stratum| stratum.second.iter().copied()).collect();
    location.of(&second) - location.of(&first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(values: &[(u32, f64)]) -> Vec<BlockValue> {
        values.iter().map(|&(round, value)| BlockValue { round, value }).collect()
    }

    #[test]
    fn rounds_with_one_arm_only_are_left_out() {
        let laid = strata(&arm(&[(0, 2.0), (0, 1.0), (1, 5.0)]), &arm(&[(0, 3.0), (2, 9.0)]), Strata::Rounds)
            .unwrap();
        assert_eq!(laid, [Stratum { first: vec![1.0, 2.0], second: vec![3.0] }]);
    }

    #[test]
    fn alignment_removes_the_level_of_a_round_and_keeps_the_difference() {
        let laid =
            strata(&arm(&[(0, 1.0), (1, 101.0)]), &arm(&[(0, 3.0), (1, 105.0)]), Strata::Rounds).unwrap();
        let aligned = aligned(&laid, Location::Mean);
        assert_eq!(aligned[1], Stratum { first: vec![-2.0], second: vec![2.0] });
        assert_eq!(difference(aligned.iter(), Location::Mean), 3.0);
    }
}
