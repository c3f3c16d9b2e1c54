//! Guest memory as the device sees it: every access is checked against the regions the front end gave.

use vm_memory::{Address as _, GuestAddress, GuestMemory as _, GuestMemoryMmap, Permissions};

/// Whether `length` bytes from `address` are all guest memory.
#[must_use]
pub fn contains(memory: &GuestMemoryMmap, address: GuestAddress, length: u64) -> bool {
    let Ok(size) = usize::try_from(length) else { return false };
    // An empty range is fine anywhere; one that wraps nowhere.
    size == 0
        || (address.checked_add(length - 1).is_some()
            && memory.check_range(address, size, Permissions::ReadWrite))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_inside_across_neighbours_and_outside() {
        let memory: GuestMemoryMmap =
            GuestMemoryMmap::from_ranges(&[(GuestAddress(0x1000), 0x1000), (GuestAddress(0x2000), 0x1000)])
                .unwrap();
        assert!(contains(&memory, GuestAddress(0x1000), 0x2000));
        assert!(contains(&memory, GuestAddress(0x2fff), 1));
        assert!(contains(&memory, GuestAddress(0xffff_0000), 0));
        assert!(!contains(&memory, GuestAddress(0x2fff), 2));
        assert!(!contains(&memory, GuestAddress(0xfff), 2));
        assert!(!contains(&memory, GuestAddress(u64::MAX), 1));
        assert!(!contains(&memory, GuestAddress(u64::MAX), 2));
        assert!(!contains(&memory, GuestAddress(0x1000), u64::MAX));
    }
}
