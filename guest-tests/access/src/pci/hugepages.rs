//! Memory in a guest whose physical addresses are known and stay: huge pages, with addresses from
//! `/proc/self/pagemap`. The device takes guest-physical addresses even behind an emulated IOMMU, because QEMU
//! hands a vhost-user device the guest's memory as it is (`iommu_platform=off`).

use std::fs;
use std::io;
use std::os::unix::fs::FileExt as _;

use vm_memory::MmapRegion;

use crate::Error;
use crate::memory::{PAGE, SharedMemory};

/// Bytes of a huge page on x86-64.
const HUGE: usize = 2 << 20;
/// Huge pages used at most: 32 MiB.
const WANTED: usize = 16;
/// Huge pages needed at least.
const NEEDED: usize = 2;
const RESERVE: &str = "/proc/sys/vm/nr_hugepages";

/// pagemap bit 63: the page is in memory; bits 0 to 54: its frame number (Documentation/admin-guide/mm/pagemap.rst).
const PRESENT: u64 = 1 << 63;
const FRAME: u64 = (1 << 55) - 1;

/// As many huge pages as there are, up to the number wanted; reserves more when there are too few.
pub(crate) fn map() -> Result<SharedMemory, Error> {
    if free_pages() < WANTED {
        // May give fewer, or nothing without the right: what counts is what is free afterwards.
        let _ = fs::write(RESERVE, WANTED.to_string());
    }
    let pages = free_pages().min(WANTED);
    if pages < NEEDED {
        return Err(Error::Memory {
            what: format!("{pages} free huge pages, {NEEDED} needed; as root, write {WANTED} to {RESERVE}"),
            source: io::ErrorKind::OutOfMemory.into(),
        });
    }
    let flags =
        libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB | libc::MAP_LOCKED | libc::MAP_POPULATE;
    let region = MmapRegion::build(None, pages * HUGE, libc::PROT_READ | libc::PROT_WRITE, flags)
        .map_err(|error| failed(&format!("mapping {pages} huge pages"), io::Error::other(error)))?;
    let frames = physical_addresses(&region)
        .map_err(|source| failed("reading /proc/self/pagemap; are you root?", source))?;
    Ok(SharedMemory::new(region, frames))
}

fn failed(what: &str, source: io::Error) -> Error {
    Error::Memory { what: what.into(), source }
}

fn free_pages() -> usize {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("HugePages_Free:"));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

fn physical_addresses(region: &MmapRegion) -> io::Result<Vec<u64>> {
    let pagemap = fs::File::open("/proc/self/pagemap")?;
    let first = region.as_ptr() as usize;
    (first..first + region.size()).step_by(HUGE).map(|at| physical_address(&pagemap, at)).collect()
}

fn physical_address(pagemap: &fs::File, at: usize) -> io::Result<u64> {
    let mut entry = [0; 8];
    pagemap.read_exact_at(&mut entry, (at / PAGE * size_of::<u64>()) as u64)?;
    let entry = u64::from_le_bytes(entry);
    let frame = entry & FRAME;
    // Without CAP_SYS_ADMIN the kernel shows frame 0.
    if entry & PRESENT == 0 || frame == 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(frame * PAGE as u64)
}
