//! The model's surroundings on this door: guest memory, the register page, and the interrupt that waits for a
//! buffer.

use std::sync::atomic::Ordering;

use execlab_model::{BadAddress, Env, TraceEvent};
use vm_memory::{GuestAddress, GuestMemoryMmap};

use crate::memory;
use crate::mirror::RegisterPage;

/// [`Env`] over guest memory, for the length of one call into the model.
#[derive(Debug)]
pub struct GuestEnv<'a> {
    /// The guest's memory.
    pub memory: &'a GuestMemoryMmap,
    /// Where mirrored registers go.
    pub page: &'a mut RegisterPage,
    /// Set when the model raises its interrupt; cleared by whoever delivers it.
    pub interrupt: &'a mut bool,
}

impl Env for GuestEnv<'_> {
    fn read(&mut self, gpa: u64, data: &mut [u8]) -> Result<(), BadAddress> {
        memory::read(self.memory, GuestAddress(gpa), data).map_err(|_| BadAddress)
    }

    fn write(&mut self, gpa: u64, data: &[u8]) -> Result<(), BadAddress> {
        memory::write(self.memory, GuestAddress(gpa), data).map_err(|_| BadAddress)
    }

    fn store32_release(&mut self, gpa: u64, value: u32) -> Result<(), BadAddress> {
        memory::store(self.memory, GuestAddress(gpa), value.to_le(), Ordering::Release)
            .map_err(|_| BadAddress)
    }

    fn store64_release(&mut self, gpa: u64, value: u64) -> Result<(), BadAddress> {
        memory::store(self.memory, GuestAddress(gpa), value.to_le(), Ordering::Release)
            .map_err(|_| BadAddress)
    }

    fn load32_acquire(&mut self, gpa: u64) -> Result<u32, BadAddress> {
        let value: u32 =
            memory::load(self.memory, GuestAddress(gpa), Ordering::Acquire).map_err(|_| BadAddress)?;
        Ok(u32::from_le(value))
    }

    fn interrupt(&mut self) {
        *self.interrupt = true;
    }

    fn wants_pause(&self) -> bool {
        *self.interrupt
    }

    fn mirror(&mut self, offset: u32, value: u32) {
        self.page.store(offset, value, self.memory);
    }

    fn trace(&mut self, event: TraceEvent) {
        // One relaxed load when nobody listens; only then is nothing formatted.
        tracing::trace!(target: "execlab_device::model", ?event);
    }
}
