//! An i915-shaped execlists driver, generic over what a kernel gives it ([`kernel::Kernel`]) and how it reaches
//! its device ([`bus::Bus`]).
//!
//! A submission's path: [`Driver::submit`] emits the request into its ring (`request`), queues it (`queue`), and
//! runs or defers the steps (`steps`): process the CSB, dequeue into the two ports, write ELSP. *Where* each step
//! runs (`placement`) is all that a [`Variant`] says.
//!
//! With the feature `conformance`, what every variant must do in every world is a module of its own.
#![no_std]

extern crate alloc;

pub mod bus;
#[cfg(feature = "conformance")]
pub mod conformance;
mod context;
mod counters;
mod csb;
mod driver;
mod engine;
mod error;
mod ggtt;
pub mod kernel;
mod mmio;
mod placement;
mod planted;
mod ports;
mod queue;
mod request;
mod steps;
#[cfg(test)]
mod testing;
mod variant;

pub use context::Context;
pub use counters::Counters;
pub use driver::{Driver, DriverConfig};
pub use error::{DriverError, SubmitError, WaitError};
pub use planted::Bug;
pub use request::{Batch, RequestSpec};
pub use variant::{CsbSection, OnIrq, OnSubmit, Variant};
