//! Where something runs, the device and the guest: options that several commands share, with their defaults and bounds.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use execlab_driver::Variant;

/// Dilation in a VM: an emulated processor spends tens of microseconds where silicon spends one.
const VM_DILATION: f64 = 20.0;
/// The word for "choose yourself".
const AUTO: &str = "auto";

/// Where an experiment runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Place {
    /// In a process on this machine that speaks vhost-user to the device itself.
    Native,
    /// In a QEMU VM.
    Vm,
    /// On the simulator: CPUs, kernel and device are computed, and a seed gives the same run bit for bit.
    Sim,
}

impl Place {
    /// The word of the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Vm => "vm",
            Self::Sim => "sim",
        }
    }
}

/// Everything about the VM that a person may choose.
#[derive(Debug, Clone, Args)]
pub struct GuestArgs {
    /// Guest kernel: `cloud` or `rt` (Debian's flavours of this machine's own suite), or a bzImage.
    /// Default: cloud.
    #[arg(long, value_name = "cloud|rt|FILE")]
    pub kernel: Option<String>,
    /// Folder with the modules of a kernel given as FILE (the one that holds modules.dep).
    #[arg(long, value_name = "DIR")]
    pub modules: Option<PathBuf>,
    /// QEMU to use.
    #[arg(long, value_name = "PATH")]
    pub qemu: Option<PathBuf>,
    /// Accelerator; auto, the default, takes KVM only after a small guest has booted under it.
    #[arg(long, value_parser = ["auto", "kvm", "tcg"])]
    pub accel: Option<String>,
    /// How the guest reaches the device; auto, the default, tries vfio-pci first.
    #[arg(long, value_parser = ["auto", "vfio-pci", "uio_pci_generic"])]
    pub guest_driver: Option<String>,
    /// Virtual CPUs of the guest. Default: 1.
    #[arg(long, value_parser = at_least_1, allow_negative_numbers = true)]
    pub smp: Option<u32>,
    /// Further QEMU argument, may be repeated: --qemu-arg=-device --qemu-arg=…
    #[arg(long = "qemu-arg", value_name = "ARG", allow_hyphen_values = true)]
    pub qemu_args: Vec<String>,
    /// Further kernel command line, for example `preempt=full`.
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true)]
    pub append: Option<String>,
}

impl GuestArgs {
    /// The guest's kernel.
    pub fn kernel(&self) -> &str {
        self.kernel.as_deref().unwrap_or("cloud")
    }

    /// The accelerator asked for, or `auto`.
    pub fn accel(&self) -> &str {
        self.accel.as_deref().unwrap_or(AUTO)
    }

    /// The driver through which the guest is to reach the device; nothing for the first that works.
    pub fn guest_driver(&self) -> Option<&str> {
        self.guest_driver.as_deref().filter(|driver| *driver != AUTO)
    }

    /// Virtual CPUs.
    pub fn smp(&self) -> u32 {
        self.smp.unwrap_or(1)
    }

    /// The words of `--append`.
    pub fn append(&self) -> Vec<String> {
        self.append.iter().flat_map(|words| words.split_whitespace()).map(str::to_owned).collect()
    }

    /// The options that were given, as they are written: none of them means anything without a VM.
    pub fn given(&self) -> Vec<&'static str> {
        let Self { kernel, modules, qemu, accel, guest_driver, smp, qemu_args, append } = self;
        [
            ("--kernel", kernel.is_some()),
            ("--modules", modules.is_some()),
            ("--qemu", qemu.is_some()),
            ("--accel", accel.is_some()),
            ("--guest-driver", guest_driver.is_some()),
            ("--smp", smp.is_some()),
            ("--qemu-arg", !qemu_args.is_empty()),
            ("--append", append.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, given)| given.then_some(name))
        .collect()
    }
}

/// Everything about the device process.
#[derive(Debug, Clone, Args)]
pub struct DeviceArgs {
    /// Delay profile: a shipped name or a TOML file (`execlab-device --list-profiles`).
    #[arg(long, default_value = "kbl-2018", value_name = "NAME|FILE")]
    pub profile: String,
    /// How the device waits for its deadlines. Default: poll natively, hybrid beside a VM.
    #[arg(long, value_parser = ["sleep", "hybrid", "poll"])]
    pub wait: Option<String>,
    /// Factor on every modelled duration; results are divided by it again. Default: 1 natively, 20 in a VM.
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    pub dilation: Option<f64>,
    /// Seed of everything random.
    #[arg(long, default_value_t = 1, allow_negative_numbers = true)]
    pub seed: u64,
}

impl DeviceArgs {
    /// The dilation at a place.
    ///
    /// # Errors
    /// When the one asked for is out of range.
    pub fn dilation(&self, on: Place) -> Result<f64> {
        let dilation = self.dilation.unwrap_or(match on {
            Place::Native | Place::Sim => 1.0,
            Place::Vm => VM_DILATION,
        });
        if !(dilation.is_finite() && (0.001..=1e6).contains(&dilation)) {
            bail!("--dilation {dilation}: must lie between 0.001 and 1000000");
        }
        Ok(dilation)
    }

    /// How the device waits at a place.
    pub fn wait(&self, on: Place) -> String {
        self.wait.clone().unwrap_or_else(|| {
            match on {
                Place::Native => "poll",
                Place::Vm => "hybrid",
                Place::Sim => "not at all: time is computed",
            }
            .to_owned()
        })
    }
}

/// A variant's name, or one with `#` and anything behind it: then the arm has the whole name.
///
/// # Errors
/// When there is no such variant; the message names those that there are.
pub fn variant(text: &str) -> Result<String, String> {
    let base = text.split('#').next().unwrap_or_default();
    match Variant::from_name(base) {
        Some(_) => Ok(text.to_owned()),
        None => Err(format!("there is no variant {base:?}; there are {}", variant_names())),
    }
}

/// The help text of `--variants`.
pub fn variants_help() -> String {
    format!(
        "Driver variants to compare, in the order first, second, …: {}. NAME#2 runs one once more under that name",
        variant_names()
    )
}

fn variant_names() -> String {
    Variant::ALL.map(Variant::name).join(", ")
}

/// A number of blocks that statistics can do anything with.
///
/// # Errors
/// When it is no number or too small.
pub fn blocks(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(blocks) if blocks >= 3 => Ok(blocks),
        _ => Err("at least 3 blocks an arm are needed for any statistics, 6 for a verdict".to_owned()),
    }
}

/// A number of which there must be one at least.
///
/// # Errors
/// When it is no number or 0.
pub fn at_least_1(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number) if number >= 1 => Ok(number),
        _ => Err("a whole number of at least 1 is needed".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::{Cli, RunArgs};

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    fn refusal(words: &[&str]) -> String {
        RunArgs::from_words(words).unwrap_err().to_string()
    }

    #[test]
    fn an_unknown_variant_is_refused_with_the_known_ones() {
        let text = refusal(&["--variants=tasklet,foo"]);
        assert!(text.contains("\"foo\"") && text.contains("direct-2018"), "{text}");
        assert_eq!(RunArgs::from_words(&["--variants=tasklet,tasklet#2"]).unwrap().variants.len(), 2);
    }

    #[test]
    fn numbers_that_make_no_sense_are_refused_by_the_option_s_name() {
        for words in [["--blocks", "-3"], ["--blocks", "2"], ["--smp", "0"], ["--probe-min-us", "0"]] {
            let text = refusal(&words);
            assert!(text.contains(words[0]) && text.contains("at least"), "{text}");
        }
    }

    #[test]
    fn the_options_of_a_vm_that_were_given_are_known_even_with_their_default_values() {
        let given = |words: &[&str]| RunArgs::from_words(words).unwrap().guest.given();
        assert!(given(&["--on=native"]).is_empty());
        assert_eq!(given(&["--kernel=cloud", "--smp=1"]), ["--kernel", "--smp"]);
    }

    #[test]
    fn the_default_dilation_is_20_in_a_vm_only_and_0_is_refused() {
        let device = |words: &[&str]| RunArgs::from_words(words).unwrap().device;
        assert_eq!(device(&[]).dilation(Place::Vm).unwrap(), 20.0);
        assert_eq!(device(&[]).dilation(Place::Native).unwrap(), 1.0);
        assert!(device(&["--dilation=0"]).dilation(Place::Vm).is_err());
        assert!(device(&["--dilation", "-1"]).dilation(Place::Vm).is_err());
    }
}
