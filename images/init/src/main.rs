//! PID 1 of the guest: prepares the machine, runs one program, says how it ended, powers off.
//!
//! Everything it does is printed on the console; everything it is told stands in the initramfs
//! (see the library of this crate).

mod modules;
mod results;
mod run;
mod system;

use std::io::Write as _;
use std::panic;

use execlab_init::{BOOT_PLAN_PATH, BootPlan, GuestExit, STARTED_PREFIX};
use rustix::system::RebootCommand;
use rustix::time::ClockId;

/// Why the program could not be started.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("mounting {0}: {1}")]
    Mount(&'static str, std::io::Error),
    #[error("opening the console: {0}")]
    Console(std::io::Error),
    #[error("reading {BOOT_PLAN_PATH}: {0}; give the kernel the initramfs that execlab built")]
    ReadPlan(std::io::Error),
    #[error("{BOOT_PLAN_PATH} is not valid: {0}")]
    ParsePlan(#[from] serde_json::Error),
    #[error("results channel: {0}")]
    Results(String),
    #[error("starting {0}: {1}")]
    Spawn(String, std::io::Error),
    #[error("waiting for {0}: {1}")]
    Wait(String, std::io::Error),
}

fn main() {
    // Powering off is the last thing this program does: never on a machine that is not a guest of ours.
    if !rustix::process::getpid().is_init() {
        eprintln!("execlab-init is PID 1 of an execlab guest and does nothing elsewhere");
        std::process::exit(2);
    }
    let exit = match panic::catch_unwind(boot) {
        Ok(Ok(exit)) => exit,
        Ok(Err(error)) => GuestExit::InitFailed(error.to_string()),
        Err(_) => GuestExit::InitFailed("a panic in PID 1; its message stands above".into()),
    };
    // Write errors have nobody left to hear of them. The program may have left a line unfinished.
    let mut console = std::io::stdout();
    let _ = write!(console, "\n{exit}\n");
    let _ = console.flush();
    let _ = rustix::termios::tcdrain(&console);
    if let Err(error) = rustix::system::reboot(RebootCommand::PowerOff) {
        println!("execlab-init: powering off: {error}");
    }
    // The end of PID 1 is a kernel panic, which `panic=-1` turns into a reboot and `-no-reboot` into QEMU's end.
}

fn boot() -> Result<GuestExit, Error> {
    system::mount_all()?;
    system::open_console()?;
    let up = rustix::time::clock_gettime(ClockId::Boottime);
    println!("{STARTED_PREFIX}{}.{:03} s", up.tv_sec, up.tv_nsec / 1_000_000);
    let text = std::fs::read_to_string(BOOT_PLAN_PATH).map_err(Error::ReadPlan)?;
    let plan: BootPlan = serde_json::from_str(&text)?;
    modules::load_all();
    system::reserve_hugepages(plan.hugepages);
    system::unthrottle_realtime();
    if plan.argv.is_empty() {
        return Ok(GuestExit::Code(0));
    }
    let channel = results::open(plan.results)?;
    let exit = run::run(&plan)?;
    if let Some(channel) = channel {
        results::finish(&channel, plan.acknowledge_end);
    }
    Ok(exit)
}
