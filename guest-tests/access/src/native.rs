//! Way (a): this process is the vhost-user frontend, in the place of QEMU and its guest.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use execlab_abi::wire::{QUEUE_COUNT, QUEUE_IRQ, QUEUE_SIZE};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use vhost::vhost_user::message::{
    VhostUserHeaderFlag, VhostUserProtocolFeatures as Protocol, VhostUserVirtioFeatures,
};
use vhost::vhost_user::{Frontend, VhostUserFrontend as _};
use vhost::{VhostBackend as _, VhostUserMemoryRegionInfo, VringConfigData};
use vm_memory::{FileOffset, MmapRegion};

use crate::device::{AnyDevice, Parts};
use crate::event::Event;
use crate::link::Link;
use crate::memory::SharedMemory;
use crate::virtqueue::VirtQueue;
use crate::watchdog::Watchdog;
use crate::{Error, features};

/// Guest-physical address of the memory given to the device. Above 4 GiB, so that a lost upper half of an
/// address shows.
const GUEST_BASE: u64 = 0x1_0000_0000;

/// Settings of a native connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NativeOptions {
    /// Bytes of memory to share with the device; rounded up to pages.
    pub memory: usize,
    /// How long the device may take for the vhost-user handshake, and then for each answer.
    pub timeout: Duration,
}

impl Default for NativeOptions {
    fn default() -> Self {
        Self { memory: 64 << 20, timeout: crate::DEFAULT_TIMEOUT }
    }
}

/// Connects to the device process that listens at `socket`. It serves one frontend at a time.
///
/// # Errors
/// When nobody listens there, or whoever does is no execlab device of this version.
pub fn connect(socket: &Path, options: &NativeOptions) -> Result<Arc<AnyDevice>, Error> {
    let talk = Conversation::open(socket, options.timeout)?;
    let event_idx = talk.negotiate()?;
    let memory = Arc::new(talk.share_memory(options.memory)?);
    let mut queues = Vec::new();
    let mut kicks = Vec::new();
    let interrupt = event()?;
    let unheard = event()?;
    for index in 0..QUEUE_COUNT {
        let queue = VirtQueue::new(&memory, QUEUE_SIZE, event_idx)?;
        let kick = event()?;
        let call = if index == QUEUE_IRQ { &interrupt } else { &unheard };
        talk.start_queue(usize::from(index), &queue, &kick, call)?;
        queues.push(queue);
        kicks.push(kick);
    }
    let link = NativeLink { socket: talk.end()?, kicks, interrupt };
    AnyDevice::start(Parts { link: Link::Native(link), memory, queues, timeout: options.timeout })
}

/// The vhost-user messages that start a device.
struct Conversation {
    path: PathBuf,
    stream: UnixStream,
    frontend: Frontend,
    watchdog: Watchdog,
    timeout: Duration,
}

impl Conversation {
    fn open(socket: &Path, timeout: Duration) -> Result<Self, Error> {
        let connect = || {
            let stream = UnixStream::connect(socket)?;
            Ok((stream.try_clone()?, Watchdog::new(&stream, timeout)?, stream))
        };
        let (theirs, watchdog, stream) =
            connect().map_err(|source| Error::Connect { socket: socket.into(), source })?;
        let frontend = Frontend::from_stream(theirs, u64::from(QUEUE_COUNT));
        Ok(Self { path: socket.into(), stream, frontend, watchdog, timeout })
    }

    fn step<T>(&self, step: &'static str, result: vhost::Result<T>) -> Result<T, Error> {
        result.map_err(|source| {
            if self.watchdog.fired() {
                return Error::NoAnswer { op: step, after: self.timeout };
            }
            Error::Handshake { step, socket: self.path.clone(), source }
        })
    }

    /// Nothing more is said; the connection stays, unless time ran out after the last message.
    fn end(self) -> Result<UnixStream, Error> {
        let Self { stream, watchdog, timeout, .. } = self;
        if watchdog.call_off() {
            return Err(Error::NoAnswer { op: "the vhost-user handshake", after: timeout });
        }
        Ok(stream)
    }

    /// Returns whether the rings use EVENT_IDX.
    fn negotiate(&self) -> Result<bool, Error> {
        let mut frontend = self.frontend.clone();
        self.step("SET_OWNER", frontend.set_owner())?;
        let offered = self.step("GET_FEATURES", frontend.get_features())?;
        let place = || self.path.display().to_string();
        let mut wanted = features::choose(offered, place)?;
        let event_idx = features::has_event_idx(wanted);
        let protocol = VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits();
        if offered & protocol == 0 {
            let feature = "VHOST_USER_F_PROTOCOL_FEATURES";
            return Err(Error::MissingFeature { place: place(), feature });
        }
        wanted |= protocol;
        let offered = self.step("GET_PROTOCOL_FEATURES", frontend.get_protocol_features())?;
        let taken = offered & (Protocol::MQ | Protocol::REPLY_ACK);
        self.step("SET_PROTOCOL_FEATURES", frontend.set_protocol_features(taken))?;
        if taken.contains(Protocol::REPLY_ACK) {
            // From here on a refusal is an error at the message that was refused.
            frontend.set_hdr_flags(VhostUserHeaderFlag::NEED_REPLY);
        }
        self.step("SET_FEATURES", frontend.set_features(wanted))?;
        Ok(event_idx)
    }

    fn share_memory(&self, bytes: usize) -> Result<SharedMemory, Error> {
        let bytes = bytes.next_multiple_of(crate::memory::PAGE);
        let (region, file) = memfd(bytes).map_err(|source| Error::Memory {
            what: format!("a memfd of {bytes} bytes; ask for less, or raise the memory limit"),
            source,
        })?;
        let info = VhostUserMemoryRegionInfo {
            guest_phys_addr: GUEST_BASE,
            memory_size: bytes as u64,
            userspace_addr: region.as_ptr() as u64,
            mmap_offset: 0,
            mmap_handle: std::os::fd::AsRawFd::as_raw_fd(&file),
        };
        self.step("SET_MEM_TABLE", self.frontend.set_mem_table(&[info]))?;
        Ok(SharedMemory::new(region, vec![GUEST_BASE]))
    }

    fn start_queue(&self, index: usize, queue: &VirtQueue, kick: &Event, call: &Event) -> Result<(), Error> {
        let mut frontend = self.frontend.clone();
        let [table, avail, used] = queue.parts().map(crate::Pages::host_addr);
        let config = VringConfigData {
            queue_max_size: queue.size(),
            queue_size: queue.size(),
            flags: 0,
            desc_table_addr: table,
            used_ring_addr: used,
            avail_ring_addr: avail,
            log_addr: None,
        };
        let duplicate = |event: &Event| {
            event
                .for_rust_vmm()
                .map_err(|source| Error::Descriptor { what: "duplicating an eventfd", source })
        };
        self.step("SET_VRING_NUM", frontend.set_vring_num(index, queue.size()))?;
        self.step("SET_VRING_BASE", frontend.set_vring_base(index, 0))?;
        self.step("SET_VRING_ADDR", frontend.set_vring_addr(index, &config))?;
        self.step("SET_VRING_CALL", frontend.set_vring_call(index, &duplicate(call)?))?;
        self.step("SET_VRING_KICK", frontend.set_vring_kick(index, &duplicate(kick)?))?;
        self.step("SET_VRING_ENABLE", frontend.set_vring_enable(index, true))
    }
}

fn event() -> Result<Event, Error> {
    Event::new().map_err(|source| Error::Descriptor { what: "making an eventfd", source })
}

/// Shared memory that has its pages already: a page fault has no place in a measurement.
fn memfd(bytes: usize) -> io::Result<(MmapRegion, File)> {
    let file = File::from(memfd_create("execlab-dma", MemfdFlags::CLOEXEC)?);
    ftruncate(&file, bytes as u64)?;
    let offset = FileOffset::new(file.try_clone()?, 0);
    let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
    let region = MmapRegion::build(Some(offset), bytes, libc::PROT_READ | libc::PROT_WRITE, flags)
        .map_err(io::Error::other)?;
    Ok((region, file))
}

/// An open vhost-user connection: nothing more is said on the socket, but closing it stops the device's rings.
#[derive(Debug)]
pub(crate) struct NativeLink {
    socket: UnixStream,
    kicks: Vec<Event>,
    interrupt: Event,
}

impl NativeLink {
    pub(crate) fn notify(&self, queue: u16) {
        if let Some(kick) = self.kicks.get(usize::from(queue)) {
            kick.signal();
        }
    }

    pub(crate) fn wait(&self, timeout: Option<Duration>) -> io::Result<bool> {
        self.interrupt.wait(timeout)
    }

    pub(crate) fn hang_up(&self) -> Option<String> {
        let mut fds = [PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::RDHUP)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let closed = poll(&mut fds, Some(&now)).is_ok_and(|count| count > 0);
        closed.then(|| "the device process has closed the connection".to_owned())
    }
}
