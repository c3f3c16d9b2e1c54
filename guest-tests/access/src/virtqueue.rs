//! The driver's side of a split virtqueue (virtio 1.3, §2.7), for both ways to the device.
//!
//! Everything that steers this side (free descriptors, chain links, what is outstanding) is kept in private
//! memory: the ring itself is written and never believed. Nothing allocates after [`VirtQueue::new`].

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use execlab_driver::bus::Dma as _;

use crate::Error;
use crate::memory::{PAGE, Pages, SharedMemory};

/// VIRTQ_DESC_F_NEXT: the chain goes on.
const DESC_NEXT: u16 = 1;
/// VIRTQ_DESC_F_WRITE: the device writes, else it reads.
const DESC_WRITE: u16 = 2;
/// VIRTQ_USED_F_NO_NOTIFY and VIRTQ_AVAIL_F_NO_INTERRUPT, bit 0 of either ring's flags.
const QUIET: u16 = 1;

/// Offset of `flags` in both rings.
const FLAGS: usize = 0;
/// Offset of `idx` in both rings.
const INDEX: usize = 2;
/// Offset of the first element in both rings.
const RING: usize = 4;

/// A piece of memory of one chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Address as the device sees it.
    pub addr: u64,
    /// Length in bytes.
    pub len: u32,
    /// The device writes it, else it reads it.
    pub writable: bool,
}

/// A chain that the device has handed back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Used {
    /// First descriptor of the chain; free again.
    pub head: u16,
    /// Bytes that the device says it wrote.
    pub len: u32,
}

/// The device wrote something into the used ring that no device may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RingError {
    /// More chains handed back than were outstanding.
    #[error("used index {index} is more than the ring size ahead of {seen}")]
    Index { index: u16, seen: u16 },
    /// A chain handed back that was not outstanding.
    #[error("used entry names descriptor {id}, which heads no outstanding chain")]
    Id { id: u32 },
}

/// One split virtqueue, driver's side.
#[derive(Debug)]
pub(crate) struct VirtQueue {
    size: u16,
    event_idx: bool,
    /// Descriptor table, available ring, used ring: a page each.
    table: Pages,
    avail: Pages,
    used: Pages,
    /// Free descriptors: the first `free_len` entries.
    free: Box<[u16]>,
    free_len: u16,
    /// Descriptor that follows in the chain.
    next: Box<[u16]>,
    /// Length in descriptors of the outstanding chain that starts here, else 0.
    outstanding: Box<[u16]>,
    next_avail: u16,
    published: u16,
    last_used: u16,
}

impl VirtQueue {
    /// A queue of `size` descriptors (a power of two, at most 256, so that each part fits a page), with
    /// interrupts off.
    pub(crate) fn new(memory: &Arc<SharedMemory>, size: u16, event_idx: bool) -> Result<Self, Error> {
        debug_assert!(size.is_power_of_two() && usize::from(size) * 16 <= PAGE);
        let queue = Self {
            size,
            event_idx,
            table: memory.alloc(1)?,
            avail: memory.alloc(1)?,
            used: memory.alloc(1)?,
            free: (0..size).rev().collect(),
            free_len: size,
            next: vec![0; usize::from(size)].into(),
            outstanding: vec![0; usize::from(size)].into(),
            next_avail: 0,
            published: 0,
            last_used: 0,
        };
        queue.interrupts_off();
        Ok(queue)
    }

    /// Number of descriptors.
    pub(crate) fn size(&self) -> u16 {
        self.size
    }

    /// Descriptor table, available ring and used ring.
    pub(crate) fn parts(&self) -> [&Pages; 3] {
        [&self.table, &self.avail, &self.used]
    }

    /// The used index up to which this side has looked.
    pub(crate) fn last_used(&self) -> u16 {
        self.last_used
    }

    /// Whether nothing is outstanding.
    pub(crate) fn is_idle(&self) -> bool {
        self.free_len == self.size
    }

    /// Chains queued but not yet published.
    pub(crate) fn unpublished(&self) -> u16 {
        self.next_avail.wrapping_sub(self.published)
    }

    /// A free descriptor, now the caller's to [`post`](Self::post).
    pub(crate) fn reserve(&mut self) -> Option<u16> {
        self.free_len = self.free_len.checked_sub(1)?;
        Some(self.free[usize::from(self.free_len)])
    }

    /// Queues a chain of reserved descriptors; the device sees it at the next [`publish`](Self::publish).
    pub(crate) fn post(&mut self, chain: &[(u16, Segment)]) {
        let Some(&(head, _)) = chain.first() else { return };
        for (at, &(id, segment)) in chain.iter().enumerate() {
            let next = chain.get(at + 1).map(|(next, _)| *next);
            let flags = if segment.writable { DESC_WRITE } else { 0 } | next.map_or(0, |_| DESC_NEXT);
            let tail =
                u64::from(segment.len) | (u64::from(flags) << 32) | (u64::from(next.unwrap_or(0)) << 48);
            self.table.store64(16 * usize::from(id), segment.addr);
            self.table.store64(16 * usize::from(id) + 8, tail);
            self.next[usize::from(id)] = next.unwrap_or(0);
        }
        self.outstanding[usize::from(head)] = chain.len() as u16;
        let slot = usize::from(self.next_avail % self.size);
        self.avail.store16(RING + 2 * slot, head, Ordering::Relaxed);
        self.next_avail = self.next_avail.wrapping_add(1);
    }

    /// Shows the device every chain queued so far. True when the device asks for a notification; a device that
    /// polls never does.
    pub(crate) fn publish(&mut self) -> bool {
        let (old, new) = (self.published, self.next_avail);
        if old == new {
            return false;
        }
        self.avail.store16(INDEX, new, Ordering::Release);
        self.published = new;
        // The index must be visible before the device's wish is read, or both sides may go to sleep
        // (virtio 1.3, §2.7.13.4.1).
        fence(Ordering::SeqCst);
        if self.event_idx {
            let avail_event = RING + 8 * usize::from(self.size);
            need_event(self.used.load16(avail_event, Ordering::Relaxed), new, old)
        } else {
            self.used.load16(FLAGS, Ordering::Relaxed) & QUIET == 0
        }
    }

    /// Whether the device has handed back a chain that was not taken yet.
    pub(crate) fn has_used(&self) -> bool {
        used_index(&self.used) != self.last_used
    }

    /// The next chain that the device has handed back; its descriptors are free again.
    pub(crate) fn take_used(&mut self) -> Result<Option<Used>, RingError> {
        let index = used_index(&self.used);
        let seen = self.last_used;
        if index == seen {
            return Ok(None);
        }
        if index.wrapping_sub(seen) > self.size {
            return Err(RingError::Index { index, seen });
        }
        let slot = RING + 8 * usize::from(seen % self.size);
        let (id, len) = (self.used.read32(slot), self.used.read32(slot + 4));
        let head = u16::try_from(id).ok().filter(|head| *head < self.size).ok_or(RingError::Id { id })?;
        let length = std::mem::take(&mut self.outstanding[usize::from(head)]);
        if length == 0 {
            return Err(RingError::Id { id });
        }
        // Last descriptor first, so that the next chain of this length gets the same head.
        self.free_chain(head, length);
        self.last_used = seen.wrapping_add(1);
        Ok(Some(Used { head, len }))
    }

    fn free_chain(&mut self, head: u16, length: u16) {
        let end = self.free_len + length;
        let mut id = head;
        for at in (self.free_len..end).rev() {
            self.free[usize::from(at)] = id;
            id = self.next[usize::from(id)];
        }
        self.free_len = end;
    }

    /// Asks for an interrupt with the next chain handed back. True when one is there already, so that no
    /// interrupt may come for it.
    pub(crate) fn interrupts_on(&self) -> bool {
        if self.event_idx {
            self.avail.store16(self.used_event(), self.last_used, Ordering::Relaxed);
        } else {
            self.avail.store16(FLAGS, 0, Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
        self.has_used()
    }

    /// Asks for no interrupts. A hint: one may still come.
    pub(crate) fn interrupts_off(&self) {
        if self.event_idx {
            // The index just passed: the device comes by it again after 65535 chains.
            self.avail.store16(self.used_event(), self.last_used.wrapping_sub(1), Ordering::Relaxed);
        } else {
            self.avail.store16(FLAGS, QUIET, Ordering::Relaxed);
        }
    }

    fn used_event(&self) -> usize {
        RING + 2 * usize::from(self.size)
    }
}

/// The used ring's index, with everything the device did before it.
pub(crate) fn used_index(used: &Pages) -> u16 {
    used.load16(INDEX, Ordering::Acquire)
}

/// `vring_need_event` (`include/uapi/linux/virtio_ring.h`): the index went past `event` on its way from `old` to `new`.
fn need_event(event: u16, new: u16, old: u16) -> bool {
    new.wrapping_sub(event).wrapping_sub(1) < new.wrapping_sub(old)
}

#[cfg(test)]
#[path = "virtqueue_tests.rs"]
pub(crate) mod tests;
