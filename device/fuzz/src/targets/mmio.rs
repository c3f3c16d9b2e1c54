//! Register writes, memory contents and time in any order.

use arbitrary::{Result, Unstructured};
use execlab_abi::descriptor::Descriptor;
use execlab_abi::lab::Violation;
use execlab_abi::{context as image, ggtt};

use super::gpu;
use crate::hostile::bus::Bus as _;
use crate::hostile::{guest, lab, layout, pick, program};
use crate::{Target, Verdict};

/// Most steps in a case.
const MAX_STEPS: usize = 48;

/// A guest that does anything, in any order.
pub const TARGET: Target = Target {
    name: "mmio",
    about: "register writes, memory contents and time in any order, into the GPU model",
    max_len: 1024,
    labels: &lab::labels(&[Violation::BadDescriptorChain]),
    seeds: gpu::seeds,
    runner: || gpu::runner(play),
};

/// Plays the steps that the bytes describe. The end of the bytes ends the case.
fn play(lab: &mut lab::Lab, u: &mut Unstructured<'_>) -> Verdict {
    // Running out of bytes is not wrong.
    let _ = steps(lab, u);
    Ok(lab.world.reached)
}

fn steps(lab: &mut lab::Lab, u: &mut Unstructured<'_>) -> Result<()> {
    if u.ratio(7, 8)? {
        guest::set_up(lab);
    }
    for _ in 0..MAX_STEPS {
        if u.is_empty() {
            break;
        }
        step(lab, u)?;
    }
    Ok(())
}

fn step(lab: &mut lab::Lab, u: &mut Unstructured<'_>) -> Result<()> {
    match u.int_in_range(0..=15)? {
        0..=3 => {
            let (register, value) = (pick::register(u)?, pick::value(u)?);
            lab.write(register, value);
        }
        4 => {
            let _ = lab.read(pick::register(u)?);
        }
        5 => lab.advance(pick::nanoseconds(u)?),
        6 => lab.settle(u.int_in_range(1..=24)?, 1_000_000),
        7..=9 => {
            let (engine, first, second) = (pick::engine(u)?, element(u)?, element(u)?);
            guest::submit(lab, engine, first, second);
        }
        10 | 11 => {
            let context = u.int_in_range(0..=layout::CONTEXTS - 1)?;
            guest::fill_ring(lab, context, &program::program(u)?);
        }
        12 => {
            let batch = layout::batch(u.int_in_range(0..=3)?);
            lab.put_all(batch, 0, &program::program(u)?);
        }
        13 => {
            if u.ratio(1, 4)? {
                let [at, value] = pick::signal(u)?;
                lab.put(layout::seqnos(), at, value);
                return Ok(());
            }
            let (page, at) = (u.int_in_range(0..=layout::PAGES - 1)?, u.int_in_range(0..=0x3ff)?);
            // Half of all stores go to where an image keeps its registers.
            let at = if u.arbitrary()? { at % (image::PDP0_LDW as u32 + 1) } else { at };
            lab.put(page, 4 * at, pick::value(u)?);
        }
        14 => {
            let page = u.int_in_range(0..=layout::PAGES - 1)?;
            let to = match u.int_in_range(0..=3)? {
                0 => 0,
                1 => ggtt::pte(layout::gpa(u.int_in_range(0..=layout::PAGES)?)),
                2 => u.arbitrary()?,
                _ => ggtt::pte(u64::MAX),
            };
            guest::map(lab, page, to);
        }
        _ => {
            let _ = lab.take_interrupts();
        }
    }
    Ok(())
}

/// One element of a submission: mostly a context, sometimes with a bit turned over, sometimes none.
fn element(u: &mut Unstructured<'_>) -> Result<Descriptor> {
    let good = guest::descriptor(u.int_in_range(0..=layout::CONTEXTS - 1)?);
    Ok(match u.int_in_range(0..=7)? {
        0..=3 => good,
        4 => good.with_force_restore(),
        5 => Descriptor::NULL,
        6 => Descriptor { lo: good.lo ^ (1 << u.int_in_range(0..=31)?), hi: good.hi },
        _ => Descriptor { lo: pick::value(u)?, hi: pick::value(u)? },
    })
}
