//! One case of the suite on one simulated machine under one schedule.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use execlab_abi::engine::Engine;
use execlab_driver::conformance::{self, Case, cases};
use execlab_driver::{Bug, Driver, DriverConfig, DriverError, Variant};
use execlab_profile::{Bus, Profile, ProfileError};
use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};

use crate::device::{DeviceConfig, SimDevice};
use crate::experiment::{SimDriver, connect};
use crate::{Device, Machine, Perturb, Sim, SimKernel};

/// Pages that driver and device share in a trial: what the suite's largest case needs, and some more.
const PAGES: usize = 1024;
/// Simulated time after which a trial is stuck: some of the suite's own patience, which is 10 s for one wait.
const LIMIT_NS: u64 = 120_000_000_000;

/// What an access to the device costs the CPU. It decides how wide the gaps between a driver's steps are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BusSpeed {
    /// Nothing.
    Free,
    /// 10 ns a write, 100 ns a read.
    Fast,
    /// 100 ns a write, 1 us a read: what the profiles of real parts assume.
    Usual,
    /// 1 us a write, 5 us a read, 2 us for forcewake.
    Slow,
}

impl BusSpeed {
    const ALL: [Self; 4] = [Self::Free, Self::Fast, Self::Usual, Self::Slow];

    const fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Fast => "fast",
            Self::Usual => "usual",
            Self::Slow => "slow",
        }
    }

    const fn costs(self) -> Bus {
        let (read, write, forcewake) = match self {
            Self::Free => (0, 0, 0),
            Self::Fast => (100, 10, 0),
            Self::Usual => (1_000, 100, 0),
            Self::Slow => (5_000, 1_000, 2_000),
        };
        let ns = Duration::from_nanos;
        Bus { read: ns(read), write: ns(write), forcewake: ns(forcewake) }
    }
}

/// Everything that a run depends on, beside the machine. As text it is a list such as
/// `seed=7,case=3,variant=tasklet,ties=1,stretch=200,bus=usual,bug=lost-wake-up`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trial {
    /// Seed of what is left open: phases, delays, and what [`Perturb`] allows.
    pub seed: u64,
    /// Number of the case in [`cases`].
    pub case: usize,
    /// The variant of the driver.
    pub variant: Variant,
    /// How far the schedule may leave the plain model's.
    pub perturb: Perturb,
    /// What accesses cost.
    pub bus: BusSpeed,
    /// A mistake that the driver has on purpose.
    pub bug: Option<Bug>,
}

impl Trial {
    /// The trial that belongs to `seed`.
    #[must_use]
    pub fn draw(seed: u64, bug: Option<Bug>) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let stretches = [0, 100, 1000];
        Self {
            seed,
            case: random.random_range(0..case_count()),
            variant: Variant::ALL[random.random_range(0..Variant::ALL.len())],
            perturb: Perturb {
                ties: random.random_range(0..2) == 1,
                stretch_permille: stretches[random.random_range(0..stretches.len())],
            },
            bus: BusSpeed::ALL[random.random_range(0..BusSpeed::ALL.len())],
            bug,
        }
    }

    /// The case in words.
    #[must_use]
    pub fn case_name(&self) -> &'static str {
        cases::<SimKernel, SimDevice>().get(self.case).map_or("no such case", |case| case.name)
    }
}

/// Cases of the suite.
fn case_count() -> usize {
    cases::<SimKernel, SimDevice>().len()
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, case, variant, perturb, bus, bug } = self;
        write!(f, "seed={seed},case={case},variant={}", variant.name())?;
        write!(f, ",ties={},stretch={}", u8::from(perturb.ties), perturb.stretch_permille)?;
        write!(f, ",bus={}", bus.name())?;
        bug.map_or(Ok(()), |bug| write!(f, ",bug={}", bug.name()))
    }
}

/// Why a trial could not be made.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// A part of its text means nothing.
    #[error("trial: {part:?} is no part of one; a trial is a list such as {}", Trial::draw(1, None))]
    Text {
        /// The part.
        part: String,
    },
    /// No such case.
    #[error("trial: case {case}; the suite has cases 0 to {last}")]
    Case {
        /// What was asked for.
        case: usize,
        /// The last one that there is.
        last: usize,
    },
    /// The suite's own profile is broken.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

impl FromStr for Trial {
    type Err = TrialError;

    /// Parts that are left out are those that belong to the seed.
    fn from_str(text: &str) -> Result<Self, TrialError> {
        let parts: Vec<(&str, &str)> = text
            .split(',')
            .map(|part| part.split_once('=').ok_or_else(|| TrialError::Text { part: part.to_owned() }))
            .collect::<Result<_, _>>()?;
        let seed = parts.iter().find(|(key, _)| *key == "seed").and_then(|(_, value)| value.parse().ok());
        let mut trial = Self::draw(seed.ok_or_else(|| TrialError::Text { part: text.to_owned() })?, None);
        for (key, value) in parts {
            trial.set(key, value).ok_or_else(|| TrialError::Text { part: format!("{key}={value}") })?;
        }
        let last = case_count() - 1;
        if trial.case > last {
            return Err(TrialError::Case { case: trial.case, last });
        }
        Ok(trial)
    }
}

impl Trial {
    fn set(&mut self, key: &str, value: &str) -> Option<()> {
        match key {
            "seed" => self.seed = value.parse().ok()?,
            "case" => self.case = value.parse().ok()?,
            "variant" => self.variant = Variant::from_name(value)?,
            "ties" => self.perturb.ties = value.parse::<u8>().ok().filter(|bit| *bit <= 1)? == 1,
            "stretch" => self.perturb.stretch_permille = value.parse().ok().filter(|n| *n <= 1_000_000)?,
            "bus" => self.bus = BusSpeed::ALL.into_iter().find(|bus| bus.name() == value)?,
            "bug" => self.bug = Some(Bug::from_name(value)?),
            _ => return None,
        }
        Some(())
    }
}

/// What went wrong in a trial.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{case}: {what}")]
pub struct Finding {
    /// The case in words.
    pub case: &'static str,
    /// What went wrong.
    pub what: String,
}

/// How a trial went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// What went wrong, if anything.
    pub finding: Option<Finding>,
    /// Hash over everything that happened.
    pub hash: u64,
    /// How long it took in simulated nanoseconds.
    pub took_ns: u64,
}

/// Runs a trial on `machine`. `prepare` sees simulation and device before it begins.
///
/// # Errors
/// [`TrialError`] when there is no such trial.
pub fn run_trial(
    machine: &Machine,
    trial: &Trial,
    prepare: impl FnOnce(&mut Sim, &Arc<SimDevice>),
) -> Result<Outcome, TrialError> {
    let mut all = cases::<SimKernel, SimDevice>();
    let last = all.len() - 1;
    if trial.case > last {
        return Err(TrialError::Case { case: trial.case, last });
    }
    let case = all.swap_remove(trial.case);
    let name = case.name;
    let mut profile = Profile::parse(case.device.profile(), name)?;
    profile.bus = trial.bus.costs();
    let mut sim = Sim::new(machine, trial.seed);
    sim.perturb(trial.perturb);
    sim.set_time_limit(LIMIT_NS);
    let kernel = sim.kernel();
    let config = DeviceConfig { pages: PAGES, ..DeviceConfig::new(profile, trial.seed) };
    let device = SimDevice::new(kernel.clone(), &config);
    sim.attach(Arc::clone(&device) as Arc<dyn Device>);
    prepare(&mut sim, &device);
    let begin = kernel.time();
    let (variant, bug, inside) = (trial.variant, trial.bug, kernel.clone());
    let ended = sim.run(move || {
        let driver = start(&inside, &device, variant, bug).map_err(|error| error.to_string())?;
        run_case(&case, &driver).map_err(|failure| failure.to_string())
    });
    let what = match ended {
        Ok(Ok(())) => None,
        Ok(Err(wrong)) => Some(wrong),
        Err(error) => Some(error.to_string()),
    };
    let finding = what.map(|what| Finding { case: name, what });
    Ok(Outcome { finding, hash: sim.trace_hash(), took_ns: kernel.time() - begin })
}

fn run_case(case: &Case<SimKernel, SimDevice>, driver: &Arc<SimDriver>) -> conformance::Outcome {
    case.run(driver)
}

/// A driver of all engines, with its interrupt connected to CPU 0.
fn start(
    kernel: &SimKernel,
    device: &Arc<SimDevice>,
    variant: Variant,
    bug: Option<Bug>,
) -> Result<Arc<SimDriver>, DriverError> {
    let config = DriverConfig { variant, engines: Engine::ALL.to_vec() };
    let (shared, bus) = (Arc::new(kernel.clone()), Arc::clone(device));
    let driver = match bug {
        None => Driver::new(shared, bus, &config)?,
        Some(bug) => Driver::with_bug(shared, bus, &config, bug)?,
    };
    connect(kernel, 0, device, &driver);
    Ok(driver)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_written_and_read_is_the_same() {
        for seed in 0..50 {
            for bug in std::iter::once(None).chain(Bug::ALL.map(Some)) {
                let trial = Trial::draw(seed, bug);
                assert_eq!(trial.to_string().parse::<Trial>().unwrap(), trial);
            }
        }
    }

    #[test]
    fn a_seed_alone_is_a_trial_and_nonsense_is_none() {
        assert_eq!("seed=7".parse::<Trial>().unwrap(), Trial::draw(7, None));
        for bad in
            ["", "7", "case=1", "seed=x", "seed=1,case=999", "seed=1,bug=none", "seed=1,ties=2", "seed=1,x=1"]
        {
            let error = bad.parse::<Trial>().unwrap_err().to_string();
            assert!(error.starts_with("trial: "), "{bad}: {error}");
        }
    }
}
