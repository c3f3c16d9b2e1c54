//! Student's t between two sets, as `ministat` computes and words it.

use std::fmt;

use serde::Serialize;

use super::{Confidence, Moments};
use crate::cformat::general;

/// One set compared with the first one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Relative {
    /// Confidence level of the errors below.
    pub confidence: Confidence,
    /// Mean of this set minus mean of the reference.
    pub difference: f64,
    /// Half-width of the confidence interval of the difference.
    pub error: f64,
    /// Difference in percent of the reference's mean.
    pub difference_percent: f64,
    /// Half-width in percent of the reference's mean.
    pub error_percent: f64,
    /// Pooled standard deviation.
    pub pooled: f64,
}

impl Relative {
    /// Compares `set` with `reference`. A reference with mean 0 gives infinite percentages, as `ministat` does.
    #[must_use]
    pub fn new(set: &Moments, reference: &Moments, confidence: Confidence) -> Self {
        let (n, m) = (set.n as f64, reference.n as f64);
        let t = confidence.t((set.n + reference.n).saturating_sub(2));
        let pooled = (((n - 1.0) * set.variance + (m - 1.0) * reference.variance) / (n + m - 2.0)).sqrt();
        let error = t * (pooled * (1.0 / n + 1.0 / m).sqrt());
        let difference = set.average - reference.average;
        Self {
            confidence,
            difference,
            error,
            difference_percent: difference * 100.0 / reference.average,
            error_percent: error * 100.0 / reference.average,
            pooled,
        }
    }

    /// Whether the interval excludes 0.
    #[must_use]
    pub fn proven(&self) -> bool {
        self.difference.abs() > self.error
    }
}

/// The lines that `ministat` prints, each ending in a newline.
impl fmt::Display for Relative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.proven() {
            return writeln!(f, "No difference proven at {} confidence", self.confidence);
        }
        let g = |value| general(value, 6);
        writeln!(f, "Difference at {} confidence", self.confidence)?;
        writeln!(f, "\t{} +/- {}", g(self.difference), g(self.error))?;
        writeln!(f, "\t{}% +/- {}%", g(self.difference_percent), g(self.error_percent))?;
        writeln!(f, "\t(Student's t, pooled s = {})", g(self.pooled))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(reference: (usize, f64, f64), set: (usize, f64, f64)) -> String {
        let moments = |(n, average, stddev)| Moments::from_table(n, average, stddev).unwrap();
        Relative::new(&moments(set), &moments(reference), Confidence::P95).to_string()
    }

    /// The two tables in the message of Linux commit 9512f985c32d (June 2018).
    #[test]
    fn rows_of_the_direct_submission_commit_give_its_printed_differences() {
        assert_eq!(
            text((118, 125.28814, 16.279137), (120, 112.00833, 13.458617)),
            "Difference at 95.0% confidence\n\t-13.2798 +/- 3.79219\n\t-10.5994% +/- 3.02677%\n\t(Student's t, pooled s = 14.9237)\n"
        );
        assert_eq!(
            text((120, 3.6321417, 0.02773109), (120, 4.0375167, 0.041221676)),
            "Difference at 95.0% confidence\n\t0.405375 +/- 0.00888913\n\t11.1608% +/- 0.244735%\n\t(Student's t, pooled s = 0.03513)\n"
        );
    }

    #[test]
    fn equal_rows_prove_no_difference() {
        assert_eq!(text((5, 1.0, 0.0), (5, 1.0, 0.0)), "No difference proven at 95.0% confidence\n");
    }

    #[test]
    fn impossible_rows_are_refused() {
        assert!(Moments::from_table(1, 1.0, 1.0).is_err());
        assert!(Moments::from_table(5, f64::NAN, 1.0).is_err());
        assert!(Moments::from_table(5, 1.0, -1.0).is_err());
    }
}
