//! Choosing registers, addresses and values.

use arbitrary::{Result, Unstructured};
use execlab_abi::engine::Engine;
use execlab_abi::{ggtt, gt, guc, irq, lab, ring};

use super::layout;

/// Per-engine registers with a meaning.
const ENGINE_REGS: [u32; 24] = [
    ring::TAIL,
    ring::HEAD,
    ring::START,
    ring::CTL,
    ring::ACTHD,
    ring::HWS_PGA,
    ring::HWSTAM,
    ring::MI_MODE,
    ring::IMR,
    ring::EIR,
    ring::EMR,
    ring::ESR,
    ring::RESET_CTL,
    ring::ELSP,
    ring::ELSP,
    ring::ELSP,
    ring::EXECLIST_STATUS_LO,
    ring::EXECLIST_STATUS_HI,
    ring::CONTEXT_CONTROL,
    ring::MODE,
    ring::TIMESTAMP,
    ring::CONTEXT_STATUS_BUF,
    ring::CONTEXT_STATUS_PTR,
    ring::FORCE_TO_NONPRIV,
];

/// Registers of no engine with a meaning.
const GLOBAL_REGS: [u32; 14] = [
    irq::MASTER,
    irq::isr(0),
    irq::imr(1),
    irq::iir(0),
    irq::iir(3),
    irq::ier(2),
    gt::GDRST,
    gt::FORCEWAKE[0],
    gt::FORCEWAKE_ACK[0],
    guc::SOFT_SCRATCH0,
    guc::SEND_INTERRUPT,
    lab::CS_BUSY,
    lab::ERROR_COUNT,
    lab::ERROR_CLEAR,
];

/// An engine.
pub fn engine(u: &mut Unstructured<'_>) -> Result<Engine> {
    Ok(*u.choose(&Engine::ALL)?)
}

/// A BAR offset: mostly a register with a meaning, sometimes a GGTT entry, sometimes any dword.
pub fn register(u: &mut Unstructured<'_>) -> Result<u32> {
    Ok(match u.int_in_range(0..=15)? {
        0..=8 => engine(u)?.reg(*u.choose(&ENGINE_REGS)?),
        9..=11 => *u.choose(&GLOBAL_REGS)?,
        12 | 13 => {
            ggtt::pte_offset(layout::ggtt(u.int_in_range(0..=layout::PAGES)?))
                + 4 * (u.int_in_range(0..=1)?)
        }
        14 => u.int_in_range(0..=lab::ERROR_CLEAR + 64)?,
        _ => u.arbitrary()?,
    })
}

/// A value: small, an edge, a masked write, a GGTT address, or any dword.
pub fn value(u: &mut Unstructured<'_>) -> Result<u32> {
    Ok(match u.int_in_range(0..=7)? {
        0 => 0,
        1 => u32::MAX,
        2 => u.int_in_range(0..=255)?,
        3 => 1 << u.int_in_range(0..=31)?,
        4 => 0x1_0001 << u.int_in_range(0..=15)?,
        5 | 6 => ggtt_address(u)?,
        _ => u.arbitrary()?,
    })
}

/// A GGTT address: mostly a mapped one, with a preference for the edges of a page.
pub fn ggtt_address(u: &mut Unstructured<'_>) -> Result<u32> {
    let page = layout::ggtt(u.int_in_range(0..=layout::PAGES)?);
    Ok(match u.int_in_range(0..=7)? {
        0 => u.arbitrary()?,
        1 => page.wrapping_sub(4),
        2 => page + 0xffc,
        3 => page + u.int_in_range(0..=0xfff)?,
        4 => page,
        _ => page + 4 * u.int_in_range(0..=0x3ff)?,
    })
}

/// The two dwords of a 48-bit address, mostly a GGTT one.
pub fn address(u: &mut Unstructured<'_>) -> Result<[u32; 2]> {
    let high = if u.ratio(1, 8)? { value(u)? } else { 0 };
    Ok([ggtt_address(u)?, high])
}

/// A byte offset in the page of seqnos and a value: few of each, so that who waits and who writes meet.
pub fn signal(u: &mut Unstructured<'_>) -> Result<[u32; 2]> {
    Ok([4 * u.int_in_range(0..=1)?, u.int_in_range(0..=3)?])
}

/// Nanoseconds to let pass: none, few, as many as a request takes, rarely more.
pub fn nanoseconds(u: &mut Unstructured<'_>) -> Result<u64> {
    Ok(match u.int_in_range(0..=15)? {
        0..=3 => 0,
        4..=7 => u.int_in_range(0..=255)?,
        8..=14 => u.int_in_range(0..=0x3fff)?,
        _ => u.int_in_range(0..=1_000_000)?,
    })
}
