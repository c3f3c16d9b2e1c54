//! The folder of one run: everything that was received, and what was made of it.
//!
//! | file | content |
//! |---|---|
//! | `run.json` | what ran, on what, with which profile and seed, and every number of the report |
//! | `results.jsonl` | the lines of the test binary as they came, raw samples included |
//! | `console.log` | console of the guest (VM runs) |
//! | `report.txt` | what the terminal showed |
//! | `FAILED` | why the run is not complete; nothing else but the lines so far is there then |
//! | `block-mean-<arm>.txt`, `block-max-<arm>.txt` | one number a block, in µs, as `ministat` takes them |

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use serde::Serialize;

/// What ran and every number.
pub const RUN: &str = "run.json";
/// The raw lines.
pub const RESULTS: &str = "results.jsonl";
/// The guest's console.
pub const CONSOLE: &str = "console.log";
/// The mark of a run that is not complete, with the reason.
pub const FAILED: &str = "FAILED";

/// A run's folder, open for writing.
pub struct Folder {
    path: PathBuf,
    lines: BufWriter<File>,
    blocks: usize,
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
        let file = path.join(RESULTS);
        let lines = File::create(&file).with_context(|| format!("cannot write {}", file.display()))?;
        Ok(Self { path, lines: BufWriter::new(lines), blocks: 0 })
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
        self.blocks += usize::from(matches!(line, execlab_report::Line::Block(_)));
        self.lines
            .write_all(line.to_text().as_bytes())
            .and_then(|()| self.lines.flush())
            .with_context(|| format!("cannot write {}", self.file(RESULTS).display()))
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

    /// Says what became of the folder of a run that failed for `reason`: it is marked as [`FAILED`] if it holds blocks, or a
    /// console that explains the failure (`console_matters`), and removed otherwise. Returns its path if it stays.
    pub fn give_up(self, reason: &str, console_matters: bool) -> Option<PathBuf> {
        let console = self.file(CONSOLE);
        let explains = console_matters && fs::metadata(&console).is_ok_and(|file| file.len() > 0);
        if self.blocks == 0 && !explains {
            for name in [RESULTS, CONSOLE] {
                let _ = fs::remove_file(self.file(name));
            }
            // Only an empty folder goes; what somebody else put there stays.
            let _ = fs::remove_dir(&self.path);
            return None;
        }
        // The disk may be the reason. The missing run.json then says that the run is not complete.
        let _ = self.write(FAILED, &format!("{reason}\n"));
        Some(self.path)
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use execlab_report::{Block, Line, Samples};

    fn folder(parent: &Path) -> Folder {
        Folder::create(parent, None, "x").unwrap()
    }

    #[test]
    fn a_failed_run_without_a_block_leaves_nothing() {
        let parent = tempfile::tempdir().unwrap();
        let mut folder = folder(parent.path());
        folder.keep_line(&Line::Done).unwrap();
        let path = folder.path().to_owned();
        assert_eq!(folder.give_up("because", true), None);
        assert!(!path.exists());
    }

    #[test]
    fn a_failed_run_with_a_block_or_with_a_console_that_explains_it_is_marked() {
        let parent = tempfile::tempdir().unwrap();
        let mut with_block = folder(parent.path());
        let block = Block {
            index: 0,
            round: 0,
            arm: "null".into(),
            start_ns: 0,
            duration_ns: 1,
            samples: Samples(vec![1]),
            counters: Default::default(),
        };
        with_block.keep_line(&Line::Block(block)).unwrap();
        let with_console = folder(parent.path());
        with_console.write(CONSOLE, "panic").unwrap();
        for folder in [with_block, with_console] {
            let path = folder.give_up("because", true).unwrap();
            assert_eq!(fs::read_to_string(path.join(FAILED)).unwrap(), "because\n");
        }
    }
}
