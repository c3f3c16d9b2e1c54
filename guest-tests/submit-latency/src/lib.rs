//! The experiment, whatever world it runs in: what does GPU submission do to an RT thread on the same CPU?
//!
//! [`run`] follows a plan in a [`World`]. The binary brings the world of POSIX threads and a real device process; the
//! simulator brings its own. Errors are in words for a person throughout: nobody decides by their kind.

mod bench;
mod load;
mod order;
mod output;
mod run;
mod setting;
mod world;

pub use output::{Output, RESULTS_FD, Target};
pub use run::run;
pub use setting::{Arm, EXPERIMENT, NULL_ARM, Setting};
pub use world::{Rig, World};
