//! What the model needs from its surroundings: guest memory, and someone who takes its effects.

use crate::trace::TraceEvent;

/// A guest-physical range that is not guest memory, or not of the asked kind (read only, misaligned).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the address is not guest memory")]
pub struct BadAddress;

/// Memory and effects. The model calls these in the order in which hardware would act, and never keeps a
/// reference between calls.
///
/// Addresses are guest-physical. The aligned accesses are always naturally aligned; [`read`](Self::read) and
/// [`write`](Self::write) never cross a 4 KiB page.
pub trait Env {
    /// Copies from memory. No order against other accesses is needed.
    ///
    /// # Errors
    /// [`BadAddress`] if any byte is not guest memory; the model then reports a violation.
    fn read(&mut self, gpa: u64, data: &mut [u8]) -> Result<(), BadAddress>;

    /// Copies to memory.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn write(&mut self, gpa: u64, data: &[u8]) -> Result<(), BadAddress>;

    /// Stores a dword in one piece, after everything stored before.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn store32_release(&mut self, gpa: u64, value: u32) -> Result<(), BadAddress>;

    /// Stores a qword in one piece, after everything stored before.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn store64_release(&mut self, gpa: u64, value: u64) -> Result<(), BadAddress>;

    /// Loads a dword in one piece, before everything loaded or stored after.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn load32_acquire(&mut self, gpa: u64) -> Result<u32, BadAddress>;

    /// The function's MSI, an edge: some identity (IIR & IER) became pending with the master on, or the master
    /// was turned on with one pending. [`Gpu::take_interrupts`](crate::Gpu::take_interrupts) gives the identities.
    fn interrupt(&mut self);

    /// Whether the caller wants to look up between two actions, usually to pass the MSI on. Asked after each; what is
    /// left stays due, and [`Gpu::next_deadline`](crate::Gpu::next_deadline) says so. At least one action happens in
    /// each [`Gpu::advance`](crate::Gpu::advance).
    fn wants_pause(&self) -> bool {
        false
    }

    /// The register at BAR 0 `offset`, one of [`execlab_abi::mirror`]'s, now reads `value`.
    fn mirror(&mut self, offset: u32, value: u32);

    /// Something happened. Called often; must be cheap.
    fn trace(&mut self, event: TraceEvent);

    /// Reads a little-endian dword.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn read_u32(&mut self, gpa: u64) -> Result<u32, BadAddress> {
        let mut data = [0; 4];
        self.read(gpa, &mut data)?;
        Ok(u32::from_le_bytes(data))
    }

    /// Reads a little-endian qword.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    fn read_u64(&mut self, gpa: u64) -> Result<u64, BadAddress> {
        let mut data = [0; 8];
        self.read(gpa, &mut data)?;
        Ok(u64::from_le_bytes(data))
    }
}

/// No memory, and nobody listens: for the moment before the first caller.
pub(crate) struct Nowhere;

impl Env for Nowhere {
    fn read(&mut self, _gpa: u64, _data: &mut [u8]) -> Result<(), BadAddress> {
        Err(BadAddress)
    }
    fn write(&mut self, _gpa: u64, _data: &[u8]) -> Result<(), BadAddress> {
        Err(BadAddress)
    }
    fn store32_release(&mut self, _gpa: u64, _value: u32) -> Result<(), BadAddress> {
        Err(BadAddress)
    }
    fn store64_release(&mut self, _gpa: u64, _value: u64) -> Result<(), BadAddress> {
        Err(BadAddress)
    }
    fn load32_acquire(&mut self, _gpa: u64) -> Result<u32, BadAddress> {
        Err(BadAddress)
    }
    fn interrupt(&mut self) {}
    fn mirror(&mut self, _offset: u32, _value: u32) {}
    fn trace(&mut self, _event: TraceEvent) {}
}
