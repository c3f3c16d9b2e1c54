//! The model's surroundings on the simulated machine.

use execlab_model::{BadAddress, Env, TraceEvent};

use super::memory::Memory;

/// [`Env`] for the length of one call into the model.
pub(super) struct SimEnv<'a> {
    pub memory: &'a Memory,
    /// Set when the model raises its interrupt.
    pub interrupt: bool,
    /// Where its events go; nowhere is free.
    pub trace: Option<&'a mut Vec<TraceEvent>>,
}

impl Env for SimEnv<'_> {
    fn read(&mut self, gpa: u64, data: &mut [u8]) -> Result<(), BadAddress> {
        self.memory.read(gpa, data)
    }
    fn write(&mut self, gpa: u64, data: &[u8]) -> Result<(), BadAddress> {
        self.memory.write(gpa, data)
    }
    fn read_u32(&mut self, gpa: u64) -> Result<u32, BadAddress> {
        if gpa.is_multiple_of(4) {
            return self.memory.load32(gpa);
        }
        let mut data = [0; 4];
        self.memory.read(gpa, &mut data)?;
        Ok(u32::from_le_bytes(data))
    }
    fn read_u64(&mut self, gpa: u64) -> Result<u64, BadAddress> {
        Ok(u64::from(self.read_u32(gpa)?)
            | u64::from(self.read_u32(gpa.checked_add(4).ok_or(BadAddress)?)?) << 32)
    }
    fn store32_release(&mut self, gpa: u64, value: u32) -> Result<(), BadAddress> {
        self.memory.store32(gpa, value)
    }
    fn store64_release(&mut self, gpa: u64, value: u64) -> Result<(), BadAddress> {
        // Both halves are there, or neither is stored.
        self.memory.load32(gpa.checked_add(4).ok_or(BadAddress)?)?;
        self.memory.store32(gpa, value as u32)?;
        self.memory.store32(gpa + 4, (value >> 32) as u32)
    }
    fn load32_acquire(&mut self, gpa: u64) -> Result<u32, BadAddress> {
        self.memory.load32(gpa)
    }
    fn interrupt(&mut self) {
        self.interrupt = true;
    }
    fn mirror(&mut self, _offset: u32, _value: u32) {
        // The bus reads registers from the model itself.
    }
    fn trace(&mut self, event: TraceEvent) {
        if let Some(trace) = &mut self.trace {
            trace.push(event);
        }
    }
}
