//! Requests: what is emitted into a ring.

use alloc::sync::Arc;

use execlab_abi::engine::Engine;
use execlab_abi::{lab, mi};

use crate::bus::Dma;
use crate::context::{Context, ContextHw};
use crate::error::SubmitError;

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
    /// Tail right after the breadcrumb.
    pub(crate) tail: u32,
    /// Tail after the two dwords of WaIdleLiteRestore.
    pub(crate) wa_tail: u32,
}

// Not derived: that would ask D to be Clone.
impl<D> Clone for Request<D> {
    fn clone(&self) -> Self {
        Self { hw: Arc::clone(&self.hw), priority: self.priority, tail: self.tail, wa_tail: self.wa_tail }
    }
}

/// Most dwords that one request takes.
const MAX_DWORDS: u32 = 24;

/// Emits a request into the context's ring (`gen8_emit_bb_start`, `gen8_emit_breadcrumb`).
pub(crate) fn emit<D: Dma>(
    context: &mut Context<D>,
    engine: Engine,
    spec: RequestSpec,
) -> Result<Request<D>, SubmitError> {
    if context.room() < 4 * MAX_DWORDS {
        context.retire();
        if context.room() < 4 * MAX_DWORDS {
            return Err(SubmitError::RingFull);
        }
    }
    // Seqno 0 is what a fresh timeline holds; it is passed over at the wrap.
    let seqno = context.last_seqno.wrapping_add(1).max(1);
    if let Some(batch) = spec.batch {
        for dword in [mi::ARB_ENABLE, mi::BATCH_BUFFER_START_GGTT, batch, 0, mi::ARB_DISABLE, mi::NOOP] {
            context.push(dword);
        }
    }
    let address = context.hw.seqno_address;
    if engine == Engine::Rcs0 {
        let flags = mi::PIPE_CONTROL_CS_STALL
            | mi::PIPE_CONTROL_GGTT
            | (mi::POST_SYNC_IMMEDIATE << mi::POST_SYNC_SHIFT);
        for dword in [mi::PIPE_CONTROL, flags, address, 0, seqno, 0] {
            context.push(dword);
        }
    } else {
        for dword in [mi::FLUSH_DW_STORE, address | mi::FLUSH_DW_GGTT, 0, seqno] {
            context.push(dword);
        }
    }
    context.push(mi::USER_INTERRUPT);
    context.push(mi::ARB_ENABLE);
    let tail = context.emit;
    // WaIdleLiteRestore: room by which the tail can move when the request is submitted again.
    context.push(mi::ARB_CHECK);
    context.push(mi::NOOP);
    let wa_tail = context.emit;
    context.last_seqno = seqno;
    context.pending.push_back((seqno, wa_tail));
    Ok(Request { hw: Arc::clone(&context.hw), priority: context.priority, tail, wa_tail })
}
