//! Memory that the simulated driver and the simulated device share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use atomic_refcell::AtomicRefCell;
use bytemuck::allocation::zeroed_slice_box;
use execlab_abi::PAGE_SIZE;
use execlab_driver::bus::Dma;
use execlab_model::BadAddress;

/// Bytes of a page.
const PAGE: usize = PAGE_SIZE as usize;
/// Bytes of a word.
const WORD: usize = size_of::<u32>();

/// The memory: dwords, so that every aligned access of the driver is one load or store. They are atomic for the type
/// system's sake; the simulation has one thread, and the order is that of its virtual time.
pub(super) struct Memory {
    words: Box<[AtomicU32]>,
    free: AtomicRefCell<Free>,
}

/// What is not given out: everything from a page on, and blocks that came back, by length.
#[derive(Default)]
struct Free {
    from: usize,
    back: BTreeMap<usize, Vec<usize>>,
}

/// The simulated memory is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no {pages} pages are left of the {total} that the simulated machine shares with its device")]
pub struct OutOfMemory {
    /// Pages asked for.
    pub pages: usize,
    /// Pages in all.
    pub total: usize,
}

impl Memory {
    /// Zeroed memory of `pages` pages. Page 0 is never given out, so that an address of 0 is always a mistake.
    pub(super) fn new(pages: usize) -> Arc<Self> {
        let free = Free { from: 1, back: BTreeMap::new() };
        Arc::new(Self { words: zeroed_slice_box(pages * PAGE / WORD), free: AtomicRefCell::new(free) })
    }

    /// Zeroed pages in a row.
    pub(super) fn alloc(self: &Arc<Self>, pages: usize) -> Result<Pages, OutOfMemory> {
        let total = self.words.len() * WORD / PAGE;
        let mut free = self.free.borrow_mut();
        let first = match free.back.get_mut(&pages).and_then(Vec::pop) {
            Some(first) => {
                let words = first * PAGE / WORD..(first + pages) * PAGE / WORD;
                self.words[words].iter().for_each(|word| word.store(0, Relaxed));
                first
            }
            None if free.from + pages <= total => {
                free.from += pages;
                free.from - pages
            }
            None => return Err(OutOfMemory { pages, total }),
        };
        Ok(Pages { memory: Arc::clone(self), first, pages })
    }

    /// The word that holds byte `gpa`.
    fn word(&self, gpa: u64) -> Result<&AtomicU32, BadAddress> {
        let index = usize::try_from(gpa / WORD as u64).map_err(|_| BadAddress)?;
        self.words.get(index).ok_or(BadAddress)
    }

    pub(super) fn load32(&self, gpa: u64) -> Result<u32, BadAddress> {
        Ok(self.word(gpa)?.load(Relaxed))
    }

    pub(super) fn store32(&self, gpa: u64, value: u32) -> Result<(), BadAddress> {
        self.word(gpa)?.store(value, Relaxed);
        Ok(())
    }

    /// Copies bytes out, wherever they begin and end.
    pub(super) fn read(&self, gpa: u64, data: &mut [u8]) -> Result<(), BadAddress> {
        if gpa.is_multiple_of(WORD as u64)
            && let (words, []) = data.as_chunks_mut::<WORD>()
        {
            for (from, to) in self.words(gpa, words.len())?.iter().zip(words) {
                *to = from.load(Relaxed).to_le_bytes();
            }
            return Ok(());
        }
        for (at, byte) in (0..).zip(data) {
            let at = gpa.checked_add(at).ok_or(BadAddress)?;
            *byte = self.load32(at)?.to_le_bytes()[(at % WORD as u64) as usize];
        }
        Ok(())
    }

    /// Copies bytes in, wherever they begin and end.
    pub(super) fn write(&self, gpa: u64, data: &[u8]) -> Result<(), BadAddress> {
        if gpa.is_multiple_of(WORD as u64)
            && let (words, []) = data.as_chunks::<WORD>()
        {
            for (to, from) in self.words(gpa, words.len())?.iter().zip(words) {
                to.store(u32::from_le_bytes(*from), Relaxed);
            }
            return Ok(());
        }
        for (at, byte) in (0..).zip(data) {
            let at = gpa.checked_add(at).ok_or(BadAddress)?;
            let mut bytes = self.load32(at)?.to_le_bytes();
            bytes[(at % WORD as u64) as usize] = *byte;
            self.store32(at, u32::from_le_bytes(bytes))?;
        }
        Ok(())
    }

    /// `count` words from the one that holds byte `gpa`.
    fn words(&self, gpa: u64, count: usize) -> Result<&[AtomicU32], BadAddress> {
        let first = usize::try_from(gpa / WORD as u64).map_err(|_| BadAddress)?;
        let end = first.checked_add(count).ok_or(BadAddress)?;
        self.words.get(first..end).ok_or(BadAddress)
    }
}

/// Pages in a row; they go back when dropped. Reset the device before: it must not write to what another driver gets.
pub struct Pages {
    memory: Arc<Memory>,
    first: usize,
    pages: usize,
}

impl Pages {
    /// The word at byte `offset`; an offset outside is a bug of the driver.
    fn word(&self, offset: usize) -> &AtomicU32 {
        assert!(
            offset < self.pages * PAGE && offset.is_multiple_of(WORD),
            "offset {offset:#x} of {} pages",
            self.pages
        );
        &self.memory.words[(self.first * PAGE + offset) / WORD]
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.memory.free.borrow_mut().back.entry(self.pages).or_default().push(self.first);
    }
}

impl std::fmt::Debug for Pages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pages").field("first", &self.first).field("pages", &self.pages).finish()
    }
}

impl Dma for Pages {
    fn pages(&self) -> usize {
        self.pages
    }
    fn page_addr(&self, page: usize) -> u64 {
        ((self.first + page) * PAGE) as u64
    }
    fn read32(&self, offset: usize) -> u32 {
        self.word(offset).load(Relaxed)
    }
    fn write32(&self, offset: usize, value: u32) {
        self.word(offset).store(value, Relaxed);
    }
    fn load32_acquire(&self, offset: usize) -> u32 {
        self.read32(offset)
    }
    fn store32_release(&self, offset: usize, value: u32) {
        self.write32(offset, value);
    }
    fn load64_acquire(&self, offset: usize) -> u64 {
        u64::from(self.read32(offset)) | u64::from(self.read32(offset + WORD)) << 32
    }
    fn store64_release(&self, offset: usize, value: u64) {
        self.write32(offset, value as u32);
        self.write32(offset + WORD, (value >> 32) as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_come_zeroed_go_back_and_run_out() {
        let memory = Memory::new(4);
        let two = memory.alloc(2).unwrap();
        assert_eq!(two.page_addr(1), 2 * PAGE_SIZE);
        two.store64_release(8, 0x0123_4567_89ab_cdef);
        assert_eq!((two.read32(8), two.load64_acquire(8)), (0x89ab_cdef, 0x0123_4567_89ab_cdef));
        assert_eq!(memory.alloc(2).unwrap_err(), OutOfMemory { pages: 2, total: 4 });
        drop(two);
        assert_eq!(memory.alloc(2).unwrap().load64_acquire(8), 0);
    }

    #[test]
    fn bytes_are_found_wherever_they_lie_and_nothing_outside() {
        let memory = Memory::new(1);
        memory.write(5, b"hello").unwrap();
        let mut back = [0; 7];
        memory.read(4, &mut back).unwrap();
        assert_eq!(&back, b"\0hello\0");
        let mut aligned = [0; 8];
        memory.read(4, &mut aligned).unwrap();
        assert_eq!(&aligned, b"\0hello\0\0");
        memory.write(8, b"LP!!").unwrap();
        memory.read(4, &mut aligned).unwrap();
        assert_eq!(&aligned, b"\0helLP!!");
        memory.write(8, b"lo\0\0").unwrap();
        assert!(memory.read(4092, &mut [0; 8]).is_err());
        assert_eq!(memory.load32(8).unwrap(), u32::from_le_bytes(*b"lo\0\0"));
        assert!(memory.read(4093, &mut [0; 4]).is_err());
        assert!(memory.write(u64::MAX, &[0]).is_err());
    }
}
