//! `ministat`'s confidence levels and its table of Student's t.

use std::{fmt, str::FromStr};

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// A confidence level that `ministat -c` accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub enum Confidence {
    /// 80 %.
    P80,
    /// 90 %.
    P90,
    /// 95 %, what `ministat` uses unless told otherwise.
    #[default]
    P95,
    /// 98 %.
    P98,
    /// 99 %.
    P99,
    /// Called 99.5 % by `ministat`, whose table holds the values of 99.8 % in this column (one-sided 0.999). Kept as it is.
    P995,
}

/// Entries of `ministat`'s table, by degrees of freedom, that are not the rounded quantile: seven of the 99.5 % column, which
/// follow an old printed table (NIST/SEMATECH e-Handbook §1.3.6.7.2 has the first one too). All others are computed.
const PRINTED_OTHERWISE: [(usize, f64); 7] =
    [(1, 318.313), (7, 4.782), (8, 4.499), (9, 4.296), (10, 4.143), (11, 4.024), (12, 3.929)];

/// A text that names no confidence level.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no support for confidence level {0:?}: it is one of 80, 90, 95, 98, 99 and 99.5")]
pub struct ConfidenceError(String);

impl Confidence {
    /// All levels, ascending.
    pub const ALL: [Self; 6] = [Self::P80, Self::P90, Self::P95, Self::P98, Self::P99, Self::P995];

    /// The level as `ministat` names it, in percent.
    #[must_use]
    pub fn percent(self) -> f64 {
        match self {
            Self::P80 => 80.0,
            Self::P90 => 90.0,
            Self::P95 => 95.0,
            Self::P98 => 98.0,
            Self::P99 => 99.0,
            Self::P995 => 99.5,
        }
    }

    /// One-sided probability of the column of `ministat`'s table.
    fn one_sided(self) -> f64 {
        match self {
            Self::P80 => 0.9,
            Self::P90 => 0.95,
            Self::P95 => 0.975,
            Self::P98 => 0.99,
            Self::P99 => 0.995,
            Self::P995 => 0.999,
        }
    }

    /// Student's t with the given degrees of freedom as in `ministat`'s table: three decimals, and the normal quantile above 100 degrees.
    pub(super) fn t(self, degrees: usize) -> f64 {
        if let Some(&(_, t)) =
            PRINTED_OTHERWISE.iter().find(|&&(row, _)| self == Self::P995 && row == degrees)
        {
            return t;
        }
        let exact = match degrees {
            1..=100 => StudentsT::new(0.0, 1.0, degrees as f64).map(|t| t.inverse_cdf(self.one_sided())).ok(),
            _ => Normal::new(0.0, 1.0).map(|normal| normal.inverse_cdf(self.one_sided())).ok(),
        };
        // Both distributions exist for these constants.
        (exact.unwrap_or(f64::NAN) * 1000.0).round() / 1000.0
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1}%", self.percent())
    }
}

impl FromStr for Confidence {
    type Err = ConfidenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let level: Option<f64> = text.trim().trim_end_matches('%').parse().ok();
        Self::ALL
            .into_iter()
            .find(|confidence| level == Some(confidence.percent()))
            .ok_or_else(|| ConfidenceError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_equals_the_printed_table_at_its_corners() {
        let row = |degrees| Confidence::ALL.map(|confidence| confidence.t(degrees));
        assert_eq!(row(1), [3.078, 6.314, 12.706, 31.821, 63.657, 318.313]);
        assert_eq!(row(2), [1.886, 2.920, 4.303, 6.965, 9.925, 22.327]);
        assert_eq!(row(50), [1.299, 1.676, 2.009, 2.403, 2.678, 3.261]);
        assert_eq!(row(100), [1.290, 1.660, 1.984, 2.364, 2.626, 3.174]);
        assert_eq!(row(101), [1.282, 1.645, 1.960, 2.326, 2.576, 3.090]);
        assert_eq!(row(100_000), row(101));
    }

    #[test]
    fn levels_are_read_as_the_option_takes_them() {
        assert_eq!("99.5".parse(), Ok(Confidence::P995));
        assert_eq!("80%".parse(), Ok(Confidence::P80));
        assert!("97".parse::<Confidence>().is_err());
        assert!("NaN".parse::<Confidence>().is_err());
    }
}
