//! What the model needs from the outside, and what it does to it.

use execlab_abi::csb::Entry;
use execlab_abi::engine::Engine;
use execlab_abi::lab::Violation;

/// A guest-physical address without memory behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no guest memory at {gpa:#x}")]
pub struct BadAddress {
    /// First address of the access.
    pub gpa: u64,
}

/// Guest memory and effects. Addresses are guest-physical; an access that is not wholly inside guest memory is
/// refused and changes nothing.
pub trait Env {
    /// Copies memory at `gpa` into `data`.
    ///
    /// # Errors
    /// [`BadAddress`] when a byte of it is not guest memory.
    fn read(&mut self, gpa: u64, data: &mut [u8]) -> Result<(), BadAddress>;

    /// Copies `data` to memory at `gpa`.
    ///
    /// # Errors
    /// [`BadAddress`] when a byte of it is not guest memory.
    fn write(&mut self, gpa: u64, data: &[u8]) -> Result<(), BadAddress>;

    /// Loads a naturally aligned dword with acquire order.
    ///
    /// # Errors
    /// [`BadAddress`] when it is not guest memory.
    fn load32_acquire(&mut self, gpa: u64) -> Result<u32, BadAddress>;

    /// Stores a naturally aligned dword with release order.
    ///
    /// # Errors
    /// [`BadAddress`] when it is not guest memory.
    fn store32_release(&mut self, gpa: u64, value: u32) -> Result<(), BadAddress>;

    /// Stores a naturally aligned qword with release order.
    ///
    /// # Errors
    /// [`BadAddress`] when it is not guest memory.
    fn store64_release(&mut self, gpa: u64, value: u64) -> Result<(), BadAddress>;

    /// The device's interrupt message was sent (an edge).
    fn interrupt(&mut self);

    /// A register that `execlab_abi::mirror` lists has a new value.
    fn mirror(&mut self, offset: u32, value: u32);

    /// Something worth a line in a trace happened. Called often: keep it cheap.
    fn trace(&mut self, event: TraceEvent);

    /// Loads a dword.
    ///
    /// # Errors
    /// [`BadAddress`] when it is not guest memory.
    fn read_u32(&mut self, gpa: u64) -> Result<u32, BadAddress> {
        let mut bytes = [0; 4];
        self.read(gpa, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Loads a qword.
    ///
    /// # Errors
    /// [`BadAddress`] when it is not guest memory.
    fn read_u64(&mut self, gpa: u64) -> Result<u64, BadAddress> {
        let mut bytes = [0; 8];
        self.read(gpa, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

/// One event of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceEvent {
    /// Device time in nanoseconds at which it happened in the model.
    pub time_ns: u64,
    /// Engine concerned, if one is.
    pub engine: Option<Engine>,
    /// What happened.
    pub kind: TraceKind,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TraceKind {
    /// The fourth ELSP write: context ids of both elements (`None`: null element).
    Submit(Option<u32>, Option<u32>),
    /// The pair was accepted.
    Accept,
    /// A context image was restored and its commands begin.
    Run(u32),
    /// A CSB entry was published.
    Csb(Entry),
    /// A post-sync or immediate store became visible: guest-physical address, value.
    Store(u64, u64),
    /// Bits were raised in IIR.
    Raise(u32),
    /// The interrupt message was sent.
    Interrupt,
    /// The driver or a command stream broke a rule.
    Violation(Violation),
    /// The engine (or, without an engine, everything) was reset.
    Reset,
}
