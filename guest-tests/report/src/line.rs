//! What a test binary says, one JSON object per line.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Plan, Samples};

/// Version of this line format; a reader refuses another one.
pub const PROTOCOL: u32 = 1;

/// Everything that may stand on one line of the results channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Line {
    /// First line: who speaks, and what it was asked to do.
    Hello(Hello),
    /// Where it runs, read back from the system rather than taken from the plan.
    Environment(Environment),
    /// How far the run has come. Any number of times.
    Progress(Progress),
    /// One finished block of one arm.
    Block(Block),
    /// The run cannot go on. Nothing follows.
    Failure(Failure),
    /// Last line of a complete run.
    Done,
}

/// First line of a stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL`] of the writer.
    pub protocol: u32,
    /// Name of the experiment, for example `submit-latency`.
    pub experiment: String,
    /// Version of the test binary.
    pub version: String,
    /// The plan as it was understood, defaults filled in.
    pub plan: Plan,
}

/// The machine under the test, as the test binary found it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// `uname -r`.
    pub kernel: String,
    /// `uname -v`, which tells PREEMPT_RT from others.
    pub kernel_version: String,
    /// CPUs on line.
    pub cpus: u32,
    /// Current clock source, for example `tsc` or `kvm-clock`.
    pub clocksource: String,
    /// How the device was reached: `native`, `vfio-pci`, `uio_pci_generic`.
    pub access: String,
    /// What the device said of itself (carrier, wait mode, profile, seed), key by key.
    pub device: BTreeMap<String, String>,
    /// Bound on the error of the guest-to-device clock relation, in nanoseconds.
    pub clock_error_ns: u64,
    /// Facts worth keeping that have no field of their own (priorities read back, throttling, …).
    pub notes: Vec<String>,
}

/// Progress of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Blocks finished.
    pub done: u32,
    /// Blocks in all.
    pub total: u32,
    /// What is being done now, in a few words.
    pub what: String,
}

/// One block: one arm measured for a short time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// Position in the run, from 0. Blocks of different arms alternate (A B B A …).
    pub index: u32,
    /// Which repetition of the interleaving pattern this block belongs to, from 0: blocks of one round were
    /// taken close together in time, so a comparison may be made within rounds.
    pub round: u32,
    /// Arm: a variant's name, or `null` for the probe without load.
    pub arm: String,
    /// Start on the guest's CLOCK_MONOTONIC, in nanoseconds.
    pub start_ns: u64,
    /// Length of the block in nanoseconds.
    pub duration_ns: u64,
    /// Probe samples in nanoseconds of the clock, *not* divided by the dilation.
    pub samples: Samples,
    /// What the driver counted in this block (submissions, csb-events, interrupts, …).
    pub counters: BTreeMap<String, u64>,
}

/// Why a run stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What was wrong, where, and what to do, in one line.
    pub message: String,
}

/// A line that is not a [`Line`].
#[derive(Debug, thiserror::Error)]
#[error("not a result line: {source}; it begins with {start:?}")]
pub struct LineError {
    /// First 80 characters of the text.
    pub start: String,
    /// What the parser disliked.
    #[source]
    pub source: serde_json::Error,
}

impl Line {
    /// The line as text, with its newline.
    #[must_use]
    pub fn to_text(&self) -> String {
        // Serialising these types cannot fail: every map key is a string.
        let mut text = serde_json::to_string(self).unwrap_or_default();
        text.push('\n');
        text
    }
}

/// Reads one line of a results channel.
///
/// # Errors
/// [`LineError`] with the beginning of the text when it is no [`Line`].
pub fn read_line(text: &str) -> Result<Line, LineError> {
    serde_json::from_str(text.trim())
        .map_err(|source| LineError { start: text.chars().take(80).collect(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_written_and_read_is_the_same() {
        let block = Line::Block(Block {
            index: 3,
            round: 1,
            arm: "tasklet".into(),
            start_ns: 17,
            duration_ns: 1_000,
            samples: Samples(vec![0, 1, u32::MAX]),
            counters: BTreeMap::from([("submissions".to_owned(), 9)]),
        });
        assert_eq!(read_line(&block.to_text()).unwrap(), block);
    }

    #[test]
    fn rubbish_is_an_error_that_shows_its_beginning() {
        let error = read_line("Kernel panic - not syncing").unwrap_err();
        assert!(error.to_string().contains("Kernel panic"), "{error}");
    }
}
