//! The profiles that ship with the device.

use std::io::Read as _;

use crate::{Profile, ProfileError};

/// The longest file that is taken for a profile, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Name and text of every shipped profile.
const BUILTIN: &[(&str, &str)] = &[
    ("instant", include_str!("../profiles/instant.toml")),
    ("kbl-2018", include_str!("../profiles/kbl-2018.toml")),
    ("bdw-2016", include_str!("../profiles/bdw-2016.toml")),
    ("tgl-late-csb", include_str!("../profiles/tgl-late-csb.toml")),
];

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
                    near: crate::nearest(path_or_name, &Self::builtin_names().collect::<Vec<_>>()),
                });
            }
        }
        Self::parse(&read(path_or_name)?, path_or_name)
    }
}

/// The text of a file, which must not be longer than [`MAX_FILE`]: the path may name a device or a disk image.
fn read(path: &str) -> Result<String, ProfileError> {
    let unreadable = |reason: String| ProfileError::Unreadable { file: path.to_owned(), reason };
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut bytes))
        .map_err(|e| unreadable(e.to_string()))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(unreadable(format!("longer than {} KiB, so not a profile", MAX_FILE >> 10)));
    }
    String::from_utf8(bytes).map_err(|e| {
        unreadable(format!("not UTF-8 at byte {}, so not a profile", e.utf8_error().valid_up_to()))
    })
}
