//! Logical ring contexts: reading an image onto the engine, and saving what hardware saves.

use execlab_abi::context as image;
use execlab_abi::descriptor::{ADDRESSING_MODE_MASK, ADDRESSING_MODE_SHIFT, Descriptor, LEGACY_64B};
use execlab_abi::engine::Engine;
use execlab_abi::lab::Violation;
use execlab_abi::{mi, ring};

use crate::error::{Fault, low};
use crate::gpu::ticks;
use crate::ppgtt::Tables;
use crate::{Env, Gpu, TraceKind};

/// Dwords of the register-state page that the model reads.
const IMAGE_DWORDS: usize = image::PDP0_LDW + 1;

/// A place in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Frame {
    /// Address of the next command.
    pub address: u64,
    /// In the PPGTT, else in the GGTT.
    pub ppgtt: bool,
}

/// A context on the engine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context {
    /// GGTT address of the image.
    pub lrca: u32,
    /// Byte offset in the ring of the next command.
    pub head: u32,
    /// Byte offset in the ring at which execution ends.
    pub tail: u32,
    /// GGTT address of the ring.
    pub start: u32,
    /// Bytes of the ring.
    pub size: u32,
    /// RING_CTL as in the image.
    pub ctl: u32,
    /// Page tables.
    pub tables: Tables,
    /// First- and second-level batch.
    pub batch: [Frame; 2],
    /// Batches entered: 0 in the ring.
    pub depth: usize,
    /// Arbitration is on.
    pub arbitration: bool,
    /// The semaphore at the current place did not hold when last looked at.
    pub waiting: bool,
    save_inhibit: bool,
    saved_in_batch: bool,
    timestamp: u32,
    since: u64,
}

impl Context {
    /// Whether everything in the ring is done.
    #[inline]
    pub(crate) const fn finished(&self) -> bool {
        self.depth == 0 && self.head == self.tail
    }

    /// Moves past `dwords` dwords of ring or batch.
    #[inline]
    pub(crate) fn advance(&mut self, dwords: u32) {
        if self.depth > 0 {
            let frame = &mut self.batch[self.depth - 1];
            frame.address = frame.address.wrapping_add(u64::from(4 * dwords)) & mi::BATCH_ADDRESS_MASK;
        } else {
            let head = self.head + 4 * dwords;
            self.head = if head >= self.size { head - self.size } else { head };
        }
    }

    /// Bytes from head to tail.
    pub(crate) const fn remaining(&self) -> u32 {
        if self.tail >= self.head { self.tail - self.head } else { self.tail + self.size - self.head }
    }

    /// Address being executed, low dword.
    pub(crate) const fn place(&self) -> u32 {
        match self.depth {
            0 => self.start.wrapping_add(self.head),
            depth => low(self.batch[depth - 1].address),
        }
    }

    fn parse(lrca: u32, mode: u32, words: &[u32; IMAGE_DWORDS], t: u64) -> Result<Self, Fault> {
        let control = words[image::CONTEXT_CONTROL];
        let control = control & (control >> 16);
        let ctl = words[image::RING_CTL];
        let start = words[image::RING_START] & !0xfff;
        let size = ring::ctl_size(ctl);
        let head = words[image::RING_HEAD] & ring::HEAD_ADDR_MASK;
        let tail = words[image::RING_TAIL] & ring::TAIL_ADDR_MASK;
        if ctl & ring::CTL_VALID == 0 || head >= size || tail >= size {
            return Err(bad_ring(lrca, [start, ctl, head, tail]));
        }
        // The pairs run down from PDP3, upper dword first.
        let pdp = |n: usize| {
            let at = image::PDP3_UDW + 4 * (3 - n);
            (u64::from(words[at]) << 32) | u64::from(words[at + 2])
        };
        let tables = if mode == LEGACY_64B {
            Tables::Pml4(pdp(0))
        } else {
            Tables::Pdps([pdp(0), pdp(1), pdp(2), pdp(3)])
        };
        let mut context = Self {
            lrca,
            head,
            tail,
            start,
            size,
            ctl,
            tables,
            batch: [Frame::default(); 2],
            depth: 0,
            arbitration: true,
            waiting: false,
            save_inhibit: control & image::CTL_SAVE_INHIBIT != 0,
            saved_in_batch: false,
            timestamp: 0,
            since: t,
        };
        // With the restore inhibited only ring and page tables are taken: the rest starts afresh.
        if control & image::CTL_RESTORE_INHIBIT == 0 {
            context.timestamp = words[image::CTX_TIMESTAMP];
            let slots = [
                (image::BB_HEAD_UDW, image::BB_HEAD_LDW, image::BB_STATE),
                (image::SECOND_BB_HEAD_UDW, image::SECOND_BB_HEAD_LDW, image::SECOND_BB_STATE),
            ];
            for (depth, (upper, lower, state)) in slots.into_iter().enumerate() {
                if words[lower] & image::BB_HEAD_VALID == 0 {
                    break;
                }
                let address = (u64::from(words[upper]) << 32) | u64::from(words[lower]);
                context.batch[depth] = Frame {
                    address: address & mi::BATCH_ADDRESS_MASK,
                    ppgtt: words[state] & image::BB_STATE_PPGTT != 0,
                };
                context.depth = depth + 1;
                context.saved_in_batch = true;
            }
        }
        Ok(context)
    }
}

const fn bad_ring(lrca: u32, words: [u32; 4]) -> Fault {
    Fault::new(Violation::BadRing, lrca, words)
}

impl Gpu {
    /// Reads the running element's image onto the engine.
    pub(crate) fn load_context<E: Env>(&mut self, e: Engine, t: u64, env: &mut E) -> Result<(), Fault> {
        let Some(descriptor) = self.engines[e.index()].port.running() else { return Ok(()) };
        let address = state_page(descriptor.lrca());
        const BYTES: usize = 4 * IMAGE_DWORDS;
        let mut bytes = [0; BYTES];
        let gpa = self.ggtt.translate(address, BYTES as u32)?;
        env.read(gpa, &mut bytes).map_err(|_| self.ggtt.fault(address, BYTES as u32))?;
        let mut words = [0; IMAGE_DWORDS];
        for (word, b) in words.iter_mut().zip(bytes.chunks_exact(4)) {
            *word = u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
        }
        let mode = (descriptor.lo >> ADDRESSING_MODE_SHIFT) & ADDRESSING_MODE_MASK;
        let context = Context::parse(descriptor.lrca(), mode, &words, t)?;
        self.engines[e.index()].context = Some(context);
        self.stats.context_restores += 1;
        self.regs.publish(e.reg(ring::START), context.start, env);
        self.regs.publish(e.reg(ring::CTL), context.ctl, env);
        let Context { head, tail, .. } = context;
        self.trace(Some(e), TraceKind::ContextStart { id: descriptor.context_id(), head, tail }, t, env);
        Ok(())
    }

    /// Reads the tail again, as a lite restore does.
    pub(crate) fn reload_tail<E: Env>(
        &mut self,
        e: Engine,
        descriptor: Descriptor,
        env: &mut E,
    ) -> Result<(), Fault> {
        let address = state_page(descriptor.lrca()) + dword(image::RING_TAIL);
        let gpa = self.ggtt.translate(address, 4)?;
        let tail = env.load32_acquire(gpa).map_err(|_| self.ggtt.fault(address, 4))? & ring::TAIL_ADDR_MASK;
        if let Some(context) = &mut self.engines[e.index()].context {
            if tail >= context.size {
                let words = [context.start, context.ctl, context.head, tail];
                return Err(bad_ring(context.lrca, words));
            }
            context.tail = tail;
        }
        Ok(())
    }

    /// Saves the context on the engine into its image, and takes it off.
    pub(crate) fn save_context<E: Env>(&mut self, e: Engine, t: u64, env: &mut E) -> Result<(), Fault> {
        let state = &mut self.engines[e.index()];
        let id = state.port.running().map_or(0, Descriptor::context_id);
        let Some(context) = state.context.take() else { return Ok(()) };
        self.regs.publish(e.reg(ring::HEAD), context.head, env);
        self.trace(Some(e), TraceKind::ContextStop { id, head: context.head }, t, env);
        if context.save_inhibit {
            return Ok(());
        }
        self.stats.context_saves += 1;
        let page = state_page(context.lrca);
        let gpa = self.ggtt.translate(page, 4)?;
        let fault = self.ggtt.fault(page, 4);
        let mut put =
            |at: usize, value: u32| env.store32_release(gpa + u64::from(dword(at)), value).map_err(|_| fault);
        let ran = low(ticks(t).wrapping_sub(ticks(context.since)));
        put(image::RING_HEAD, context.head)?;
        put(image::CTX_TIMESTAMP, context.timestamp.wrapping_add(ran))?;
        if context.depth == 0 && !context.saved_in_batch {
            return Ok(());
        }
        let slots = [
            (image::BB_HEAD_UDW, image::BB_HEAD_LDW, image::BB_STATE),
            (image::SECOND_BB_HEAD_UDW, image::SECOND_BB_HEAD_LDW, image::SECOND_BB_STATE),
        ];
        for (depth, (upper, lower, state)) in slots.into_iter().enumerate() {
            if depth < context.depth {
                let Frame { address, ppgtt } = context.batch[depth];
                put(upper, low(address >> 32))?;
                put(lower, low(address) | image::BB_HEAD_VALID)?;
                put(state, if ppgtt { image::BB_STATE_PPGTT } else { 0 })?;
            } else {
                put(lower, 0)?;
            }
        }
        Ok(())
    }
}

/// GGTT address of the register-state page.
const fn state_page(lrca: u32) -> u32 {
    lrca.wrapping_add(image::STATE_OFFSET)
}

/// Byte offset of dword `at`.
const fn dword(at: usize) -> u32 {
    4 * at as u32
}
