//! Where results go.

use std::fs::File;
use std::io::{self, Write};
use std::str::FromStr;

use anyhow::{Context as _, Result};
use execlab_report::{Failure, Line, words};

/// Environment variable with the number of an open descriptor for results, set by PID 1 of a guest.
pub const RESULTS_FD: &str = "EXECLAB_RESULTS_FD";

/// A place for results, as `--results` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Standard output.
    Stdout,
    /// An open descriptor.
    Descriptor(i32),
    /// A file, made or emptied.
    File(String),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        if text == "-" {
            return Ok(Self::Stdout);
        }
        match text.strip_prefix("fd:") {
            None => Ok(Self::File(text.to_owned())),
            Some(number) => match number.parse() {
                Ok(number) if number >= 0 => Ok(Self::Descriptor(number)),
                _ => Err(format!("{number:?} is no number of a descriptor")),
            },
        }
    }
}

/// Writes lines, each at once.
pub struct Output {
    to: Box<dyn Write + Send>,
}

impl Output {
    /// Opens the target; without one, what [`RESULTS_FD`] says, or standard output.
    ///
    /// # Errors
    /// When the file cannot be made, or the descriptor is not open.
    pub fn open(target: Option<Target>) -> io::Result<Self> {
        Self::with(target, |path| File::create(path))
    }

    /// The same target again, behind what was written to it.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn reopen(target: Option<Target>) -> io::Result<Self> {
        Self::with(target, |path| File::options().append(true).create(true).open(path))
    }

    fn with(target: Option<Target>, file: impl FnOnce(&str) -> io::Result<File>) -> io::Result<Self> {
        let target = match (target, std::env::var(RESULTS_FD)) {
            (Some(target), _) => target,
            (None, Err(_)) => Target::Stdout,
            (None, Ok(number)) => format!("fd:{number}").parse().map_err(|error| {
                io::Error::new(io::ErrorKind::InvalidInput, format!("{RESULTS_FD}: {error}"))
            })?,
        };
        let to: Box<dyn Write + Send> = match target {
            Target::Stdout => Box::new(io::stdout()),
            Target::Descriptor(number) => Box::new(duplicate(number)?),
            Target::File(path) => Box::new(file(&path)?),
        };
        Ok(Self { to })
    }

    /// Writes one line.
    ///
    /// # Errors
    /// When the reader is gone.
    pub fn line(&mut self, line: &Line) -> io::Result<()> {
        self.to.write_all(line.to_text().as_bytes())?;
        self.to.flush()
    }

    /// Writes the last line, which says how the run went, and passes its outcome on.
    ///
    /// # Errors
    /// The outcome's, or that the reader is gone.
    pub fn last(&mut self, outcome: Result<()>) -> Result<()> {
        let last = match &outcome {
            Ok(()) => Line::Done,
            Err(error) => Line::Failure(Failure { message: words(error.as_ref()) }),
        };
        let written = self.line(&last).context("the results cannot be written");
        // The first error explains the second.
        outcome.and(written)
    }
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output").finish_non_exhaustive()
    }
}

/// A descriptor of our own for what `number` refers to. Opening `/proc/self/fd/N` would not do: a virtio-serial
/// port can be opened once only.
#[allow(unsafe_code)] // A number from outside becomes a descriptor here.
fn duplicate(number: i32) -> io::Result<File> {
    // SAFETY: the descriptor is not ours and not closed here. If it is not open, duplicating it fails with EBADF.
    let borrowed = unsafe { std::os::fd::BorrowedFd::borrow_raw(number) };
    Ok(borrowed.try_clone_to_owned()?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_as_documented() {
        assert_eq!("-".parse(), Ok(Target::Stdout));
        assert_eq!("fd:3".parse(), Ok(Target::Descriptor(3)));
        assert_eq!("out.jsonl".parse(), Ok(Target::File("out.jsonl".into())));
        assert!("fd:-1".parse::<Target>().is_err() && "fd:x".parse::<Target>().is_err());
    }

    #[test]
    fn a_descriptor_that_is_not_open_is_an_error() {
        assert!(Output::open(Some(Target::Descriptor(9999))).is_err());
    }
}
