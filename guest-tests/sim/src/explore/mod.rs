//! Search for schedules under which the driver fails its conformance suite.
//!
//! A [`Trial`] says everything that a run depends on; running it twice gives the same. What is random in the machine's
//! schedule and in the device's delays comes from the trial's seed.

mod trial;

pub use trial::{Finding, Trial, run_trial, trials};
