//! The results channel: opening it as the agreed descriptor, and ending it.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use execlab_init::{END_OF_RESULTS, RESULTS_FD, RESULTS_PORT_NAME, ResultsChannel};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use crate::Error;

/// virtio-serial ports are announced by the host after the driver has loaded; this bounds the wait for it.
const PORT_TIMEOUT: Duration = Duration::from_secs(10);

/// Bound on the wait for the host's answer to [`END_OF_RESULTS`].
const ACKNOWLEDGE_TIMEOUT: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// Opens the channel as descriptor [`RESULTS_FD`], which children inherit.
pub fn open(channel: ResultsChannel) -> Result<Option<File>, Error> {
    let path = match channel {
        ResultsChannel::None => return Ok(None),
        ResultsChannel::IsaSerial => PathBuf::from("/dev/ttyS1"),
        ResultsChannel::VirtioSerial => find_port()?,
    };
    let fail =
        |what: &str, error: std::io::Error| Error::Results(format!("{what} {}: {error}", path.display()));
    let file = File::options().read(true).write(true).open(&path).map_err(|error| fail("opening", error))?;
    if channel == ResultsChannel::IsaSerial {
        // No newline translation, no echo: bytes arrive as they were written.
        let mut mode = tcgetattr(&file).map_err(|error| fail("reading the mode of", error.into()))?;
        mode.make_raw();
        tcsetattr(&file, OptionalActions::Now, &mode)
            .map_err(|error| fail("setting the mode of", error.into()))?;
    }
    let file = at_agreed_number(file).map_err(|error| fail("numbering", error))?;
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty())
        .map_err(|error| fail("passing on", error.into()))?;
    Ok(Some(file))
}

/// Nothing but the console is open when PID 1 comes here, so the agreed number is free.
fn at_agreed_number(file: File) -> std::io::Result<File> {
    if file.as_raw_fd() == RESULTS_FD {
        return Ok(file);
    }
    let copy: OwnedFd = rustix::io::fcntl_dupfd_cloexec(&file, RESULTS_FD)?;
    if copy.as_raw_fd() == RESULTS_FD {
        return Ok(File::from(copy));
    }
    Err(std::io::Error::other(format!("descriptor {RESULTS_FD} is taken")))
}

fn find_port() -> Result<PathBuf, Error> {
    const PORTS: &str = "/sys/class/virtio-ports";
    let deadline = Instant::now() + PORT_TIMEOUT;
    loop {
        for entry in fs::read_dir(PORTS).into_iter().flatten().flatten() {
            let name = fs::read_to_string(entry.path().join("name")).unwrap_or_default();
            let node = PathBuf::from("/dev").join(entry.file_name());
            if name.trim() == RESULTS_PORT_NAME && node.exists() {
                return Ok(node);
            }
        }
        if Instant::now() >= deadline {
            return Err(Error::Results(format!(
                "no virtio-serial port named {RESULTS_PORT_NAME} within {} s; is virtio_console loaded, \
                 and does QEMU have the port?",
                PORT_TIMEOUT.as_secs()
            )));
        }
        // sysfs gives no event to wait for that is simpler than looking again.
        thread::sleep(Duration::from_millis(5));
    }
}

/// Marks the end of the results and, if asked, waits until the host has read that far.
pub fn finish(channel: &File, acknowledge: bool) {
    let mut writer = channel;
    if let Err(error) = writer.write_all(&[END_OF_RESULTS]) {
        println!("execlab-init: ending the results channel: {error}");
        return;
    }
    if acknowledge {
        let mut fds = [PollFd::new(channel, PollFlags::IN)];
        if matches!(poll(&mut fds, Some(&ACKNOWLEDGE_TIMEOUT)), Ok(0) | Err(_)) {
            println!("execlab-init: the host did not acknowledge the end of the results");
        }
    }
}
