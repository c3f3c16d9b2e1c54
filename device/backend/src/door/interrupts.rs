//! Queue 2: interrupts. The device fills a buffer with the identities that the handler's first half would find.

use execlab_abi::wire::{IrqRecord, QUEUE_IRQ};
use vm_memory::GuestMemoryMmap;

use super::chain::{Chain, ChainError};
use super::rings::Rings;
use crate::world::World;

/// Checks that a chain can take an interrupt record.
///
/// # Errors
/// [`ChainError::UnexpectedReadable`] or [`ChainError::WrongSize`].
pub const fn check(chain: &Chain) -> Result<(), ChainError> {
    if chain.readable_bytes() != 0 {
        return Err(ChainError::UnexpectedReadable);
    }
    if chain.writable_bytes() < IrqRecord::SIZE as u64 {
        return Err(ChainError::WrongSize);
    }
    Ok(())
}

/// Delivers the interrupt if one is pending and the guest has given a buffer for it. Without a buffer it stays
/// pending, and later identities join it in IIR.
#[inline]
pub fn deliver(rings: &mut Rings, world: &mut World) {
    if world.interrupt_pending() {
        deliver_pending(rings, world);
    }
}

fn deliver_pending(rings: &Rings, world: &mut World) {
    let memory = world.memory();
    let starved = rings.fill(usize::from(QUEUE_IRQ), &memory, |chain| {
        if !world.interrupt_pending() {
            return None;
        }
        let usable = match chain {
            Ok(chain) => check(chain).and_then(|()| chain.check(&memory)).map(|()| chain),
            Err(e) => Err(*e),
        };
        match usable {
            Ok(chain) => fill(chain, world, &memory),
            Err(e) => {
                world.malformed(QUEUE_IRQ, e);
                Some(0)
            }
        }
    });
    if starved {
        world.counters.interrupts_waited += 1;
    }
}

/// Fills one buffer; `None` if the identities have gone in the meantime.
fn fill(chain: &Chain, world: &mut World, memory: &GuestMemoryMmap) -> Option<u32> {
    let time_ns = world.now();
    let (iir, sequence) = world.take_interrupts(time_ns)?;
    let record = IrqRecord { iir, sequence, time_ns };
    // The chain was checked: all of it is guest memory.
    match chain.writer(memory).write(&record.to_bytes()) {
        Ok(_) => Some(IrqRecord::SIZE as u32),
        Err(e) => {
            world.malformed(QUEUE_IRQ, e);
            Some(0)
        }
    }
}
