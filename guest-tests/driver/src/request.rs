//! Requests: what is emitted into a ring.

use alloc::sync::Arc;

use execlab_abi::engine::Engine;
use execlab_abi::{lab, mi};

use crate::bus::Dma;
use crate::context::{Context, ContextHw};

/// A batch in memory that the device sees.
#[derive(Debug)]
pub struct Batch<D> {
    pub(crate) memory: D,
    pub(crate) address: u32,
}

impl<D: Dma> Batch<D> {
    /// Fills the batch: busy for `busy_ns` modelled nanoseconds (0: an empty batch), then its end.
    pub(crate) fn fill(&self, busy_ns: u32) {
        let mut at = 0;
        let mut push = |dword| {
            self.memory.write32(at, dword);
            at += 4;
        };
        if busy_ns > 0 {
            push(mi::load_register_imm(1));
            push(lab::CS_BUSY);
            push(busy_ns);
        }
        push(mi::BATCH_BUFFER_END);
    }

    /// GGTT address.
    #[must_use]
    pub const fn address(&self) -> u32 {
        self.address
    }
}

/// What a request is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestSpec {
    /// GGTT address of the batch to call; none emits the breadcrumb only.
    pub batch: Option<u32>,
}

/// A request in a queue or a port.
#[derive(Debug)]
pub(crate) struct Request<D> {
    pub(crate) hw: Arc<ContextHw<D>>,
    pub(crate) priority: i32,
    pub(crate) seqno: u32,
    /// Tail right after the breadcrumb.
    pub(crate) tail: u32,
    /// Tail after the two dwords of WaIdleLiteRestore.
    pub(crate) wa_tail: u32,
}

// Not derived: that would ask D to be Clone.
impl<D> Clone for Request<D> {
    fn clone(&self) -> Self {
        Self {
            hw: Arc::clone(&self.hw),
            priority: self.priority,
            seqno: self.seqno,
            tail: self.tail,
            wa_tail: self.wa_tail,
        }
    }
}

/// Dwords that call a batch, between arbitration on and off (`gen8_emit_bb_start`).
const CALL: u32 = 6;
/// Dwords of PIPE_CONTROL.
const STORE_RENDER: u32 = 6;
/// Dwords of MI_FLUSH_DW.
const STORE_OTHER: u32 = 4;
/// Dwords of the rest: user interrupt, arbitration on, the two of WaIdleLiteRestore.
const REST: u32 = 4;
/// Bytes of the shortest request, a breadcrumb on an engine other than render.
pub(crate) const MIN_BYTES: usize = 4 * (STORE_OTHER + REST) as usize;

/// Bytes that a request takes, an even number of dwords as RING_TAIL wants it.
pub(crate) const fn bytes(engine: Engine, spec: RequestSpec) -> u32 {
    let store = if matches!(engine, Engine::Rcs0) { STORE_RENDER } else { STORE_OTHER };
    let call = if spec.batch.is_some() { CALL } else { 0 };
    4 * (call + store + REST)
}

/// Emits a request into the context's ring (`gen8_emit_bb_start`, `gen8_emit_breadcrumb`); `None` when the ring has
/// no room even after retiring.
pub(crate) fn emit<D: Dma>(context: &mut Context<D>, spec: RequestSpec) -> Option<Request<D>> {
    let engine = context.engine();
    let seqno = context.begin(bytes(engine, spec))?;
    if let Some(batch) = spec.batch {
        context.push(&[mi::ARB_ENABLE, mi::BATCH_BUFFER_START_GGTT, batch, 0, mi::ARB_DISABLE, mi::NOOP]);
    }
    let address = context.hw.seqno_address;
    if engine == Engine::Rcs0 {
        let flags = mi::PIPE_CONTROL_CS_STALL
            | mi::PIPE_CONTROL_GGTT
            | (mi::POST_SYNC_IMMEDIATE << mi::POST_SYNC_SHIFT);
        context.push(&[mi::PIPE_CONTROL, flags, address, 0, seqno, 0]);
    } else {
        context.push(&[mi::FLUSH_DW_STORE, address | mi::FLUSH_DW_GGTT, 0, seqno]);
    }
    // Always emitted; RING_IMR decides whether it raises anything, and lets it through while somebody waits.
    context.push(&[mi::USER_INTERRUPT, mi::ARB_ENABLE]);
    let tail = context.position();
    // WaIdleLiteRestore: room by which the tail can move when the request is submitted again.
    context.push(&[mi::ARB_CHECK, mi::NOOP]);
    let wa_tail = context.position();
    context.end(seqno);
    Some(Request { hw: Arc::clone(&context.hw), priority: context.priority, seqno, tail, wa_tail })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planted::Planted;
    use crate::testing::Pages;

    #[test]
    fn a_request_takes_the_bytes_that_it_reserved_and_its_tails_are_a_qword_apart() {
        for engine in Engine::ALL {
            for batch in [None, Some(0x4_0000)] {
                let hw = ContextHw::new(Pages::new(2), 0x1_0000, 1, engine, Pages::new(1), 0x2_0000);
                let mut context = Context::new(hw, engine, Planted::default());
                let spec = RequestSpec { batch };
                let request = emit(&mut context, spec).unwrap();
                assert_eq!(request.wa_tail, bytes(engine, spec));
                assert_eq!(request.wa_tail - request.tail, 8);
                assert!(request.tail.is_multiple_of(8) && request.wa_tail as usize >= MIN_BYTES);
            }
        }
    }

    #[test]
    fn what_is_emitted_is_made_of_whole_commands_that_the_abi_knows() {
        let hw = ContextHw::new(Pages::new(2), 0x1_0000, 1, Engine::Rcs0, Pages::new(1), 0x2_0000);
        let mut context = Context::new(hw, Engine::Rcs0, Planted::default());
        let request = emit(&mut context, RequestSpec { batch: Some(0x4_0000) }).unwrap();
        let mut at = 0;
        let mut headers = alloc::vec::Vec::new();
        while at < request.wa_tail {
            let header = context.hw.ring.read32(at as usize);
            headers.push(header);
            at += 4 * mi::command_dwords(header).unwrap();
        }
        assert_eq!(at, request.wa_tail);
        assert!(headers.contains(&mi::BATCH_BUFFER_START_GGTT) && headers.contains(&mi::PIPE_CONTROL));
    }
}
