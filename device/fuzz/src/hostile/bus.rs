//! What a guest has of a device, whichever way it reaches it.

use execlab_abi::irq::BANKS;

/// Registers, memory and time, seen from the guest.
pub trait Bus {
    /// Writes a register or half a GGTT entry.
    fn write(&mut self, offset: u32, value: u32);

    /// Reads a register.
    fn read(&mut self, offset: u32) -> u32;

    /// Stores a dword at byte `at` of a page of guest memory; outside, it stores nothing.
    fn put(&mut self, page: u32, at: u32, value: u32);

    /// Loads a dword; 0 outside.
    fn get(&self, page: u32, at: u32) -> u32;

    /// Lets everything come to an end that will.
    ///
    /// # Errors
    /// If it does not.
    fn finish(&mut self) -> Result<(), String>;

    /// Takes the pending interrupts.
    fn take_interrupts(&mut self) -> [u32; BANKS];

    /// The device's full reset.
    fn reset(&mut self);

    /// Empties guest memory and takes back what the device was given of it.
    fn forget(&mut self);

    /// Stores many dwords.
    fn put_all(&mut self, page: u32, at: u32, values: &[u32]) {
        for (n, value) in (0..).zip(values) {
            self.put(page, at + 4 * n, *value);
        }
    }
}
