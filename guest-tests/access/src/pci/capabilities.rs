//! Where a modern virtio-pci function keeps its registers: the vendor capabilities in its configuration space
//! (virtio 1.3, §4.1.4). The BAR differs between QEMU versions and devices, so nothing is assumed.

/// Bytes of configuration space in which capabilities of this kind lie.
pub(crate) const CONFIG_SIZE: usize = 256;

/// PCI_STATUS: bit 4 says that there is a capability list.
const STATUS: usize = 0x06;
const STATUS_CAP_LIST: u16 = 1 << 4;
/// PCI_CAPABILITY_LIST: offset of the first capability.
const CAP_LIST: usize = 0x34;
/// PCI_CAP_ID_VNDR.
const CAP_VENDOR: u8 = 0x09;
/// VIRTIO_PCI_CAP_COMMON_CFG, VIRTIO_PCI_CAP_NOTIFY_CFG, VIRTIO_PCI_CAP_ISR_CFG. Other types (5: access through
/// configuration space, 8: shared memory, and what may come) are passed over.
const TYPE_COMMON: u8 = 1;
const TYPE_NOTIFY: u8 = 2;
const TYPE_ISR: u8 = 3;

/// A piece of a BAR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// BAR number, 0 to 5.
    pub bar: u8,
    /// Offset in the BAR.
    pub offset: u32,
    /// Length in bytes.
    pub length: u32,
}

/// Where a function's registers lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Places {
    /// `virtio_pci_common_cfg`.
    pub common: Place,
    /// The notification area.
    pub notify: Place,
    /// `notify_off_multiplier`.
    pub notify_multiplier: u32,
    /// The ISR byte.
    pub isr: Place,
}

/// Reads the capability list. The first capability of a type counts, as the specification prefers.
pub(crate) fn parse(config: &[u8; CONFIG_SIZE]) -> Result<Places, &'static str> {
    let u16_at = |at: usize| u16::from_le_bytes([config[at], config[at + 1]]);
    let u32_at = |at: usize| u32::from(u16_at(at)) | (u32::from(u16_at(at + 2)) << 16);
    let (mut common, mut notify, mut isr) = (None, None, None);
    let mut at = if u16_at(STATUS) & STATUS_CAP_LIST != 0 { usize::from(config[CAP_LIST] & !3) } else { 0 };
    // A list longer than the space has room for bites its own tail.
    for _ in 0..CONFIG_SIZE / 4 {
        if at < 0x40 {
            break;
        }
        let (id, next, kind) = (config[at], config[at + 1], config[at + 3]);
        if id == CAP_VENDOR && at + 16 <= CONFIG_SIZE && config[at + 4] <= 5 {
            let place = Place { bar: config[at + 4], offset: u32_at(at + 8), length: u32_at(at + 12) };
            match kind {
                TYPE_COMMON => common = common.or(Some(place)),
                TYPE_NOTIFY if at + 20 <= CONFIG_SIZE => notify = notify.or(Some((place, u32_at(at + 16)))),
                TYPE_ISR => isr = isr.or(Some(place)),
                _ => {}
            }
        }
        at = usize::from(next & !3);
    }
    let (notify, notify_multiplier) = notify.ok_or("no virtio notification capability")?;
    Ok(Places {
        common: common.ok_or("no virtio common-configuration capability; is it a legacy device?")?,
        notify,
        notify_multiplier,
        isr: isr.ok_or("no virtio ISR capability")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A function with capabilities chained from 0x40 on, 20 bytes each.
    fn config(caps: &[(u8, u8, u8, u32, u32)]) -> [u8; CONFIG_SIZE] {
        let mut config = [0; CONFIG_SIZE];
        config[STATUS] = STATUS_CAP_LIST as u8;
        config[CAP_LIST] = 0x40;
        for (n, (id, kind, bar, offset, length)) in caps.iter().enumerate() {
            let at = 0x40 + 20 * n;
            config[at] = *id;
            config[at + 1] = if n + 1 < caps.len() { at as u8 + 20 } else { 0 };
            config[at + 3] = *kind;
            config[at + 4] = *bar;
            config[at + 8..at + 12].copy_from_slice(&offset.to_le_bytes());
            config[at + 12..at + 16].copy_from_slice(&length.to_le_bytes());
            config[at + 16] = 4;
        }
        config
    }

    #[test]
    fn the_layout_of_qemu_7_2_is_found_among_unknown_types() {
        let config = config(&[
            (0x11, 0, 0, 0, 0),
            (9, 8, 4, 7, 7),
            (9, 5, 0, 0, 0),
            (9, 2, 4, 0x3000, 0x1000),
            (9, 3, 4, 0x1000, 0x1000),
            (9, 1, 4, 0, 0x1000),
        ]);
        let places = parse(&config).unwrap();
        assert_eq!(places.common, Place { bar: 4, offset: 0, length: 0x1000 });
        assert_eq!(places.notify, Place { bar: 4, offset: 0x3000, length: 0x1000 });
        assert_eq!(places.isr.offset, 0x1000);
        assert_eq!(places.notify_multiplier, 4);
    }

    #[test]
    fn a_missing_capability_is_named() {
        let both = config(&[(9, 2, 4, 0, 0), (9, 3, 4, 0, 0)]);
        assert!(parse(&both).unwrap_err().contains("common"));
        assert!(parse(&[0; CONFIG_SIZE]).unwrap_err().contains("notification"));
    }

    proptest! {
        #[test]
        fn any_configuration_space_ends_without_a_panic(bytes in prop::collection::vec(any::<u8>(), CONFIG_SIZE)) {
            let mut config: [u8; CONFIG_SIZE] = bytes.try_into().unwrap();
            config[STATUS] |= STATUS_CAP_LIST as u8;
            let _ = parse(&config);
        }
    }
}
