//! Running experiments and saying what came of it.

pub mod analyse;
pub mod arms;
pub mod folder;
pub mod saved;
pub mod setting;
pub mod stream;
pub mod text;
