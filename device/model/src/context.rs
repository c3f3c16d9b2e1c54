//! Context images in memory: what restore takes and save leaves.

use execlab_abi::context;
use execlab_abi::descriptor::Descriptor;
use execlab_abi::lab::Violation;
use execlab_abi::ring;

use crate::env::Env;
use crate::error::Report;
use crate::translate::{Address, Fault, Ggtt};

/// Value slots of the batch head (`CTX_BB_HEAD_U/L`), saved when a context is preempted inside a batch. Bit 0 of the
/// low dword says that it is valid.
const BB_HEAD_U: usize = 13;
const BB_HEAD_L: usize = 15;
/// Value slots of the second-level batch head (`CTX_SECOND_BB_HEAD_U/L/STATE`).
const SECOND_BB_HEAD_U: usize = 19;
const SECOND_BB_HEAD_L: usize = 21;
const SECOND_BB_STATE: usize = 23;
/// BB_STATE bit 5: the batch lies in the PPGTT.
const BB_STATE_PPGTT: u32 = 1 << 5;
const BB_VALID: u32 = 1;

/// Where a batch stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(crate) address: u64,
    pub(crate) ppgtt: bool,
}

impl Batch {
    pub(crate) fn at(self) -> Address {
        if self.ppgtt { Address::Ppgtt(self.address) } else { Address::Ggtt(self.address as u32) }
    }
}

/// What the engine holds of the running context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Running {
    pub(crate) start: u32,
    pub(crate) size: u32,
    pub(crate) ctl: u32,
    pub(crate) head: u32,
    pub(crate) tail: u32,
    pub(crate) pml4: u64,
    pub(crate) control: u32,
    pub(crate) timestamp: u32,
    /// First-level batch, if inside one.
    pub(crate) batch: Option<Batch>,
    /// Second-level batch, if inside one.
    pub(crate) second: Option<Batch>,
}

/// Guest-physical address of value slot `slot` of the image at `lrca`.
fn slot_gpa(ggtt: &Ggtt, lrca: u32, slot: usize) -> Result<u64, Fault> {
    ggtt.translate(lrca.wrapping_add(context::STATE_OFFSET + 4 * slot as u32))
}

fn load<E: Env>(env: &mut E, ggtt: &Ggtt, lrca: u32, slot: usize) -> Result<u32, Fault> {
    let gpa = slot_gpa(ggtt, lrca, slot)?;
    env.load32_acquire(gpa).map_err(|_| Fault::Memory { address: u64::from(lrca), gpa })
}

fn store<E: Env>(env: &mut E, ggtt: &Ggtt, lrca: u32, slot: usize, value: u32) -> Result<(), Fault> {
    let gpa = slot_gpa(ggtt, lrca, slot)?;
    env.store32_release(gpa, value).map_err(|_| Fault::Memory { address: u64::from(lrca), gpa })
}

/// Reads the image of `descriptor`.
pub(crate) fn restore<E: Env>(env: &mut E, ggtt: &Ggtt, descriptor: Descriptor) -> Result<Running, Report> {
    let lrca = descriptor.lrca();
    let mut get = |slot| load(env, ggtt, lrca, slot);
    let ctl = get(context::RING_CTL)?;
    let batch_low = get(BB_HEAD_L)?;
    let batch = Batch {
        address: u64::from(batch_low & !3) | (u64::from(get(BB_HEAD_U)?) << 32),
        ppgtt: get(context::BB_STATE)? & BB_STATE_PPGTT != 0,
    };
    let second_low = get(SECOND_BB_HEAD_L)?;
    let second = Batch {
        address: u64::from(second_low & !3) | (u64::from(get(SECOND_BB_HEAD_U)?) << 32),
        ppgtt: get(SECOND_BB_STATE)? & BB_STATE_PPGTT != 0,
    };
    let in_batch = batch_low & BB_VALID != 0;
    let running = Running {
        start: get(context::RING_START)?,
        size: ring::ctl_size(ctl),
        ctl,
        head: get(context::RING_HEAD)? & ring::HEAD_ADDR_MASK,
        tail: get(context::RING_TAIL)? & ring::TAIL_ADDR_MASK,
        pml4: u64::from(get(context::PDP0_LDW)?) | (u64::from(get(context::PDP0_UDW)?) << 32),
        control: get(context::CONTEXT_CONTROL)?,
        timestamp: get(context::CTX_TIMESTAMP)?,
        batch: in_batch.then_some(batch),
        second: (in_batch && second_low & BB_VALID != 0).then_some(second),
    };
    check(&running, lrca)?;
    Ok(running)
}

/// Reads the tail again: all that a lite restore does.
pub(crate) fn resample_tail<E: Env>(
    env: &mut E,
    ggtt: &Ggtt,
    descriptor: Descriptor,
    running: &mut Running,
) -> Result<(), Report> {
    running.tail = load(env, ggtt, descriptor.lrca(), context::RING_TAIL)? & ring::TAIL_ADDR_MASK;
    check(running, descriptor.lrca())
}

/// Writes back what hardware saves: HEAD, the timestamp, and where a batch stands.
pub(crate) fn save<E: Env>(
    env: &mut E,
    ggtt: &Ggtt,
    descriptor: Descriptor,
    running: &Running,
) -> Result<(), Report> {
    if running.control & context::CTL_SAVE_INHIBIT != 0 {
        return Ok(());
    }
    let lrca = descriptor.lrca();
    let mut put = |slot, value| store(env, ggtt, lrca, slot, value);
    put(context::RING_HEAD, running.head)?;
    put(context::CTX_TIMESTAMP, running.timestamp)?;
    let low = |batch: Option<Batch>| batch.map_or(0, |b| b.address as u32 | BB_VALID);
    let high = |batch: Option<Batch>| batch.map_or(0, |b| (b.address >> 32) as u32);
    let state = |batch: Option<Batch>| if batch.is_some_and(|b| b.ppgtt) { BB_STATE_PPGTT } else { 0 };
    put(BB_HEAD_U, high(running.batch))?;
    put(BB_HEAD_L, low(running.batch))?;
    put(context::BB_STATE, state(running.batch))?;
    put(SECOND_BB_HEAD_U, high(running.second))?;
    put(SECOND_BB_HEAD_L, low(running.second))?;
    put(SECOND_BB_STATE, state(running.second))?;
    Ok(())
}

fn check(running: &Running, lrca: u32) -> Result<(), Report> {
    let possible = running.ctl & ring::CTL_VALID != 0
        && running.start & 0xfff == 0
        && running.head < running.size
        && running.tail < running.size;
    if possible {
        return Ok(());
    }
    let words = [running.start, running.ctl, running.head, running.tail];
    Err(Report::new(Violation::BadRing, lrca, words))
}
