//! The poll thread: a core that belongs to the device while a guest's rings are live.

use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use crate::core::Device;
use crate::error::DeviceError;
use crate::spin;
use crate::thread_place::place;

/// Starts the poll thread and waits until it has its CPU and priority.
///
/// # Errors
/// What [`place`] says, or that there is no thread to be had.
pub fn start(
    device: &Arc<Device>,
    cpu: Option<usize>,
    realtime: Option<u8>,
) -> Result<JoinHandle<()>, DeviceError> {
    let (ready, started) = mpsc::channel();
    let poller = Arc::clone(device);
    let thread = thread::Builder::new()
        .name("poll".into())
        .spawn(move || {
            let placed = place(cpu, realtime);
            let good = placed.is_ok();
            poller.set_poller(thread::current());
            // The starter waits for this word; if it has gone, so has the process.
            let _ = ready.send(placed);
            if good {
                run(&poller);
            }
        })
        .map_err(DeviceError::system("start the poll thread"))?;
    started.recv().unwrap_or(Ok(()))?;
    Ok(thread)
}

/// Polls while rings are live; parked otherwise, so that a device without a guest costs nothing.
fn run(device: &Device) {
    while !device.published.stop.load(Ordering::Acquire) {
        if device.published.live.load(Ordering::Acquire) {
            device.lock().spinning = true;
            spin::run(device);
        } else {
            // Whoever makes a ring live, or stops the device, unparks; a call in between is not lost.
            thread::park();
        }
    }
}
