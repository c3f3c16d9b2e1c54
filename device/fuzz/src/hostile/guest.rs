//! A correct guest: what a driver sets up, and the submission that has to work whatever happened before.

use execlab_abi::context as image;
use execlab_abi::csb::{self, Entry};
use execlab_abi::descriptor::Descriptor;
use execlab_abi::engine::Engine;
use execlab_abi::{ggtt, gt, irq, lab, mi, ring};

use super::bus::Bus;
use super::layout;

/// Descriptor of a context.
#[must_use]
pub fn descriptor(context: u32) -> Descriptor {
    Descriptor::new(layout::ggtt(layout::image(context)), 0x100 + context)
}

/// How the device is brought back before the correct submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// As a driver does: RESET_CTL, GDRST, then every register again.
    Engines,
    /// As a new client does: the device's full reset.
    Full,
}

/// Sets up GGTT, status pages, page tables, images with empty rings, execlists and interrupts.
pub fn set_up(bus: &mut impl Bus) {
    for page in 0..layout::PAGES {
        map(bus, page, ggtt::pte(layout::gpa(page)));
    }
    for level in 1..4 {
        let next = layout::gpa(layout::table(level - 1)) as u32;
        bus.put(layout::table(level), 0, next | 3);
    }
    for n in 0..layout::PAGES {
        // One to one behind the GGTT's addresses, so that a wrong address space is not an early end.
        let entry = (layout::GGTT >> 12) + n;
        bus.put(layout::table(0), 8 * entry, layout::gpa(n) as u32 | 3);
    }
    for context in 0..layout::CONTEXTS {
        set_up_image(bus, context);
    }
    for engine in Engine::ALL {
        let hwsp = layout::hwsp(engine);
        for entry in 0..csb::ENTRIES {
            bus.put_all(hwsp, Entry::hwsp_offset(entry), &[u32::MAX; 2]);
        }
        bus.write(engine.reg(ring::RESET_CTL), ring::masked_clear(ring::RESET_CTL_REQUEST));
        bus.write(engine.reg(ring::MI_MODE), ring::masked_clear(ring::MI_MODE_STOP_RING));
        bus.write(engine.reg(ring::HWSTAM), u32::MAX);
        bus.write(engine.reg(ring::HWS_PGA), layout::ggtt(hwsp));
        bus.write(engine.reg(ring::MODE), ring::masked_set(ring::MODE_RUN_LIST_ENABLE));
        bus.write(engine.reg(ring::IMR), 0);
        bus.write(engine.reg(ring::EMR), u32::MAX);
        bus.write(engine.reg(ring::EIR), u32::MAX);
    }
    for bank in 0..irq::BANKS {
        bus.write(irq::imr(bank), 0);
        bus.write(irq::iir(bank), u32::MAX);
        bus.write(irq::ier(bank), u32::MAX);
    }
    bus.write(irq::MASTER, irq::MASTER_ENABLE);
}

/// Writes the GGTT entry of a page.
pub fn map(bus: &mut impl Bus, page: u32, pte: u64) {
    let offset = ggtt::pte_offset(layout::ggtt(page));
    bus.write(offset, pte as u32);
    bus.write(offset + 4, (pte >> 32) as u32);
}

/// Writes a valid image with an empty ring.
pub fn set_up_image(bus: &mut impl Bus, context: u32) {
    let page = layout::image(context) + 1;
    let mut set = |index: usize, value: u32| bus.put(page, 4 * index as u32, value);
    set(image::CONTEXT_CONTROL, ring::masked_set(image::CTL_INHIBIT_SYN_CTX_SWITCH));
    set(image::RING_START, layout::ggtt(layout::ring(context)));
    set(image::RING_CTL, ring::ctl(0x1000));
    set(image::PDP0_LDW, layout::gpa(layout::table(3)) as u32);
}

/// Puts `commands` at the start of a context's ring and lets its tail follow them.
pub fn fill_ring(bus: &mut impl Bus, context: u32, commands: &[u32]) {
    bus.put_all(layout::ring(context), 0, commands);
    let tail = (4 * commands.len() as u32).next_multiple_of(8);
    bus.put(layout::image(context) + 1, 4 * image::RING_TAIL as u32, tail);
}

/// Writes the four ELSP dwords.
pub fn submit(bus: &mut impl Bus, engine: Engine, first: Descriptor, second: Descriptor) {
    for word in [second.hi, second.lo, first.hi, first.lo] {
        bus.write(engine.reg(ring::ELSP), word);
    }
}

/// Brings the device back and has it run two requests on `engine`.
///
/// # Errors
/// What a driver would have found wrong.
pub fn serve(bus: &mut impl Bus, engine: Engine, recovery: Recovery) -> Result<(), String> {
    recover(bus, recovery)?;
    bus.forget();
    set_up(bus);
    bus.write(lab::ERROR_CLEAR, 1);
    let force = (0xffff << 16) | (csb::RESET_WRITE_INDEX << 8) | csb::RESET_WRITE_INDEX;
    bus.write(engine.reg(ring::CONTEXT_STATUS_PTR), force);
    for context in 0..2 {
        let seqno = layout::ggtt(layout::seqnos()) + 16 * context;
        let batch = layout::ggtt(layout::batch(context));
        bus.put(layout::batch(context), 0, mi::BATCH_BUFFER_END);
        let store = [mi::FLUSH_DW_STORE, seqno | mi::FLUSH_DW_GGTT, 0, 7 + context];
        let commands = [
            [mi::ARB_ENABLE, mi::BATCH_BUFFER_START_GGTT, batch, 0],
            store,
            [mi::USER_INTERRUPT, mi::ARB_CHECK, mi::NOOP, mi::NOOP],
        ];
        fill_ring(bus, context, commands.as_flattened());
    }
    let _ = bus.take_interrupts();
    submit(bus, engine, descriptor(0), descriptor(1));
    bus.finish()?;
    served(bus, engine)
}

/// Resets the device.
fn recover(bus: &mut impl Bus, recovery: Recovery) -> Result<(), String> {
    if recovery == Recovery::Full {
        bus.reset();
        return Ok(());
    }
    bus.write(irq::MASTER, 0);
    for engine in Engine::ALL {
        bus.write(engine.reg(ring::RESET_CTL), ring::masked_set(ring::RESET_CTL_REQUEST));
    }
    bus.write(gt::GDRST, gt::GRDOM_FULL);
    bus.finish().map_err(|e| format!("in reset: {e}"))?;
    match bus.read(gt::GDRST) {
        0 => Ok(()),
        left => Err(format!("GDRST still reads {left:#x} after the reset")),
    }
}

/// Whether two requests ran as they should have.
fn served(bus: &mut impl Bus, engine: Engine) -> Result<(), String> {
    let expect = |what: &str, got: u64, want: u64| match got == want {
        true => Ok(()),
        false => Err(format!("after the reset a correct guest finds {what} {got:#x} instead of {want:#x}")),
    };
    expect("the error count", bus.read(lab::ERROR_COUNT).into(), 0)?;
    for context in 0..2 {
        let seqno = bus.get(layout::seqnos(), 16 * context);
        expect("a seqno", seqno.into(), 7 + u64::from(context))?;
    }
    let hwsp = layout::hwsp(engine);
    expect("the CSB write index", bus.get(hwsp, csb::HWSP_WRITE_INDEX).into(), 2)?;
    let ids = [0, descriptor(0).context_id(), descriptor(1).context_id()];
    let statuses = [csb::IDLE_ACTIVE, csb::COMPLETE | csb::ELEMENT_SWITCH, csb::COMPLETE | csb::ACTIVE_IDLE];
    for (at, (status, context_id)) in (0..).zip(statuses.into_iter().zip(ids)) {
        let offset = Entry::hwsp_offset(at);
        let got = [bus.get(hwsp, offset), bus.get(hwsp, offset + 4)];
        let got = u64::from(got[0]) | u64::from(got[1]) << 32;
        expect("a CSB entry", got, Entry { status, context_id }.to_qword())?;
    }
    let identities = bus.take_interrupts();
    expect("interrupts", engine.irq_bits(&identities).into(), (irq::USER | irq::CONTEXT_SWITCH).into())
}
