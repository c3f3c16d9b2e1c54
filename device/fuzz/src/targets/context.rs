//! Well-formed submissions of contexts whose images, rings and batches are not.

use arbitrary::{Result, Unstructured};
use execlab_abi::context as image;
use execlab_abi::descriptor::Descriptor;
use execlab_abi::lab::Violation;

use super::gpu;
use crate::hostile::bus::Bus as _;
use crate::hostile::{guest, lab, layout, pick, program};
use crate::{Target, Verdict};

/// Most submissions in a case.
const MAX_SUBMISSIONS: usize = 8;

/// A driver that is right about the port and wrong about everything behind it.
pub const TARGET: Target = Target {
    name: "context",
    about: "well-formed ELSP submissions of corrupt context images, rings and batches",
    max_len: 1024,
    labels: &lab::labels(&OUT_OF_REACH),
    seeds: gpu::seeds,
    runner: || gpu::runner(play),
};

/// Only a driver that is wrong about the port gets these.
const OUT_OF_REACH: [Violation; 6] = [
    Violation::InvalidDescriptor,
    Violation::SameContextTwice,
    Violation::ElspWhileOff,
    Violation::CsbOverrun,
    Violation::BadOffset,
    Violation::BadDescriptorChain,
];

/// Dwords of an image that mean something to the device.
const FIELDS: [usize; 9] = [
    image::CONTEXT_CONTROL,
    image::RING_HEAD,
    image::RING_TAIL,
    image::RING_START,
    image::RING_CTL,
    image::BB_STATE,
    image::CTX_TIMESTAMP,
    image::PDP0_UDW,
    image::PDP0_LDW,
];

fn play(lab: &mut lab::Lab, u: &mut Unstructured<'_>) -> Verdict {
    guest::set_up(lab);
    // Running out of bytes is not wrong; what was written until then is played.
    let _ = corrupt(lab, u);
    for _ in 0..MAX_SUBMISSIONS {
        if u.is_empty() || submit(lab, u).is_err() {
            break;
        }
    }
    lab.settle(64, 1_000_000);
    Ok(lab.world.reached)
}

/// Fills rings and batches and spoils images.
fn corrupt(lab: &mut lab::Lab, u: &mut Unstructured<'_>) -> Result<()> {
    for n in 0..layout::CONTEXTS {
        guest::fill_ring(lab, n, &program::program(u)?);
        lab.put_all(layout::batch(n), 0, &program::program(u)?);
    }
    for _ in 0..u.int_in_range(0..=4)? {
        let page = layout::image(u.int_in_range(0..=layout::CONTEXTS - 1)?) + 1;
        let field = if u.ratio(3, 4)? { *u.choose(&FIELDS)? } else { u.int_in_range(0..=63)? };
        lab.put(page, 4 * field as u32, pick::value(u)?);
    }
    for _ in 0..u.int_in_range(0..=2)? {
        // An entry of a page table that leads astray.
        let (level, at) = (u.int_in_range(0..=3)?, u.int_in_range(0..=3)?);
        lab.put(layout::table(level), 4 * at, pick::value(u)?);
    }
    Ok(())
}

/// Submits one or two different contexts, and lets some time pass.
fn submit(lab: &mut lab::Lab, u: &mut Unstructured<'_>) -> Result<()> {
    let engine = pick::engine(u)?;
    let first = u.int_in_range(0..=layout::CONTEXTS - 1)?;
    let second = match u.int_in_range(0..=layout::CONTEXTS - 1)? {
        0 => Descriptor::NULL,
        other => guest::descriptor((first + other) % layout::CONTEXTS),
    };
    let first = guest::descriptor(first);
    let first = if u.ratio(1, 4)? { first.with_force_restore() } else { first };
    guest::submit(lab, engine, first, second);
    match u.int_in_range(0..=3)? {
        0 => {
            let [at, value] = pick::signal(u)?;
            lab.put(layout::seqnos(), at, value);
        }
        1 => lab.advance(pick::nanoseconds(u)?),
        _ => lab.settle(24, 1_000_000),
    }
    Ok(())
}
