//! uio_pci_generic: registers through sysfs, INTx through `/dev/uioN`. Slower, but needs no IOMMU.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::function::Function;
use super::transport::{NO_VECTOR, Transport};
use crate::Error;
use crate::event::readable;
use crate::link::Link;
use crate::memory::SharedMemory;
use crate::virtqueue::VirtQueue;

/// PCI_COMMAND and its bits.
const COMMAND: u64 = 0x04;
const COMMAND_MEMORY_MASTER: u16 = 0x6;
const COMMAND_INTX_DISABLE: u16 = 1 << 10;

/// An open UIO device.
#[derive(Debug)]
pub(crate) struct UioLink {
    transport: Transport,
    config: File,
    uio: File,
}

impl UioLink {
    pub(crate) fn notify(&self, queue: u16) {
        self.transport.notify(queue);
    }

    /// The kernel's handler switched INTx off when it came. So: take the count, take the cause back, switch INTx
    /// on again; what came between the last two comes again at once.
    pub(crate) fn wait(&self, timeout: Option<Duration>) -> io::Result<bool> {
        if !readable(self.uio.as_fd(), timeout)? {
            return Ok(false);
        }
        (&self.uio).read_exact(&mut [0; 4])?;
        let _ = self.transport.acknowledge();
        enable_intx(&self.config)?;
        Ok(true)
    }

    pub(crate) fn hang_up(&self) -> Option<String> {
        self.transport.trouble()
    }
}

fn enable_intx(config: &File) -> io::Result<()> {
    let mut command = [0; 2];
    config.read_exact_at(&mut command, COMMAND)?;
    let command = (u16::from_le_bytes(command) | COMMAND_MEMORY_MASTER) & !COMMAND_INTX_DISABLE;
    config.write_all_at(&command.to_le_bytes(), COMMAND)
}

/// Starts `function`, which is bound to uio_pci_generic.
pub(crate) fn start(
    function: &Function,
    memory: &Arc<SharedMemory>,
) -> Result<(Link, Vec<VirtQueue>), Error> {
    let node = device_node(function)?;
    let uio =
        OpenOptions::new().read(true).write(true).open(&node).map_err(|source| {
            function.error(&format!("opening {}; are you root?", node.display()), source)
        })?;
    let config = function.open("config")?;
    enable_intx(&config).map_err(|source| function.error("enabling memory and INTx", source))?;
    let (mut transport, multiplier) =
        Transport::map(function, |bar| Ok((function.open(&format!("resource{bar}"))?, 0)))?;
    let queues = transport.start(function, multiplier, memory, NO_VECTOR)?;
    Ok((Link::Uio(UioLink { transport, config, uio }), queues))
}

/// `/dev/uioN` of the function.
fn device_node(function: &Function) -> Result<PathBuf, Error> {
    let list = fs::read_dir(function.path().join("uio"))
        .map_err(|source| function.error("looking for its UIO device", source))?;
    let name = list.flatten().map(|entry| entry.file_name()).next();
    let name = name.ok_or_else(|| function.unusable("it has no UIO device".into()))?;
    Ok(Path::new("/dev").join(name))
}
