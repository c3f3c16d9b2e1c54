//! The ways into the device.

pub mod profile;
