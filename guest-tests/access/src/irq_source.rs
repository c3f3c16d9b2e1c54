//! Waiting for interrupts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::health::count;
use crate::{AnyDevice, Error};

/// How long to sleep at a stretch before asking whether the device is still there.
const SLICE: Duration = Duration::from_secs(1);

/// The interrupts of a device, for the one thread that plays the interrupt handler. Others may use the
/// [`Bus`](execlab_driver::bus::Bus) meanwhile, at any priority.
#[derive(Debug)]
pub struct IrqSource {
    device: Arc<AnyDevice>,
}

impl IrqSource {
    pub(crate) fn new(device: Arc<AnyDevice>) -> Self {
        Self { device }
    }

    /// Whether an interrupt waits to be taken: one load from memory, no system call.
    #[must_use]
    pub fn poll(&self) -> bool {
        self.device.interrupts().pending()
    }

    /// Sleeps until an interrupt waits to be taken with [`take_irq`](execlab_driver::bus::Bus::take_irq), for
    /// `timeout` at most (`None`: without end). True when one does; returns at once, without a system call, when
    /// one is there already.
    ///
    /// # Errors
    /// When the system refuses to wait, or the device is lost.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<bool, Error> {
        let device = &*self.device;
        let deadline = timeout.and_then(|t| Instant::now().checked_add(t));
        // Interrupts are asked for only while somebody sleeps: a handler that drains by polling costs none.
        while !device.interrupts().enable() {
            let left = deadline.map_or(SLICE, |d| d.saturating_duration_since(Instant::now()).min(SLICE));
            let woken = device
                .link()
                .wait(Some(left))
                .map_err(|source| Error::Descriptor { what: "waiting for an interrupt", source })?;
            if woken {
                count(&device.health().counters.wakeups, 1);
                continue;
            }
            device.check()?;
            if deadline.is_some_and(|d| Instant::now() >= d) {
                device.interrupts().disable();
                return Ok(self.poll());
            }
        }
        device.interrupts().disable();
        Ok(true)
    }
}
