//! Statistics of A/B comparisons: what a run of blocks says about two arms, and how surely.
//!
//! Everything here is a pure function of the numbers (or the text) handed in, plus a seed where chance is used: no files, no clock, no terminal.
//! The crate knows nothing of GPUs and virtual machines.
//!
//! * [`numbers`] reads a text of one number per line, as `ministat` takes them.
//! * [`ministat`] prints the table (and the plot) that `ministat` prints, digit for digit.
//! * [`summary`] and [`quantile`] describe one sample.
//! * [`permutation`] and [`bootstrap`] compare two arms without assuming normality.
//! * [`verdict`] turns them into *better / worse / no difference seen / not enough data* by one stated rule.
//! * [`compare`] puts all of this together for two or more lists of plain numbers.
//! * [`syslatency`] and [`oracle`] hold two formulas of the field: `gem_syslatency`'s "max" and what known sections must do to a probe.

pub mod bootstrap;
pub mod compare;
pub mod ministat;
pub mod numbers;
pub mod oracle;
pub mod permutation;
pub mod quantile;
pub mod summary;
pub mod syslatency;
pub mod verdict;

mod blocks;
mod cformat;
mod error;

pub use blocks::{BlockValue, Location, Strata};
pub use error::StatsError;
