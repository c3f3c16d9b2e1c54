//! The command line of `execlab-device`.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use execlab_profile::Profile;

use crate::calibrate;
use crate::error::DeviceError;
use crate::settings::Settings;
use crate::timeline::WaitMode;

/// Emulates a gen9 GPU's submission hardware, with delays of your choice, behind a vhost-user socket.
///
/// Start it first, then point QEMU, or a test binary that runs natively, at the socket. It serves one guest after
/// another until SIGTERM or SIGINT.
#[derive(Debug, Parser)]
#[command(version, after_help = AFTER_HELP)]
pub struct Cli {
    /// Unix socket to listen on. One that nobody listens on any more is replaced; it is removed at the end.
    #[arg(long, value_name = "PATH", required_unless_present = "list_profiles")]
    pub socket: Option<PathBuf>,

    /// Delay profile: a name of --list-profiles or a TOML file.
    #[arg(long, value_name = "FILE|NAME", default_value = "instant")]
    pub profile: String,

    /// How the device waits for the moment at which a delay ends.
    #[arg(long, value_enum, default_value_t = Wait::Sleep)]
    pub wait: Wait,

    /// With `--wait hybrid`: begin to spin that many microseconds before a deadline. Default: measured at start.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub spin_us: Option<u64>,

    /// CPU for the thread that meets deadlines. With `--wait poll` give it one that nothing else needs.
    #[arg(long, value_name = "N")]
    pub cpu: Option<usize>,

    /// SCHED_FIFO priority for that thread (needs the right to it). With `--wait poll` this can starve the CPU.
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub realtime: Option<u8>,

    /// Multiply every modelled length by this.
    #[arg(long, value_name = "D", default_value_t = 1.0, value_parser = dilation)]
    pub dilation: f64,

    /// Seed of every random delay. The same seed gives the same delays to each guest.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// List the profiles that ship with the device, and end.
    #[arg(long)]
    pub list_profiles: bool,
}

const AFTER_HELP: &str = "\
Environment:
  EXECLAB_LOG  what to log on stderr, in tracing's syntax: warn, info (default), debug,
               execlab_device::model=trace …

Example (QEMU 10.2 or newer):
  execlab-device --socket /tmp/gpu.sock --profile kbl-2018 &
  qemu-system-x86_64 -M q35,memory-backend=m -m 512 \\
    -object memory-backend-memfd,id=m,size=512M,share=on \\
    -chardev socket,id=gpu,path=/tmp/gpu.sock \\
    -device vhost-user-test-device-pci,virtio-id=39,num_vqs=3,vq_size=256,config_size=64,chardev=gpu …

Older QEMU, from 7.2: the last line is
    -device vhost-user-blk-pci-non-transitional,num-queues=3,queue-size=256,chardev=gpu …";

/// [`WaitMode`] on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Wait {
    /// A timer for the deadline: no CPU, as late as the kernel's timers.
    Sleep,
    /// A timer short of the deadline, then spinning.
    Hybrid,
    /// A core watches the queues and the clock while a guest is there: nothing else resolves 10 µs.
    Poll,
}

/// Reads `--dilation`.
fn dilation(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(d) if d.is_finite() && (0.001..=1_000_000.0).contains(&d) => Ok(d),
        Ok(_) => Err("must lie between 0.001 and 1000000".into()),
        Err(e) => Err(e.to_string()),
    }
}

impl Cli {
    /// What the device is to be started with. Reads the profile, and measures the machine's timers if asked to.
    ///
    /// # Errors
    /// [`DeviceError::Profile`], or the machine has no timers, or not the CPU or the priority asked for.
    pub fn settings(&self) -> Result<Settings, DeviceError> {
        let wait = match (self.wait, self.spin_us) {
            (Wait::Sleep, _) => WaitMode::Sleep,
            (Wait::Poll, _) => WaitMode::Poll,
            (Wait::Hybrid, Some(us)) => WaitMode::Hybrid { spin_ns: us * 1000 },
            (Wait::Hybrid, None) => {
                let spin_ns = calibrate::spin_ns(self.cpu, self.realtime)?;
                tracing::info!("spinning from {} µs before a deadline, as measured", spin_ns / 1000);
                WaitMode::Hybrid { spin_ns }
            }
        };
        Ok(Settings {
            profile: Profile::load(&self.profile)?,
            wait,
            seed: self.seed,
            dilation: self.dilation,
            cpu: self.cpu,
            realtime: self.realtime,
        })
    }
}

/// The profiles that ship with the device, one a line with what they model.
#[must_use]
pub fn profile_list() -> String {
    let profiles = Profile::builtin_names().filter_map(|name| Some((name, Profile::builtin(name)?)));
    profiles.map(|(name, profile)| format!("{name:<14} {}\n", profile.description)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn dilations_out_of_range_are_refused() {
        assert_eq!(dilation("10"), Ok(10.0));
        for bad in ["0", "-1", "nan", "inf", "1e9", "ten"] {
            assert!(dilation(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_shipped_profile_is_listed_with_its_description() {
        let list = profile_list();
        assert_eq!(list.lines().count(), Profile::builtin_names().count());
        assert!(list.lines().all(|line| line.split_whitespace().count() > 1), "{list}");
    }
}
