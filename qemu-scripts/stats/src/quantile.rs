//! One definition of a quantile, used everywhere in this crate.
//!
//! The quantile *q* of *n* sorted values x₁ ≤ … ≤ xₙ is the smallest value that has at least a share *q* of all values
//! at or below it: x at rank ⌈n·q⌉. Where n·q is a whole number j, it is the mean of xⱼ and xⱼ₊₁ (definition 2 of Hyndman and Fan,
//! *Sample Quantiles in Statistical Packages*, 1996). So the median of an even number is the mean of the middle two, and outside such ties
//! a quantile is always a value that was really measured: a tail is not interpolated into a gap.

use crate::{StatsError, error::finite};

/// Sorts a copy of the values, ascending.
///
/// # Errors
/// [`StatsError::TooFew`] without a value, [`StatsError::NotFinite`] with a NaN or infinity.
pub fn sorted<T: Copy + Into<f64>>(values: &[T]) -> Result<Vec<f64>, StatsError> {
    let mut values = finite(values, "values", 1)?;
    values.sort_unstable_by(f64::total_cmp);
    Ok(values)
}

/// The quantile `q` (0 ..= 1; outside is clamped) of values already sorted ascending; `None` without a value.
#[must_use]
pub fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let (rank, tie) = rank(sorted.len(), q);
    let low = *sorted.get(rank.checked_sub(1)?)?;
    match sorted.get(rank) {
        Some(&high) if tie => Some(midpoint(low, high)),
        _ => Some(low),
    }
}

/// The median of values already sorted ascending; `None` without a value.
#[must_use]
pub fn median(sorted: &[f64]) -> Option<f64> {
    quantile(sorted, 0.5)
}

/// Rank (from 1; 0 only when `n` is 0) that carries the quantile, and whether the next rank is to be averaged in.
pub(crate) fn rank(n: usize, q: f64) -> (usize, bool) {
    let exact = n as f64 * q.clamp(0.0, 1.0);
    let nearest = exact.round();
    // 0.1 has no exact binary form: a product this near to a whole number means that number.
    if (exact - nearest).abs() <= exact * 4.0 * f64::EPSILON {
        let rank = nearest as usize;
        if rank == 0 { (n.min(1), false) } else { (rank, rank < n) }
    } else {
        (exact.ceil() as usize, false)
    }
}

/// Mean of two ranks.
pub(crate) fn midpoint(low: f64, high: f64) -> f64 {
    (high + low) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_an_even_number_is_the_mean_of_the_middle_two() {
        assert_eq!(median(&[1.0, 2.0, 4.0, 9.0]), Some(3.0));
    }

    #[test]
    fn quantiles_of_one_to_hundred_are_the_ranks_of_the_definition() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(quantile(&values, 0.9), Some(90.5));
        assert_eq!(quantile(&values, 0.99), Some(99.5));
        assert_eq!(quantile(&values, 0.999), Some(100.0));
        assert_eq!(quantile(&values, 0.0), Some(1.0));
        assert_eq!(quantile(&values, 1.0), Some(100.0));
        assert_eq!(quantile(&values, 0.011), Some(2.0));
    }

    #[test]
    fn products_that_miss_a_whole_number_by_rounding_are_taken_as_whole() {
        for n in 1..2000_usize {
            for (numerator, q) in [(9, 0.9), (1, 0.1), (3, 0.3), (7, 0.7)] {
                let expected = if n * numerator % 10 == 0 {
                    (n * numerator / 10, n * numerator / 10 < n)
                } else {
                    (n * numerator / 10 + 1, false)
                };
                assert_eq!(rank(n, q), expected, "n {n} q {q}");
            }
        }
    }

    #[test]
    fn no_value_has_no_quantile() {
        assert_eq!(quantile(&[], 0.5), None);
        assert!(sorted::<f64>(&[]).is_err());
        assert!(sorted(&[1.0, f64::NAN]).is_err());
    }
}
