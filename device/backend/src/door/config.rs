//! What the device says of itself before a queue moves: feature bits and configuration space.
//!
//! The same words serve both carriers. `vhost-user-test-device-pci` hands them through and nobody reads them;
//! `vhost-user-blk-pci` reads the space once at realize as a `struct virtio_blk_config`, and keeps of the
//! features those that virtio-blk has.

use execlab_abi::wire::{QUEUE_COUNT, QUEUE_SIZE};
use vhost::vhost_user::message::{VhostUserProtocolFeatures, VhostUserVirtioFeatures};
use virtio_bindings::bindings::virtio_blk::VIRTIO_BLK_F_MQ;
use virtio_bindings::bindings::virtio_config::VIRTIO_F_VERSION_1;
use virtio_bindings::bindings::virtio_ring::VIRTIO_RING_F_EVENT_IDX;

/// Feature bits offered. Multiqueue is virtio-blk's bit: it lets the carrier show more than one queue.
pub const FEATURES: u64 = (1 << VIRTIO_F_VERSION_1)
    | (1 << VIRTIO_RING_F_EVENT_IDX)
    | (1 << VIRTIO_BLK_F_MQ)
    | VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits();

/// Protocol features offered. CONFIG is a must where the carrier has a configuration space; never STATUS or
/// INFLIGHT_SHMFD, which the library does not serve.
#[must_use]
pub fn protocol_features() -> VhostUserProtocolFeatures {
    VhostUserProtocolFeatures::MQ
        | VhostUserProtocolFeatures::CONFIG
        | VhostUserProtocolFeatures::REPLY_ACK
        | VhostUserProtocolFeatures::RESET_DEVICE
        | VhostUserProtocolFeatures::CONFIGURE_MEM_SLOTS
}

/// Bytes of `struct virtio_blk_config` up to and including the fields of QEMU 7.2.
const BLK_CONFIG_SIZE: usize = 60;
/// Offset of `blk_size`, 32 bits.
const BLK_SIZE_AT: usize = 20;
/// Offset of `num_queues`, 16 bits.
const NUM_QUEUES_AT: usize = 34;

/// The configuration space: a disk of no sectors, so that no firmware and no driver has a reason to read it.
const CONFIG: [u8; BLK_CONFIG_SIZE] = {
    let mut config = [0; BLK_CONFIG_SIZE];
    let sector = 512_u32.to_le_bytes();
    config[BLK_SIZE_AT] = sector[0];
    config[BLK_SIZE_AT + 1] = sector[1];
    let queues = QUEUE_COUNT.to_le_bytes();
    config[NUM_QUEUES_AT] = queues[0];
    config[NUM_QUEUES_AT + 1] = queues[1];
    config
};

/// `size` bytes of configuration space from `offset`; zeros beyond its end. The library takes no other length,
/// and carriers differ in how much they ask for.
#[must_use]
pub fn read(offset: u32, size: u32) -> Vec<u8> {
    let byte = |at: u32| {
        let at = offset.checked_add(at).and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| CONFIG.get(at)).copied().unwrap_or(0)
    };
    // A vhost-user message's payload is at most this long (VHOST_USER_CONFIG_SPACE_MAX).
    (0..size.min(256)).map(byte).collect()
}

/// Most descriptors in a queue.
pub const MAX_QUEUE_SIZE: usize = QUEUE_SIZE as usize;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_asked_for_is_given_and_the_rest_is_zero() {
        assert_eq!(read(0, 60), CONFIG);
        assert_eq!(read(34, 2), QUEUE_COUNT.to_le_bytes());
        assert_eq!(read(58, 6), [0; 6]);
        assert_eq!(read(u32::MAX, 2), [0; 2]);
        assert_eq!(read(0, 256).len(), 256);
        assert!(read(4, 0).is_empty());
    }
}
