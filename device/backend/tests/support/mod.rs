//! A front end and its guest in one: what QEMU and a driver do, over memory that the tests can look into.
#![allow(dead_code, reason = "each test binary uses its own part")]

pub mod gpu;
pub mod ring;

use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use execlab_abi::wire::{
    CONTROL_RESPONSE_SIZE, ControlRequest, ControlResponse, IrqRecord, Op, PostedWrite, QUEUE_CONTROL,
    QUEUE_COUNT, QUEUE_IRQ, QUEUE_MMIO, QUEUE_SIZE, Status,
};
use execlab_device::{DeviceError, Server, Settings, Stopper, WaitMode};
use execlab_profile::Profile;
use ring::{Buffer, Ring};
use rustix::fs::{MemfdFlags, memfd_create};
use vhost::vhost_user::message::{VhostUserProtocolFeatures, VhostUserVirtioFeatures};
use vhost::vhost_user::{Frontend, VhostUserFrontend as _};
use vhost::{VhostBackend as _, VhostUserMemoryRegionInfo, VringConfigData};
use vm_memory::{Bytes as _, FileOffset, GuestAddress, GuestMemoryBackend as _, GuestMemoryMmap};
use vmm_sys_util::eventfd::EventFd;

/// Guest-physical address of the memory: above 4 GiB, so that a lost half shows.
pub const BASE: u64 = 0x1_0000_0000;
/// Its size.
pub const SIZE: usize = 8 << 20;
/// Offset of the register page.
pub const REGISTER_PAGE: u64 = BASE + 0x8000_u64 * 8;
/// Longest that any answer may take. A failing test waits for it, a passing one never does.
pub const PATIENCE: Duration = Duration::from_secs(20);

const EVENT_IDX: u64 = 1 << 29;
const VERSION_1: u64 = 1 << 32;

/// A device in this process.
pub struct TestDevice {
    pub socket: PathBuf,
    stopper: Stopper,
    thread: Option<JoinHandle<Result<(), DeviceError>>>,
    _dir: tempfile::TempDir,
}

impl TestDevice {
    pub fn start(profile: &str, wait: WaitMode) -> Self {
        let mut settings = Settings::new(Profile::parse(profile, "test").unwrap());
        settings.wait = wait;
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("s");
        let server = Server::start(&socket, settings, None).unwrap();
        let stopper = server.stopper();
        let thread = Some(std::thread::spawn(move || server.run()));
        Self { socket, stopper, thread, _dir: dir }
    }

    /// Ends it and says how that went.
    pub fn stop(mut self) -> Result<(), DeviceError> {
        self.stopper.stop();
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for TestDevice {
    fn drop(&mut self) {
        self.stopper.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A guest with its three rings.
pub struct Guest {
    pub memory: GuestMemoryMmap,
    pub rings: Vec<Ring>,
    pub frontend: Frontend,
    cookie: u64,
}

/// How a guest behaves.
#[derive(Clone, Copy)]
pub struct Manners {
    pub event_idx: bool,
}

impl Guest {
    /// Connects as a front end does and starts all three rings.
    pub fn connect(socket: &Path, manners: Manners) -> Self {
        let mut frontend = Frontend::connect(socket, u64::from(QUEUE_COUNT)).unwrap();
        frontend.set_owner().unwrap();
        let offered = frontend.get_features().unwrap();
        let protocol = VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits();
        assert_eq!(offered & (VERSION_1 | EVENT_IDX | protocol), VERSION_1 | EVENT_IDX | protocol);
        let wanted = VERSION_1 | protocol | if manners.event_idx { EVENT_IDX } else { 0 };
        let offered = frontend.get_protocol_features().unwrap();
        assert!(offered.contains(VhostUserProtocolFeatures::CONFIG));
        frontend
            .set_protocol_features(
                VhostUserProtocolFeatures::MQ
                    | VhostUserProtocolFeatures::CONFIG
                    | VhostUserProtocolFeatures::RESET_DEVICE,
            )
            .unwrap();
        frontend.set_features(wanted).unwrap();
        let memory = memfd();
        let regions: Vec<_> =
            memory.iter().map(|r| VhostUserMemoryRegionInfo::from_guest_region(r).unwrap()).collect();
        frontend.set_mem_table(&regions).unwrap();
        let rings = (0..QUEUE_COUNT).map(|q| Ring::new(q, manners.event_idx)).collect();
        let mut guest = Self { memory, rings, frontend, cookie: 0 };
        (0..QUEUE_COUNT).for_each(|q| guest.start_ring(q));
        guest
    }

    pub fn start_ring(&mut self, queue: u16) {
        let ring = &self.rings[usize::from(queue)];
        ring.clear(&self.memory);
        let host = |gpa: u64| self.memory.get_host_address(GuestAddress(gpa)).unwrap() as u64;
        let config = VringConfigData {
            queue_max_size: QUEUE_SIZE,
            queue_size: QUEUE_SIZE,
            flags: 0,
            desc_table_addr: host(ring.descriptors()),
            used_ring_addr: host(ring.used()),
            avail_ring_addr: host(ring.available()),
            log_addr: None,
        };
        let index = usize::from(queue);
        let frontend = &mut self.frontend;
        frontend.set_vring_num(index, QUEUE_SIZE).unwrap();
        frontend.set_vring_addr(index, &config).unwrap();
        frontend.set_vring_base(index, 0).unwrap();
        frontend.set_vring_call(index, &ring.call).unwrap();
        frontend.set_vring_kick(index, &ring.kick).unwrap();
        frontend.set_vring_enable(index, true).unwrap();
    }

    /// Stops a ring and forgets what was on it. Waits first until the device has read its kicks: a worker of the
    /// vhost-user library that is about to read one finds another descriptor there, and gives up for good.
    pub fn stop_ring(&mut self, queue: u16) {
        let index = usize::from(queue);
        let begin = Instant::now();
        while !self.rings[index].kicks_are_read() {
            assert!(begin.elapsed() < PATIENCE, "queue {queue}: a kick is not read");
            std::thread::yield_now();
        }
        self.frontend.get_vring_base(index).unwrap();
        self.rings[index] = Ring::new(queue, self.rings[index].event_idx);
    }

    /// Puts a chain on a ring, and kicks if the device asked for that.
    pub fn offer(&mut self, queue: u16, buffers: &[Buffer]) -> u16 {
        self.rings[usize::from(queue)].offer(&self.memory, buffers)
    }

    /// Waits for the next used chain: its head and length.
    pub fn wait_used(&mut self, queue: u16) -> (u16, u32) {
        let begin = Instant::now();
        loop {
            if let Some(used) = self.rings[usize::from(queue)].take_used(&self.memory) {
                return used;
            }
            assert!(begin.elapsed() < PATIENCE, "queue {queue}: nothing came back");
            std::thread::yield_now();
        }
    }

    /// A control request: status and payload of the answer.
    pub fn control(&mut self, op: Op, payload: &[u8]) -> (Status, Vec<u8>) {
        let (status, bytes) = self.control_raw(op as u32, payload.len() as u32, payload, 4096);
        (Status::from_code(status).unwrap(), bytes)
    }

    pub fn control_raw(&mut self, op: u32, len: u32, payload: &[u8], room: u32) -> (u32, Vec<u8>) {
        self.cookie += 1;
        let head = ControlRequest { op, len, cookie: self.cookie }.to_bytes();
        let (request, response) = (self.buffer(QUEUE_CONTROL, 0), self.buffer(QUEUE_CONTROL, 1));
        self.memory.write_slice(&head, GuestAddress(request)).unwrap();
        self.memory.write_slice(payload, GuestAddress(request + 16)).unwrap();
        let readable = Buffer::readable(request, 16 + payload.len() as u32);
        self.offer(QUEUE_CONTROL, &[readable, Buffer::writable(response, room)]);
        let (_, written) = self.wait_used(QUEUE_CONTROL);
        assert!(written >= 16, "the answer has {written} bytes");
        let mut bytes = vec![0; written as usize];
        self.memory.read_slice(&mut bytes, GuestAddress(response)).unwrap();
        let (head, rest) = bytes.split_first_chunk::<CONTROL_RESPONSE_SIZE>().unwrap();
        let head = ControlResponse::from_bytes(head);
        assert_eq!((head.cookie, head.len as usize), (self.cookie, rest.len()));
        (head.status, rest.to_vec())
    }

    /// Device time when a ping was taken and answered.
    pub fn ping(&mut self) -> (u64, u64) {
        let (status, payload) = self.control(Op::ClockPing, &[]);
        assert_eq!((status, payload.len()), (Status::Ok, 16));
        let word = |at| u64::from_le_bytes(payload[at..at + 8].try_into().unwrap());
        (word(0), word(8))
    }

    pub fn statistics(&mut self) -> serde_json::Value {
        let (status, payload) = self.control(Op::Statistics, &[]);
        assert_eq!(status, Status::Ok);
        serde_json::from_slice(&payload).unwrap()
    }

    /// A register as an MMIO read gives it.
    pub fn read_register(&mut self, offset: u32) -> u32 {
        let (status, payload) = self.control(Op::ReadRegister, &offset.to_le_bytes());
        assert_eq!(status, Status::Ok);
        u32::from_le_bytes(payload.try_into().unwrap())
    }

    /// Gives the device the register page.
    pub fn set_register_page(&mut self) {
        assert_eq!(self.control(Op::SetRegisterPage, &REGISTER_PAGE.to_le_bytes()).0, Status::Ok);
    }

    /// A register as the register page has it.
    pub fn mirrored(&self, offset: u32) -> u32 {
        let slot = execlab_abi::mirror::slot(offset).unwrap() as u64;
        self.memory
            .load(GuestAddress(REGISTER_PAGE + 4 * slot), std::sync::atomic::Ordering::Acquire)
            .unwrap()
    }

    /// Posts writes and waits until they are applied.
    pub fn post(&mut self, writes: &[(u32, u32)]) {
        for writes in writes.chunks(500) {
            let bytes: Vec<u8> = writes
                .iter()
                .flat_map(|(offset, value)| PostedWrite { offset: *offset, value: *value }.to_bytes())
                .collect();
            let at = self.buffer(QUEUE_MMIO, 0);
            self.memory.write_slice(&bytes, GuestAddress(at)).unwrap();
            self.offer(QUEUE_MMIO, &[Buffer::readable(at, bytes.len() as u32)]);
            assert_eq!(self.wait_used(QUEUE_MMIO).1, 0);
        }
    }

    /// Gives the device a buffer for an interrupt.
    pub fn offer_interrupt_buffer(&mut self) {
        let at = self.buffer(QUEUE_IRQ, 0);
        self.offer(QUEUE_IRQ, &[Buffer::writable(at, IrqRecord::SIZE as u32)]);
    }

    /// Waits for an interrupt in the buffer given last.
    pub fn wait_interrupt(&mut self) -> IrqRecord {
        assert_eq!(self.wait_used(QUEUE_IRQ).1 as usize, IrqRecord::SIZE);
        let mut bytes = [0; IrqRecord::SIZE];
        self.memory.read_slice(&mut bytes, GuestAddress(self.buffer(QUEUE_IRQ, 0))).unwrap();
        IrqRecord::from_bytes(&bytes)
    }

    /// Address of data buffer `n` of a queue, 4 KiB each.
    pub fn buffer(&self, queue: u16, n: u64) -> u64 {
        BASE + 0x2_0000 + u64::from(queue) * 0x2000 + n * 0x1000
    }
}

fn memfd() -> GuestMemoryMmap {
    let file = std::fs::File::from(memfd_create("guest", MemfdFlags::CLOEXEC).unwrap());
    file.set_len(SIZE as u64).unwrap();
    GuestMemoryMmap::from_ranges_with_files([(GuestAddress(BASE), SIZE, Some(FileOffset::new(file, 0)))])
        .unwrap()
}

/// An eventfd as both sides use it.
pub fn event() -> EventFd {
    EventFd::new(libc::EFD_NONBLOCK | libc::EFD_CLOEXEC).unwrap()
}
