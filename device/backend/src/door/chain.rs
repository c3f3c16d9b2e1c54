//! Reading a descriptor chain. Pure: nothing here touches the ring, and guest memory only through a closure or
//! after a check.

use virtio_queue::desc::split::Descriptor;
use vm_memory::{Bytes as _, GuestAddress, GuestMemoryMmap};

use crate::memory;

/// Longest chain taken, in descriptors. Any real request fits a few.
pub const MAX_SEGMENTS: usize = 64;
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
            self.memory.read_slice(piece, address).map_err(|_| ChainError::NotMemory)?;
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
            self.memory.write_slice(piece, address).map_err(|_| ChainError::NotMemory)?;
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
