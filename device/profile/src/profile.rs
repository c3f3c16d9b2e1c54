//! A profile: the delays of one part in one year.

use std::time::Duration;

use execlab_abi::engine::{ENGINE_COUNT, Engine};

use crate::{Distribution, Point};

/// What an access to the device costs the CPU that makes it. The guest-side driver spends these as busy time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bus {
    /// An uncached MMIO read: a round trip (`mmio_read`).
    pub read: Duration,
    /// A posted MMIO write (`mmio_write`).
    pub write: Duration,
    /// Taking forcewake for one access (`forcewake`), zero where the access needs none.
    pub forcewake: Duration,
}

/// The delays of one part in one year. Made by [`Profile::parse`], [`Profile::load`] or [`Profile::builtin`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Profile {
    /// Short name, such as `kbl-2018`.
    pub name: String,
    /// What it models, in a sentence.
    pub description: String,
    /// Where its numbers come from.
    pub source: String,
    /// Cost of the accesses themselves.
    pub bus: Bus,
    pub(crate) delays: [Option<Distribution>; Point::COUNT],
    pub(crate) overrides: [[Option<Distribution>; Point::COUNT]; ENGINE_COUNT],
}

impl Profile {
    /// The distribution of the delay at `point` of `engine`: the engine's own if the profile has one, else that
    /// for all engines; `None` if there is no delay.
    #[must_use]
    pub fn delay(&self, point: Point, engine: Engine) -> Option<&Distribution> {
        self.overrides[engine.index()][point.index()].as_ref().or(self.delays[point.index()].as_ref())
    }
}
