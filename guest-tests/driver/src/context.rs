//! Contexts: an image, a ring and a timeline in memory that the device sees.

use alloc::collections::VecDeque;
use alloc::sync::Arc;

use execlab_abi::descriptor::Descriptor;
use execlab_abi::engine::Engine;
use execlab_abi::{context, mi, ring};

use crate::bus::Dma;
use crate::error::SubmitError;

/// Pages of an image: status page and register state.
pub(crate) const IMAGE_PAGES: usize = 2;
/// Byte offset of the timeline's seqno in the context's status page.
const SEQNO_OFFSET: u32 = 0x100;

/// What the submission steps need of a context.
#[derive(Debug)]
pub(crate) struct ContextHw<D> {
    pub(crate) image: D,
    pub(crate) descriptor: Descriptor,
    /// GGTT address of the seqno.
    pub(crate) seqno_address: u32,
}

impl<D: Dma> ContextHw<D> {
    /// Writes a fresh image: what `execlists_init_reg_state` puts into it, as far as the model restores it.
    pub(crate) fn new(
        image: D,
        image_ggtt: u32,
        id: u32,
        engine: Engine,
        ring_ggtt: u32,
        ring_bytes: u32,
    ) -> Self {
        let descriptor = Descriptor::new(image_ggtt, id);
        let hw = Self { image, descriptor, seqno_address: image_ggtt + SEQNO_OFFSET };
        let control = ring::masked_set(context::CTL_INHIBIT_SYN_CTX_SWITCH | context::CTL_RESTORE_INHIBIT);
        let registers = [
            (context::CONTEXT_CONTROL, ring::CONTEXT_CONTROL, control),
            (context::RING_HEAD, ring::HEAD, 0),
            (context::RING_TAIL, ring::TAIL, 0),
            (context::RING_START, ring::START, ring_ggtt),
            (context::RING_CTL, ring::CTL, ring::ctl(ring_bytes)),
        ];
        hw.put(context::LRI_HEADER, mi::load_register_imm(14));
        for (slot, register, value) in registers {
            hw.put(slot - 1, engine.reg(register));
            hw.put(slot, value);
        }
        hw
    }

    fn put(&self, slot: usize, value: u32) {
        self.image.write32(context::STATE_OFFSET as usize + 4 * slot, value);
    }

    /// Stores the tail for the next submission (`intel_ring_set_tail`).
    pub(crate) fn set_tail(&self, tail: u32) {
        self.image.store32_release(context::STATE_OFFSET as usize + 4 * context::RING_TAIL, tail);
    }

    /// Last seqno that the context's requests have stored.
    pub(crate) fn seqno(&self) -> u32 {
        self.image.load32_acquire(SEQNO_OFFSET as usize)
    }
}

/// A context with its ring. One thread emits into it.
#[derive(Debug)]
pub struct Context<D> {
    pub(crate) hw: Arc<ContextHw<D>>,
    pub(crate) engine: usize,
    pub(crate) ring: D,
    pub(crate) ring_bytes: u32,
    /// Where the next dword goes.
    pub(crate) emit: u32,
    /// Up to where requests have retired.
    pub(crate) retired: u32,
    /// Seqno and end of each request that has not retired, in order.
    pub(crate) pending: VecDeque<(u32, u32)>,
    pub(crate) last_seqno: u32,
    pub(crate) priority: i32,
}

impl<D: Dma> Context<D> {
    /// Number of requests that have been submitted and not yet retired.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.pending.len()
    }

    /// Seqno of the last request, 0 if there was none.
    #[must_use]
    pub const fn last_seqno(&self) -> u32 {
        self.last_seqno
    }

    /// Sets the priority of the requests to come; higher goes first, and a new context has 0. i915's user range is
    /// −1023 to 1023.
    ///
    /// # Errors
    /// [`SubmitError::Busy`] while a request is in flight: requests of one context keep their order, as one ring
    /// holds them.
    pub fn set_priority(&mut self, priority: i32) -> Result<(), SubmitError> {
        self.retire();
        if !self.pending.is_empty() {
            return Err(SubmitError::Busy);
        }
        self.priority = priority;
        Ok(())
    }

    /// Gives back the room of requests that are complete, in order. Returns how many retired.
    pub fn retire(&mut self) -> usize {
        let reached = self.hw.seqno();
        let mut count = 0;
        while let Some((seqno, end)) = self.pending.front().copied() {
            if !passed(reached, seqno) {
                break;
            }
            self.pending.pop_front();
            self.retired = end;
            count += 1;
        }
        count
    }

    /// Bytes that can be emitted. A ring is never filled to the last qword: full would look like empty.
    pub(crate) fn room(&self) -> u32 {
        (self.retired + self.ring_bytes - self.emit - 8) % self.ring_bytes
    }

    pub(crate) fn push(&mut self, dword: u32) {
        self.ring.write32(self.emit as usize, dword);
        self.emit = (self.emit + 4) % self.ring_bytes;
    }
}

/// Whether seqno `reached` is at or past `seqno` (`i915_seqno_passed`): a signed distance, so wrap does no harm.
pub(crate) const fn passed(reached: u32, seqno: u32) -> bool {
    reached.wrapping_sub(seqno) as i32 >= 0
}
