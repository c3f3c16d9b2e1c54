//! File systems, console, huge pages and real-time throttling.

use std::fs::{self, File};
use std::path::Path;

use rustix::mount::{MountFlags, mount};

use crate::Error;

/// Type, directory, needed. debugfs only serves to switch off the fair server.
const MOUNTS: [(&str, &str, bool); 5] = [
    ("proc", "/proc", true),
    ("sysfs", "/sys", true),
    ("devtmpfs", "/dev", true),
    ("tmpfs", "/tmp", true),
    ("debugfs", "/sys/kernel/debug", false),
];

/// Mounts what a test may need.
pub fn mount_all() -> Result<(), Error> {
    for (kind, directory, needed) in MOUNTS {
        // Fails where the directory exists or cannot (sysfs); then mounting decides.
        let _ = fs::create_dir_all(directory);
        match mount(kind, directory, kind, MountFlags::empty(), None) {
            // Busy: the kernel mounted it already (CONFIG_DEVTMPFS_MOUNT).
            Ok(()) | Err(rustix::io::Errno::BUSY) => {}
            Err(_) if !needed => {}
            Err(error) => return Err(Error::Mount(directory, error.into())),
        }
    }
    Ok(())
}

/// Makes `/dev/console` the standard input, output and error. The kernel has done so only if its own
/// initramfs carries the node.
pub fn open_console() -> Result<(), Error> {
    let console = File::options().read(true).write(true).open("/dev/console").map_err(Error::Console)?;
    let all = || {
        rustix::stdio::dup2_stdin(&console)?;
        rustix::stdio::dup2_stdout(&console)?;
        rustix::stdio::dup2_stderr(&console)
    };
    all().map_err(|error: rustix::io::Errno| Error::Console(error.into()))
}

/// Reserves `count` huge pages of the default size and says so when the kernel gives fewer.
pub fn reserve_hugepages(count: u32) {
    const PATH: &str = "/proc/sys/vm/nr_hugepages";
    write_setting(PATH, &count.to_string());
    let got = fs::read_to_string(PATH).unwrap_or_default();
    if got.trim() != count.to_string() {
        println!("execlab-init: asked for {count} huge pages, got {:?}", got.trim());
    }
}

/// Takes away what the kernel does to protect itself from real-time tasks that never sleep: the 95 % limit,
/// and (from 6.12) the deadline server that runs fair tasks for 50 ms of every second.
pub fn unthrottle_realtime() {
    write_setting("/proc/sys/kernel/sched_rt_runtime_us", "-1");
    let Ok(cpus) = fs::read_dir("/sys/kernel/debug/sched/fair_server") else {
        return;
    };
    for cpu in cpus.flatten() {
        write_setting(cpu.path().join("runtime"), "0");
    }
}

fn write_setting(path: impl AsRef<Path>, value: &str) {
    let path = path.as_ref();
    if let Err(error) = fs::write(path, value) {
        println!("execlab-init: writing {value} to {}: {error}", path.display());
    }
}
