//! Virtio features: what this library takes of what a device offers.

use crate::Error;

/// VIRTIO_F_VERSION_1: the modern ring layout and byte order.
const VERSION_1: u64 = 1 << 32;
/// VIRTIO_F_EVENT_IDX (VIRTIO_RING_F_EVENT_IDX): notifications by index.
const EVENT_IDX: u64 = 1 << 29;
/// VIRTIO_F_ACCESS_PLATFORM: addresses go through the IOMMU.
const ACCESS_PLATFORM: u64 = 1 << 33;

/// The features to take; `place` names the device in errors.
pub(crate) fn choose(offered: u64, place: impl Fn() -> String) -> Result<u64, Error> {
    if offered & VERSION_1 == 0 {
        let feature = "VIRTIO_F_VERSION_1 (is it a legacy device? use the -non-transitional one)";
        return Err(Error::MissingFeature { place: place(), feature });
    }
    if offered & ACCESS_PLATFORM != 0 {
        let why = "it wants addresses translated by the IOMMU; start it with iommu_platform=off".into();
        return Err(Error::Unusable { address: place(), why });
    }
    Ok(offered & (VERSION_1 | EVENT_IDX))
}

pub(crate) fn has_event_idx(features: u64) -> bool {
    features & EVENT_IDX != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_offered_and_known_is_taken() {
        let place = || "here".to_owned();
        assert_eq!(choose(!ACCESS_PLATFORM, place).unwrap(), VERSION_1 | EVENT_IDX);
        assert_eq!(choose(VERSION_1, place).unwrap(), VERSION_1);
        assert!(choose(EVENT_IDX, place).is_err());
        assert!(
            choose(VERSION_1 | ACCESS_PLATFORM, place).unwrap_err().to_string().contains("iommu_platform")
        );
    }
}
