//! The command line of `execlab`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::settings;
pub use crate::settings::{DeviceArgs, GuestArgs, Place};

/// A laboratory for GPU submission latency that needs no GPU.
#[derive(Debug, Parser)]
#[command(name = "execlab", version, max_term_width = 110, propagate_version = true)]
#[command(
    after_help = "Start with:  cargo lab demo      (a VM boots, two drivers are compared, a verdict is printed)\n             \
                        cargo lab doctor    (what this machine can do, and what it lacks)"
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Set everything up, compare tasklet with direct-2018 in a VM, print the verdict.
    Demo(DemoArgs),
    /// Set everything up and pass the tests: style, unit, fuzz, native and VM.
    Test(TestArgs),
    /// Run an experiment.
    #[command(subcommand)]
    Run(Experiment),
    /// Compare two run folders, or two files with one number per line.
    Compare(CompareArgs),
    /// Search the simulator's schedules for one under which the driver fails its conformance suite.
    Explore(ExploreArgs),
    /// Print and run the bare QEMU line, with the device beside it.
    Vm(VmArgs),
    /// Measure the path from doorbell to CSB beside floors of the same run.
    Bench(BenchArgs),
    /// Say what is here, what is missing, and what to do.
    Doctor(DoctorArgs),
    /// Only set up: static target, QEMU, guest kernel, binaries.
    Setup(SetupArgs),
}

/// The experiments.
#[derive(Debug, Subcommand)]
pub enum Experiment {
    /// What does GPU submission do to an RT thread on the same CPU?
    SubmitLatency(RunArgs),
}

/// `run submit-latency`.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// Where to run.
    #[arg(long, value_enum, default_value = "vm")]
    pub on: Place,
    /// With `--on sim`: the machine that is simulated, a shipped name (`execlab-sim --list-machines`) or a TOML file.
    /// Default: kbl-2018.
    #[arg(long, value_name = "NAME|FILE")]
    pub machine: Option<String>,
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "tasklet,direct-2018",
        value_name = "A,B",
        value_parser = settings::variant,
        help = settings::variants_help(),
    )]
    pub variants: Vec<String>,
    /// Blocks per arm, 3 at least; 6 for a verdict, 12 (6 rounds) for an interval.
    #[arg(long, default_value_t = 24, value_parser = settings::blocks, allow_negative_numbers = true)]
    pub blocks: u32,
    /// Length of a block in seconds.
    #[arg(long, default_value_t = 1.0, value_name = "S", allow_negative_numbers = true)]
    pub block_seconds: f64,
    /// Write the result as JSON to FILE (`-` for standard output).
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Folder for the results. Default: runs/<time>-submit-latency-<place>.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Length of each batch in modelled nanoseconds; 0 is gem_syslatency's empty batch.
    #[arg(long, default_value_t = 0, value_name = "NS", allow_negative_numbers = true)]
    pub batch_ns: u32,
    /// Shortest probe interval in microseconds.
    #[arg(long, default_value_t = 100, value_name = "US", value_parser = settings::at_least_1, allow_negative_numbers = true)]
    pub probe_min_us: u32,
    /// Random addition to the probe interval in microseconds.
    #[arg(long, default_value_t = 1000, value_name = "US", allow_negative_numbers = true)]
    pub probe_random_us: u32,
    /// The device.
    #[command(flatten)]
    pub device: DeviceArgs,
    /// The guest.
    #[command(flatten)]
    pub guest: GuestArgs,
}

impl RunArgs {
    /// The arguments that these words after `run submit-latency` stand for, everything else as a person gets it.
    ///
    /// # Errors
    /// What the command line would say.
    pub fn from_words(words: &[&str]) -> Result<Self, clap::Error> {
        /// Only the arguments, without a command before them.
        #[derive(Parser)]
        struct Words {
            #[command(flatten)]
            run: RunArgs,
        }
        Ok(Words::try_parse_from(["submit-latency"].iter().chain(words))?.run)
    }
}

/// `demo`.
#[derive(Debug, Clone, Args)]
pub struct DemoArgs {
    /// The guest.
    #[command(flatten)]
    pub guest: GuestArgs,
}

/// `test`.
#[derive(Debug, Clone, Args)]
pub struct TestArgs {
    /// Leave out what boots a VM.
    #[arg(long)]
    pub no_vm: bool,
    /// Only these steps, by name; may be repeated. A wrong name prints the list.
    #[arg(long = "only", value_name = "STEP")]
    pub only: Vec<String>,
    /// QEMU to use.
    #[arg(long, value_name = "PATH")]
    pub qemu: Option<PathBuf>,
}

/// `compare`.
#[derive(Debug, Clone, Args)]
pub struct CompareArgs {
    /// First run folder or number file: the reference.
    pub a: PathBuf,
    /// Second one.
    pub b: PathBuf,
    /// Write the result as JSON to FILE (`-` for standard output).
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Number files: which column to read, from 1.
    #[arg(short = 'C', long, default_value_t = 1)]
    pub column: usize,
    /// Rows of the table only: no plot and no test, as ministat's -n.
    #[arg(short = 'n', long)]
    pub rows_only: bool,
    /// No plot, as ministat's -A.
    #[arg(short = 'A', long)]
    pub no_plot: bool,
    /// Compare runs of different places, dilations or profiles all the same.
    #[arg(long)]
    pub force: bool,
    /// Seed of permutations and bootstrap.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// `vm`.
#[derive(Debug, Clone, Args)]
pub struct VmArgs {
    /// Program of the guest with its arguments, after `--`; none boots and powers off.
    #[arg(last = true, value_name = "PROGRAM")]
    pub program: Vec<String>,
    /// Print the lines only.
    #[arg(long)]
    pub print: bool,
    /// The device.
    #[command(flatten)]
    pub device: DeviceArgs,
    /// The guest.
    #[command(flatten)]
    pub guest: GuestArgs,
}

/// `explore`.
#[derive(Debug, Clone, Args)]
#[command(disable_help_flag = true)]
pub struct ExploreArgs {
    /// What `execlab-sim explore` takes; `--help` lists it.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
    pub rest: Vec<String>,
}

/// `bench`.
#[derive(Debug, Clone, Args)]
pub struct BenchArgs {
    /// Round trips per measurement.
    #[arg(long, default_value_t = 20_000)]
    pub rounds: u32,
    /// Write the result as JSON to FILE (`-` for standard output).
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// `doctor`.
#[derive(Debug, Clone, Args)]
pub struct DoctorArgs {
    /// As JSON.
    #[arg(long)]
    pub json: bool,
    /// QEMU to look at.
    #[arg(long, value_name = "PATH")]
    pub qemu: Option<PathBuf>,
}

/// `setup`.
#[derive(Debug, Clone, Args)]
pub struct SetupArgs {
    /// The guest.
    #[command(flatten)]
    pub guest: GuestArgs,
}
