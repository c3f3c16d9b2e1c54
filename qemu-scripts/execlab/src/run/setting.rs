//! What ran, on what, with what.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// The circumstances of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Setting {
    /// Experiment, for example `submit-latency`.
    pub experiment: String,
    /// `native`, `vm` or `sim`.
    pub on: String,
    /// Start, RFC 3339.
    pub started: String,
    /// Version of execlab.
    pub version: String,
    /// Kernel of this machine.
    pub host_kernel: String,
    /// Accelerator and why it was chosen; nothing natively.
    pub accelerator: Option<String>,
    /// QEMU's version; nothing natively.
    pub qemu: Option<String>,
    /// QEMU device that carried ours; nothing natively.
    pub carrier: Option<String>,
    /// Kernel under the test (the guest's, or this machine's natively).
    pub kernel: String,
    /// How the driver reached the device.
    pub access: String,
    /// Delay profile.
    pub profile: String,
    /// How the device waited.
    pub wait: String,
    /// Factor on every modelled duration.
    pub dilation: f64,
    /// Seed.
    pub seed: u64,
    /// Bound on the error of the guest-to-device clock relation in nanoseconds.
    pub clock_error_ns: u64,
    /// What else the test binary found worth saying.
    pub notes: Vec<String>,
}

impl Setting {
    /// For the head of a report.
    pub fn lines(&self) -> String {
        let or_none = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
        let mut text = format!("{} on {}, {}\n", self.experiment, self.on, self.started);
        if self.on == "vm" {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  accelerator  {}", or_none(&self.accelerator));
            let _ = writeln!(text, "  qemu         {}", or_none(&self.qemu));
            let _ = writeln!(text, "  carrier      {}", or_none(&self.carrier));
        }
        let _ = writeln!(text, "  kernel       {}", self.kernel);
        let _ = writeln!(text, "  access       {}", self.access);
        let _ = writeln!(
            text,
            "  profile      {} (device waits: {}, seed {})",
            self.profile, self.wait, self.seed
        );
        let _ = writeln!(text, "  dilation     {} (every time below is divided by it)", self.dilation);
        for note in &self.notes {
            let _ = writeln!(text, "  note         {note}");
        }
        text
    }
}
