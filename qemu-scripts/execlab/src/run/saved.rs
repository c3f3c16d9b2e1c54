//! Reading a run folder again.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use execlab_report::Plan;
use serde::Deserialize;

use super::arms::{self, Arm};
use super::folder::{FAILED, RESULTS, RUN};
use super::setting::Setting;
use super::stream::Collected;

/// Version of `run.json` that this command writes and reads.
pub const FORMAT: u32 = 1;

/// A run that was kept.
#[derive(Debug)]
pub struct Saved {
    /// What ran on what.
    pub setting: Setting,
    /// The plan as the test binary understood it.
    pub plan: Plan,
    /// The arms, from the raw lines.
    pub arms: Vec<Arm>,
}

/// The part of `run.json` that every version has.
#[derive(Deserialize)]
struct Versioned {
    format: u32,
}

/// The part of `run.json` that says what ran.
#[derive(Deserialize)]
struct Kept {
    setting: Setting,
    plan: Plan,
}

/// Reads the run in `folder`.
///
/// # Errors
/// When the folder is not one of a complete run, or another version of this command wrote it; the message says which.
pub fn read(folder: &Path) -> Result<Saved> {
    if let Ok(reason) = fs::read_to_string(folder.join(FAILED)) {
        bail!("{}: this run failed and cannot be compared: {}", folder.display(), reason.trim());
    }
    let Kept { setting, plan } = kept(folder)?;
    let arms = arms(folder)?;
    Ok(Saved { setting, plan, arms })
}

fn kept(folder: &Path) -> Result<Kept> {
    let file = folder.join(RUN);
    let text = fs::read_to_string(&file).with_context(|| {
        format!("{} is no folder of a complete run: cannot read {}", folder.display(), file.display())
    })?;
    let broken = || format!("{} is no run.json or is cut off: run the experiment again", file.display());
    let Versioned { format } = serde_json::from_str(&text).with_context(broken)?;
    if format != FORMAT {
        bail!(
            "{} has format {format}, this command reads format {FORMAT}: compare with the version of execlab that wrote it",
            file.display()
        );
    }
    serde_json::from_str(&text).with_context(broken)
}

fn arms(folder: &Path) -> Result<Vec<Arm>> {
    let file = folder.join(RESULTS);
    let text = fs::read_to_string(&file).with_context(|| {
        format!("{} is no folder of a complete run: cannot read {}", folder.display(), file.display())
    })?;
    let mut collected = Collected::default();
    for (number, line) in text.lines().enumerate() {
        let at = || format!("{} line {}", file.display(), number + 1);
        collected.take(execlab_report::read_line(line).with_context(at)?).with_context(at)?;
    }
    let complete = collected.complete().with_context(|| folder.display().to_string())?;
    arms::arms(&complete.blocks, complete.hello.plan.dilation)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(files: &[(&str, &str)]) -> String {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        format!("{:#}", read(folder.path()).unwrap_err())
    }

    #[test]
    fn a_folder_without_run_json_is_refused() {
        assert!(refusal(&[(RESULTS, "")]).contains("no folder of a complete run"));
    }

    #[test]
    fn a_truncated_run_json_is_refused() {
        assert!(refusal(&[(RUN, "{\n  \"format\": 1,\n  \"sett")]).contains("cut off"));
        assert!(refusal(&[(RUN, "{\"format\": 1}")]).contains("cut off"));
    }

    #[test]
    fn another_format_is_refused_by_its_number() {
        assert!(refusal(&[(RUN, "{\"format\": 99}")]).contains("format 99"));
    }

    #[test]
    fn a_run_that_failed_is_refused_with_its_reason() {
        assert!(refusal(&[(FAILED, "the disk is full\n")]).contains("cannot be compared: the disk is full"));
    }
}
