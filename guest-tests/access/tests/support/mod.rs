//! The smallest thing that makes the device interrupt: submitting a context whose ring is empty.

use execlab_abi::descriptor::Descriptor;
use execlab_abi::engine::Engine;
use execlab_abi::wire::PostedWrite;
use execlab_abi::{context, csb, ggtt, irq, ring};
use execlab_access::{AnyDevice, Error, Pages};
use execlab_driver::bus::{Bus as _, Dma as _};

/// GGTT address of the first of four pages: HWSP, per-process status page, register state, ring.
const BASE: u32 = 0x10_0000;
const PAGE: u32 = 4096;
const ENGINE: Engine = Engine::Rcs0;
const CONTEXT_ID: u32 = 7;

fn set(offset: u32, value: u32) -> PostedWrite {
    PostedWrite { offset, value }
}

/// An empty context on the render engine, with the engine set up around it.
pub struct EmptyContext {
    pages: Pages,
}

impl EmptyContext {
    /// Maps the pages, fills the image, switches execlists and interrupts on.
    pub fn new(device: &AnyDevice) -> Result<Self, Error> {
        let pages = device.alloc(4)?;
        let image = |slot: usize, value: u32| pages.write32(2 * PAGE as usize + 4 * slot, value);
        image(context::RING_START, BASE + 3 * PAGE);
        image(context::RING_CTL, ring::ctl(PAGE));
        let mut writes = Vec::new();
        for n in 0..4 {
            let entry = ggtt::pte(pages.page_addr(n as usize));
            let at = ggtt::pte_offset(BASE + n * PAGE);
            writes.extend([set(at, entry as u32), set(at + 4, (entry >> 32) as u32)]);
        }
        let (bank, _) = ENGINE.irq_bank();
        writes.extend([
            set(ENGINE.reg(ring::HWS_PGA), BASE),
            set(ENGINE.reg(ring::MODE), ring::masked_set(ring::MODE_RUN_LIST_ENABLE)),
            set(ENGINE.reg(ring::IMR), 0),
            set(irq::imr(bank), 0),
            set(irq::ier(bank), u32::MAX),
            set(irq::MASTER, irq::MASTER_ENABLE),
        ]);
        device.write(&writes);
        Ok(Self { pages })
    }

    /// Writes the submit port.
    pub fn submit(&self, device: &AnyDevice) {
        let element = Descriptor::new(BASE + PAGE, CONTEXT_ID);
        let port = ENGINE.reg(ring::ELSP);
        device.write(&[0, 0, element.hi, element.lo].map(|word| set(port, word)));
    }

    /// The last CSB entry that the device has written to memory.
    pub fn last_event(&self) -> csb::Entry {
        let index = self.pages.load32_acquire(csb::HWSP_WRITE_INDEX as usize);
        csb::Entry::from_qword(self.pages.load64_acquire(csb::Entry::hwsp_offset(index) as usize))
    }
}
