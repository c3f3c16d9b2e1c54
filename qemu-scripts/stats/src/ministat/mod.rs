//! The table that `ministat` prints, digit for digit, and its plot.
//!
//! `ministat` (Poul-Henning Kamp, FreeBSD 5.2; Debian package `ministat`) is what kernel developers paste into commit messages, so
//! its table is kept exactly: sums in the order of the file, the median of an even number as the upper of the middle two (unlike
//! [`Summary`](crate::summary::Summary)), variance from the sum of squares,
//! Student's t with pooled deviation, the percentage relative to the first set's mean without regard to that mean's own error.
//!
//! Two deliberate differences: a variance that rounding makes negative (equal values) counts as 0, as in newer versions of FreeBSD, where Debian's
//! version prints `-nan`; and values that are not finite are refused, with which Debian's version crashes.

mod plot;
mod relative;
mod render;
mod student;

use serde::Serialize;

use crate::{StatsError, error::finite};

pub use plot::Plot;
pub use relative::Relative;
pub use render::{Options, Symbols, header, render, row};
pub use student::{Confidence, ConfidenceError};

/// Fewest values in a data set.
pub const MIN_VALUES: usize = 3;

/// Number, mean and variance of a set: all that Student's t needs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Moments {
    /// Number of values, at least 2.
    pub n: usize,
    /// Arithmetic mean.
    pub average: f64,
    /// Variance of the sample (divided by n − 1), never negative.
    pub variance: f64,
}

impl Moments {
    /// From the numbers of a printed table, for example one found in a commit message.
    ///
    /// # Errors
    /// Fewer than 2 values, a mean that is not finite, or a deviation that is negative or not finite.
    pub fn from_table(n: usize, average: f64, stddev: f64) -> Result<Self, StatsError> {
        if n < 2 {
            return Err(StatsError::TooFew { what: "values behind a table row", got: n, need: 2 });
        }
        if !average.is_finite() {
            return Err(StatsError::Setting { name: "average", value: average, expected: "finite" });
        }
        if !(stddev.is_finite() && stddev >= 0.0) {
            return Err(StatsError::Setting {
                name: "stddev",
                value: stddev,
                expected: "finite and not negative",
            });
        }
        Ok(Self { n, average, variance: stddev * stddev })
    }

    /// Standard deviation of the sample.
    #[must_use]
    pub fn stddev(&self) -> f64 {
        self.variance.sqrt()
    }
}

/// One labelled set of numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct DataSet {
    label: String,
    sorted: Vec<f64>,
    moments: Moments,
}

impl DataSet {
    /// A set from values in the order of the file: the order matters for the last digits, because the sums are taken in it.
    ///
    /// # Errors
    /// Fewer than [`MIN_VALUES`] values, one that is not finite, or squares whose sum is not.
    pub fn new(label: impl Into<String>, values: &[f64]) -> Result<Self, StatsError> {
        let mut sorted = finite(values, "values in a data set", MIN_VALUES)?;
        let n = sorted.len();
        let (mut sum, mut squares) = (0.0, 0.0);
        for value in &sorted {
            sum += value;
            squares += value * value;
        }
        let count = n as f64;
        if !(sum.is_finite() && squares.is_finite() && (sum * sum).is_finite()) {
            return Err(StatsError::Overflow { label: label.into() });
        }
        let variance = ((squares - sum * sum / count) / (count - 1.0)).max(0.0);
        sorted.sort_unstable_by(f64::total_cmp);
        Ok(Self { label: label.into(), sorted, moments: Moments { n, average: sum / count, variance } })
    }

    /// The name printed beside the symbol.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Number, mean and variance.
    #[must_use]
    pub fn moments(&self) -> &Moments {
        &self.moments
    }

    /// The values, ascending.
    #[must_use]
    pub fn sorted(&self) -> &[f64] {
        &self.sorted
    }

    fn min(&self) -> f64 {
        self.sorted.first().copied().unwrap_or(f64::NAN)
    }

    fn max(&self) -> f64 {
        self.sorted.last().copied().unwrap_or(f64::NAN)
    }

    /// The upper of the middle two where the number is even, as in Debian's version; newer versions of FreeBSD take their mean.
    fn median(&self) -> f64 {
        self.sorted.get(self.sorted.len() / 2).copied().unwrap_or(f64::NAN)
    }
}
