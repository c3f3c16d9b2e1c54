//! Standard output, and where a JSON result goes. A reader that went away or a full disk is an error like any other.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result};
use serde::Serialize;

/// Writes a text to standard output.
///
/// # Errors
/// When nobody reads it any more, or the disk is full.
pub fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write to standard output")
}

/// Where a person wants a result as JSON. A file is opened at once, so that it is known before a long run whether it can be written.
#[derive(Debug)]
pub enum Json {
    /// Nowhere.
    None,
    /// Standard output, which then carries nothing else.
    Stdout,
    /// A file.
    File {
        /// Its path.
        path: PathBuf,
        /// It, open; what it held stays until the result is there.
        file: File,
        /// Whether it is to be removed if no result comes.
        made: bool,
    },
}

impl Json {
    /// Opens `target`, `-` being standard output.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn open(target: Option<&Path>) -> Result<Self> {
        let Some(path) = target else { return Ok(Self::None) };
        if path == Path::new("-") {
            return Ok(Self::Stdout);
        }
        let made = !path.exists();
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .with_context(|| format!("--json: cannot write {}", path.display()))?;
        Ok(Self::File { path: path.to_owned(), file, made })
    }

    /// Writes a text for people: to standard output, or to standard error when standard output carries the JSON.
    ///
    /// # Errors
    /// As [`print`].
    pub fn print(&self, text: &str) -> Result<()> {
        if matches!(self, Self::Stdout) {
            return io::stderr().write_all(text.as_bytes()).context("cannot write to standard error");
        }
        print(text)
    }

    /// Where a program that we start writes its text for people.
    pub fn stdout_of_children(&self) -> Stdio {
        if matches!(self, Self::Stdout) { Stdio::from(io::stderr()) } else { Stdio::inherit() }
    }

    /// Writes the result.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&mut self, value: &impl Serialize) -> Result<()> {
        if matches!(self, Self::None) {
            return Ok(());
        }
        let text = serde_json::to_string_pretty(value).context("cannot write JSON")? + "\n";
        match self {
            Self::None => Ok(()),
            Self::Stdout => print(&text),
            Self::File { path, file, made } => {
                *made = false;
                // A device or a pipe has no length.
                let emptied =
                    if file.metadata().is_ok_and(|m| m.is_file()) { file.set_len(0) } else { Ok(()) };
                emptied
                    .and_then(|()| file.write_all(text.as_bytes()))
                    .with_context(|| format!("cannot write {}", path.display()))
            }
        }
    }
}

impl Drop for Json {
    /// An empty file is no result: it goes.
    fn drop(&mut self) {
        if let Self::File { path, made: true, .. } = self {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_cannot_be_written_is_refused_at_once() {
        let error = Json::open(Some(Path::new("/nonexistent/x.json"))).unwrap_err().to_string();
        assert!(error.contains("/nonexistent/x.json"), "{error}");
    }

    #[test]
    fn an_old_result_stays_until_there_is_a_new_one_and_no_empty_file_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        fs::write(&old, "[1, 2, 3, 4, 5, 6, 7, 8, 9]").unwrap();
        drop(Json::open(Some(&old)).unwrap());
        drop(Json::open(Some(&new)).unwrap());
        assert!(fs::read_to_string(&old).unwrap().starts_with("[1") && !new.exists());
        Json::open(Some(&old)).unwrap().write(&7).unwrap();
        assert_eq!(fs::read_to_string(&old).unwrap(), "7\n");
    }
}
