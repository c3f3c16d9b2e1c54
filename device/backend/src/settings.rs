//! What a device is started with.

use execlab_profile::{BusNs, Profile, Sampler};

use crate::timeline::WaitMode;

/// What a device is started with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Delays and bus costs.
    pub profile: Profile,
    /// How deadlines are waited for.
    pub wait: WaitMode,
    /// Seed of every random delay.
    pub seed: u64,
    /// Factor on every modelled length; finite and above 0.
    pub dilation: f64,
    /// CPU for the thread that meets deadlines.
    pub cpu: Option<usize>,
    /// SCHED_FIFO priority, 1 to 99, for that thread.
    pub realtime: Option<u8>,
}

impl Settings {
    /// A device with `profile`, sleeping for its deadlines, seed 1, no dilation.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        Self { profile, wait: WaitMode::Sleep, seed: 1, dilation: 1.0, cpu: None, realtime: None }
    }

    /// The sampler for `profile` under these settings: the same for every VM that is served.
    #[must_use]
    pub fn sampler(&self, profile: &Profile) -> Sampler {
        Sampler::new(profile, self.seed, self.dilation)
    }

    /// What `profile`'s bus costs the driver, dilated.
    #[must_use]
    pub fn bus(&self, profile: &Profile) -> BusNs {
        self.sampler(profile).bus()
    }
}
