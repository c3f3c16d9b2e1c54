//! Delay profiles: TOML in, seeded samples out.
//!
//! A [`Profile`] says how long each [`Point`] of a submission's life takes on some part, as a [`Distribution`];
//! a [`Sampler`] draws lengths from it. The language is described in the README beside this crate.
//!
//! ```
//! use execlab_abi::engine::Engine;
//! use execlab_profile::{Point, Profile, Sampler};
//!
//! let profile = Profile::parse("[delay]\n\"elsp.accept\" = { uniform = [\"1us\", \"2us\"] }", "mine.toml")?;
//! let mut sampler = Sampler::new(&profile, 42, 10.0);
//! assert!((10_000..=20_000).contains(&sampler.draw(Point::ElspAccept, Engine::Rcs0)));
//! assert_eq!(sampler.draw(Point::ContextSave, Engine::Rcs0), 0);
//!
//! let refused = Profile::parse("[delay]\n\"elsp.acept\" = \"1us\"", "mine.toml").unwrap_err();
//! assert_eq!(refused.to_string(), "mine.toml:2:1: unknown point `elsp.acept`; did you mean `elsp.accept`?");
//! # Ok::<(), execlab_profile::ProfileError>(())
//! ```

mod builtin;
mod distribution;
mod draw;
mod error;
mod parse;
mod point;
mod profile;
mod sampler;
mod suggest;

pub use distribution::{Arm, Distribution, MAX_BUS_NS, MAX_DELAY_NS};
pub use error::ProfileError;
pub use point::Point;
pub use profile::{Bus, Profile};
pub use sampler::{BusNs, Sampler};

use suggest::nearest;
