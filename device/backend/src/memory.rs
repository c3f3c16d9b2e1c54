//! Guest memory as the device sees it: every access is checked against the regions the front end gave.

use std::sync::atomic::Ordering;

use vm_memory::{
    Address as _, AtomicAccess, Bytes as _, GuestAddress, GuestMemory, GuestMemoryBackend as _,
    GuestMemoryMmap, Permissions, VolatileSlice,
};

/// Addresses that are not guest memory, or of which only a part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotMemory;

/// The bytes, if one region holds them all: nearly every access, and the library's walk over regions costs more than
/// the access itself.
#[inline]
fn within_one(memory: &GuestMemoryMmap, address: GuestAddress, length: usize) -> Option<VolatileSlice<'_>> {
    memory.get_slice(address, length).ok()
}

/// Fills `data` from `address`.
///
/// # Errors
/// [`NotMemory`]; `data` may then be filled in part.
#[inline]
pub fn read(memory: &GuestMemoryMmap, address: GuestAddress, data: &mut [u8]) -> Result<(), NotMemory> {
    match within_one(memory, address, data.len()) {
        Some(slice) => {
            slice.copy_to(data);
            Ok(())
        }
        None => memory.read_slice(data, address).map_err(|_| NotMemory),
    }
}

/// Stores `data` at `address`.
///
/// # Errors
/// [`NotMemory`]; a part may then be stored.
#[inline]
pub fn write(memory: &GuestMemoryMmap, address: GuestAddress, data: &[u8]) -> Result<(), NotMemory> {
    match within_one(memory, address, data.len()) {
        Some(slice) => {
            slice.copy_from(data);
            Ok(())
        }
        None => memory.write_slice(data, address).map_err(|_| NotMemory),
    }
}

/// Loads one aligned value.
///
/// # Errors
/// [`NotMemory`], also for an address that is not aligned.
#[inline]
pub fn load<T: AtomicAccess>(
    memory: &GuestMemoryMmap,
    address: GuestAddress,
    order: Ordering,
) -> Result<T, NotMemory> {
    within_one(memory, address, size_of::<T>()).and_then(|slice| slice.load(0, order).ok()).ok_or(NotMemory)
}

/// Stores one aligned value.
///
/// # Errors
/// [`NotMemory`], also for an address that is not aligned.
#[inline]
pub fn store<T: AtomicAccess>(
    memory: &GuestMemoryMmap,
    address: GuestAddress,
    value: T,
    order: Ordering,
) -> Result<(), NotMemory> {
    within_one(memory, address, size_of::<T>())
        .and_then(|slice| slice.store(value, 0, order).ok())
        .ok_or(NotMemory)
}

/// Whether `length` bytes from `address` are all guest memory.
#[must_use]
pub fn contains(memory: &GuestMemoryMmap, address: GuestAddress, length: u64) -> bool {
    let Ok(size) = usize::try_from(length) else { return false };
    // An empty range is fine anywhere; one that wraps nowhere.
    size == 0
        || (address.checked_add(length - 1).is_some()
            && GuestMemory::check_range(memory, address, size, Permissions::ReadWrite))
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

    #[test]
    fn accesses_inside_across_neighbours_and_outside() {
        let memory: GuestMemoryMmap =
            GuestMemoryMmap::from_ranges(&[(GuestAddress(0x1000), 0x1000), (GuestAddress(0x2000), 0x1000)])
                .unwrap();
        for at in [0x1000, 0x1ffd, 0x2ff8] {
            let mut back = [0; 8];
            write(&memory, GuestAddress(at), b"01234567").unwrap();
            read(&memory, GuestAddress(at), &mut back).unwrap();
            assert_eq!(&back, b"01234567", "at {at:#x}");
        }
        for at in [0xffc, 0x2ffd, u64::MAX - 3] {
            assert_eq!(write(&memory, GuestAddress(at), b"01234567"), Err(NotMemory), "at {at:#x}");
            assert_eq!(read(&memory, GuestAddress(at), &mut [0; 8]), Err(NotMemory), "at {at:#x}");
        }
    }

    #[test]
    fn atomic_accesses_are_aligned_or_refused() {
        let memory: GuestMemoryMmap =
            GuestMemoryMmap::from_ranges(&[(GuestAddress(0x1000), 0x1000)]).unwrap();
        store(&memory, GuestAddress(0x1ff8), 0x0123_4567_89ab_cdef_u64, Ordering::Release).unwrap();
        assert_eq!(load(&memory, GuestAddress(0x1ffc), Ordering::Acquire), Ok(0x0123_4567_u32));
        assert_eq!(store(&memory, GuestAddress(0x1ffe), 0_u32, Ordering::Release), Err(NotMemory));
        assert_eq!(load::<u32>(&memory, GuestAddress(0x2000), Ordering::Acquire), Err(NotMemory));
        assert_eq!(load::<u32>(&memory, GuestAddress(u64::MAX - 3), Ordering::Acquire), Err(NotMemory));
    }
}
