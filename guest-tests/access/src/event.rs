//! Eventfds, and waiting for a descriptor.
#![allow(unsafe_code)] // rust-vmm's EventFd can be made from a descriptor, and lent as one, only through raw ones.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd as _, IntoRawFd as _, OwnedFd};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, read, write};
use vmm_sys_util::eventfd::EventFd;

/// An eventfd that never blocks in itself.
#[derive(Debug)]
pub(crate) struct Event(OwnedFd);

impl Event {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// A duplicate in the type that rust-vmm's crates take.
    pub(crate) fn for_rust_vmm(&self) -> io::Result<EventFd> {
        let raw = self.0.try_clone()?.into_raw_fd();
        // SAFETY: the descriptor was duplicated for this, so it has no other owner.
        Ok(unsafe { EventFd::from_raw_fd(raw) })
    }

    /// Adds one. Cannot fail in a way that matters: a full counter is signalled already.
    pub(crate) fn signal(&self) {
        let _ = write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Waits until it was signalled, `timeout` at most, and takes the signal. False after the time-out.
    pub(crate) fn wait(&self, timeout: Option<Duration>) -> io::Result<bool> {
        if !readable(self.0.as_fd(), timeout)? {
            return Ok(false);
        }
        match read(&self.0, &mut [0; 8]) {
            Ok(_) => Ok(true),
            // Another waiter took it.
            Err(Errno::AGAIN) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Waits until `fd` can be read (or has an error to tell), `timeout` at most. An interruption by a signal
/// counts as a time-out.
pub(crate) fn readable(fd: BorrowedFd<'_>, timeout: Option<Duration>) -> io::Result<bool> {
    // A duration beyond what the kernel can count is no limit.
    let timeout = timeout.and_then(|t| Timespec::try_from(t).ok());
    match poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], timeout.as_ref()) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// A duplicate of a descriptor that its owner only shows as a number.
pub(crate) fn duplicate(owner: &impl AsRawFd) -> io::Result<File> {
    // SAFETY: `owner` is borrowed, so its descriptor stays open during this call.
    let fd = unsafe { BorrowedFd::borrow_raw(owner.as_raw_fd()) };
    Ok(File::from(fd.try_clone_to_owned()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_wakes_one_wait_and_the_next_one_times_out() {
        let event = Event::new().unwrap();
        event.for_rust_vmm().unwrap().write(1).unwrap();
        event.signal();
        assert!(event.wait(None).unwrap());
        assert!(!event.wait(Some(Duration::from_millis(1))).unwrap());
    }
}
