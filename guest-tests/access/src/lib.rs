//! How a test binary reaches a device: natively over vhost-user, or in a guest over virtio-pci.
//!
//! [`open`] gives an [`AnyDevice`], which is the driver's [`Bus`](execlab_driver::bus::Bus); the
//! [`IrqSource`] is what an interrupt thread sleeps on. [`floors`] measures what waiting costs on this machine
//! without any device.

mod clock;
mod device;
mod error;
mod event;
mod features;
pub mod floors;
mod health;
mod irq_source;
mod link;
mod lock;
mod memory;
pub mod native;
pub mod pci;
mod queues;
mod virtqueue;
mod watchdog;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub use clock::{ClockRelation, now_ns};
pub use device::{AnyDevice, DeviceIdentity};
pub use error::Error;
pub use health::AccessCounters;
pub use irq_source::IrqSource;
pub use memory::Pages;
pub use native::NativeOptions;

/// How long a device may take for one answer, unless said otherwise. Under emulation on a busy host an answer
/// has been seen to take hundreds of milliseconds.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);

/// Opens the device that a plan names.
///
/// # Errors
/// When there is no such device, or it does not answer as agreed.
pub fn open(access: &execlab_report::Access) -> Result<Arc<AnyDevice>, Error> {
    match access {
        execlab_report::Access::Native { socket } => {
            native::connect(Path::new(socket), &NativeOptions::default())
        }
        execlab_report::Access::Pci { driver } => pci::open(driver.as_deref()),
        execlab_report::Access::Sim { .. } => Err(Error::Simulated),
    }
}
