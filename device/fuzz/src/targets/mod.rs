//! The ways into the device.

pub mod context;
mod gpu;
pub mod mmio;
pub mod profile;
pub mod wire;
