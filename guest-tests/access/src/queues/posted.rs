//! Queue 1: posted writes, one ordered stream.
//!
//! Every descriptor owns a buffer of [`WRITES_PER_CHAIN`] writes, so posting is filling a buffer and publishing
//! an index: no allocation, no system call unless the device asks for a notification.

use std::hint;
use std::sync::Arc;
use std::time::{Duration, Instant};

use execlab_abi::wire::{PostedWrite, QUEUE_MMIO};

use crate::Error;
use crate::health::{Health, count};
use crate::link::Link;
use crate::lock::PiLock;
use crate::memory::{PAGE, Pages, SharedMemory};
use crate::virtqueue::{RingError, Segment, VirtQueue};

/// Writes in one chain. Longer batches become several chains, in order, behind one notification.
const WRITES_PER_CHAIN: usize = 16;
const BUFFER: usize = WRITES_PER_CHAIN * PostedWrite::SIZE;
/// How long a full queue is spun for before the CPU is given away in slices of [`NAP`]: on a machine with one
/// CPU a FIFO thread would otherwise wait for a device that it does not let run.
const SPIN: Duration = Duration::from_millis(2);
const NAP: Duration = Duration::from_micros(20);

/// The posted-write queue.
#[derive(Debug)]
pub(crate) struct Posted {
    timeout: Duration,
    inner: PiLock<Inner>,
}

#[derive(Debug)]
struct Inner {
    queue: VirtQueue,
    buffers: Pages,
}

impl Posted {
    pub(crate) fn new(
        queue: VirtQueue,
        memory: &Arc<SharedMemory>,
        timeout: Duration,
    ) -> Result<Self, Error> {
        let buffers = memory.alloc((usize::from(queue.size()) * BUFFER).div_ceil(PAGE))?;
        Ok(Self { timeout, inner: PiLock::new(Inner { queue, buffers }) })
    }

    /// Posts `writes` in order. Waits for room when the queue is full; gives up, and declares the device lost,
    /// when there is none within the time-out.
    pub(crate) fn write(&self, link: &Link, health: &Health, writes: &[PostedWrite]) {
        if health.is_lost() {
            return;
        }
        let mut inner = self.inner.lock();
        for batch in writes.chunks(WRITES_PER_CHAIN) {
            let Some(id) = inner.descriptor(link, health, self.timeout) else { return };
            inner.fill(id, batch);
        }
        let notify = inner.queue.publish();
        drop(inner);
        if notify {
            link.notify(QUEUE_MMIO, health);
        }
        count(&health.counters.writes, writes.len());
    }

    /// Waits until the device has applied everything posted so far. False when the time-out came first.
    pub(crate) fn drain(&self, health: &Health, timeout: Duration) -> bool {
        let start = Instant::now();
        loop {
            let mut inner = self.inner.lock();
            if let Err(error) = inner.reap() {
                health.lose(|| format!("posted-write queue: {error}"));
            }
            if inner.queue.is_idle() {
                return true;
            }
            drop(inner);
            let waited = start.elapsed();
            if waited > timeout || health.is_lost() {
                return false;
            }
            wait_a_little(waited);
        }
    }
}

fn wait_a_little(waited: Duration) {
    if waited > SPIN {
        std::thread::sleep(NAP);
    } else {
        hint::spin_loop();
    }
}

impl Inner {
    /// Takes back what the device has applied.
    fn reap(&mut self) -> Result<(), RingError> {
        while self.queue.take_used()?.is_some() {}
        Ok(())
    }

    /// A free descriptor, waiting for one if need be.
    fn descriptor(&mut self, link: &Link, health: &Health, timeout: Duration) -> Option<u16> {
        if let Some(id) = self.queue.reserve() {
            return Some(id);
        }
        let mut start = None;
        loop {
            if let Err(error) = self.reap() {
                health.lose(|| format!("posted-write queue: {error}"));
                return None;
            }
            if let Some(id) = self.queue.reserve() {
                return Some(id);
            }
            if start.is_none() {
                count(&health.counters.full_waits, 1);
                // The device may not know of the beginning of a batch longer than the queue.
                if self.queue.publish() {
                    link.notify(QUEUE_MMIO, health);
                }
            }
            let waited = start.get_or_insert_with(Instant::now).elapsed();
            if waited > timeout {
                health.lose(|| format!("it has applied no posted write for {timeout:?}"));
                return None;
            }
            wait_a_little(waited);
        }
    }

    fn fill(&mut self, id: u16, batch: &[PostedWrite]) {
        let at = usize::from(id) * BUFFER;
        for (n, write) in batch.iter().enumerate() {
            let word = u64::from(write.offset) | (u64::from(write.value) << 32);
            self.buffers.store64(at + n * PostedWrite::SIZE, word.to_le());
        }
        let len = (batch.len() * PostedWrite::SIZE) as u32;
        self.queue.post(&[(id, Segment { addr: self.buffers.addr(at), len, writable: false })]);
    }
}
