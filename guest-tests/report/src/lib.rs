//! The contract between a test binary and whoever started it.
//!
//! Inward goes one [`Plan`]: a JSON file that says what to run. Outward comes one [`Line`] of JSON after
//! another on the results channel (a pipe natively, a serial port of its own in a VM), never mixed with the
//! console. A reader that meets a line it cannot parse reports it as such: see [`read_line`].
//!
//! This crate knows neither devices nor statistics.

mod line;
mod plan;
mod samples;
mod words;

pub use line::{Block, Environment, Failure, Hello, Line, LineError, PROTOCOL, Progress, read_line};
pub use plan::{Access, LoadPlan, Plan, ProbePlan};
pub use samples::Samples;
pub use words::words;
