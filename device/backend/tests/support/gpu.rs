//! A driver's first steps: GGTT, status page, one context with a request.

use execlab_abi::csb::{self, Entry};
use execlab_abi::descriptor::Descriptor;
use execlab_abi::engine::Engine;
use execlab_abi::{context, ggtt, irq, mi, ring};
use vm_memory::{Bytes as _, GuestAddress};

use super::{BASE, Guest};

/// The engine that the tests use.
pub const ENGINE: Engine = Engine::Bcs0;
/// Guest-physical address of GGTT address 0.
const GGTT_BASE: u64 = BASE + 0x10_0000;
/// Pages mapped.
const PAGES: u32 = 256;
/// GGTT address of the status page.
pub const HWSP: u32 = 0x1000;
/// GGTT address of the context.
const LRCA: u32 = 0x1_0000;
/// Its ring.
const RING: u32 = 0x1_2000;
/// GGTT address of a batch.
const BATCH: u32 = 0x1_4000;
/// Bytes of the ring.
const RING_SIZE: u32 = 4096;
/// Context id.
pub const ID: u32 = 0x77;
/// GGTT address of the seqno.
pub const SEQNO: u32 = LRCA + 0x100;

impl Guest {
    pub fn poke(&self, ggtt: u32, value: u32) {
        self.memory.write_obj(value, GuestAddress(GGTT_BASE + u64::from(ggtt))).unwrap();
    }

    pub fn peek(&self, ggtt: u32) -> u32 {
        self.memory
            .load(GuestAddress(GGTT_BASE + u64::from(ggtt)), std::sync::atomic::Ordering::Acquire)
            .unwrap()
    }

    /// Everything up to a context whose ring is empty.
    pub fn init_gpu(&mut self) {
        let mut writes = Vec::new();
        for page in 0..PAGES {
            let pte = ggtt::pte(GGTT_BASE + u64::from(page) * 4096);
            writes.push((ggtt::pte_offset(page << 12), pte as u32));
            writes.push((ggtt::pte_offset(page << 12) + 4, (pte >> 32) as u32));
        }
        writes.push((ENGINE.reg(ring::HWS_PGA), HWSP));
        writes.push((ENGINE.reg(ring::MODE), ring::masked_set(ring::MODE_RUN_LIST_ENABLE)));
        writes.push((ENGINE.reg(ring::IMR), 0));
        for bank in 0..irq::BANKS {
            writes.push((irq::imr(bank), 0));
            writes.push((irq::ier(bank), u32::MAX));
        }
        writes.push((irq::MASTER, irq::MASTER_ENABLE));
        for entry in 0..csb::ENTRIES {
            self.poke(HWSP + Entry::hwsp_offset(entry), u32::MAX);
            self.poke(HWSP + Entry::hwsp_offset(entry) + 4, u32::MAX);
        }
        self.post(&writes);
        let state = LRCA + context::STATE_OFFSET;
        self.poke(state + 4 * context::RING_START as u32, RING);
        self.poke(state + 4 * context::RING_CTL as u32, ring::ctl(RING_SIZE));
        self.poke(state + 4 * context::RING_HEAD as u32, 0);
        self.poke(state + 4 * context::RING_TAIL as u32, 0);
        self.poke(SEQNO, 0);
    }

    /// Puts request number `seqno` (from 1) into the ring: its store, a user interrupt.
    pub fn emit_request(&mut self, seqno: u32) {
        let commands =
            [mi::FLUSH_DW_STORE, SEQNO | mi::FLUSH_DW_GGTT, 0, seqno, mi::USER_INTERRUPT, mi::NOOP];
        let start = (seqno - 1) * 4 * commands.len() as u32;
        let end = start + 4 * commands.len() as u32;
        assert!(end < RING_SIZE, "this ring takes no more requests");
        for (at, command) in (0..).zip(commands) {
            self.poke(RING + start + 4 * at, command);
        }
        self.poke(LRCA + context::STATE_OFFSET + 4 * context::RING_TAIL as u32, end);
    }

    /// Makes the ring's only command the start of a batch that starts itself.
    pub fn emit_endless_batch(&mut self) {
        let start = [mi::BATCH_BUFFER_START_GGTT, BATCH, 0, mi::NOOP];
        for (at, command) in (0..).zip(start) {
            self.poke(RING + 4 * at, command);
            self.poke(BATCH + 4 * at, command);
        }
        self.poke(LRCA + context::STATE_OFFSET + 4 * context::RING_TAIL as u32, 16);
    }

    /// The four ELSP writes of the context alone.
    pub fn submission() -> [(u32, u32); 4] {
        let descriptor = Descriptor::new(LRCA, ID);
        [0, 0, descriptor.hi, descriptor.lo].map(|word| (ENGINE.reg(ring::ELSP), word))
    }

    /// A request and its submission.
    pub fn submit_request(&mut self, seqno: u32) {
        self.emit_request(seqno);
        self.post(&Self::submission());
    }

    /// CSB entry `index` of the status page.
    pub fn csb(&self, index: u32) -> Entry {
        let at = HWSP + Entry::hwsp_offset(index);
        Entry { status: self.peek(at), context_id: self.peek(at + 4) }
    }

    /// Waits until the CSB write index is `index`.
    pub fn wait_csb(&self, index: u32) {
        let begin = std::time::Instant::now();
        while self.peek(HWSP + csb::HWSP_WRITE_INDEX) & ring::CSB_WRITE_PTR_MASK != index {
            assert!(begin.elapsed() < super::PATIENCE, "no CSB entry {index}");
            std::thread::yield_now();
        }
    }
}
