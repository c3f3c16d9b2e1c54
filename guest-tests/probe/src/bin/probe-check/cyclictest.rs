//! cyclictest, the program that everybody measures with (package rt-tests).

use std::process::Command;

use anyhow::{Context as _, bail};

use crate::Options;

/// Samples of one run of cyclictest in nanoseconds, or nothing when it is not installed.
pub fn run(options: &Options) -> anyhow::Result<Option<Vec<u32>>> {
    let mut command = Command::new("cyclictest");
    command.args(["-m", "-N", "-v", "-t1"]);
    command.args(["-p", &options.priority.to_string(), "-a", &options.cpu.to_string()]);
    command.args(["-i", &options.interval_us.to_string(), "-l", &options.loops.to_string()]);
    let output = match command.output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).context("cyclictest"),
    };
    if !output.status.success() {
        bail!("cyclictest failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let samples: Vec<u32> = text.lines().filter_map(verbose_sample).collect();
    if samples.is_empty() {
        bail!("cyclictest printed no sample; its output begins with {:?}", text.chars().take(200));
    }
    Ok(Some(samples))
}

/// A line `task: count: value` of `cyclictest -v`.
fn verbose_sample(line: &str) -> Option<u32> {
    let mut fields = line.split(':').map(|field| field.trim().parse::<u32>());
    match (fields.next(), fields.next(), fields.next(), fields.next()) {
        (Some(Ok(_)), Some(Ok(_)), Some(Ok(value)), None) => Some(value),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_three_numbers_is_a_sample_and_any_other_line_is_none() {
        assert_eq!(verbose_sample("       0:       3:    8123"), Some(8123));
        assert_eq!(verbose_sample("Max CPUs = 2"), None);
        assert_eq!(verbose_sample("0:1:2:3"), None);
    }
}
