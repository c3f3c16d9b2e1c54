//! The driver's side of a split virtqueue, with every freedom to do it wrong.

use std::os::fd::AsRawFd as _;
use std::sync::atomic::{Ordering, fence};

use execlab_abi::wire::QUEUE_SIZE;
use vm_memory::{Bytes as _, GuestAddress, GuestMemoryMmap};
use vmm_sys_util::epoll::{ControlOperation, Epoll, EpollEvent, EventSet};
use vmm_sys_util::eventfd::EventFd;

use super::{BASE, event};

pub const NEXT: u16 = 1;
pub const WRITE: u16 = 2;

/// One descriptor's worth of memory.
#[derive(Clone, Copy)]
pub struct Buffer {
    pub address: u64,
    pub length: u32,
    pub flags: u16,
    /// Instead of the next buffer's index.
    pub next: Option<u16>,
}

impl Buffer {
    pub fn readable(address: u64, length: u32) -> Self {
        Self { address, length, flags: 0, next: None }
    }
    pub fn writable(address: u64, length: u32) -> Self {
        Self { address, length, flags: WRITE, next: None }
    }
    /// Says that descriptor `index` follows.
    pub fn then(self, index: u16) -> Self {
        Self { flags: self.flags | NEXT, next: Some(index), ..self }
    }
}

pub struct Ring {
    queue: u16,
    pub event_idx: bool,
    pub kick: EventFd,
    pub call: EventFd,
    /// Next entry of the available ring.
    pub next_available: u16,
    pub next_used: u16,
    next_descriptor: u16,
    /// Kicks that the device asked for.
    pub kicks: u32,
}

impl Ring {
    pub fn new(queue: u16, event_idx: bool) -> Self {
        Self {
            queue,
            event_idx,
            kick: event(),
            call: event(),
            next_available: 0,
            next_used: 0,
            next_descriptor: 0,
            kicks: 0,
        }
    }

    pub fn descriptors(&self) -> u64 {
        BASE + u64::from(self.queue) * 0x4000
    }
    pub fn available(&self) -> u64 {
        self.descriptors() + 0x1000
    }
    pub fn used(&self) -> u64 {
        self.descriptors() + 0x2000
    }

    pub fn clear(&self, memory: &GuestMemoryMmap) {
        memory.write_slice(&[0; 0x4000], GuestAddress(self.descriptors())).unwrap();
    }

    /// Writes one descriptor.
    pub fn describe(&self, memory: &GuestMemoryMmap, index: u16, buffer: Buffer) {
        let at = self.descriptors() + 16 * u64::from(index);
        memory.write_obj(buffer.address, GuestAddress(at)).unwrap();
        memory.write_obj(buffer.length, GuestAddress(at + 8)).unwrap();
        memory.write_obj(buffer.flags, GuestAddress(at + 12)).unwrap();
        memory.write_obj(buffer.next.unwrap_or(0), GuestAddress(at + 14)).unwrap();
    }

    /// Puts a chain on the ring; gives its head.
    pub fn offer(&mut self, memory: &GuestMemoryMmap, buffers: &[Buffer]) -> u16 {
        let head = self.next_descriptor;
        for (at, buffer) in (0_u16..).zip(buffers) {
            let index = (head + at) % QUEUE_SIZE;
            let last = usize::from(at) + 1 == buffers.len();
            let buffer =
                if last || buffer.next.is_some() { *buffer } else { buffer.then((index + 1) % QUEUE_SIZE) };
            self.describe(memory, index, buffer);
        }
        self.next_descriptor = (head + buffers.len() as u16) % QUEUE_SIZE;
        self.offer_head(memory, head);
        head
    }

    /// Puts a head on the ring, whatever lies there.
    pub fn offer_head(&mut self, memory: &GuestMemoryMmap, head: u16) {
        let slot = u64::from(self.next_available % QUEUE_SIZE);
        memory.write_obj(head, GuestAddress(self.available() + 4 + 2 * slot)).unwrap();
        let old = self.next_available;
        self.next_available = old.wrapping_add(1);
        self.publish(memory, self.next_available);
        if self.wants_kick(memory, old) {
            self.kicks += 1;
            self.kick.write(1).unwrap();
        }
    }

    /// Stores the available index.
    pub fn publish(&self, memory: &GuestMemoryMmap, index: u16) {
        memory.store(index, GuestAddress(self.available() + 2), Ordering::Release).unwrap();
        fence(Ordering::SeqCst);
    }

    /// Whether the device has read every kick.
    pub fn kicks_are_read(&self) -> bool {
        let look = Epoll::new().unwrap();
        look.ctl(ControlOperation::Add, self.kick.as_raw_fd(), EpollEvent::new(EventSet::IN, 0)).unwrap();
        look.wait(0, &mut [EpollEvent::default()]).unwrap() == 0
    }

    fn wants_kick(&self, memory: &GuestMemoryMmap, old: u16) -> bool {
        if self.event_idx {
            let at = self.used() + 4 + 8 * u64::from(QUEUE_SIZE);
            let event: u16 = memory.load(GuestAddress(at), Ordering::Acquire).unwrap();
            let new = self.next_available;
            new.wrapping_sub(event).wrapping_sub(1) < new.wrapping_sub(old)
        } else {
            let flags: u16 = memory.load(GuestAddress(self.used()), Ordering::Acquire).unwrap();
            flags & 1 == 0
        }
    }

    /// Asks not to be notified (without EVENT_IDX).
    pub fn no_interrupt(&self, memory: &GuestMemoryMmap) {
        memory.store(1_u16, GuestAddress(self.available()), Ordering::Release).unwrap();
    }

    /// The next used chain.
    pub fn take_used(&mut self, memory: &GuestMemoryMmap) -> Option<(u16, u32)> {
        let index: u16 = memory.load(GuestAddress(self.used() + 2), Ordering::Acquire).unwrap();
        if index == self.next_used {
            return None;
        }
        let at = self.used() + 4 + 8 * u64::from(self.next_used % QUEUE_SIZE);
        let head: u32 = memory.read_obj(GuestAddress(at)).unwrap();
        let length: u32 = memory.read_obj(GuestAddress(at + 4)).unwrap();
        self.next_used = self.next_used.wrapping_add(1);
        if self.event_idx {
            // Be notified of the next one.
            memory
                .store(
                    self.next_used,
                    GuestAddress(self.available() + 4 + 2 * u64::from(QUEUE_SIZE)),
                    Ordering::Release,
                )
                .unwrap();
        }
        Some((head as u16, length))
    }

    /// How often the device has notified since the last look.
    pub fn notifications(&self) -> u64 {
        self.call.read().unwrap_or(0)
    }
}
