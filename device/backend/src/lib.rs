//! The device process: a gen9 GPU model behind a vhost-user socket.
//!
//! [`serve::Server`] listens and serves one front end after another. A queue's event goes from [`door`] into
//! [`core::Core`], which owns the model ([`world::World`]) behind one mutex; what is due later is met by the
//! thread of [`runtime`], or by whoever [`spin`]s. `README.md` beside this crate follows a doorbell through the
//! files.

pub mod alarm;
pub mod calibrate;
pub mod cli;
pub mod clock;
pub mod core;
pub mod door;
pub mod env;
pub mod error;
pub mod lateness;
pub mod memory;
pub mod mirror;
pub mod poll;
pub mod runtime;
pub mod serve;
pub mod settings;
pub mod socket;
pub mod spin;
pub mod statistics;
pub mod sys;
pub mod thread_place;
pub mod timeline;
pub mod world;

pub use error::DeviceError;
pub use serve::{Server, Stopper};
pub use settings::Settings;
pub use timeline::WaitMode;
