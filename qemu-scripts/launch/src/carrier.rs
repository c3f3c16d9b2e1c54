//! Which QEMU device carries ours.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Queues of the device: control, posted writes, interrupts.
pub const QUEUES: u16 = 3;

/// Entries per queue.
pub const QUEUE_SIZE: u16 = 256;

/// virtio device id on the test device. QEMU aborts on ids that it has no name for; 39 (audio policy) has a
/// name and no Linux driver.
pub const VIRTIO_ID: u16 = 39;

/// A QEMU device that passes virtqueues through to a vhost-user process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Carrier {
    /// Any virtio id, one MSI-X vector; user-creatable from QEMU 10.2.
    #[serde(rename = "vhost-user-test-device-pci")]
    TestDevice,
    /// A block device by its PCI id; from QEMU 7.2. QEMU reads a block device's config from the backend.
    #[serde(rename = "vhost-user-blk-pci-non-transitional")]
    Block,
}

impl Carrier {
    /// Name of the QEMU device.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::TestDevice => "vhost-user-test-device-pci",
            Self::Block => "vhost-user-blk-pci-non-transitional",
        }
    }

    /// The `-chardev` and `-device` arguments for a device process that listens on `socket`.
    #[must_use]
    pub fn arguments(self, socket: &Path) -> Vec<String> {
        let device = match self {
            Self::TestDevice => format!(
                "{},virtio-id={VIRTIO_ID},num_vqs={QUEUES},vq_size={QUEUE_SIZE},config_size=64,chardev=execlab",
                self.name()
            ),
            Self::Block => {
                format!("{},num-queues={QUEUES},queue-size={QUEUE_SIZE},chardev=execlab", self.name())
            }
        };
        let chardev = format!("socket,id=execlab,path={}", crate::machine::escape(socket));
        vec!["-chardev".into(), chardev, "-device".into(), device]
    }

    /// The best carrier of a QEMU of this version (major, minor) whose `-device help` is given, or none.
    ///
    /// Being listed is not enough for the test device: 8.2 to 10.1 list a relative that cannot be created.
    #[must_use]
    pub fn choose(version: (u32, u32), device_help: &str) -> Option<Self> {
        let offers = |carrier: Self| device_help.contains(&format!("name \"{}\"", carrier.name()));
        if version >= (10, 2) && offers(Self::TestDevice) {
            return Some(Self::TestDevice);
        }
        (version >= (7, 2) && offers(Self::Block)).then_some(Self::Block)
    }
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: &str = "name \"vhost-user-blk-pci-non-transitional\", bus PCI\n";
    const BOTH: &str = "name \"vhost-user-test-device-pci\", bus PCI\n\
                        name \"vhost-user-blk-pci-non-transitional\", bus PCI\n";

    #[test]
    fn old_qemu_gets_the_block_carrier_and_new_the_test_device() {
        assert_eq!(Carrier::choose((7, 2), BLOCK), Some(Carrier::Block));
        assert_eq!(Carrier::choose((10, 1), BOTH), Some(Carrier::Block));
        assert_eq!(Carrier::choose((10, 2), BOTH), Some(Carrier::TestDevice));
        assert_eq!(Carrier::choose((11, 1), BLOCK), Some(Carrier::Block));
    }

    #[test]
    fn too_old_or_too_small_a_qemu_gets_none() {
        assert_eq!(Carrier::choose((7, 1), BLOCK), None);
        assert_eq!(Carrier::choose((11, 1), ""), None);
    }
}
