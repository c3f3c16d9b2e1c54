//! The whole printed text.

use std::fmt::Write as _;

use super::{Confidence, DataSet, Plot, Relative};
use crate::{StatsError, cformat::general};

/// What to print besides the table.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Compare every set with the first one, at this level; `None` prints the rows only, like `ministat -n`.
    pub confidence: Option<Confidence>,
    /// The plot above the table; `None` leaves it out, like `ministat -A`.
    pub plot: Option<Plot>,
}

/// The characters that stand for sets, in order.
pub struct Symbols;

impl Symbols {
    /// One character per set; no more sets than this can be printed.
    pub const ALL: [char; 7] = ['x', '+', '*', '%', '#', '@', 'O'];
}

/// The line above the rows, without newline.
#[must_use]
pub fn header() -> &'static str {
    "    N           Min           Max        Median           Avg        Stddev"
}

/// One row of the table, without newline.
#[must_use]
pub fn row(symbol: char, set: &DataSet) -> String {
    let g = |value| general(value, 8);
    let moments = set.moments();
    format!(
        "{symbol} {:3} {:>13} {:>13} {:>13} {:>13} {:>13}",
        moments.n,
        g(set.min()),
        g(set.max()),
        g(set.median()),
        g(moments.average),
        g(moments.stddev())
    )
}

/// Everything that `ministat` prints for these sets, the first being the reference.
///
/// # Errors
/// No set, more sets than [`Symbols`], or a plot narrower than 2.
pub fn render(sets: &[DataSet], options: &Options) -> Result<String, StatsError> {
    let Some((reference, others)) = sets.split_first() else {
        return Err(StatsError::TooFew { what: "data sets", got: 0, need: 1 });
    };
    if sets.len() > Symbols::ALL.len() {
        return Err(StatsError::Setting {
            name: "number of data sets",
            value: sets.len() as f64,
            expected: "at most 7",
        });
    }
    let mut text = String::new();
    for (symbol, set) in Symbols::ALL.iter().zip(sets) {
        line(&mut text, &format!("{symbol} {}", set.label()));
    }
    if let Some(plot) = &options.plot {
        text.push_str(&plot.draw(sets)?);
    }
    line(&mut text, header());
    line(&mut text, &row(Symbols::ALL[0], reference));
    for (&symbol, set) in Symbols::ALL.iter().skip(1).zip(others) {
        line(&mut text, &row(symbol, set));
        if let Some(confidence) = options.confidence {
            let relative = Relative::new(set.moments(), reference.moments(), confidence);
            // Writing to a String cannot fail.
            let _ = write!(text, "{relative}");
        }
    }
    Ok(text)
}

pub(super) fn line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_set_and_eight_sets_are_refused() {
        let set = DataSet::new("a", &[1.0, 2.0, 3.0]).unwrap();
        assert!(render(&[], &Options::default()).is_err());
        assert!(render(&vec![set.clone(); 8], &Options::default()).is_err());
        assert!(render(&vec![set; 7], &Options::default()).is_ok());
    }

    #[test]
    fn two_values_and_infinities_make_no_set() {
        assert!(DataSet::new("a", &[1.0, 2.0]).is_err());
        assert!(DataSet::new("a", &[1.0, 2.0, f64::INFINITY]).is_err());
    }

    #[test]
    fn values_whose_squares_overflow_make_no_set() {
        for value in [1e308, 1e160, -1e200] {
            let error = DataSet::new("big", &[value; 3]).unwrap_err();
            assert_eq!(error, StatsError::Overflow { label: "big".into() });
        }
        assert!(DataSet::new("a", &[1e150; 3]).is_ok());
    }

    #[test]
    fn equal_values_have_deviation_zero() {
        let set = DataSet::new("a", &[0.001; 7]).unwrap();
        assert_eq!(set.moments().stddev(), 0.0);
    }
}
