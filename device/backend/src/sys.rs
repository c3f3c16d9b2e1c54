//! The few system calls for which no safe wrapper is at hand.
#![allow(unsafe_code, reason = "signalfd and sched_setscheduler have no safe wrapper among our dependencies")]

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// The signals that end the process cleanly.
const ENDING: [libc::c_int; 2] = [libc::SIGTERM, libc::SIGINT];

/// Blocks SIGTERM and SIGINT in the calling thread and in those it starts from now on, and gives a file
/// descriptor that becomes readable when one of them is pending. Call it before any thread is started.
///
/// # Errors
/// What the kernel says.
pub fn ending_signals() -> io::Result<OwnedFd> {
    let set = vmm_sys_util::signal::create_sigset(&ENDING).map_err(io::Error::from)?;
    for signal in ENDING {
        // One that is blocked already is what is wanted.
        match vmm_sys_util::signal::block_signal(signal) {
            Ok(()) | Err(vmm_sys_util::signal::Error::SignalAlreadyBlocked(_)) => {}
            Err(e) => return Err(io::Error::other(e.to_string())),
        }
    }
    // SAFETY: `set` is an initialised signal set that outlives the call, and -1 asks for a new descriptor.
    let fd = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made `fd`, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Gives the calling thread SCHED_FIFO at `priority` (1 to 99).
///
/// # Errors
/// What the kernel says: EPERM without CAP_SYS_NICE or an RLIMIT_RTPRIO, EINVAL for a priority out of range.
pub fn fifo(priority: u8) -> io::Result<()> {
    let param = libc::sched_param { sched_priority: i32::from(priority) };
    // SAFETY: 0 names the calling thread, and `param` outlives the call.
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const param) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
