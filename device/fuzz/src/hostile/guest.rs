//! A correct guest: what a driver sets up, and the submission that has to work whatever happened before.

use execlab_abi::context as image;
use execlab_abi::csb::{self, Entry};
use execlab_abi::descriptor::Descriptor;
use execlab_abi::engine::Engine;
use execlab_abi::{ggtt, gt, irq, lab, mi, ring};

use super::lab::Lab;
use super::layout;

/// Longest that a correct guest waits for a reset or for two requests, in nanoseconds of device time: 1 s.
const PATIENCE_NS: u64 = 1_000_000_000;

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
pub fn set_up(lab: &mut Lab) {
    for page in 0..layout::PAGES {
        map(lab, page, ggtt::pte(layout::gpa(page)));
    }
    for level in 1..4 {
        let next = layout::gpa(layout::table(level - 1)) as u32;
        lab.world.memory.put(layout::table(level), 0, next | 3);
    }
    for n in 0..layout::PAGES {
        // One to one behind the GGTT's addresses, so that a wrong address space is not an early end.
        let entry = (layout::GGTT >> 12) + n;
        lab.world.memory.put(layout::table(0), 8 * entry, layout::gpa(n) as u32 | 3);
    }
    for context in 0..layout::CONTEXTS {
        set_up_image(lab, context);
    }
    for engine in Engine::ALL {
        let hwsp = layout::hwsp(engine);
        for entry in 0..csb::ENTRIES {
            lab.world.memory.put_all(hwsp, Entry::hwsp_offset(entry), &[u32::MAX; 2]);
        }
        lab.write(engine.reg(ring::RESET_CTL), ring::masked_clear(ring::RESET_CTL_REQUEST));
        lab.write(engine.reg(ring::MI_MODE), ring::masked_clear(ring::MI_MODE_STOP_RING));
        lab.write(engine.reg(ring::HWSTAM), u32::MAX);
        lab.write(engine.reg(ring::HWS_PGA), layout::ggtt(hwsp));
        lab.write(engine.reg(ring::MODE), ring::masked_set(ring::MODE_RUN_LIST_ENABLE));
        lab.write(engine.reg(ring::IMR), 0);
        lab.write(engine.reg(ring::EMR), u32::MAX);
        lab.write(engine.reg(ring::EIR), u32::MAX);
    }
    for bank in 0..irq::BANKS {
        lab.write(irq::imr(bank), 0);
        lab.write(irq::iir(bank), u32::MAX);
        lab.write(irq::ier(bank), u32::MAX);
    }
    lab.write(irq::MASTER, irq::MASTER_ENABLE);
}

/// Writes the GGTT entry of a page.
pub fn map(lab: &mut Lab, page: u32, pte: u64) {
    let offset = ggtt::pte_offset(layout::ggtt(page));
    lab.write(offset, pte as u32);
    lab.write(offset + 4, (pte >> 32) as u32);
}

/// Writes a valid image with an empty ring.
pub fn set_up_image(lab: &mut Lab, context: u32) {
    let page = layout::image(context) + 1;
    let memory = &mut lab.world.memory;
    let mut set = |index: usize, value: u32| memory.put(page, 4 * index as u32, value);
    set(image::CONTEXT_CONTROL, ring::masked_set(image::CTL_INHIBIT_SYN_CTX_SWITCH));
    set(image::RING_START, layout::ggtt(layout::ring(context)));
    set(image::RING_CTL, ring::ctl(0x1000));
    set(image::PDP0_LDW, layout::gpa(layout::table(3)) as u32);
}

/// Puts `commands` at the start of a context's ring and lets its tail follow them.
pub fn fill_ring(lab: &mut Lab, context: u32, commands: &[u32]) {
    let memory = &mut lab.world.memory;
    memory.put_all(layout::ring(context), 0, commands);
    let tail = (4 * commands.len() as u32).next_multiple_of(8);
    memory.put(layout::image(context) + 1, 4 * image::RING_TAIL as u32, tail);
}

/// Writes the four ELSP dwords.
pub fn submit(lab: &mut Lab, engine: Engine, first: Descriptor, second: Descriptor) {
    for word in [second.hi, second.lo, first.hi, first.lo] {
        lab.write(engine.reg(ring::ELSP), word);
    }
}

/// Brings the device back and has it run two requests on `engine`.
///
/// # Errors
/// What a driver would have found wrong.
pub fn serve(lab: &mut Lab, engine: Engine, recovery: Recovery) -> Result<(), String> {
    recover(lab, recovery)?;
    lab.forget();
    set_up(lab);
    lab.write(lab::ERROR_CLEAR, 1);
    let force = (0xffff << 16) | (csb::RESET_WRITE_INDEX << 8) | csb::RESET_WRITE_INDEX;
    lab.write(engine.reg(ring::CONTEXT_STATUS_PTR), force);
    for context in 0..2 {
        let seqno = layout::ggtt(layout::seqnos()) + 16 * context;
        let batch = layout::ggtt(layout::batch(context));
        lab.world.memory.put(layout::batch(context), 0, mi::BATCH_BUFFER_END);
        let store = [mi::FLUSH_DW_STORE, seqno | mi::FLUSH_DW_GGTT, 0, 7 + context];
        let commands = [
            [mi::ARB_ENABLE, mi::BATCH_BUFFER_START_GGTT, batch, 0],
            store,
            [mi::USER_INTERRUPT, mi::ARB_CHECK, mi::NOOP, mi::NOOP],
        ];
        fill_ring(lab, context, commands.as_flattened());
    }
    let _ = lab.gpu.take_interrupts(lab.now, &mut lab.world);
    submit(lab, engine, descriptor(0), descriptor(1));
    lab.finish(PATIENCE_NS)?;
    served(lab, engine)
}

/// Resets the device.
fn recover(lab: &mut Lab, recovery: Recovery) -> Result<(), String> {
    if recovery == Recovery::Full {
        lab.gpu.reset(lab.now, &mut lab.world);
        return Ok(());
    }
    lab.write(irq::MASTER, 0);
    for engine in Engine::ALL {
        lab.write(engine.reg(ring::RESET_CTL), ring::masked_set(ring::RESET_CTL_REQUEST));
    }
    lab.write(gt::GDRST, gt::GRDOM_FULL);
    lab.finish(PATIENCE_NS).map_err(|e| format!("in reset: {e}"))?;
    match lab.read(gt::GDRST) {
        0 => Ok(()),
        left => Err(format!("GDRST still reads {left:#x} after the reset")),
    }
}

/// Whether two requests ran as they should have.
fn served(lab: &mut Lab, engine: Engine) -> Result<(), String> {
    let expect = |what: &str, got: u64, want: u64| match got == want {
        true => Ok(()),
        false => Err(format!("after the reset a correct guest finds {what} {got:#x} instead of {want:#x}")),
    };
    expect("the error count", lab.read(lab::ERROR_COUNT).into(), 0)?;
    for context in 0..2 {
        let seqno = lab.world.memory.get(layout::seqnos(), 16 * context);
        expect("a seqno", seqno.into(), 7 + u64::from(context))?;
    }
    let hwsp = layout::hwsp(engine);
    expect("the CSB write index", lab.world.memory.get(hwsp, csb::HWSP_WRITE_INDEX).into(), 2)?;
    let ids = [0, descriptor(0).context_id(), descriptor(1).context_id()];
    let statuses = [csb::IDLE_ACTIVE, csb::COMPLETE | csb::ELEMENT_SWITCH, csb::COMPLETE | csb::ACTIVE_IDLE];
    for (at, (status, context_id)) in (0..).zip(statuses.into_iter().zip(ids)) {
        let offset = Entry::hwsp_offset(at);
        let got = [lab.world.memory.get(hwsp, offset), lab.world.memory.get(hwsp, offset + 4)];
        let got = u64::from(got[0]) | u64::from(got[1]) << 32;
        expect("a CSB entry", got, Entry { status, context_id }.to_qword())?;
    }
    let identities = lab.gpu.take_interrupts(lab.now, &mut lab.world).unwrap_or_default();
    expect("interrupts", engine.irq_bits(&identities).into(), (irq::USER | irq::CONTEXT_SWITCH).into())
}
