//! vfio-pci: registers and MSI-X through VFIO, behind an emulated IOMMU.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use vfio_bindings::bindings::vfio::{
    VFIO_PCI_CONFIG_REGION_INDEX, VFIO_PCI_MSIX_IRQ_INDEX, VFIO_REGION_INFO_FLAG_MMAP,
};
use vfio_ioctls::{VfioContainer, VfioDevice, VfioError};

use super::function::Function;
use super::transport::Transport;
use crate::Error;
use crate::event::{Event, duplicate};
use crate::link::Link;
use crate::memory::SharedMemory;
use crate::virtqueue::VirtQueue;

/// PCI_COMMAND and its bits for memory and bus mastering.
const COMMAND: u64 = 0x04;
const COMMAND_MEMORY_MASTER: u16 = 0x6;

/// An open VFIO device. Its registers go first when it is dropped, while VFIO still holds the device.
#[derive(Debug)]
pub(crate) struct VfioLink {
    transport: Transport,
    interrupt: Event,
    _device: Held,
}

/// Keeps the VFIO device open; the type has no `Debug` of its own.
struct Held(#[allow(dead_code)] VfioDevice);

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("VfioDevice")
    }
}

impl VfioLink {
    pub(crate) fn notify(&self, queue: u16) {
        self.transport.notify(queue);
    }

    pub(crate) fn wait(&self, timeout: Option<Duration>) -> io::Result<bool> {
        self.interrupt.wait(timeout)
    }

    pub(crate) fn hang_up(&self) -> Option<String> {
        self.transport.trouble()
    }
}

/// Starts `function`, which is bound to vfio-pci.
pub(crate) fn start(
    function: &Function,
    memory: &Arc<SharedMemory>,
) -> Result<(Link, Vec<VirtQueue>), Error> {
    let failed = |what: &'static str| {
        move |source: VfioError| Error::Vfio { address: function.address().to_owned(), what, source }
    };
    let container = VfioContainer::new(None)
        .map_err(failed("opening /dev/vfio/vfio; is the module vfio_iommu_type1 loaded?"))?;
    let device = VfioDevice::new(function.path(), Arc::new(container), false).map_err(failed(
        "attaching it to VFIO; needs an IOMMU, and interrupt remapping or allow_unsafe_interrupts=1",
    ))?;

    let mut command = [0; 2];
    device.region_read(VFIO_PCI_CONFIG_REGION_INDEX, &mut command, COMMAND);
    let command = u16::from_le_bytes(command) | COMMAND_MEMORY_MASTER;
    device.region_write(VFIO_PCI_CONFIG_REGION_INDEX, &command.to_le_bytes(), COMMAND);

    // One vector is enough: only queue 2 interrupts.
    let interrupt = Event::new().map_err(|source| function.error("making an eventfd", source))?;
    let event =
        interrupt.for_rust_vmm().map_err(|source| function.error("duplicating an eventfd", source))?;
    device.enable_irq(VFIO_PCI_MSIX_IRQ_INDEX, vec![&event]).map_err(failed("enabling MSI-X"))?;

    let (mut transport, multiplier) = Transport::map(function, |bar| {
        let index = u32::from(bar);
        if device.get_region_flags(index) & VFIO_REGION_INFO_FLAG_MMAP == 0 {
            return Err(function.unusable(format!("VFIO does not let BAR {bar} be mapped")));
        }
        let file =
            duplicate(&device).map_err(|source| function.error("duplicating the VFIO device", source))?;
        Ok((file, device.get_region_offset(index)))
    })?;
    let queues = transport.start(function, multiplier, memory, 0)?;
    Ok((Link::Vfio(VfioLink { transport, interrupt, _device: Held(device) }), queues))
}
