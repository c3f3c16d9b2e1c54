//! A device process of our own.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::rig::Rig;

/// How long a device may take until it listens.
const PATIENCE: Duration = Duration::from_secs(10);

/// How a device is started.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    /// The program execlab-device.
    pub program: &'a Path,
    /// Where it is to listen: a path where nothing is yet.
    pub socket: &'a Path,
    /// Its profile, a TOML file.
    pub profile: &'a Path,
    /// How it waits: `sleep`, `hybrid` or `poll`.
    pub wait: &'a str,
    /// CPU of the thread that meets deadlines. It is pinned in every way of waiting: left alone, it would wake up on
    /// the core where the driver spins, which never idles, and look prompter than it is beside floors of another.
    pub cpu: usize,
}

/// A device process that ends with this value.
pub struct Device(Child);

impl Device {
    /// Starts a device and connects to it as soon as it listens.
    ///
    /// # Errors
    /// When it cannot be started, ends by itself, or is not there after ten seconds.
    pub fn start(start: Start<'_>) -> Result<(Self, Rig)> {
        let Start { program, socket, profile, wait, cpu } = start;
        let mut command = Command::new(program);
        command.arg("--socket").arg(socket).arg("--profile").arg(profile);
        command.args(["--wait", wait, "--cpu", &cpu.to_string()]);
        command.env("EXECLAB_LOG", "error").stdin(Stdio::null());
        let child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
        let mut device = Self(child);
        let deadline = Instant::now() + PATIENCE;
        loop {
            match Rig::connect(socket) {
                Ok(rig) => return Ok((device, rig)),
                Err(error) if Instant::now() > deadline => {
                    return Err(error.context(format!("no device after {} s", PATIENCE.as_secs())));
                }
                // Not listening yet.
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
            if let Some(status) = device.0.try_wait()? {
                bail!("{} ended with {status}", program.display());
            }
        }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // Both fail only if it has ended already. Its socket lies in a folder that is removed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
