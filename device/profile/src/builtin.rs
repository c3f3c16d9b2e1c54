//! The profiles that ship with the device.

use crate::{Profile, ProfileError};

/// Name and text of every shipped profile.
const BUILTIN: &[(&str, &str)] = &[("instant", include_str!("../profiles/instant.toml"))];

impl Profile {
    /// The text of the shipped profile of that name.
    #[must_use]
    pub fn builtin_text(name: &str) -> Option<&'static str> {
        BUILTIN.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
    }

    /// The shipped profile of that name.
    #[must_use]
    pub fn builtin(name: &str) -> Option<Self> {
        // The tests parse every shipped text, so `ok` hides nothing.
        Self::parse(Self::builtin_text(name)?, name).ok()
    }

    /// Names of the shipped profiles.
    pub fn builtin_names() -> impl Iterator<Item = &'static str> {
        BUILTIN.iter().map(|(name, _)| *name)
    }

    /// Loads the shipped profile `path_or_name`, or else the file at that path. A word with a `/` or ending in
    /// `.toml` is always a path.
    ///
    /// # Errors
    /// [`ProfileError::Unknown`], [`ProfileError::Unreadable`] or [`ProfileError::Invalid`].
    pub fn load(path_or_name: &str) -> Result<Self, ProfileError> {
        let is_path = path_or_name.contains('/') || path_or_name.ends_with(".toml");
        if !is_path {
            if let Some(text) = Self::builtin_text(path_or_name) {
                return Self::parse(text, path_or_name);
            }
            if !std::path::Path::new(path_or_name).is_file() {
                return Err(ProfileError::Unknown {
                    name: path_or_name.to_owned(),
                    known: Self::builtin_names().collect::<Vec<_>>().join(", "),
                    near: None,
                });
            }
        }
        let text = std::fs::read_to_string(path_or_name)
            .map_err(|e| ProfileError::Unreadable { file: path_or_name.to_owned(), reason: e.to_string() })?;
        Self::parse(&text, path_or_name)
    }
}
