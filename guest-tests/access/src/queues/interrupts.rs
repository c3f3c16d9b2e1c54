//! Queue 2: interrupts that the device delivers into buffers waiting for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use execlab_abi::irq::BANKS;
use execlab_abi::wire::{IrqRecord, QUEUE_IRQ};

use crate::Error;
use crate::health::{Health, count};
use crate::link::Link;
use crate::lock::PiLock;
use crate::memory::{PAGE, Pages, SharedMemory};
use crate::virtqueue::{Segment, VirtQueue, used_index};

/// The interrupt queue.
#[derive(Debug)]
pub(crate) struct Interrupts {
    inner: PiLock<Inner>,
    /// The used ring and how far it was taken, for looking without the lock.
    used: Pages,
    taken: AtomicU16,
}

#[derive(Debug)]
struct Inner {
    queue: VirtQueue,
    buffers: Pages,
}

impl Interrupts {
    /// Fills the queue with empty records. [`announce`](Self::announce) shows them to the device.
    pub(crate) fn new(mut queue: VirtQueue, memory: &Arc<SharedMemory>) -> Result<Self, Error> {
        let buffers = memory.alloc((usize::from(queue.size()) * IrqRecord::SIZE).div_ceil(PAGE))?;
        while let Some(id) = queue.reserve() {
            queue.post(&[(id, segment(&buffers, id))]);
        }
        let used = queue.parts()[2].clone();
        Ok(Self { inner: PiLock::new(Inner { queue, buffers }), used, taken: AtomicU16::new(0) })
    }

    pub(crate) fn announce(&self, link: &Link, health: &Health) {
        let notify = self.inner.lock().queue.publish();
        if notify {
            link.notify(QUEUE_IRQ, health);
        }
    }

    /// Whether a record waits to be taken: one load, no lock.
    pub(crate) fn pending(&self) -> bool {
        used_index(&self.used) != self.taken.load(Ordering::Relaxed)
    }

    /// Takes the next record and gives its buffer back to the device.
    pub(crate) fn take(&self, link: &Link, health: &Health) -> Option<IrqRecord> {
        let mut inner = self.inner.lock();
        let used = match inner.queue.take_used() {
            Ok(used) => used?,
            Err(error) => {
                health.lose(|| format!("interrupt queue: {error}"));
                return None;
            }
        };
        self.taken.store(inner.queue.last_used(), Ordering::Relaxed);
        let whole = used.len as usize >= IrqRecord::SIZE;
        let record = inner.read(used.head);
        let notify = inner.repost();
        drop(inner);
        if notify {
            link.notify(QUEUE_IRQ, health);
        }
        if !whole {
            health.lose(|| format!("interrupt record of {} bytes instead of {}", used.len, IrqRecord::SIZE));
            return None;
        }
        count(&health.counters.interrupts, 1);
        Some(record)
    }

    /// Asks for an interrupt with the next record. True when one waits already.
    pub(crate) fn enable(&self) -> bool {
        self.inner.lock().queue.interrupts_on()
    }

    /// Takes that wish back.
    pub(crate) fn disable(&self) {
        self.inner.lock().queue.interrupts_off();
    }
}

fn segment(buffers: &Pages, id: u16) -> Segment {
    let addr = buffers.addr(usize::from(id) * IrqRecord::SIZE);
    Segment { addr, len: IrqRecord::SIZE as u32, writable: true }
}

impl Inner {
    fn read(&self, id: u16) -> IrqRecord {
        let at = usize::from(id) * IrqRecord::SIZE;
        let word = |n: usize| u64::from_le(self.buffers.load64(at + 8 * n));
        let mut iir = [0; BANKS];
        for (bank, bits) in iir.iter_mut().enumerate() {
            *bits = (word(bank / 2) >> (32 * (bank % 2))) as u32;
        }
        IrqRecord { iir, sequence: word(2), time_ns: word(3) }
    }

    /// Posts the descriptor that was just freed again; true when the device asks to be told. The device sees
    /// them a quarter of the queue at a time: it has three quarters in hand meanwhile, and asks less often.
    fn repost(&mut self) -> bool {
        if let Some(id) = self.queue.reserve() {
            let segment = segment(&self.buffers, id);
            self.queue.post(&[(id, segment)]);
        }
        self.queue.unpublished() >= self.queue.size() / 4 && self.queue.publish()
    }
}
