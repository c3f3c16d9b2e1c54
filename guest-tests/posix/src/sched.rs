//! Scheduling policy, priority and CPU of the calling thread: set, then read back.
//!
//! The system calls are made raw: musl answers `sched_setscheduler` with ENOSYS on purpose, because POSIX means
//! the process there and Linux means the thread.
#![allow(unsafe_code)] // `libc` has no safe wrapper of these calls, and neither has `rustix`.

use std::io;

use execlab_driver::kernel::Policy;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Priority of irq-off sections, interrupts and bottom halves: the highest that SCHED_FIFO has, so that nothing
/// of ours, the probe included, runs on the CPU meanwhile.
pub const IRQ_OFF_PRIORITY: u8 = 99;

/// The kernel's numbers of a policy and its priority.
fn code(policy: Policy) -> (libc::c_int, libc::c_int) {
    match policy {
        Policy::Fifo(priority) => (libc::SCHED_FIFO, libc::c_int::from(priority)),
        Policy::Other => (libc::SCHED_OTHER, 0),
        Policy::Idle => (libc::SCHED_IDLE, 0),
    }
}

/// Why a thread does not run as it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum SchedError {
    /// The kernel refused the policy.
    #[error(
        "{policy} was refused for thread {thread:?}: {source}; run as root, or give CAP_SYS_NICE \
         or an RLIMIT_RTPRIO of 99 (ulimit -r 99)"
    )]
    PolicyRefused {
        /// Name of the thread.
        thread: String,
        /// What was asked for.
        policy: Policy,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// The kernel said yes and did something else.
    #[error("thread {thread:?} was to run as {asked}, and the kernel says that it runs as {found}")]
    PolicyDiffers {
        /// Name of the thread.
        thread: String,
        /// What was asked for.
        asked: Policy,
        /// Policy and priority as read back.
        found: String,
    },
    /// The CPU does not exist, or this process may not use it.
    #[error(
        "thread {thread:?} cannot be pinned to CPU {cpu}: {source}; choose a CPU from Cpus_allowed_list \
         in /proc/self/status"
    )]
    Affinity {
        /// Name of the thread.
        thread: String,
        /// What was asked for.
        cpu: usize,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// The thread could not be started.
    #[error("thread {thread:?} cannot be started: {source}{}", spawn_advice(source))]
    Spawn {
        /// Name of the thread.
        thread: String,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
}

/// What to do about a thread that the kernel refuses. EAGAIN, "Resource temporarily unavailable", does not pass by
/// waiting: it means a limit (pthread_create(3), mlockall(2)).
fn spawn_advice(source: &io::Error) -> &'static str {
    if source.raw_os_error() == Some(libc::EAGAIN) {
        "; a limit is reached: run as root, or allow more threads (ulimit -u) and locked memory (ulimit -l unlimited)"
    } else {
        ""
    }
}

/// Gives the calling thread a policy, without looking at what came of it: the raise at the start of an irq-off
/// section.
pub(crate) fn set_policy(policy: Policy) -> io::Result<()> {
    let (code, sched_priority) = code(policy);
    set_raw(code, sched_priority)
}

/// As [`set_policy`], with the kernel's own numbers.
pub(crate) fn set_raw(policy: libc::c_int, sched_priority: libc::c_int) -> io::Result<()> {
    // `struct sched_param` of the system call is one int on every architecture; musl's own type is larger.
    let param = sched_priority;
    // SAFETY: pid 0 names the calling thread, and `param` outlives the call, which only reads it.
    let rc = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const param) };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Policy and priority of the calling thread as the kernel's own numbers.
pub(crate) fn get_raw() -> io::Result<(libc::c_int, libc::c_int)> {
    // SAFETY: the call has no pointer argument; pid 0 names the calling thread.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
    let policy = libc::c_int::try_from(policy).map_err(io::Error::other)?;
    if policy < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut priority: libc::c_int = 0;
    // SAFETY: pid 0 names the calling thread, and `priority` is the one int that the call writes.
    let rc = unsafe { libc::syscall(libc::SYS_sched_getparam, 0, &raw mut priority) };
    if rc == 0 { Ok((policy, priority)) } else { Err(io::Error::last_os_error()) }
}

/// Gives the calling thread a policy and reads it back.
///
/// # Errors
/// [`SchedError::PolicyRefused`] without the privilege, [`SchedError::PolicyDiffers`] when the kernel
/// accepted and did something else.
pub fn apply_policy(policy: Policy, thread: &str) -> Result<(), SchedError> {
    let refused = |source| SchedError::PolicyRefused { thread: thread.to_owned(), policy, source };
    set_policy(policy).map_err(refused)?;
    let found = get_raw().map_err(refused)?;
    // SCHED_RESET_ON_FORK may be or-ed into the policy.
    if (found.0 & !libc::SCHED_RESET_ON_FORK, found.1) != code(policy) {
        return Err(SchedError::PolicyDiffers {
            thread: thread.to_owned(),
            asked: policy,
            found: format!("policy {} priority {}", found.0, found.1),
        });
    }
    crate::level::forget_base();
    Ok(())
}

/// Pins the calling thread to one CPU and reads it back.
///
/// # Errors
/// [`SchedError::Affinity`] when there is no such CPU or it is not allowed.
pub fn pin(cpu: usize, thread: &str) -> Result<(), SchedError> {
    let failed = |source: io::Error| SchedError::Affinity { thread: thread.to_owned(), cpu, source };
    if cpu >= CpuSet::MAX_CPU {
        return Err(failed(io::ErrorKind::InvalidInput.into()));
    }
    let mut only = CpuSet::new();
    only.set(cpu);
    sched_setaffinity(None, &only).map_err(|e| failed(e.into()))?;
    let found = sched_getaffinity(None).map_err(|e| failed(e.into()))?;
    if found == only {
        Ok(())
    } else {
        Err(failed(io::Error::other("the affinity read back has other CPUs in it")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_does_not_exist_is_an_error_that_names_it() {
        let error = pin(1020, "t").unwrap_err();
        assert!(error.to_string().contains("CPU 1020"), "{error}");
        assert!(pin(1 << 20, "t").is_err());
    }

    #[test]
    fn a_thread_beyond_a_limit_is_an_error_that_says_what_to_do() {
        let spawn = |source| SchedError::Spawn { thread: "probe".to_owned(), source };
        let limit = spawn(io::Error::from_raw_os_error(libc::EAGAIN)).to_string();
        assert!(limit.contains("run as root") && limit.contains("ulimit -l"), "{limit}");
        assert!(!spawn(io::Error::other("odd")).to_string().contains("ulimit"));
    }

    #[test]
    fn a_policy_that_needs_no_privilege_is_set_and_read_back() {
        std::thread::spawn(|| {
            apply_policy(Policy::Idle, "t").unwrap();
            assert_eq!(get_raw().unwrap(), (libc::SCHED_IDLE, 0));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_priority_beyond_99_is_an_error() {
        assert!(apply_policy(Policy::Fifo(100), "t").is_err());
    }
}
