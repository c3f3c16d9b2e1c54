//! Door 1: the device as a vhost-user back end.
//!
//! Here a queue's event becomes a call into [`crate::core::Core`]. Nothing that a guest does makes
//! `handle_event` return an error: that would end the worker thread for good.

pub mod chain;
pub mod config;
pub mod control;
pub mod interrupts;
pub mod posted;
pub mod rings;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use execlab_abi::wire::{QUEUE_CONTROL, QUEUE_COUNT, QUEUE_IRQ, QUEUE_MMIO};
use vhost::vhost_user::message::VhostUserProtocolFeatures;
use vhost_user_backend::VhostUserBackend;
use vm_memory::{GuestAddressSpace as _, GuestMemoryAtomic, GuestMemoryMmap};
use vmm_sys_util::epoll::EventSet;
use vmm_sys_util::event::{EventConsumer, EventFlag, EventNotifier, new_event_consumer_and_notifier};

use crate::core::Device;
use crate::spin;
use rings::Vring;

/// Queues by worker thread: control has one of its own, so that it keeps no doorbell waiting for a wake-up.
const WORKERS: [&[u16]; 2] = [&[QUEUE_CONTROL], &[QUEUE_MMIO, QUEUE_IRQ]];

/// The back end of one connection.
#[derive(Clone)]
pub struct Door {
    device: Arc<Device>,
    closed: Arc<AtomicBool>,
}

impl Door {
    /// A back end that drives `device`.
    #[must_use]
    pub fn new(device: Arc<Device>) -> Self {
        Self { device, closed: Arc::default() }
    }

    /// The front end has gone: events that are still on their way are for nobody.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Serves `queue` until it is empty, spinning for deadlines that come near in between if the mode says so.
    fn serve(&self, queue: usize, vring: &Vring) {
        loop {
            let (more, spin) = {
                let mut core = self.device.lock();
                if self.closed.load(Ordering::Acquire) {
                    return;
                }
                let memory = core.world.memory();
                if core.rings.adopt(queue, vring, &memory) {
                    tracing::debug!("queue {queue} is live");
                    core.changed();
                    self.device.wake_poller();
                }
                let more = core.serve(queue);
                let spin = core.settle();
                core.spinning |= spin;
                (more, spin)
            };
            if spin {
                spin::run(&self.device);
            }
            if !more {
                return;
            }
        }
    }
}

impl VhostUserBackend for Door {
    type Bitmap = ();
    type Vring = Vring;

    fn num_queues(&self) -> usize {
        usize::from(QUEUE_COUNT)
    }

    fn max_queue_size(&self) -> usize {
        config::MAX_QUEUE_SIZE
    }

    fn features(&self) -> u64 {
        config::FEATURES
    }

    fn protocol_features(&self) -> VhostUserProtocolFeatures {
        config::protocol_features()
    }

    fn get_config(&self, offset: u32, size: u32) -> Vec<u8> {
        config::read(offset, size)
    }

    fn set_config(&self, _offset: u32, _data: &[u8]) -> io::Result<()> {
        // Nothing in it can be changed; an error would close the connection.
        Ok(())
    }

    fn set_event_idx(&self, enabled: bool) {
        // The library sets it on the queues themselves.
        tracing::debug!("EVENT_IDX: {enabled}");
    }

    fn update_memory(&self, memory: GuestMemoryAtomic<GuestMemoryMmap>) -> io::Result<()> {
        self.device.lock().set_memory(memory.memory().into_inner());
        Ok(())
    }

    fn reset_device(&self) {
        self.device.lock().guest_gone();
    }

    fn stop_vring(&self, queue: u32) -> io::Result<()> {
        let mut core = self.device.lock();
        tracing::debug!("queue {queue} stops");
        // The test device tells its back end of a reset in no other way than by stopping every ring.
        if core.rings.remove(queue as usize) {
            core.guest_gone();
        } else {
            core.changed();
        }
        Ok(())
    }

    fn queues_per_thread(&self) -> Vec<u64> {
        WORKERS.iter().map(|queues| queues.iter().fold(0, |mask, queue| mask | 1 << queue)).collect()
    }

    fn exit_event(&self, _thread: usize) -> Option<(EventConsumer, EventNotifier)> {
        let pair = new_event_consumer_and_notifier(EventFlag::NONBLOCK | EventFlag::CLOEXEC);
        pair.inspect_err(|e| tracing::error!("cannot make an exit event: {e}")).ok()
    }

    fn handle_event(&self, event: u16, _set: EventSet, vrings: &[Vring], thread: usize) -> io::Result<()> {
        // Both numbers are local to the thread. Events may come without a cause: the library makes one up when a
        // ring is enabled.
        let local = usize::from(event);
        if let (Some(queue), Some(vring)) =
            (WORKERS.get(thread).and_then(|w| w.get(local)), vrings.get(local))
        {
            self.serve(usize::from(*queue), vring);
        }
        Ok(())
    }
}
