//! Delay profiles: TOML in, seeded samples out.

mod builtin;
mod distribution;
mod error;
mod parse;
mod point;
mod profile;
mod sampler;

pub use distribution::{Arm, Distribution, MAX_DELAY_NS};
pub use error::ProfileError;
pub use point::Point;
pub use profile::{Bus, Profile};
pub use sampler::{BusNs, Sampler};
