//! How a test binary reaches a device: natively over vhost-user, or in a guest over virtio-pci.
