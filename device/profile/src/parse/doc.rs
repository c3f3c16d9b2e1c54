//! The text being read: where things stand in it, and how a refusal is worded.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::quantity;
use crate::ProfileError;

/// A key of the file with its place.
pub(super) type Key<'i> = Spanned<DeString<'i>>;
/// A value of the file with its place.
pub(super) type Value<'i> = Spanned<DeValue<'i>>;

/// A table's entries in the order of the file, so that the first offence is the one reported.
pub(super) fn entries<'t, 'i>(table: &'t DeTable<'i>) -> Vec<(&'t Key<'i>, &'t Value<'i>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// The text of a profile and what to call it.
#[derive(Clone, Copy)]
pub(super) struct Doc<'a> {
    pub(super) text: &'a str,
    pub(super) file: &'a str,
}

impl Doc<'_> {
    /// The refusal of what stands at `span`.
    pub(super) fn fail(self, span: Range<usize>, reason: impl Into<String>) -> ProfileError {
        let (line, column) = self.position(span.start);
        ProfileError::Invalid { file: self.file.to_owned(), line, column, reason: reason.into() }
    }

    /// Line and column, both from 1, of a byte offset; the column counts characters.
    fn position(self, offset: usize) -> (usize, usize) {
        let mut end = offset.min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        let before = &self.text[..end];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }

    /// The refusal of a key that none of `valid` is.
    pub(super) fn unknown_key(self, key: &Key<'_>, valid: &[&str]) -> ProfileError {
        self.unknown("key", key, valid)
    }

    /// The refusal of a word that none of `valid` is; `what` says what it should have been.
    pub(super) fn unknown(self, what: &str, word: &Key<'_>, valid: &[&str]) -> ProfileError {
        self.unknown_at(word.span(), what, word.get_ref(), valid)
    }

    /// As [`Doc::unknown`], for a word put together from several places.
    pub(super) fn unknown_at(
        self,
        span: Range<usize>,
        what: &str,
        word: &str,
        valid: &[&str],
    ) -> ProfileError {
        let hint = match crate::nearest(word, valid) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("valid here: {}", valid.join(", ")),
        };
        self.fail(span, format!("unknown {what} `{}`; {hint}", word.escape_debug()))
    }

    /// The refusal of a value of the wrong type.
    pub(super) fn wrong_type(self, value: &Value<'_>, wanted: &str) -> ProfileError {
        self.fail(value.span(), format!("expected {wanted}, found {}", describe(value.get_ref())))
    }

    /// The table that a value is.
    pub(super) fn table<'v, 'i>(self, value: &'v Value<'i>) -> Result<&'v DeTable<'i>, ProfileError> {
        value.get_ref().as_table().ok_or_else(|| self.wrong_type(value, "a table"))
    }

    /// The string that a value is.
    pub(super) fn string<'v>(self, value: &'v Value<'_>) -> Result<&'v str, ProfileError> {
        value.get_ref().as_str().ok_or_else(|| self.wrong_type(value, "a string"))
    }

    /// The length of time that a value is, in nanoseconds, at most `max`.
    pub(super) fn quantity(self, value: &Value<'_>, max: u64) -> Result<u64, ProfileError> {
        let Some(text) = value.get_ref().as_str() else {
            return Err(self.wrong_type(value, "a quantity with a unit, such as \"20us\""));
        };
        quantity::nanoseconds(text, max).map_err(|reason| self.fail(value.span(), reason))
    }
}

/// A value as a person would name it.
fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::Integer(number) => format!("the number {}", number.as_str()),
        DeValue::Float(number) => format!("the number {}", number.as_str()),
        DeValue::String(text) => format!("the string \"{}\"", text.escape_debug()),
        DeValue::Boolean(truth) => truth.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "an array".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
