//! The folder of one run: everything that was received, and what was made of it.
//!
//! | file | content |
//! |---|---|
//! | `run.json` | what ran, on what, with which profile and seed, and every number of the report |
//! | `results.jsonl` | the lines of the test binary as they came, raw samples included |
//! | `console.log` | console of the guest (VM runs) |
//! | `report.txt` | what the terminal showed |
//! | `block-mean-<arm>.txt`, `block-max-<arm>.txt` | one number a block, in µs, as `ministat` takes them |

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use serde::Serialize;

/// A run's folder, open for writing.
pub struct Folder {
    path: PathBuf,
    lines: BufWriter<File>,
}

impl Folder {
    /// Makes the folder: `wanted`, or a new one under `runs/` named after the time and `what`.
    ///
    /// # Errors
    /// When it exists and is not empty, or cannot be made.
    pub fn create(root: &Path, wanted: Option<&Path>, what: &str) -> Result<Self> {
        let path = match wanted {
            Some(path) => path.to_owned(),
            None => unused(&root.join("runs"), what),
        };
        if fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_some()) {
            bail!("{} exists and is not empty: give another folder with --out", path.display());
        }
        fs::create_dir_all(&path).with_context(|| format!("cannot make the folder {}", path.display()))?;
        let file = path.join("results.jsonl");
        let lines = File::create(&file).with_context(|| format!("cannot write {}", file.display()))?;
        Ok(Self { path, lines: BufWriter::new(lines) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path of a file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Keeps one line of the test binary.
    ///
    /// # Errors
    /// When the disk refuses it.
    pub fn keep_line(&mut self, line: &execlab_report::Line) -> Result<()> {
        self.lines
            .write_all(line.to_text().as_bytes())
            .and_then(|()| self.lines.flush())
            .with_context(|| format!("cannot write {}", self.file("results.jsonl").display()))
    }

    /// Writes a text file.
    ///
    /// # Errors
    /// When the disk refuses it.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        let file = self.file(name);
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
    }

    /// Writes a JSON file.
    ///
    /// # Errors
    /// When the disk refuses it.
    pub fn write_json(&self, name: &str, value: &impl Serialize) -> Result<()> {
        let mut text = serde_json::to_string_pretty(value).context("cannot write JSON")?;
        text.push('\n');
        self.write(name, &text)
    }
}

/// Writes `value` as JSON to `target`, `-` being standard output.
///
/// # Errors
/// When it cannot be written.
pub fn write_json_to(target: &Path, value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value).context("cannot write JSON")?;
    if target == Path::new("-") {
        println!("{text}");
        return Ok(());
    }
    fs::write(target, text + "\n").with_context(|| format!("cannot write {}", target.display()))
}

fn unused(parent: &Path, what: &str) -> PathBuf {
    let stamp = humantime::format_rfc3339_seconds(SystemTime::now()).to_string().replace(':', "");
    let first = parent.join(format!("{stamp}-{what}"));
    let mut path = first.clone();
    let mut n = 2;
    while path.exists() {
        path = first.with_file_name(format!("{stamp}-{what}-{n}"));
        n += 1;
    }
    path
}
