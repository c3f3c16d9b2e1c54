//! A gen9 GPU's execlists machinery as a pure state machine.
//!
//! The model is a value: time, memory and seed come in, effects go out through [`Env`]. It owns no clock, no
//! thread, no socket. The path of a submission: [`Gpu::mmio_write`] → `port` (four ELSP writes make a pair) →
//! `engine` (accept, restore, switch, save) → `streamer` (ring and batch commands) → `csb` (entry, index) →
//! `irq` (IIR, then the interrupt).

mod command;
mod context;
mod csb;
mod effects;
mod engine;
mod env;
mod error;
mod fetch;
mod gpu;
mod irq;
mod port;
mod regs;
mod reset;
mod stats;
mod streamer;
mod translate;

pub use env::{BadAddress, Env, TraceEvent, TraceKind};
pub use gpu::{Config, Gpu};
pub use stats::Stats;
