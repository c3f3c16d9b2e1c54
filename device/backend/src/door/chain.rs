//! Reading a descriptor chain. Pure: nothing here touches the ring, and guest memory only through a closure or
//! after a check.

use virtio_queue::desc::split::Descriptor;
use vm_memory::{GuestAddress, GuestMemoryMmap};

use crate::memory;

/// Longest chain taken, in descriptors. Any real request fits a few; every chain that is served is copied with room for so
/// many.
pub const MAX_SEGMENTS: usize = 16;
/// Most bytes taken in one chain, in either direction: 1 MiB, enough posted writes to map 256 MiB of GGTT. It
/// bounds how long one chain can keep the device.
pub const MAX_BYTES: u64 = 1 << 20;

/// What is wrong with a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[repr(u32)]
pub enum ChainError {
    /// No descriptor could be read: the head's index is beyond the table.
    #[error("the chain's head lies outside the descriptor table")]
    Empty = 1,
    /// The last descriptor that could be read says that another follows: a loop, or an index beyond the table.
    #[error("the chain loops or leaves the descriptor table")]
    Endless = 2,
    /// More than [`MAX_SEGMENTS`] descriptors.
    #[error("the chain has more than {MAX_SEGMENTS} descriptors")]
    TooManySegments = 3,
    /// More than [`MAX_BYTES`] bytes.
    #[error("the chain has more than {MAX_BYTES} bytes")]
    TooManyBytes = 4,
    /// A device-readable descriptor behind a device-writable one.
    #[error("a readable descriptor follows a writable one")]
    ReadableAfterWritable = 5,
    /// A descriptor names addresses that are not guest memory.
    #[error("a descriptor lies outside guest memory")]
    NotMemory = 6,
    /// A device-writable descriptor where the queue has none.
    #[error("a writable descriptor on a queue that only carries data to the device")]
    UnexpectedWritable = 7,
    /// A device-readable descriptor where the queue has none.
    #[error("a readable descriptor on a queue that only carries data from the device")]
    UnexpectedReadable = 8,
    /// A length that the queue's format does not allow.
    #[error("the chain's length does not fit what the queue carries")]
    WrongSize = 9,
    /// The ring itself is impossible: its index moved by more than its size, or it lies outside guest memory.
    #[error("the ring is impossible")]
    BadRing = 10,
}

/// One descriptor's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Segment {
    address: u64,
    length: u32,
}

/// Where a chain's bytes are: readable segments first, then writable ones. Made without allocation.
#[derive(Debug, Clone)]
pub struct Chain {
    segments: [Segment; MAX_SEGMENTS],
    readable: usize,
    total: usize,
    readable_bytes: u64,
    writable_bytes: u64,
}

impl Chain {
    /// Collects `descriptors`, as [`virtio_queue::DescriptorChain`] yields them: it stops where a chain ends,
    /// loops or leaves the table.
    ///
    /// # Errors
    /// Any [`ChainError`] that needs neither the queue's format nor guest memory.
    pub fn collect(descriptors: impl Iterator<Item = Descriptor>) -> Result<Self, ChainError> {
        let mut chain = Self {
            segments: [Segment::default(); MAX_SEGMENTS],
            readable: 0,
            total: 0,
            readable_bytes: 0,
            writable_bytes: 0,
        };
        let mut more = None;
        for descriptor in descriptors {
            more = Some(descriptor.has_next());
            chain.push(descriptor)?;
        }
        match more {
            None => Err(ChainError::Empty),
            Some(true) => Err(ChainError::Endless),
            Some(false) => Ok(chain),
        }
    }

    fn push(&mut self, descriptor: Descriptor) -> Result<(), ChainError> {
        let slot = self.segments.get_mut(self.total).ok_or(ChainError::TooManySegments)?;
        *slot = Segment { address: descriptor.addr().0, length: descriptor.len() };
        self.total += 1;
        if descriptor.is_write_only() {
            self.writable_bytes += u64::from(descriptor.len());
        } else if self.readable + 1 == self.total {
            self.readable += 1;
            self.readable_bytes += u64::from(descriptor.len());
        } else {
            return Err(ChainError::ReadableAfterWritable);
        }
        if self.readable_bytes > MAX_BYTES || self.writable_bytes > MAX_BYTES {
            return Err(ChainError::TooManyBytes);
        }
        Ok(())
    }

    /// Bytes that the device may read.
    #[must_use]
    pub const fn readable_bytes(&self) -> u64 {
        self.readable_bytes
    }

    /// Bytes that the device may write.
    #[must_use]
    pub const fn writable_bytes(&self) -> u64 {
        self.writable_bytes
    }

    /// Whether every byte is guest memory.
    ///
    /// # Errors
    /// [`ChainError::NotMemory`].
    pub fn check(&self, memory: &GuestMemoryMmap) -> Result<(), ChainError> {
        let inside = |s: &Segment| memory::contains(memory, GuestAddress(s.address), u64::from(s.length));
        if self.segments[..self.total].iter().all(inside) { Ok(()) } else { Err(ChainError::NotMemory) }
    }

    /// A reader of the readable bytes.
    #[must_use]
    pub fn reader<'a>(&'a self, memory: &'a GuestMemoryMmap) -> Cursor<'a> {
        Cursor { segments: &self.segments[..self.readable], offset: 0, memory }
    }

    /// A writer of the writable bytes.
    #[must_use]
    pub fn writer<'a>(&'a self, memory: &'a GuestMemoryMmap) -> Cursor<'a> {
        Cursor { segments: &self.segments[self.readable..self.total], offset: 0, memory }
    }
}

/// Walks over segments: a message may be cut anywhere (virtio 1.2, 2.6.4 "Message Framing").
#[derive(Debug)]
pub struct Cursor<'a> {
    segments: &'a [Segment],
    offset: u32,
    memory: &'a GuestMemoryMmap,
}

impl Cursor<'_> {
    /// Reads up to `data.len()` bytes; fewer at the end. Gives how many.
    ///
    /// # Errors
    /// [`ChainError::NotMemory`].
    pub fn read(&mut self, data: &mut [u8]) -> Result<usize, ChainError> {
        let mut done = 0;
        while let Some((address, length)) = self.next_piece(data.len() - done) {
            let piece = &mut data[done..done + length];
            memory::read(self.memory, address, piece).map_err(|_| ChainError::NotMemory)?;
            done += length;
        }
        Ok(done)
    }

    /// Writes up to `data.len()` bytes; fewer at the end. Gives how many.
    ///
    /// # Errors
    /// [`ChainError::NotMemory`].
    pub fn write(&mut self, data: &[u8]) -> Result<usize, ChainError> {
        let mut done = 0;
        while let Some((address, length)) = self.next_piece(data.len() - done) {
            let piece = &data[done..done + length];
            memory::write(self.memory, address, piece).map_err(|_| ChainError::NotMemory)?;
            done += length;
        }
        Ok(done)
    }

    /// The next contiguous piece of at most `most` bytes.
    fn next_piece(&mut self, most: usize) -> Option<(GuestAddress, usize)> {
        if most == 0 {
            return None;
        }
        loop {
            let (first, rest) = self.segments.split_first()?;
            let left = first.length - self.offset;
            if left == 0 {
                self.segments = rest;
                self.offset = 0;
                continue;
            }
            let length = left.min(u32::try_from(most).unwrap_or(u32::MAX));
            let address = GuestAddress(first.address.checked_add(u64::from(self.offset))?);
            self.offset += length;
            return Some((address, length as usize));
        }
    }
}

#[cfg(test)]
mod tests {
    use vm_memory::Bytes as _;

    use super::*;

    const NEXT: u16 = 1;
    const WRITE: u16 = 2;

    fn collect(descriptors: &[(u64, u32, u16)]) -> Result<Chain, ChainError> {
        Chain::collect(
            descriptors.iter().map(|(address, length, flags)| Descriptor::new(*address, *length, *flags, 0)),
        )
    }

    fn memory() -> GuestMemoryMmap {
        GuestMemoryMmap::from_ranges(&[(GuestAddress(0x1000), 0x1000)]).unwrap()
    }

    #[test]
    fn a_message_cut_in_odd_places_is_read_and_written_whole() {
        let memory = memory();
        memory.write_slice(b"hello, world", GuestAddress(0x1000)).unwrap();
        let chain = collect(&[
            (0x1000, 3, NEXT),
            (0x1800, 0, NEXT),
            (0x1003, 9, NEXT),
            (0x1100, 1, NEXT | WRITE),
            (0x1200, 8, WRITE),
        ])
        .unwrap();
        assert_eq!((chain.readable_bytes(), chain.writable_bytes()), (12, 9));
        chain.check(&memory).unwrap();
        let mut reader = chain.reader(&memory);
        let (mut first, mut rest) = ([0; 5], [0; 20]);
        assert_eq!(reader.read(&mut first), Ok(5));
        assert_eq!(reader.read(&mut rest), Ok(7));
        assert_eq!(reader.read(&mut rest), Ok(0));
        assert_eq!((&first[..], &rest[..7]), (&b"hello"[..], &b", world"[..]));
        assert_eq!(chain.writer(&memory).write(b"0123456789"), Ok(9));
        assert_eq!(memory.read_obj::<u8>(GuestAddress(0x1100)).unwrap(), b'0');
        assert_eq!(memory.read_obj::<[u8; 8]>(GuestAddress(0x1200)).unwrap(), *b"12345678");
    }

    #[test]
    fn chains_without_beginning_or_end_are_told_apart() {
        assert_eq!(collect(&[]).unwrap_err(), ChainError::Empty);
        assert_eq!(collect(&[(0x1000, 8, NEXT)]).unwrap_err(), ChainError::Endless);
        assert_eq!(
            collect(&[(0x1000, 8, NEXT | WRITE), (0x1000, 8, 0)]).unwrap_err(),
            ChainError::ReadableAfterWritable
        );
    }

    #[test]
    fn the_limits_are_taken_and_one_more_is_not() {
        let full = vec![(0x1000, 8, NEXT); MAX_SEGMENTS - 1];
        let with = |more: &[(u64, u32, u16)]| collect(&[&full[..], more].concat());
        assert!(with(&[(0x1000, 8, 0)]).is_ok());
        assert_eq!(with(&[(0x1000, 8, NEXT), (0x1000, 8, 0)]).unwrap_err(), ChainError::TooManySegments);
        let most = MAX_BYTES as u32;
        assert!(collect(&[(0, most, NEXT), (0, most, WRITE)]).is_ok());
        assert_eq!(collect(&[(0, most + 1, 0)]).unwrap_err(), ChainError::TooManyBytes);
        assert_eq!(collect(&[(0, most, NEXT | WRITE), (0, 1, WRITE)]).unwrap_err(), ChainError::TooManyBytes);
    }

    #[test]
    fn a_chain_outside_memory_fails_the_check() {
        let memory = memory();
        for (address, length) in [(0x1fff, 2), (0xfff, 2), (u64::MAX, 1), (u64::MAX - 1, 8)] {
            assert_eq!(collect(&[(address, length, 0)]).unwrap().check(&memory), Err(ChainError::NotMemory));
        }
    }
}
