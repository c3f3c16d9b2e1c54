//! The report on the terminal.

use std::fmt::Write as _;

use super::analyse::{Against, Analysis};
use super::arms::NULL_ARM;
use super::setting::Setting;
use crate::cli::Place;

/// What stands under every table that was computed.
const SIM_NOTE: &str = "Model: every time here is computed. CPUs, kernel and bus are the simulated machine's, the device's delays the\n\
                        profile's; only the order and number of steps are those of the real driver code.";
/// What stands under every table that was measured.
const MODEL_NOTE: &str = "Model: irq-off sections, interrupt handlers and bottom halves run as SCHED_FIFO 99 above the probe; the device's\n\
                          delays and the driver's bus costs come from the profile. Times are modelled us: clock time / dilation.";

/// What stands above every table of ministat's, whose line on Student's t may differ from the verdict.
pub const MINISTAT_NOTE: &str = "as ministat prints it, Student's t at 95 %; the verdict below decides";
/// What stands under the table of arms.
const ARMS_NOTE: &str =
    "mean us here is over all samples; the tables below are over blocks, each of which counts once.";

/// The whole report.
pub fn report(setting: &Setting, analysis: &Analysis) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write!(text, "{}\n{}{ARMS_NOTE}\n", setting.lines(), arms(analysis));
    for metric in &analysis.metrics {
        let _ = write!(text, "\n{} (us)\n{MINISTAT_NOTE}\n{}", metric.metric.title(), metric.ministat);
    }
    let note = if setting.on == Place::Sim.name() { SIM_NOTE } else { MODEL_NOTE };
    let _ = write!(text, "\n{note}\n\n{}", verdicts(analysis));
    text
}

fn arms(analysis: &Analysis) -> String {
    let mut text = format!(
        "{:<14} {:>6} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>12}\n",
        "arm", "blocks", "samples", "mean us", "p50", "p90", "p99", "p99.9", "max", "submits/s"
    );
    for described in &analysis.arms {
        let arm = &described.arm;
        let s = &arm.pooled;
        let rate = arm.counters.get("submissions").map_or(0.0, |n| *n as f64 / arm.seconds);
        let rate = if arm.name == NULL_ARM { "-".to_owned() } else { format!("{rate:.0}") };
        let _ = writeln!(
            text,
            "{:<14} {:>6} {:>8} {:>9.3} {:>9.3} {:>9.3} {:>9.3} {:>9.3} {:>9.3} {rate:>12}",
            arm.name,
            arm.mean.len(),
            s.n,
            s.mean,
            s.median,
            s.p90,
            s.p99,
            s.p999,
            s.max
        );
    }
    text
}

fn verdicts(analysis: &Analysis) -> String {
    let mut text = String::new();
    for metric in &analysis.metrics {
        for against in &metric.against {
            let _ = writeln!(text, "VERDICT {:<4} (us) {}", metric.metric.name(), sentence(against));
        }
    }
    text
}

/// One verdict in words.
pub fn sentence(against: &Against) -> String {
    format!("{} against {}: {}", against.candidate, against.reference, against.verdict)
}
