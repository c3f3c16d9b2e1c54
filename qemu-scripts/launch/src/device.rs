//! The device process.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::child::Guarded;
use crate::{Error, interrupt};

/// How long the device may take until it listens.
const START_LIMIT: Duration = Duration::from_secs(20);
const STEP: Duration = Duration::from_millis(5);

/// How to start the device.
#[derive(Debug, Clone)]
pub struct DeviceSpec {
    /// The program `execlab-device`.
    pub program: PathBuf,
    /// Profile: a shipped name or a file.
    pub profile: String,
    /// `sleep`, `hybrid` or `poll`.
    pub wait: String,
    /// Factor on every modelled duration.
    pub dilation: f64,
    /// Seed.
    pub seed: u64,
    /// CPU that `poll` owns.
    pub cpu: Option<u32>,
}

impl DeviceSpec {
    /// The command that starts it on `socket`.
    #[must_use]
    pub fn command(&self, socket: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--socket").arg(socket);
        command.args(["--profile", &self.profile, "--wait", &self.wait]);
        command.args(["--dilation", &self.dilation.to_string(), "--seed", &self.seed.to_string()]);
        if let Some(cpu) = self.cpu {
            command.args(["--cpu", &cpu.to_string()]);
        }
        command
    }
}

/// A device that listens on its socket.
#[derive(Debug)]
pub struct Device {
    process: Guarded,
    socket: PathBuf,
}

impl Device {
    /// Starts the device with its socket and log in `folder`, and waits until it listens.
    ///
    /// # Errors
    /// [`Error::Device`] with its last words when it ends or does not listen in time.
    pub fn start(spec: &DeviceSpec, folder: &Path) -> Result<Self, Error> {
        let socket = folder.join("device.sock");
        let mut command = spec.command(&socket);
        command.stdout(Stdio::null());
        let mut process = Guarded::spawn(command, &folder.join("device.log"))?;
        let deadline = Instant::now() + START_LIMIT;
        while !listens(&socket) {
            let what = if interrupt::requested() {
                return Err(Error::Interrupted);
            } else if let Some(status) = process.ended() {
                format!("ended with {status} before it listened")
            } else if Instant::now() > deadline {
                format!("does not listen after {} s", START_LIMIT.as_secs())
            } else {
                thread::sleep(STEP);
                continue;
            };
            return Err(Error::Device { what, stderr: process.last_words() });
        }
        Ok(Self { process, socket })
    }

    /// Its socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// An error when it has ended, which it never does by itself.
    ///
    /// # Errors
    /// [`Error::Device`] with its last words.
    pub fn check(&mut self) -> Result<(), Error> {
        match self.process.ended() {
            None => Ok(()),
            Some(status) => {
                let what = format!("ended with {status} during the run");
                Err(Error::Device { what, stderr: self.process.last_words() })
            }
        }
    }
}

/// Whether a process listens on the Unix socket at `path`. Asking by a connection would be a session to the device;
/// the kernel's table tells without (flag 0x10000, `__SO_ACCEPTCON`, in the fourth column).
fn listens(path: &Path) -> bool {
    let table = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let path = path.to_string_lossy();
    table.lines().any(|line| {
        let mut fields = line.split_whitespace();
        fields.nth(3) == Some("00010000") && fields.next_back() == Some(&path)
    })
}
