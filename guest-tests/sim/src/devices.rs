//! The devices of the simulation that runs on this OS thread.

use std::cell::RefCell;
use std::sync::Arc;

/// A device: something beside the CPUs that does things at times of its own.
pub trait Device: Send + Sync {
    /// When the device next does something by itself, if it does. Asked before time passes, hence often: a load of a
    /// stored value is best.
    fn next_deadline(&self) -> Option<u64>;

    /// Time has reached `now`, which is the deadline or later. The next deadline must lie later, at least after a few
    /// calls. It may raise its interrupt; whatever it asks of the kernel is free here.
    fn advance(&self, now: u64);
}

thread_local! {
    /// Here and not in what threads share, because this is looked at whenever time passes: a borrow of a thread's own
    /// cell is two plain moves.
    static DEVICES: RefCell<Vec<Arc<dyn Device>>> = const { RefCell::new(Vec::new()) };
}

/// Puts the devices in place for as long as the guard lives.
pub(crate) fn install(devices: Vec<Arc<dyn Device>>) -> Installed {
    DEVICES.set(devices);
    Installed
}

/// Removes the devices when dropped.
pub(crate) struct Installed;

impl Drop for Installed {
    fn drop(&mut self) {
        drop(DEVICES.take());
    }
}

/// The first deadline; the end of time when there is none.
#[inline]
pub(crate) fn due() -> u64 {
    DEVICES.with_borrow(|devices| {
        devices.iter().filter_map(|device| device.next_deadline()).fold(u64::MAX, u64::min)
    })
}

/// Advances each device whose deadline has come.
pub(crate) fn advance(now: u64) {
    DEVICES.with_borrow(|devices| {
        for device in devices {
            if device.next_deadline().is_some_and(|deadline| deadline <= now) {
                device.advance(now);
            }
        }
    });
}
