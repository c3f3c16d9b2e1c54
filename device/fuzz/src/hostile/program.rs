//! Command programs: what a hostile guest puts into a ring or a batch.

use arbitrary::{Result, Unstructured};
use execlab_abi::{lab, mi};

use super::{layout, pick};

/// Most commands in a program.
const MAX_COMMANDS: usize = 24;

/// A program of commands with arguments, a few of them broken.
pub fn program(u: &mut Unstructured<'_>) -> Result<Vec<u32>> {
    let mut out = Vec::new();
    for _ in 0..u.int_in_range(0..=MAX_COMMANDS)? {
        let at = out.len();
        command(u, &mut out)?;
        if u.ratio(1, 16)? {
            // A length field that does not fit the command, or another opcode over the same arguments.
            out[at] ^= 1 << u.int_in_range(0..=31)?;
        }
    }
    Ok(out)
}

/// Appends one command.
fn command(u: &mut Unstructured<'_>, out: &mut Vec<u32>) -> Result<()> {
    match u.int_in_range(0..=19)? {
        0 => out.push(mi::NOOP),
        1 => out.push(mi::USER_INTERRUPT),
        2 => out.push(mi::ARB_CHECK),
        3 => out.push(mi::ARB_DISABLE),
        4 => out.push(mi::ARB_ENABLE),
        5 => out.push(mi::BATCH_BUFFER_END),
        6 => {
            let [at, value] = pick::signal(u)?;
            out.extend([mi::STORE_DWORD_GGTT, layout::ggtt(layout::seqnos()) + at, 0, value]);
        }
        7 => {
            out.push(mi::STORE_DWORD_GGTT);
            out.extend(pick::address(u)?);
            out.push(pick::value(u)?);
        }
        8 => {
            out.push(mi::STORE_DWORD_GGTT | mi::STORE_QWORD | 1);
            out.extend(pick::address(u)?);
            out.extend([pick::value(u)?, pick::value(u)?]);
        }
        9 => {
            let pairs = u.int_in_range(1..=4)?;
            out.push(mi::load_register_imm(pairs));
            for _ in 0..pairs {
                out.extend([pick::register(u)?, pick::value(u)?]);
            }
        }
        10 => out.extend([mi::load_register_imm(1), lab::CS_BUSY, u.int_in_range(0..=100_000)?]),
        11 => {
            let header = *u.choose(&[mi::STORE_REGISTER_MEM_GGTT, mi::LOAD_REGISTER_MEM_GGTT])?;
            out.extend([header, pick::register(u)?]);
            out.extend(pick::address(u)?);
        }
        12 => {
            let compare = u.int_in_range(0..=7)? << mi::SEMAPHORE_COMPARE_SHIFT;
            out.push(mi::SEMAPHORE_WAIT_POLL_GGTT | compare);
            if u.ratio(1, 4)? {
                out.push(pick::value(u)?);
                out.extend(pick::address(u)?);
            } else {
                let [at, value] = pick::signal(u)?;
                out.extend([value, layout::ggtt(layout::seqnos()) + at, 0]);
            }
        }
        13 | 14 => batch_start(u, out)?,
        15 => {
            let flags = *u.choose(&[0, mi::FLUSH_STORE_INDEX, mi::FLUSH_NOTIFY])?;
            out.push(mi::FLUSH_DW_STORE | flags);
            let [low, high] = pick::address(u)?;
            out.extend([low | mi::FLUSH_DW_GGTT, high, pick::value(u)?]);
        }
        16 => {
            let sync = u.int_in_range(0..=3)? << mi::POST_SYNC_SHIFT;
            let flags = *u.choose(&[0, mi::FLUSH_STORE_INDEX, mi::FLUSH_NOTIFY])?;
            out.extend([mi::PIPE_CONTROL, mi::PIPE_CONTROL_GGTT | sync | flags]);
            out.extend(pick::address(u)?);
            out.extend([pick::value(u)?, pick::value(u)?]);
        }
        17 => out.push(*u.choose(&[mi::CLASS_2D, mi::CLASS_3D])? << 29 | u.int_in_range(0..=0xff)?),
        // MI commands that the laboratory's driver never uses.
        18 => out.push(u.int_in_range(0..=0x3f)? << 23 | u.int_in_range(0..=0xff)?),
        _ => out.push(u.arbitrary()?),
    }
    Ok(())
}

/// Appends a jump: into a batch, into a ring, into the middle of something, through either address space.
fn batch_start(u: &mut Unstructured<'_>, out: &mut Vec<u32>) -> Result<()> {
    let space = *u.choose(&[0, 0, mi::BATCH_PPGTT])?;
    let level = *u.choose(&[0, mi::BATCH_SECOND_LEVEL])?;
    out.push(mi::BATCH_BUFFER_START_GGTT | space | level);
    if u.ratio(3, 4)? {
        out.extend([layout::ggtt(layout::batch(u.int_in_range(0..=3)?)), 0]);
    } else {
        out.extend(pick::address(u)?);
    }
    Ok(())
}
