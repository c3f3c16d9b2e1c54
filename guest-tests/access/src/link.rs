//! What differs between the ways to a device once it is open: how to notify it, how to wait for it.

use std::io;
use std::time::Duration;

use crate::health::{Health, count};
use crate::native::NativeLink;
use crate::pci::{UioLink, VfioLink};

/// An open way to a device.
#[derive(Debug)]
pub(crate) enum Link {
    Native(NativeLink),
    Vfio(VfioLink),
    Uio(UioLink),
    /// No device: queues are worked by a model in the same process.
    #[cfg(test)]
    Detached,
}

impl Link {
    /// Tells the device that `queue` has news.
    pub(crate) fn notify(&self, queue: u16, health: &Health) {
        count(&health.counters.notifications, 1);
        match self {
            Self::Native(link) => link.notify(queue),
            Self::Vfio(link) => link.notify(queue),
            Self::Uio(link) => link.notify(queue),
            #[cfg(test)]
            Self::Detached => {}
        }
    }

    /// Sleeps until an interrupt of queue 2, `timeout` at most. True when one came; it may be a stray one.
    pub(crate) fn wait(&self, timeout: Option<Duration>) -> io::Result<bool> {
        match self {
            Self::Native(link) => link.wait(timeout),
            Self::Vfio(link) => link.wait(timeout),
            Self::Uio(link) => link.wait(timeout),
            #[cfg(test)]
            Self::Detached => Ok(false),
        }
    }

    /// Why the other side is known to be gone, if it is.
    pub(crate) fn hang_up(&self) -> Option<String> {
        match self {
            Self::Native(link) => link.hang_up(),
            Self::Vfio(link) => link.hang_up(),
            Self::Uio(link) => link.hang_up(),
            #[cfg(test)]
            Self::Detached => None,
        }
    }

    /// The name for results: see `execlab_report::Environment::access`.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Native(_) => "native",
            Self::Vfio(_) => crate::pci::VFIO_PCI,
            Self::Uio(_) => crate::pci::UIO_PCI_GENERIC,
            #[cfg(test)]
            Self::Detached => "detached",
        }
    }
}
