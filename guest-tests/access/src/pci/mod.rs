//! Way (b): in a guest, modern virtio-pci driven from user space.
//!
//! A function with one of the wire's PCI ids is taken from the kernel, bound to vfio-pci (MSI-X, an emulated
//! IOMMU needed) or else to uio_pci_generic (INTx), and asked who it is. One that does not answer as execlab is
//! given back to the kernel.

mod capabilities;
mod function;
mod hugepages;
mod transport;
mod uio;
mod vfio;

use std::fmt::Write as _;
use std::sync::Arc;

use execlab_abi::wire::{PCI_DEVICES, PCI_VENDOR};

use crate::device::{AnyDevice, Parts};
use crate::{DEFAULT_TIMEOUT, Error};
use function::Function;
pub(crate) use uio::UioLink;
pub(crate) use vfio::VfioLink;

/// Name of the kernel driver with MSI-X and an IOMMU.
pub(crate) const VFIO_PCI: &str = "vfio-pci";
/// Name of the kernel driver with INTx.
pub(crate) const UIO_PCI_GENERIC: &str = "uio_pci_generic";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Driver {
    Vfio,
    Uio,
}

impl Driver {
    fn candidates(prefer: Option<&str>) -> Result<&'static [Self], Error> {
        match prefer {
            None => Ok(&[Self::Vfio, Self::Uio]),
            Some(VFIO_PCI) => Ok(&[Self::Vfio]),
            Some(UIO_PCI_GENERIC) => Ok(&[Self::Uio]),
            Some(other) => Err(Error::UnknownDriver(other.to_owned())),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Vfio => VFIO_PCI,
            Self::Uio => UIO_PCI_GENERIC,
        }
    }
}

/// Opens the first PCI function that answers as an execlab device; `prefer` names the only kernel driver to
/// use, `vfio-pci` or `uio_pci_generic`, else both are tried in this order. Needs root and huge pages.
///
/// # Errors
/// When there is none, with what was found and why it was not taken.
pub fn open(prefer: Option<&str>) -> Result<Arc<AnyDevice>, Error> {
    let drivers = Driver::candidates(prefer)?;
    let mut tried = String::new();
    for function in function::find()? {
        if let Some(disk) = function.disk_in_use() {
            // Writing to a string cannot fail.
            let _ = write!(tried, "\n  {}: left alone, its disk {disk} is in use", function.address());
            continue;
        }
        for driver in drivers {
            match open_with(&function, *driver) {
                Ok(device) => return Ok(device),
                Err(error) => {
                    let _ = write!(tried, "\n  {}: {error}", driver.name());
                }
            }
        }
        function.give_back();
    }
    if tried.is_empty() {
        tried.push_str("\n  no function with these ids exists");
    }
    let ids = PCI_DEVICES.map(|id| format!("{PCI_VENDOR:04x}:{id:04x}")).join(" or ");
    Err(Error::NoDevice { ids, tried })
}

fn open_with(function: &Function, driver: Driver) -> Result<Arc<AnyDevice>, Error> {
    function.bind(driver.name())?;
    let memory = Arc::new(hugepages::map()?);
    let (link, queues) = match driver {
        Driver::Vfio => vfio::start(function, &memory)?,
        Driver::Uio => uio::start(function, &memory)?,
    };
    AnyDevice::start(Parts { link, memory, queues, timeout: DEFAULT_TIMEOUT })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_driver_is_named_in_the_error() {
        let error = open(Some("igb_uio")).unwrap_err().to_string();
        assert!(error.contains("igb_uio") && error.contains("uio_pci_generic"), "{error}");
    }
}
