//! Search for schedules under which the driver fails its conformance suite.
//!
//! A [`Trial`] says everything that a run depends on: running it twice gives the same, on any host. [`search`] draws
//! trials from seeds, [`shrink`](shrink::shrink) makes one that fails as short and plain as it can, and
//! [`record`] runs one again with everything that happened in words.

mod record;
mod search;
mod shrink;
mod trial;

pub use record::record;
pub use search::{Budget, Found, Progress, search};
pub use shrink::shrink;
pub use trial::{BusSpeed, Finding, Outcome, Trial, TrialError, run_trial};
