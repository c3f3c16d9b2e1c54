//! Guest memory that notices who touches it and where.

use execlab_abi::{PAGE_SIZE, ggtt};

use super::layout;

/// The guest's memory of one case, as the device sees it.
#[derive(Debug)]
pub struct Memory {
    bytes: Vec<u8>,
    /// One bit for each page that the guest has given.
    given: u128,
    /// One bit for each page that is not all zeroes.
    dirty: u128,
    /// The first access of the device that nothing explains.
    offence: Option<String>,
    /// Accesses of the device that were inside, and that were refused for being outside.
    pub inside: u64,
    /// See [`Memory::inside`].
    pub outside: u64,
}

impl Default for Memory {
    fn default() -> Self {
        Self { bytes: vec![0; layout::SIZE], given: 0, dirty: 0, offence: None, inside: 0, outside: 0 }
    }
}

impl Memory {
    /// Empties it for the next case.
    pub fn clear(&mut self) {
        for (page, bytes) in self.bytes.chunks_exact_mut(PAGE_SIZE as usize).enumerate() {
            if self.dirty & (1 << page) != 0 {
                bytes.fill(0);
            }
        }
        (self.given, self.dirty) = (0, 0);
        self.offence = None;
        (self.inside, self.outside) = (0, 0);
    }

    /// What the device did that nothing explains, if anything.
    #[must_use]
    pub fn offence(&self) -> Option<&str> {
        self.offence.as_deref()
    }

    /// The guest's own store of a dword at byte `at` of `page`. Outside its memory it stores nothing.
    pub fn put(&mut self, page: u32, at: u32, value: u32) {
        self.dirty |= bit(layout::gpa(page) + u64::from(at));
        let at = page as usize * layout::STRIDE + at as usize;
        if let Some(to) = self.bytes.get_mut(at..at + 4) {
            to.copy_from_slice(&value.to_le_bytes());
        }
    }

    /// The guest's own load of a dword.
    #[must_use]
    pub fn get(&self, page: u32, at: u32) -> u32 {
        let at = page as usize * layout::STRIDE + at as usize;
        self.bytes.get(at..at + 4).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    }

    /// Told of what the guest writes into a half of a GGTT entry, to know which pages it gives away. A page counts
    /// as given as soon as a half names it: whatever the device makes of it then is explained.
    pub fn note_entry(&mut self, half: u32) {
        self.given |= bit(u64::from(half) & ggtt::PTE_ADDR_MASK);
    }

    /// The device reads. `None` outside of guest memory.
    pub fn device_read(&mut self, gpa: u64, to: &mut [u8]) -> Option<()> {
        let range = self.device_access(gpa, to.len())?;
        to.copy_from_slice(&self.bytes[range]);
        Some(())
    }

    /// The device writes. `None` outside of guest memory.
    pub fn device_write(&mut self, gpa: u64, from: &[u8]) -> Option<()> {
        let range = self.device_access(gpa, from.len())?;
        // An access over a page's end is an offence, and its case the last.
        self.dirty |= bit(gpa);
        self.bytes[range].copy_from_slice(from);
        Some(())
    }

    /// The place of an access of the device, if it is inside, after noting what is wrong with it.
    fn device_access(&mut self, gpa: u64, len: usize) -> Option<std::ops::Range<usize>> {
        let last = gpa.checked_add(len as u64)?.checked_sub(1);
        // A GGTT or PPGTT entry gives one page: what follows it in guest memory is somebody else's.
        if last.is_some_and(|last| last / PAGE_SIZE != gpa / PAGE_SIZE) {
            self.offend(format!("access at {gpa:#x} of {len} bytes crosses its page"));
        }
        let start = usize::try_from(gpa.checked_sub(layout::BASE)?).ok()?;
        let end = start.checked_add(len).filter(|end| *end <= self.bytes.len());
        let Some(end) = end else {
            self.outside += 1;
            return None;
        };
        self.inside += 1;
        if !self.explained(gpa & !(PAGE_SIZE - 1)) {
            self.offend(format!("access at {gpa:#x}, a page that no entry has given"));
        }
        Some(start..end)
    }

    /// Whether the guest has given that page: in a GGTT entry, or somewhere in memory in what can be a PPGTT
    /// entry or a root.
    fn explained(&mut self, page: u64) -> bool {
        if self.given & bit(page) != 0 {
            return true;
        }
        let entry = |b: &[u8]| u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
        // Dwords, because the root in a context image is kept as two of them that are not adjacent. Guest memory
        // lies below 4 GiB, so the low half tells.
        let found = self.bytes.chunks_exact(4).any(|b| u64::from(entry(b)) & !(PAGE_SIZE - 1) == page);
        if found {
            self.given |= bit(page);
        }
        found
    }

    /// Keeps the first offence.
    fn offend(&mut self, what: String) {
        self.offence.get_or_insert(what);
    }
}

/// The bit of the page at a guest-physical address; none outside of guest memory.
fn bit(gpa: u64) -> u128 {
    const { assert!(layout::SIZE <= 128 * PAGE_SIZE as usize) };
    match gpa.checked_sub(layout::BASE).map(|at| at / PAGE_SIZE) {
        Some(page) if page < (layout::SIZE as u64 / PAGE_SIZE) => 1 << page,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::{Memory, layout};
    use execlab_abi::ggtt;

    #[test]
    fn an_access_to_a_page_in_the_ggtt_is_no_offence() {
        let mut memory = Memory::default();
        memory.note_entry(ggtt::pte(layout::gpa(3)) as u32);
        memory.put(3, 8, 7);
        let mut word = [0; 4];
        assert_eq!(memory.device_read(layout::gpa(3) + 8, &mut word), Some(()));
        assert_eq!((word, memory.offence()), ([7, 0, 0, 0], None));
    }

    #[test]
    fn an_access_to_a_page_that_was_not_given_is_an_offence() {
        let mut memory = Memory::default();
        assert_eq!(memory.device_write(layout::gpa(3), &[1]), Some(()));
        assert!(memory.offence().unwrap().contains("no entry"));
    }

    #[test]
    fn an_access_to_a_page_that_is_named_in_memory_is_no_offence() {
        let mut memory = Memory::default();
        memory.put(5, 0, layout::gpa(3) as u32 | 3);
        assert_eq!(memory.device_write(layout::gpa(3), &[1]), Some(()));
        assert_eq!(memory.offence(), None);
    }

    #[test]
    fn an_access_to_the_page_behind_one_that_was_given_is_an_offence() {
        let mut memory = Memory::default();
        memory.note_entry(ggtt::pte(layout::gpa(3)) as u32);
        let _ = memory.device_read(layout::gpa(3) + 0x1000, &mut [0; 4]);
        assert!(memory.offence().unwrap().contains("no entry"));
    }

    #[test]
    fn an_access_over_the_end_of_a_page_is_an_offence() {
        let mut memory = Memory::default();
        memory.note_entry(ggtt::pte(layout::gpa(3)) as u32);
        let _ = memory.device_read(layout::gpa(3) + 0xffe, &mut [0; 4]);
        assert!(memory.offence().unwrap().contains("crosses"));
    }

    #[test]
    fn an_access_outside_is_refused_at_both_ends_and_at_the_end_of_all_addresses() {
        let mut memory = Memory::default();
        for gpa in [0, layout::BASE - 4, layout::gpa(layout::PAGES), u64::MAX - 4] {
            assert_eq!(memory.device_read(gpa, &mut [0; 4]), None, "{gpa:#x}");
        }
        assert_eq!(memory.device_read(u64::MAX, &mut [0; 4]), None);
    }
}
