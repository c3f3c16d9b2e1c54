//! One engine: status page, ports, queue.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

use atomic_refcell::AtomicRefCell;
use execlab_abi::csb::{self, Entry};
use execlab_abi::engine::Engine;
use execlab_abi::wire::PostedWrite;
use execlab_abi::{irq, ring};

use crate::bus::{Bus, Dma};
use crate::counters::Counting;
use crate::kernel::{Kernel, SpinLock, TaskletId};
use crate::mmio::Mmio;
use crate::planted::Planted;
use crate::ports::Ports;
use crate::queue::Queue;
use crate::variant::Variant;

/// The CSB index that i915 starts from: the last one, so that the first event lands in entry 0.
pub(crate) const FIRST_CSB_HEAD: u32 = csb::ENTRIES - 1;

/// An engine of the driver.
pub(crate) struct EngineState<K: Kernel, B: Bus> {
    pub(crate) engine: Engine,
    pub(crate) variant: Variant,
    pub(crate) kernel: Arc<K>,
    pub(crate) mmio: Arc<Mmio<K, B>>,
    pub(crate) counting: Arc<Counting>,
    pub(crate) planted: Planted,
    pub(crate) hwsp: B::Dma,
    /// The timeline lock: the queue stands under it.
    pub(crate) timeline: K::SpinLock<Queue<B::Dma>>,
    /// Ports and CSB position. The tasklet's own serialisation, or the timeline lock, guards them, as in i915; the
    /// cell turns a mistake in that into a panic.
    pub(crate) ports: AtomicRefCell<Ports<B::Dma>>,
    /// Whether a port holds a request, for those who may not look at the ports.
    pub(crate) ports_active: AtomicBool,
    pub(crate) tasklet: TaskletId,
    pub(crate) waiters: K::WaitQueue,
    /// Number of waiters that need the user interrupt, under a lock because the mask follows it.
    pub(crate) irq_users: K::SpinLock<u32>,
}

impl<K: Kernel, B: Bus> EngineState<K, B> {
    /// Programs the engine for execlists (`enable_execlists`, `reset_csb_pointers`).
    pub(crate) fn enable(&self, hwsp_ggtt: u32) {
        for entry in 0..csb::ENTRIES {
            self.hwsp.store64_release(Entry::hwsp_offset(entry) as usize, Entry::POISON);
        }
        self.hwsp.store32_release(csb::HWSP_WRITE_INDEX as usize, FIRST_CSB_HEAD);
        let pointers = (0xffff << 16) | (FIRST_CSB_HEAD << 8) | FIRST_CSB_HEAD;
        let write = |relative, value| PostedWrite { offset: self.engine.reg(relative), value };
        self.mmio.write(&[
            write(ring::HWSTAM, u32::MAX),
            write(ring::MODE, ring::masked_set(ring::MODE_RUN_LIST_ENABLE)),
            write(ring::MI_MODE, ring::masked_clear(ring::MI_MODE_STOP_RING)),
            write(ring::HWS_PGA, hwsp_ggtt),
            write(ring::CONTEXT_STATUS_PTR, pointers),
            write(ring::IMR, self.engine.ring_imr(irq::CONTEXT_SWITCH)),
        ]);
    }

    /// Interrupts off around `section`, with the span counted.
    pub(crate) fn irq_off<R>(&self, section: impl FnOnce(&mut Queue<B::Dma>) -> R) -> R {
        let mut span = 0;
        let result = self.timeline.with_irqsave(|queue| {
            let start = self.kernel.now();
            let result = section(queue);
            span = self.kernel.now().saturating_sub(start);
            result
        });
        self.counting.irq_off(span);
        result
    }

    /// Whether queue and ports are empty. From any context: the ports are whoever's who processes the CSB.
    pub(crate) fn is_idle(&self) -> bool {
        self.timeline.with_irqsave(|queue| queue.is_empty() && !self.ports_active.load(Ordering::Acquire))
    }

    /// Makes room in the queue for one more context, which has at most `requests` requests in flight.
    pub(crate) fn reserve(&self, requests: usize) {
        loop {
            let (before, contexts) = self.timeline.with_irqsave(|queue| queue.capacity());
            let room = Queue::room(before + requests, contexts + 1);
            // What is not needed any more is freed here, outside the lock.
            if self.timeline.with_irqsave(|queue| queue.grow(room, requests)).is_ok() {
                return;
            }
        }
    }

    /// A waiter comes or goes: the user interrupt is unmasked while there is one.
    ///
    /// When this returns for one that comes, the device has the mask: what completes from then on raises the
    /// interrupt, and what completed before has its seqno visible. Without the posting read, a request could complete
    /// between the waiter's look at the seqno and the arrival of the mask, and nobody would be told.
    pub(crate) fn user_irq(&self, comes: bool) {
        self.irq_users.with_irqsave(|users| {
            let before = *users;
            *users = if comes { before + 1 } else { before.saturating_sub(1) };
            if (before == 0) != (*users == 0) {
                let user = if *users == 0 { 0 } else { irq::USER };
                let value = self.engine.ring_imr(irq::CONTEXT_SWITCH | user);
                self.mmio.write(&[PostedWrite { offset: self.engine.reg(ring::IMR), value }]);
            }
        });
        if comes {
            // Each waiter for itself: the mask that an earlier one wrote may still be under way.
            self.mmio.posting_read(self.engine.reg(ring::IMR));
        }
    }
}
