//! Queue 1: posted MMIO writes. From here a doorbell goes straight into the model.

use execlab_abi::wire::{PostedWrite, QUEUE_MMIO};

use super::chain::{Chain, ChainError};
use super::rings::Rings;
use crate::world::World;

/// Writes copied out of guest memory at a time.
const BATCH: usize = 64;

/// Checks that a chain can be a stream of posted writes.
///
/// # Errors
/// [`ChainError::UnexpectedWritable`] or [`ChainError::WrongSize`].
pub const fn check(chain: &Chain) -> Result<(), ChainError> {
    if chain.writable_bytes() != 0 {
        return Err(ChainError::UnexpectedWritable);
    }
    if chain.readable_bytes() == 0 || !chain.readable_bytes().is_multiple_of(PostedWrite::SIZE as u64) {
        return Err(ChainError::WrongSize);
    }
    Ok(())
}

/// The posted writes in `bytes`, in order; a rest of less than one is left out.
pub fn decode(bytes: &[u8]) -> impl Iterator<Item = PostedWrite> {
    bytes.as_chunks::<{ PostedWrite::SIZE }>().0.iter().map(|b| PostedWrite::from_bytes(*b))
}

/// Applies every chain that is available. Whether there is more.
pub fn serve(rings: &Rings, world: &mut World) -> bool {
    let memory = world.memory();
    let pass = rings.serve(usize::from(QUEUE_MMIO), &memory, |chain| {
        match chain.and_then(|chain| apply(&chain, world, &memory)) {
            Ok(()) => world.counters.posted_chains += 1,
            Err(e) => world.malformed(QUEUE_MMIO, e),
        }
        0
    });
    if pass.bad {
        world.malformed(QUEUE_MMIO, ChainError::BadRing);
    }
    pass.more
}

/// Applies one chain: nothing of it if any of it is bad.
fn apply(chain: &Chain, world: &mut World, memory: &vm_memory::GuestMemoryMmap) -> Result<(), ChainError> {
    check(chain)?;
    chain.check(memory)?;
    let mut reader = chain.reader(memory);
    let mut buffer = [0; BATCH * PostedWrite::SIZE];
    // What was due before these writes came happens before them, and counts as late as it is.
    world.run_due(|_| ());
    loop {
        let read = reader.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        let now = world.now();
        for write in decode(&buffer[..read]) {
            world.write(write.offset, write.value, now);
        }
    }
}
