//! The device process, for a VM or for a native run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::process::Process;
use crate::run::shell_line;
use crate::tail::Tail;
use crate::{Error, Interrupt};

/// How long the device may take to listen.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// How long it may take to end when asked to; it removes its socket meanwhile.
const END_PATIENCE: Duration = Duration::from_secs(2);

/// How to start the device process. Absent settings are left to its own defaults.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeviceConfig {
    /// The program `execlab-device`.
    pub binary: PathBuf,
    /// Socket on which it shall listen.
    pub socket: PathBuf,
    /// Profile: a shipped name or a file.
    pub profile: Option<String>,
    /// How it waits for deadlines: `sleep`, `hybrid` or `poll`.
    pub wait: Option<String>,
    /// Factor on every modelled duration.
    pub dilation: Option<f64>,
    /// Seed of everything random.
    pub seed: Option<u64>,
    /// CPU on which it meets deadlines.
    pub cpu: Option<usize>,
    /// Further arguments.
    pub extra_args: Vec<String>,
}

impl DeviceConfig {
    /// The command that starts it.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command.arg("--socket").arg(&self.socket);
        let mut option = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                command.args([name, &value]);
            }
        };
        option("--profile", self.profile.clone());
        option("--wait", self.wait.clone());
        option("--dilation", self.dilation.map(|value| value.to_string()));
        option("--seed", self.seed.map(|value| value.to_string()));
        option("--cpu", self.cpu.map(|value| value.to_string()));
        command.args(&self.extra_args);
        command
    }

    /// The same as a line to paste into a shell.
    #[must_use]
    pub fn shell_line(&self) -> String {
        shell_line(&self.command())
    }
}

/// A running device process. Dropping it ends it and removes its socket.
#[derive(Debug)]
pub struct DeviceProcess {
    process: Process,
    socket: PathBuf,
    log: Tail,
}

impl DeviceProcess {
    /// Starts it and returns when it listens.
    ///
    /// # Errors
    /// [`Error::Start`] when it cannot be started, [`Error::Device`] when it ends, does not listen within 10 s,
    /// or `interrupt` is raised meanwhile.
    pub fn start(config: &DeviceConfig, interrupt: &Interrupt) -> Result<Self, Error> {
        let mut command = config.command();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let name = config.binary.display().to_string();
        let mut process = Process::spawn(command, &name)?;
        let log = Tail::default();
        let follower = process.take_stderr().map(|stderr| log.follow(stderr));
        let mut device = Self { process, socket: config.socket.clone(), log };
        let started = Instant::now();
        while !is_listening(&device.socket)? {
            let problem = if let Some(status) = device.ended()? {
                // Its log is complete once its end has been read.
                let _ = follower.map(thread::JoinHandle::join);
                format!("ended with {status} before it listened on {}", device.socket.display())
            } else if interrupt.is_set() {
                "was interrupted".to_owned()
            } else if started.elapsed() > START_TIMEOUT {
                format!("does not listen on {} after {START_TIMEOUT:?}", device.socket.display())
            } else {
                thread::sleep(Duration::from_millis(1));
                continue;
            };
            return Err(Error::Device { problem, log: device.log() });
        }
        Ok(device)
    }

    /// Where it listens.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// The last lines of its log.
    #[must_use]
    pub fn log(&self) -> String {
        self.log.text()
    }

    /// How it ended, or None while it runs.
    ///
    /// # Errors
    /// [`Error::Start`] when the system refuses to say.
    pub fn ended(&mut self) -> Result<Option<std::process::ExitStatus>, Error> {
        self.process.try_wait()
    }
}

impl Drop for DeviceProcess {
    fn drop(&mut self) {
        self.process.terminate(END_PATIENCE);
        // It removes its socket itself, unless it had to be killed.
        let _ = fs::remove_file(&self.socket);
    }
}

/// Whether somebody listens on a Unix socket. The kernel's table says so without a connection, which the
/// device would take for a VM. Fields: … flags type state inode path; 0x10000 is `__SO_ACCEPTCON`.
fn is_listening(socket: &Path) -> Result<bool, Error> {
    let table = Path::new("/proc/net/unix");
    let text = fs::read(table).map_err(Error::file("reading", table))?;
    let wanted = socket.display().to_string();
    Ok(String::from_utf8_lossy(&text).lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields.get(3) == Some(&"00010000") && fields.get(7..).is_some_and(|path| path.join(" ") == wanted)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_listening_socket_is_seen_and_a_dead_one_is_not() {
        let work = tempfile::tempdir().unwrap();
        let path = work.path().join("s");
        assert!(!is_listening(&path).unwrap());
        let listener = UnixListener::bind(&path).unwrap();
        assert!(is_listening(&path).unwrap());
        drop(listener);
        assert!(!is_listening(&path).unwrap());
    }

    #[test]
    fn a_device_that_ends_at_once_is_an_error_with_its_log() {
        let config =
            DeviceConfig { binary: "/bin/ls".into(), socket: "/tmp/no".into(), ..Default::default() };
        let error = DeviceProcess::start(&config, &Interrupt::never()).unwrap_err().to_string();
        assert!(error.contains("before it listened") && error.contains("socket"), "{error}");
    }

    #[test]
    fn absent_settings_stay_off_the_command_line() {
        let config = DeviceConfig {
            binary: "dev".into(),
            socket: "/tmp/s".into(),
            dilation: Some(20.0),
            ..Default::default()
        };
        assert_eq!(config.shell_line(), "dev --socket /tmp/s --dilation 20");
    }
}
