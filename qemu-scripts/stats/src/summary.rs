//! One sample in nine numbers.

use serde::{Deserialize, Serialize};

use crate::{StatsError, quantile};

/// Description of one sample; the unit is that of the values. Quantiles are those of [`quantile`](mod@crate::quantile).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of values, at least 1.
    pub n: usize,
    /// Smallest value.
    pub min: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Quantile 0.5.
    pub median: f64,
    /// Quantile 0.9.
    pub p90: f64,
    /// Quantile 0.99.
    pub p99: f64,
    /// Quantile 0.999.
    pub p999: f64,
    /// Largest value. On a shared machine this proves nothing by itself.
    pub max: f64,
    /// Standard deviation of the sample (divided by n − 1); `None` for a single value.
    pub sd: Option<f64>,
}

impl Summary {
    /// Describes a sample of `u32`, `f64` or anything else that converts to `f64` without loss.
    ///
    /// # Errors
    /// [`StatsError::TooFew`] without a value, [`StatsError::NotFinite`] with a NaN or infinity.
    pub fn of<T: Copy + Into<f64>>(values: &[T]) -> Result<Self, StatsError> {
        let sorted = quantile::sorted(values)?;
        let n = sorted.len();
        let mean = mean(&sorted);
        let at = |q| quantile::quantile(&sorted, q).unwrap_or(mean);
        // Two passes: the sum of squares that ministat uses loses all digits when the spread is small beside the mean.
        let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
        Ok(Self {
            n,
            min: at(0.0),
            mean,
            median: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: at(1.0),
            sd: (n > 1).then(|| (squares / (n as f64 - 1.0)).sqrt()),
        })
    }

    /// The same sample in another unit: every value multiplied by `factor` (> 0), for example 0.001 from ns to µs.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self {
            n: self.n,
            min: self.min * factor,
            mean: self.mean * factor,
            median: self.median * factor,
            p90: self.p90 * factor,
            p99: self.p99 * factor,
            p999: self.p999 * factor,
            max: self.max * factor,
            sd: self.sd.map(|sd| sd * factor),
        }
    }
}

/// Arithmetic mean; NaN of an empty slice, which no caller hands in.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_one_to_thousand_give_the_textbook_numbers() {
        let values: Vec<u32> = (1..=1000).collect();
        let summary = Summary::of(&values).unwrap();
        assert_eq!((summary.n, summary.min, summary.max), (1000, 1.0, 1000.0));
        assert_eq!((summary.mean, summary.median), (500.5, 500.5));
        assert_eq!((summary.p90, summary.p99, summary.p999), (900.5, 990.5, 999.5));
        // Variance of 1..n is n(n+1)/12 with divisor n − 1.
        assert!((summary.sd.unwrap() - (1000.0_f64 * 1001.0 / 12.0).sqrt()).abs() < 1e-9);
    }

    #[test]
    fn a_small_spread_on_a_large_mean_keeps_its_digits() {
        let summary = Summary::of(&[1e9, 1e9 + 1.0, 1e9 + 2.0]).unwrap();
        assert_eq!(summary.sd, Some(1.0));
    }

    #[test]
    fn one_value_has_no_deviation_and_none_is_an_error() {
        assert_eq!(Summary::of(&[7_u32]).unwrap().sd, None);
        assert!(matches!(Summary::of::<u32>(&[]), Err(StatsError::TooFew { got: 0, .. })));
        assert!(matches!(Summary::of(&[1.0, f64::INFINITY]), Err(StatsError::NotFinite { position: 2, .. })));
    }

    #[test]
    fn json_carries_every_field_and_scaling_changes_the_unit() {
        let summary = Summary::of(&[1000.0, 3000.0]).unwrap().scaled(0.001);
        let json = serde_json::to_value(summary).unwrap();
        assert_eq!(json["mean"], 2.0);
        assert_eq!(json["p999"], 3.0);
        assert_eq!(json["n"], 2);
    }
}
