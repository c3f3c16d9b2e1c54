//! A gen9 GPU's execlists machinery as a pure state machine: four engines with their ELSP ports, the command
//! streamer, the context status buffer, GGTT and PPGTT, the GT interrupt banks and reset.
//!
//! [`Gpu`] is a value. It owns no thread, clock, socket or memory: the caller gives it the time, an [`Env`] that
//! reaches guest memory and takes effects, and asks it for its next deadline. Every delay comes from the seeded
//! [`execlab_profile::Sampler`] that it is made with, so the same calls give the same effects bit for bit.
//!
//! ```
//! use execlab_abi::{engine::Engine, ring};
//! use execlab_model::{BadAddress, Config, Env, Gpu, TraceEvent};
//!
//! struct NoMemory;
//! impl Env for NoMemory {
//!     fn read(&mut self, _: u64, _: &mut [u8]) -> Result<(), BadAddress> { Err(BadAddress) }
//!     fn write(&mut self, _: u64, _: &[u8]) -> Result<(), BadAddress> { Err(BadAddress) }
//!     fn store32_release(&mut self, _: u64, _: u32) -> Result<(), BadAddress> { Err(BadAddress) }
//!     fn store64_release(&mut self, _: u64, _: u64) -> Result<(), BadAddress> { Err(BadAddress) }
//!     fn load32_acquire(&mut self, _: u64) -> Result<u32, BadAddress> { Err(BadAddress) }
//!     fn interrupt(&mut self) {}
//!     fn mirror(&mut self, _: u32, _: u32) {}
//!     fn trace(&mut self, _: TraceEvent) {}
//! }
//!
//! let mut gpu = Gpu::new(Config::default());
//! let stop = Engine::Rcs0.reg(ring::MI_MODE);
//! gpu.mmio_write(stop, ring::masked_set(ring::MI_MODE_STOP_RING), 1_000, &mut NoMemory);
//! assert_ne!(gpu.mmio_read(stop, 1_000) & ring::MI_MODE_IDLE, 0);
//! assert_eq!(gpu.next_deadline(), None);
//! ```

mod command;
mod context;
mod csb;
mod effects;
mod engine;
mod env;
mod error;
mod fifo;
mod ggtt;
mod gpu;
mod irq;
mod port;
mod ppgtt;
mod regs;
mod reset;
mod stats;
mod streamer;
mod trace;
pub use env::{BadAddress, Env};
pub use gpu::{Config, Gpu};
pub use stats::Stats;
pub use trace::{TraceEvent, TraceKind};
