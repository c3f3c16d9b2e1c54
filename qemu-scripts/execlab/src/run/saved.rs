//! Reading a run folder again.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::arms::{self, Arm};
use super::stream::Collected;

/// The arms of the run in `folder`, from its raw lines.
///
/// # Errors
/// When the folder is not a complete run.
pub fn arms(folder: &Path) -> Result<Vec<Arm>> {
    let file = folder.join("results.jsonl");
    let text = fs::read_to_string(&file)
        .with_context(|| format!("{} is no run folder: cannot read {}", folder.display(), file.display()))?;
    let mut collected = Collected::default();
    for (number, line) in text.lines().enumerate() {
        let at = || format!("{} line {}", file.display(), number + 1);
        collected.take(execlab_report::read_line(line).with_context(at)?).with_context(at)?;
    }
    let complete = collected.complete().with_context(|| folder.display().to_string())?;
    arms::arms(&complete.blocks, complete.hello.plan.dilation)
}
