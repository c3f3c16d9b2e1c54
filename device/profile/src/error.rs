//! Why a profile was refused.

/// A profile that cannot be used. Displayed as `file:line:column: reason`, the form that editors jump to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The text is not a valid profile.
    #[error("{file}:{line}:{column}: {reason}")]
    Invalid {
        /// The file's name as it was given.
        file: String,
        /// Line of the offending word, from 1.
        line: usize,
        /// Column of the offending word in characters, from 1.
        column: usize,
        /// What is wrong, and where it can be said, what to write instead.
        reason: String,
    },
    /// The file could not be read.
    #[error("{file}: {reason}")]
    Unreadable {
        /// The file's name as it was given.
        file: String,
        /// What the system said.
        reason: String,
    },
    /// Neither a file nor a profile that ships with the device has this name.
    #[error("no profile `{name}`: neither a file nor one of {known}{}", .near.map(|n| format!("; did you mean `{n}`?")).unwrap_or_default())]
    Unknown {
        /// The name as it was given.
        name: String,
        /// The shipped names, comma separated.
        known: String,
        /// The shipped name that is spelt most alike, if one is close.
        near: Option<&'static str>,
    },
}
