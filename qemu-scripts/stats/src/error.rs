//! What can be wrong with the numbers handed in.

/// Why a statistic could not be computed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StatsError {
    /// Fewer values (or blocks, or rounds) than the statistic needs.
    #[error("{what}: {got} given, at least {need} needed")]
    TooFew {
        /// What there is too little of.
        what: &'static str,
        /// How many were given.
        got: usize,
        /// How many are needed.
        need: usize,
    },
    /// A value is NaN or infinite.
    #[error("value number {position} is {value}, not a finite number")]
    NotFinite {
        /// Position in the list, from 1.
        position: usize,
        /// The value.
        value: f64,
    },
    /// Every value is finite, but not the sum of their squares.
    #[error(
        "the values of {label} are too large to compute with: the sum of their squares overflows (beyond 1e308)"
    )]
    Overflow {
        /// Name of the data set.
        label: String,
    },
    /// A setting is outside its range.
    #[error("{name} is {value}; it must be {expected}")]
    Setting {
        /// Name of the setting.
        name: &'static str,
        /// What was given.
        value: f64,
        /// The range that is allowed.
        expected: &'static str,
    },
}

/// Copies values out as `f64`.
///
/// # Errors
/// [`StatsError::NotFinite`] at the first NaN or infinity, [`StatsError::TooFew`] when there are fewer than `need`.
pub(crate) fn finite<T: Copy + Into<f64>>(
    values: &[T],
    what: &'static str,
    need: usize,
) -> Result<Vec<f64>, StatsError> {
    if values.len() < need {
        return Err(StatsError::TooFew { what, got: values.len(), need });
    }
    values
        .iter()
        .enumerate()
        .map(|(index, &value)| {
            let value = value.into();
            if value.is_finite() {
                Ok(value)
            } else {
                Err(StatsError::NotFinite { position: index + 1, value })
            }
        })
        .collect()
}

/// Refuses a setting outside the open interval (0, 1): confidences and error rates.
pub(crate) fn probability(name: &'static str, value: f64) -> Result<f64, StatsError> {
    if value > 0.0 && value < 1.0 {
        Ok(value)
    } else {
        Err(StatsError::Setting { name, value, expected: "between 0 and 1, both excluded" })
    }
}
