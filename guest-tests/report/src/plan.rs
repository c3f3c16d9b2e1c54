//! What a test binary is asked to do.

use serde::{Deserialize, Serialize};

/// A whole run, as `execlab run` writes it and `--plan FILE` reads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Name of the experiment; the binary refuses a plan that is not for it.
    pub experiment: String,
    /// Variants of the driver to compare, by name (`tasklet`, `direct-2018`). The null arm is added by the
    /// experiment.
    pub variants: Vec<String>,
    /// Blocks per arm.
    pub blocks: u32,
    /// Length of one block in seconds of the clock (not of dilated time).
    pub block_seconds: f64,
    /// Factor on every modelled duration that the driver spends (bus costs). The device was started with the
    /// same factor for its own delays.
    pub dilation: f64,
    /// Seed of everything random in the experiment (probe phase, engine shuffling).
    pub seed: u64,
    /// How to reach the device.
    pub access: Access,
    /// The RT probe.
    #[serde(default)]
    pub probe: ProbePlan,
    /// The load.
    #[serde(default)]
    pub load: LoadPlan,
}

/// How a test binary reaches the device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Access {
    /// Speak vhost-user to the device process itself; no VM.
    Native {
        /// The device's socket.
        socket: String,
    },
    /// In a guest: find the PCI function that carries the device.
    Pci {
        /// `vfio-pci`, `uio_pci_generic`, or nothing for the first that works in this order.
        #[serde(default)]
        driver: Option<String>,
    },
    /// On the simulator: machine and device are computed, in the test binary itself.
    Sim {
        /// Machine profile: a shipped name or a file.
        machine: String,
        /// Delay profile of the device: a shipped name or a file.
        profile: String,
    },
}

/// Settings of the RT probe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProbePlan {
    /// CPU on which probe, load and interrupt thread run.
    pub cpu: u32,
    /// SCHED_FIFO priority of the probe, below the 99 of irq-off work.
    pub priority: u32,
    /// Shortest time between two wake-ups in microseconds (gem_syslatency: 100).
    pub min_interval_us: u32,
    /// Random addition to it in microseconds, uniform (gem_syslatency: 1000).
    pub random_interval_us: u32,
}

impl Default for ProbePlan {
    fn default() -> Self {
        Self { cpu: 0, priority: 98, min_interval_us: 100, random_interval_us: 1000 }
    }
}

/// Settings of the load: endless empty batches, never waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LoadPlan {
    /// Engines that get batches, by name (`rcs0`, `bcs0`, `vcs0`, `vecs0`).
    pub engines: Vec<String>,
    /// Contexts per engine between which submissions alternate.
    pub contexts: u32,
    /// Length of a batch in nanoseconds of dilated time; 0 is an empty batch.
    pub batch_ns: u32,
}

impl Default for LoadPlan {
    fn default() -> Self {
        Self {
            engines: ["rcs0", "bcs0", "vcs0", "vecs0"].map(str::to_owned).to_vec(),
            contexts: 1,
            batch_ns: 0,
        }
    }
}
