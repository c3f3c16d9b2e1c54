//! Contexts: an image, a ring and a timeline in memory that the device sees.

use alloc::collections::VecDeque;
use alloc::sync::Arc;

use execlab_abi::descriptor::Descriptor;
use execlab_abi::engine::Engine;
use execlab_abi::{PAGE_SIZE, context, mi, ring};

use crate::bus::Dma;
use crate::error::SubmitError;
use crate::planted::{Bug, Planted};
use crate::request::MIN_BYTES;

/// Pages of an image: status page and register state.
pub(crate) const IMAGE_PAGES: usize = 2;
/// Byte offset of the timeline's seqno in the context's status page.
const SEQNO_OFFSET: u32 = 0x100;
/// What a fresh timeline holds: so near the wrap that every context passes it soon, as the kernel's jiffies do.
const SEQNO_BEFORE_FIRST: u32 = u32::MAX - 31;

/// What the device sees of a context. Requests share it: the memory stays as long as one of them is queued or in a
/// port.
#[derive(Debug)]
pub(crate) struct ContextHw<D> {
    image: D,
    pub(crate) ring: D,
    pub(crate) ring_bytes: u32,
    pub(crate) descriptor: Descriptor,
    /// GGTT address of the seqno.
    pub(crate) seqno_address: u32,
}

impl<D: Dma> ContextHw<D> {
    /// Writes a fresh image: what `execlists_init_reg_state` puts into it, as far as the model restores it.
    pub(crate) fn new(image: D, image_ggtt: u32, id: u32, engine: Engine, ring: D, ring_ggtt: u32) -> Self {
        let ring_bytes = ring.pages() as u32 * PAGE_SIZE as u32;
        let descriptor = Descriptor::new(image_ggtt, id);
        let hw = Self { image, ring, ring_bytes, descriptor, seqno_address: image_ggtt + SEQNO_OFFSET };
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
        hw.image.write32(SEQNO_OFFSET as usize, SEQNO_BEFORE_FIRST);
        hw
    }

    fn put(&self, slot: usize, value: u32) {
        self.image.write32(context::STATE_OFFSET as usize + 4 * slot, value);
    }

    /// Stores the tail for the next submission and gives the descriptor for it (`execlists_update_context`).
    ///
    /// A context must not be submitted with HEAD at TAIL: a tail that would not move (8cf9699182 in 5.8) has the
    /// whole image loaded again. That does not happen as long as each resubmission moves over the two dwords of
    /// WaIdleLiteRestore.
    pub(crate) fn update(&self, tail: u32) -> Descriptor {
        let slot = context::STATE_OFFSET as usize + 4 * context::RING_TAIL;
        let moves = self.image.read32(slot) != tail;
        self.image.store32_release(slot, tail);
        if moves { self.descriptor } else { self.descriptor.with_force_restore() }
    }

    /// Last seqno that the context's requests have stored.
    pub(crate) fn seqno(&self) -> u32 {
        self.image.load32_acquire(SEQNO_OFFSET as usize)
    }
}

/// A submitted request that has not retired.
#[derive(Debug, Clone, Copy)]
struct Pending {
    seqno: u32,
    /// Where its commands end in the ring.
    end: u32,
}

/// A context with its ring. One thread emits into it. Use it with the driver that made it.
#[derive(Debug)]
pub struct Context<D> {
    pub(crate) hw: Arc<ContextHw<D>>,
    engine: Engine,
    /// Where the next dword goes.
    emit: u32,
    /// Up to where requests have retired.
    retired: u32,
    /// Requests that have not retired, in order.
    pending: VecDeque<Pending>,
    last_seqno: u32,
    planted: Planted,
    pub(crate) priority: i32,
}

impl<D: Dma> Context<D> {
    pub(crate) fn new(hw: ContextHw<D>, engine: Engine, planted: Planted) -> Self {
        let pending = VecDeque::with_capacity(hw.ring_bytes as usize / MIN_BYTES);
        let last_seqno = hw.seqno();
        Self { hw: Arc::new(hw), engine, emit: 0, retired: 0, pending, last_seqno, planted, priority: 0 }
    }

    /// The engine that the context is for.
    #[must_use]
    pub const fn engine(&self) -> Engine {
        self.engine
    }

    /// Number of requests that have been submitted and not yet retired.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.pending.len()
    }

    /// Seqno of the last request, 0 if there was none. Seqnos count up by one from 1, over the end of u32 and past 0.
    #[must_use]
    pub const fn last_seqno(&self) -> u32 {
        self.last_seqno
    }

    /// Seqno that the device stored last, 0 before the first: requests up to it are complete.
    #[must_use]
    pub fn completed_seqno(&self) -> u32 {
        self.hw.seqno()
    }

    /// Whether request `seqno` of this context is complete, also over the wrap of seqnos.
    #[must_use]
    pub fn is_complete(&self, seqno: u32) -> bool {
        passed(self.hw.seqno(), seqno)
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

    /// The step `retire`: gives back the room of requests that are complete, in order. Returns how many retired.
    pub fn retire(&mut self) -> usize {
        let reached = self.hw.seqno();
        let mut count = 0;
        while let Some(first) = self.pending.front().filter(|first| passed(reached, first.seqno)) {
            self.retired = first.end;
            self.pending.pop_front();
            count += 1;
        }
        count
    }

    /// Begins a request of `bytes` bytes: its seqno, after NOOPs to the end of the ring if it would not fit in one
    /// piece before it (`intel_ring_begin`), or `None` while the ring has no room.
    pub(crate) fn begin(&mut self, bytes: u32) -> Option<u32> {
        if self.room(self.retired) < self.padding(bytes) + bytes {
            self.retire();
            if self.room(self.retired) < self.padding(bytes) + bytes {
                return None;
            }
        }
        for _ in 0..self.padding(bytes) / 4 {
            self.push(&[mi::NOOP]);
        }
        // Seqno 0 means none; it is passed over at the wrap.
        Some(self.last_seqno.wrapping_add(1).max(1))
    }

    /// Ends the request: it is in flight from here on.
    pub(crate) fn end(&mut self, seqno: u32) {
        self.last_seqno = seqno;
        self.pending.push_back(Pending { seqno, end: self.emit });
    }

    /// Seqno of the first request whose retirement leaves room for `bytes` bytes (`wait_for_space`).
    pub(crate) fn seqno_before_room(&self, bytes: u32) -> Option<u32> {
        let needed = self.padding(bytes) + bytes;
        self.pending.iter().find(|pending| self.room(pending.end) >= needed).map(|pending| pending.seqno)
    }

    /// Bytes that can be emitted if everything before `retired` has retired. A ring is never filled to the last
    /// qword: full would look like empty.
    fn room(&self, retired: u32) -> u32 {
        let bytes = self.hw.ring_bytes;
        if self.planted.has(Bug::RingFullOffByOne) && !self.pending.is_empty() {
            return (retired + bytes - self.emit) % bytes;
        }
        (retired + bytes - self.emit - 8) % bytes
    }

    /// Bytes to the end of the ring, if `bytes` bytes do not fit before it.
    fn padding(&self, bytes: u32) -> u32 {
        let left = self.hw.ring_bytes - self.emit;
        if bytes > left { left } else { 0 }
    }

    pub(crate) fn push(&mut self, dwords: &[u32]) {
        for dword in dwords {
            self.hw.ring.write32(self.emit as usize, *dword);
            self.emit = (self.emit + 4) % self.hw.ring_bytes;
        }
    }

    /// Where the next dword goes.
    pub(crate) const fn position(&self) -> u32 {
        self.emit
    }
}

/// Whether seqno `reached` is at or past `seqno` (`i915_seqno_passed`): a signed distance, so wrap does no harm.
pub(crate) const fn passed(reached: u32, seqno: u32) -> bool {
    reached.wrapping_sub(seqno) as i32 >= 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Pages};

    fn context() -> Context<Pages> {
        let hw = ContextHw::new(Pages::new(2), 0x1_0000, 1, Engine::Bcs0, Pages::new(1), 0x2_0000);
        Context::new(hw, Engine::Bcs0, Planted::default())
    }

    /// The seqno of request `n` of a context, from 1.
    fn nth(n: u32) -> u32 {
        SEQNO_BEFORE_FIRST + n
    }

    fn emit(context: &mut Context<Pages>, bytes: u32) -> Option<u32> {
        let seqno = context.begin(bytes)?;
        (0..bytes / 4).for_each(|_| context.push(&[0xffff_ffff]));
        context.end(seqno);
        Some(seqno)
    }

    fn complete(context: &Context<Pages>, seqno: u32) {
        context.hw.image.write32(SEQNO_OFFSET as usize, seqno);
    }

    #[test]
    fn a_tail_that_does_not_move_forces_a_restore() {
        let hw = testing::hw(Engine::Rcs0, 9);
        assert!(!hw.update(64).force_restore());
        assert!(!hw.update(72).force_restore());
        assert!(hw.update(72).force_restore());
        assert!(!hw.update(8).force_restore(), "a tail that wrapped has moved");
    }

    #[test]
    fn a_request_that_does_not_fit_before_the_end_begins_at_zero_after_noops() {
        let mut context = context();
        for _ in 0..4 {
            assert!(emit(&mut context, 1000).is_some());
        }
        complete(&context, nth(4));
        assert_eq!(emit(&mut context, 1000), Some(nth(5)));
        assert_eq!(context.position(), 1000);
        assert!((4000..4096).step_by(4).all(|at| context.hw.ring.read32(at) == mi::NOOP));
    }

    #[test]
    fn a_full_ring_says_for_which_request_to_wait() {
        let mut context = context();
        for _ in 0..4 {
            assert!(emit(&mut context, 1000).is_some());
        }
        assert_eq!(context.begin(1000), None);
        // 96 bytes of padding and 1000 of its own: what the first request gives back is not enough.
        assert_eq!(context.seqno_before_room(1000), Some(nth(2)));
        complete(&context, nth(1));
        assert_eq!(context.begin(1000), None);
        complete(&context, nth(2));
        assert_eq!(context.begin(1000), Some(nth(5)));
    }

    #[test]
    fn a_ring_is_never_filled_to_the_last_qword() {
        let mut context = context();
        assert!(emit(&mut context, 4096 - 8).is_some());
        complete(&context, nth(1));
        assert_eq!(context.retire(), 1);
        let mut context = self::context();
        assert_eq!(context.begin(4096), None);
    }

    #[test]
    fn seqnos_pass_over_zero_and_compare_over_the_wrap() {
        let mut context = context();
        context.last_seqno = u32::MAX - 1;
        complete(&context, u32::MAX - 1);
        assert_eq!(emit(&mut context, 64), Some(u32::MAX));
        assert_eq!(emit(&mut context, 64), Some(1));
        complete(&context, u32::MAX);
        assert_eq!(context.retire(), 1);
        complete(&context, 1);
        assert_eq!(context.retire(), 1);
    }
}
