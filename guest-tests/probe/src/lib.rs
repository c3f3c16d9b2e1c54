//! The real-time latency probe: absolute deadlines, checked priority and CPU, no allocation while it measures.
//!
//! [`Probe`] measures as gem_syslatency or cyclictest does, [`KeepAwake`] keeps the CPU out of idle states, and
//! [`Sections`] is a load whose effect can be calculated, against which the probe is tested.

mod awake;
mod probe;
mod schedule;
mod sections;
mod welford;

pub use awake::KeepAwake;
pub use probe::{Config, Error, Measurement, Probe, Running};
pub use schedule::Schedule;
pub use sections::{SectionPlan, SectionRecord, Sections};
pub use welford::Welford;
