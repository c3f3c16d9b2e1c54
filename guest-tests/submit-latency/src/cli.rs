//! The command line.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::{ArgGroup, Parser};
use execlab_report::{Access, LoadPlan, Plan, ProbePlan};
use execlab_submit_latency::{EXPERIMENT, RESULTS_FD, Target};

/// What does GPU submission do to a real-time thread on the same CPU?
///
/// Measures the wake-up latency of a SCHED_FIFO thread while a driver variant submits empty batches on the same
/// CPU as fast as it can (the load of gem_syslatency), in short interleaved blocks, with a null arm beside them.
/// Writes one JSON object per line.
#[derive(Debug, Parser)]
#[command(version, after_help = after_help())]
#[command(group = ArgGroup::new("what").required(true).args(["plan", "socket", "pci"]))]
pub struct Cli {
    /// Plan in JSON, as `execlab run` writes it. Without one, the options below make it.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["variants", "blocks", "block_seconds", "seed"])]
    pub plan: Option<PathBuf>,

    /// Where results go: a file, `fd:N` for an open descriptor, or `-` for standard output.
    #[arg(long, value_name = "FILE|fd:N|-")]
    pub results: Option<Target>,

    /// Native: socket of a running `execlab-device`.
    #[arg(long, value_name = "PATH")]
    socket: Option<String>,

    /// In a guest: the PCI function that carries the device.
    #[arg(long)]
    pci: bool,

    /// With --pci: `vfio-pci` or `uio_pci_generic`. Default: the first that works in this order.
    #[arg(long, value_name = "NAME", requires = "pci")]
    pci_driver: Option<String>,

    /// Driver variants to compare; `NAME#2` runs a variant once more under that name.
    #[arg(long, value_delimiter = ',', default_value = "tasklet,direct-2018")]
    variants: Vec<String>,

    /// Blocks per arm.
    #[arg(long, default_value_t = 10)]
    blocks: u32,

    /// Length of a block in seconds.
    #[arg(long, default_value_t = 0.5)]
    block_seconds: f64,

    /// The dilation with which the device was started.
    #[arg(long, default_value_t = 1.0)]
    dilation: f64,

    /// Seed of probe phase and engine order.
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// CPU for probe, load and interrupts.
    #[arg(long, default_value_t = ProbePlan::default().cpu)]
    cpu: u32,

    /// SCHED_FIFO priority of the probe, at most 98.
    #[arg(long, default_value_t = ProbePlan::default().priority)]
    priority: u32,

    /// Shortest time between two wake-ups of the probe, in microseconds.
    #[arg(long, default_value_t = ProbePlan::default().min_interval_us)]
    min_interval_us: u32,

    /// Random addition to it, in microseconds.
    #[arg(long, default_value_t = ProbePlan::default().random_interval_us)]
    random_interval_us: u32,

    /// Engines to load.
    #[arg(long, value_delimiter = ',', default_values_t = LoadPlan::default().engines)]
    engines: Vec<String>,

    /// Contexts per engine.
    #[arg(long, default_value_t = LoadPlan::default().contexts)]
    contexts: u32,

    /// Length of a batch in modelled nanoseconds.
    #[arg(long, default_value_t = LoadPlan::default().batch_ns)]
    batch_ns: u32,
}

fn after_help() -> String {
    format!(
        "Without --results, descriptor ${RESULTS_FD} is used, or standard output.\n\n\
         Exit status: 0 when all blocks were measured, 1 otherwise; the last line then says why.\n\n\
         Example, on two CPUs:\n  \
         execlab-device --socket /tmp/gpu --profile kbl-2018 --wait poll --cpu 1 &\n  \
         submit-latency --socket /tmp/gpu --results run.jsonl"
    )
}

impl Cli {
    /// The plan to follow.
    ///
    /// # Errors
    /// When the file cannot be read or is no plan.
    pub fn to_plan(&self) -> Result<Plan> {
        if let Some(file) = &self.plan {
            let text = std::fs::read_to_string(file).with_context(|| format!("plan {}", file.display()))?;
            return serde_json::from_str(&text).with_context(|| format!("plan {}", file.display()));
        }
        let access = match &self.socket {
            Some(socket) => Access::Native { socket: socket.clone() },
            None => Access::Pci { driver: self.pci_driver.clone() },
        };
        Ok(Plan {
            experiment: EXPERIMENT.to_owned(),
            variants: self.variants.clone(),
            blocks: self.blocks,
            block_seconds: self.block_seconds,
            dilation: self.dilation,
            seed: self.seed,
            access,
            probe: ProbePlan {
                cpu: self.cpu,
                priority: self.priority,
                min_interval_us: self.min_interval_us,
                random_interval_us: self.random_interval_us,
            },
            load: LoadPlan {
                engines: self.engines.clone(),
                contexts: self.contexts,
                batch_ns: self.batch_ns,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }

    #[test]
    fn options_without_a_plan_make_one() {
        let cli = Cli::try_parse_from(["s", "--socket", "/x", "--variants", "tasklet", "--blocks", "3"]);
        let plan = cli.unwrap().to_plan().unwrap();
        assert_eq!(plan.access, Access::Native { socket: "/x".into() });
        assert_eq!((plan.variants, plan.blocks), (vec!["tasklet".to_owned()], 3));
    }

    #[test]
    fn nothing_to_run_against_is_refused() {
        assert!(Cli::try_parse_from(["s"]).is_err());
        assert!(Cli::try_parse_from(["s", "--socket", "/x", "--pci"]).is_err());
    }
}
