//! Running experiments and saying what came of it.

pub mod analyse;
pub mod arms;
pub mod comparable;
pub mod folder;
mod native;
pub mod saved;
pub mod setting;
pub mod stream;
pub mod submit_latency;
pub mod text;
