//! The device process's door with a guest's rings in front of it: everything behind the vhost-user socket, in this
//! process and on this thread.

use std::time::{Duration, Instant};

use execlab_abi::irq::BANKS;
use execlab_abi::wire::{
    CONTROL_REQUEST_SIZE, CONTROL_RESPONSE_SIZE, ControlRequest, ControlResponse, IrqRecord, Op, PostedWrite,
    QUEUE_CONTROL, QUEUE_COUNT, QUEUE_IRQ, QUEUE_MMIO, QUEUE_SIZE, Status,
};
use execlab_abi::{PAGE_SIZE, lab};
use execlab_device::Settings;
use execlab_device::core::Device;
use execlab_device::door::rings::Vring;
use execlab_device::timeline::NEVER;
use execlab_profile::Profile;
use vhost_user_backend::VringT as _;
use vm_memory::{Bytes as _, GuestAddress, GuestMemoryAtomic, GuestMemoryMmap};

use super::bus::Bus;
use super::layout;

/// First page of the rings: for each queue one for descriptors, one for available and one for used entries.
pub const RINGS: u32 = layout::PAGES;
/// First page of the buffers that chains point to.
pub const BUFFERS: u32 = RINGS + 3 * QUEUE_COUNT as u32;
/// Pages of buffers.
pub const BUFFER_PAGES: u32 = 6;
/// All pages of guest memory.
pub const PAGES: u32 = BUFFERS + BUFFER_PAGES;

/// Longest that a correct guest waits, in real time.
const PATIENCE: Duration = Duration::from_secs(5);
/// Passes after which a queue must be empty: each one takes up to a whole ring of chains.
const MAX_PASSES: u32 = 8;
/// What memory is emptied with.
static ZEROES: [u8; layout::SIZE] = [0; layout::SIZE];
/// Descriptor flag: another follows.
pub const NEXT: u16 = 1;
/// Descriptor flag: the device writes.
pub const WRITE: u16 = 2;

/// A descriptor as a guest writes it.
#[derive(Debug, Clone, Copy)]
pub struct Descriptor {
    /// Guest-physical address.
    pub address: u64,
    /// Bytes.
    pub length: u32,
    /// [`NEXT`], [`WRITE`], or whatever a hostile guest puts here.
    pub flags: u16,
    /// Index of the one that follows.
    pub next: u16,
}

/// The device, guest memory and the guest's side of the rings.
pub struct Door {
    device: Device,
    memory: GuestMemoryMmap,
    vrings: Vec<Vring>,
    available: [u16; QUEUE_COUNT as usize],
    posted: Vec<u8>,
    /// The device has a buffer for an interrupt.
    interrupt_buffer: bool,
    /// Interrupt records taken.
    interrupts: u16,
    trouble: Option<String>,
}

impl Door {
    /// A device of the profile `instant`.
    ///
    /// # Errors
    /// What the system refused.
    pub fn new() -> Result<Self, String> {
        let profile = Profile::builtin("instant").unwrap_or_default();
        let device = Device::new(Settings::new(profile)).map_err(|e| e.to_string())?;
        let size = PAGES as usize * layout::STRIDE;
        let memory =
            GuestMemoryMmap::from_ranges(&[(GuestAddress(layout::BASE), size)]).map_err(|e| e.to_string())?;
        device.lock().set_memory(std::sync::Arc::new(memory.clone()));
        let vring = |_| Vring::new(GuestMemoryAtomic::new(memory.clone()), QUEUE_SIZE);
        let vrings = (0..QUEUE_COUNT).map(vring).collect::<Result<_, _>>().map_err(|e| e.to_string())?;
        let (available, posted) = ([0; QUEUE_COUNT as usize], Vec::new());
        Ok(Self {
            device,
            memory,
            vrings,
            available,
            posted,
            interrupt_buffer: false,
            interrupts: 0,
            trouble: None,
        })
    }

    /// What has gone wrong so far that no guest may cause, if anything.
    pub fn trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }

    /// Empties rings and buffers, and stops and starts every ring, as a driver does that begins anew.
    pub fn restart_rings(&mut self, event_idx: bool) {
        self.device.lock().rings.clear();
        self.store(layout::gpa(RINGS), &ZEROES[..(PAGES - RINGS) as usize * layout::STRIDE]);
        for queue in 0..QUEUE_COUNT {
            let vring = &self.vrings[usize::from(queue)];
            let [descriptors, available, used] = Self::ring(queue);
            vring.set_enabled(false);
            vring.set_queue_ready(false);
            vring.set_queue_size(QUEUE_SIZE);
            if let Err(e) = vring.set_queue_info(descriptors, available, used) {
                self.trouble.get_or_insert_with(|| format!("queue {queue} cannot be set up: {e}"));
            }
            vring.set_queue_next_avail(0);
            vring.set_queue_next_used(0);
            vring.set_queue_event_idx(event_idx);
            vring.set_queue_ready(true);
            vring.set_enabled(true);
            self.available[usize::from(queue)] = 0;
        }
        self.posted.clear();
        (self.interrupt_buffer, self.interrupts) = (false, 0);
    }

    /// Guest-physical addresses of a queue's descriptors, available ring and used ring.
    fn ring(queue: u16) -> [u64; 3] {
        [0, 1, 2].map(|part| layout::gpa(RINGS + 3 * u32::from(queue) + part))
    }

    /// Stores bytes; outside of guest memory, it stores nothing.
    pub fn store(&self, gpa: u64, bytes: &[u8]) {
        // The guest's own mistake, if it is one.
        let _ = self.memory.write_slice(bytes, GuestAddress(gpa));
    }

    fn load<const N: usize>(&self, gpa: u64) -> [u8; N] {
        let mut bytes = [0; N];
        let _ = self.memory.read_slice(&mut bytes, GuestAddress(gpa));
        bytes
    }

    /// Writes descriptor `index` of a queue.
    pub fn describe(&self, queue: u16, index: u16, descriptor: Descriptor) {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&descriptor.address.to_le_bytes());
        bytes[8..12].copy_from_slice(&descriptor.length.to_le_bytes());
        bytes[12..14].copy_from_slice(&descriptor.flags.to_le_bytes());
        bytes[14..].copy_from_slice(&descriptor.next.to_le_bytes());
        self.store(Self::ring(queue)[0] + 16 * u64::from(index), &bytes);
    }

    /// Makes a head available.
    pub fn offer(&mut self, queue: u16, head: u16) {
        let at = Self::ring(queue)[1];
        let index = &mut self.available[usize::from(queue)];
        let slot = at + 4 + 2 * u64::from(*index % QUEUE_SIZE);
        *index = index.wrapping_add(1);
        let index = *index;
        self.store(slot, &head.to_le_bytes());
        self.store(at + 2, &index.to_le_bytes());
    }

    /// Sets the available index, which need not fit what was offered.
    pub fn set_available(&mut self, queue: u16, index: u16) {
        self.available[usize::from(queue)] = index;
        self.store(Self::ring(queue)[1] + 2, &index.to_le_bytes());
    }

    /// Index that the device's next used entry will have.
    fn used(&self, queue: u16) -> u16 {
        u16::from_le_bytes(self.load(Self::ring(queue)[2] + 2))
    }

    /// Kicks a queue: the device serves it as its worker would.
    pub fn kick(&mut self, queue: u16) {
        let vring = &self.vrings[usize::from(queue)];
        let mut core = self.device.lock();
        core.rings.adopt(usize::from(queue), vring, &self.memory);
        let served = (0..MAX_PASSES).any(|_| {
            let more = core.serve(usize::from(queue));
            core.settle();
            !more
        });
        if !served {
            self.trouble.get_or_insert_with(|| format!("queue {queue} is never empty"));
        }
    }

    /// Code of the last malformed chain, or 0.
    pub fn chain_error(&self) -> u32 {
        let world = &mut self.device.lock().world;
        match world.read(lab::ERROR_CODE) == lab::Violation::BadDescriptorChain as u32 {
            true => world.read(lab::ERROR_WORDS + 4),
            false => 0,
        }
    }

    /// Offers one good chain and expects it back at once. Gives the number of bytes the device wrote.
    fn exchange(&mut self, queue: u16, readable: Option<(u32, u32)>, writable: Option<(u32, u32)>) -> u32 {
        let parts = [(readable, 0), (writable, WRITE)];
        let parts: Vec<_> = parts.into_iter().filter_map(|(part, flags)| Some((part?, flags))).collect();
        for (index, ((page, length), flags)) in (0..).zip(&parts) {
            let next = if usize::from(index) + 1 < parts.len() { NEXT } else { 0 };
            let address = layout::gpa(*page);
            let descriptor = Descriptor { address, length: *length, flags: flags | next, next: index + 1 };
            self.describe(queue, index, descriptor);
        }
        let before = self.used(queue);
        self.offer(queue, 0);
        self.kick(queue);
        if self.used(queue) != before.wrapping_add(1) {
            self.trouble.get_or_insert_with(|| format!("queue {queue} does not give a good chain back"));
        }
        self.used_length(queue, before)
    }

    /// Bytes that the device says it has written, in used entry `index`.
    fn used_length(&self, queue: u16, index: u16) -> u32 {
        let entry = Self::ring(queue)[2] + 4 + 8 * u64::from(index % QUEUE_SIZE);
        u32::from_le_bytes(self.load(entry + 4))
    }

    /// A correct control request; gives the payload of the response.
    fn control(&mut self, op: Op, payload: &[u8]) -> [u8; 8] {
        let request = ControlRequest { op: op as u32, len: payload.len() as u32, cookie: 0xc00c1e };
        self.store(layout::gpa(BUFFERS), &request.to_bytes());
        self.store(layout::gpa(BUFFERS) + CONTROL_REQUEST_SIZE as u64, payload);
        let length = (CONTROL_REQUEST_SIZE + payload.len()) as u32;
        self.exchange(QUEUE_CONTROL, Some((BUFFERS, length)), Some((BUFFERS + 1, PAGE_SIZE as u32)));
        let response = ControlResponse::from_bytes(&self.load(layout::gpa(BUFFERS + 1)));
        if response.status != Status::Ok as u32 || response.cookie != request.cookie {
            self.trouble.get_or_insert_with(|| format!("{op:?} is answered with {response:?}"));
        }
        self.load(layout::gpa(BUFFERS + 1) + CONTROL_RESPONSE_SIZE as u64)
    }

    /// Has the device forget its register page.
    pub fn take_register_page(&mut self) {
        self.control(Op::SetRegisterPage, &[0; 8]);
    }

    /// Sends the collected register writes.
    fn flush(&mut self) {
        for chunk in std::mem::take(&mut self.posted).chunks(PAGE_SIZE as usize) {
            self.store(layout::gpa(BUFFERS + 2), chunk);
            self.exchange(QUEUE_MMIO, Some((BUFFERS + 2, chunk.len() as u32)), None);
        }
    }
}

impl Bus for Door {
    fn write(&mut self, offset: u32, value: u32) {
        self.posted.extend(PostedWrite { offset, value }.to_bytes());
    }

    fn read(&mut self, offset: u32) -> u32 {
        self.flush();
        let [a, b, c, d, ..] = self.control(Op::ReadRegister, &offset.to_le_bytes());
        u32::from_le_bytes([a, b, c, d])
    }

    fn put(&mut self, page: u32, at: u32, value: u32) {
        self.store(layout::gpa(page) + u64::from(at), &value.to_le_bytes());
    }

    fn get(&self, page: u32, at: u32) -> u32 {
        u32::from_le_bytes(self.load(layout::gpa(page) + u64::from(at)))
    }

    fn finish(&mut self) -> Result<(), String> {
        self.flush();
        let begin = Instant::now();
        loop {
            let mut core = self.device.lock();
            core.settle();
            if core.world.next_deadline() == NEVER {
                return Ok(());
            }
            if begin.elapsed() > PATIENCE {
                return Err(format!("still busy after {PATIENCE:?}"));
            }
        }
    }

    fn take_interrupts(&mut self) -> [u32; BANKS] {
        self.flush();
        let mut all = [0; BANKS];
        loop {
            if self.used(QUEUE_IRQ) == self.interrupts {
                if self.interrupt_buffer {
                    // Without an interrupt the buffer stays with the device.
                    return all;
                }
                let (address, length) = (layout::gpa(BUFFERS + 5), IrqRecord::SIZE as u32);
                self.describe(QUEUE_IRQ, 0, Descriptor { address, length, flags: WRITE, next: 0 });
                self.offer(QUEUE_IRQ, 0);
                self.interrupt_buffer = true;
                self.kick(QUEUE_IRQ);
                continue;
            }
            if self.used_length(QUEUE_IRQ, self.interrupts) != IrqRecord::SIZE as u32 {
                self.trouble.get_or_insert_with(|| "an interrupt record is not full".to_owned());
                return all;
            }
            self.interrupts = self.interrupts.wrapping_add(1);
            self.interrupt_buffer = false;
            let record = IrqRecord::from_bytes(&self.load(layout::gpa(BUFFERS + 5)));
            for (all, bits) in all.iter_mut().zip(record.iir) {
                *all |= bits;
            }
        }
    }

    fn reset(&mut self) {
        self.posted.clear();
        self.control(Op::Reset, &[]);
    }

    fn forget(&mut self) {
        self.store(layout::BASE, &ZEROES);
    }
}
