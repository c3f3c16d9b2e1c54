//! A text of one number per line, as `ministat` takes it.
//!
//! Blank lines, and lines whose first field begins with `#`, hold nothing. A field that begins with `#` ends its line. A line that ends before the chosen column
//! is passed over, as `ministat` does, but counted, so that a caller can say so.

use std::num::NonZeroUsize;

use serde::Serialize;

use crate::ministat::MIN_VALUES;

/// Where on a line the number stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    /// Column, from 1 (`ministat -C`).
    pub column: NonZeroUsize,
    /// Characters that separate columns; several in a row count as one (`ministat -d`).
    pub delimiters: String,
}

impl Default for Format {
    /// First column, separated by spaces and tabs.
    fn default() -> Self {
        Self { column: NonZeroUsize::MIN, delimiters: " \t".to_owned() }
    }
}

/// The numbers of a text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Numbers {
    /// Values in the order of the text, all finite, at least [`MIN_VALUES`].
    pub values: Vec<f64>,
    /// Line numbers (from 1) that held something, but not the chosen column.
    pub short_lines: Vec<usize>,
}

/// Why a text holds no data set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NumbersError {
    /// A field that is no decimal number. Hexadecimal, which C's `strtod` takes, is refused too.
    #[error("line {line}: {field:?} is not a number")]
    NotANumber {
        /// Line, from 1.
        line: usize,
        /// The field, cut to 40 characters.
        field: String,
    },
    /// NaN, an infinity, or a number too large for a double.
    #[error("line {line}: {field:?} is not a finite number")]
    NotFinite {
        /// Line, from 1.
        line: usize,
        /// The field, cut to 40 characters.
        field: String,
    },
    /// Not enough numbers for any statistic.
    #[error("{found} numbers in {lines} lines; at least {MIN_VALUES} are needed{}", short_note(.short))]
    TooFew {
        /// Numbers found.
        found: usize,
        /// Lines of the text.
        lines: usize,
        /// Lines that did not reach the chosen column.
        short: usize,
    },
    /// No character separates the columns.
    #[error("the delimiters are an empty text; at least one character is needed")]
    NoDelimiter,
}

fn short_note(short: &usize) -> String {
    if *short == 0 { String::new() } else { format!(" ({short} lines end before the chosen column)") }
}

/// Reads the numbers of a text.
///
/// # Errors
/// [`NumbersError`], which names the line and the reason; the first bad line ends the reading.
pub fn parse(text: &str, format: &Format) -> Result<Numbers, NumbersError> {
    if format.delimiters.is_empty() {
        return Err(NumbersError::NoDelimiter);
    }
    let (mut values, mut short_lines, mut lines) = (Vec::new(), Vec::new(), 0);
    for (index, raw) in text.lines().enumerate() {
        lines = index + 1;
        let mut fields = raw
            .trim_end()
            .split(|c| format.delimiters.contains(c))
            .filter(|field| !field.is_empty())
            .take_while(|field| !field.starts_with('#'))
            .peekable();
        if fields.peek().is_none() {
            continue;
        }
        match fields.nth(format.column.get() - 1).map(str::trim) {
            None => short_lines.push(lines),
            // With a delimiter such as a comma, a field may hold nothing but spaces.
            Some("") => {
                return Err(NumbersError::NotANumber { line: lines, field: String::new() });
            }
            Some(field) => values.push(number(lines, field)?),
        }
    }
    if values.len() < MIN_VALUES {
        return Err(NumbersError::TooFew { found: values.len(), lines, short: short_lines.len() });
    }
    Ok(Numbers { values, short_lines })
}

fn number(line: usize, field: &str) -> Result<f64, NumbersError> {
    let shown = || field.chars().take(40).collect();
    match field.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        Ok(_) => Err(NumbersError::NotFinite { line, field: shown() }),
        Err(_) => Err(NumbersError::NotANumber { line, field: shown() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(column: usize, delimiters: &str) -> Format {
        Format { column: NonZeroUsize::new(column).unwrap(), delimiters: delimiters.to_owned() }
    }

    #[test]
    fn comments_blank_lines_crlf_and_exponents_are_taken() {
        let numbers = parse("# head\r\n 1\r\n\r\n2e1 # two\n  #x\n-3.5\n", &Format::default()).unwrap();
        assert_eq!(numbers, Numbers { values: vec![1.0, 20.0, -3.5], short_lines: vec![] });
    }

    #[test]
    fn second_column_skips_short_lines_and_says_which() {
        let numbers = parse("a\t1\nb 2\nc\nd   3 4\n5 # 6\n", &column(2, " \t")).unwrap();
        assert_eq!(numbers, Numbers { values: vec![1.0, 2.0, 3.0], short_lines: vec![3, 5] });
    }

    #[test]
    fn other_delimiters_count_as_one_when_repeated() {
        assert_eq!(parse("a,;1\nb;2\nc, 3\n", &column(2, ",;")).unwrap().values, [1.0, 2.0, 3.0]);
    }

    #[test]
    fn garbage_nan_and_overflow_name_their_line() {
        let fail = |text| parse(text, &Format::default()).unwrap_err().to_string();
        assert_eq!(fail("1\n2\n3x\n"), "line 3: \"3x\" is not a number");
        assert_eq!(fail("1\nnan\n3\n"), "line 2: \"nan\" is not a finite number");
        assert_eq!(fail("1e999\n"), "line 1: \"1e999\" is not a finite number");
        assert_eq!(fail("1#\n"), "line 1: \"1#\" is not a number");
    }

    #[test]
    fn too_few_numbers_say_how_many_there_are() {
        assert_eq!(
            parse("1\n2\n", &Format::default()).unwrap_err().to_string(),
            "2 numbers in 2 lines; at least 3 are needed"
        );
        assert_eq!(
            parse("1\n2\n", &column(2, " ")).unwrap_err().to_string(),
            "0 numbers in 2 lines; at least 3 are needed (2 lines end before the chosen column)"
        );
        assert_eq!(parse("1\n", &column(1, "")), Err(NumbersError::NoDelimiter));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused_without_a_panic(text in "\\PC*|[0-9e.#, \n\t-]*", number in 1..4_usize) {
            let _ = parse(&text, &column(number, " \t,"));
        }
    }
}
