//! Where a table and its numbers go.

use std::io::{Write as _, stderr, stdout};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Args;
use serde::Serialize;

/// The table on standard output, the same numbers as JSON where they are wanted.
#[derive(Debug, Args)]
pub struct Output {
    /// Write the numbers as JSON to FILE (`-`: to standard output, and the table to standard error).
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Output {
    fn json_on_stdout(&self) -> bool {
        self.json.as_deref() == Some(Path::new("-"))
    }

    /// One line of the table.
    pub fn line(&self, text: &str) -> Result<()> {
        let written = if self.json_on_stdout() {
            writeln!(stderr().lock(), "{text}")
        } else {
            writeln!(stdout().lock(), "{text}")
        };
        written.context("cannot write the table")
    }

    /// The numbers, once they are complete.
    pub fn numbers(&self, value: &impl Serialize) -> Result<()> {
        let Some(target) = &self.json else { return Ok(()) };
        let text = serde_json::to_string_pretty(value)? + "\n";
        if self.json_on_stdout() {
            return stdout().lock().write_all(text.as_bytes()).context("cannot write the numbers");
        }
        std::fs::write(target, text).with_context(|| format!("cannot write {}", target.display()))
    }
}
