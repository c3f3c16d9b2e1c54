//! One case of the suite on one simulated machine under one seed.

use std::fmt;
use std::sync::Arc;

use execlab_abi::engine::Engine;
use execlab_driver::conformance::{Case, cases};
use execlab_driver::{Bug, Driver, DriverConfig, DriverError, Variant};
use execlab_profile::{Profile, ProfileError};

use crate::device::{DeviceConfig, SimDevice};
use crate::experiment::{SimDriver, connect};
use crate::{Machine, Sim, SimKernel};

/// Pages that driver and device share in a trial: what the suite's largest case needs, and some more.
const PAGES: usize = 1024;

/// Everything that a run depends on, beside the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trial {
    /// Number of the case in [`cases`].
    pub case: usize,
    /// The variant of the driver.
    pub variant: Variant,
    /// Seed of schedule and delays.
    pub seed: u64,
    /// A mistake that the driver has on purpose.
    pub bug: Option<Bug>,
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {} case {} variant {}", self.seed, self.case, self.variant.name())?;
        self.bug.map_or(Ok(()), |bug| write!(f, " bug {}", bug.name()))
    }
}

/// What a trial found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{case}: {what}")]
pub struct Finding {
    /// The case in words.
    pub case: &'static str,
    /// What went wrong.
    pub what: String,
}

/// Why a trial could not be made.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// No such case.
    #[error("case {case}: the suite has cases 0 to {last}")]
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

/// The trial of every case and variant under `seed`.
pub fn trials(seed: u64, bug: Option<Bug>) -> impl Iterator<Item = Trial> {
    let cases = cases::<SimKernel, SimDevice>().len();
    let of_case = move |case| Variant::ALL.into_iter().map(move |variant| Trial { case, variant, seed, bug });
    (0..cases).flat_map(of_case)
}

/// Runs a trial on `machine`: what it found, if anything.
///
/// # Errors
/// [`TrialError`] when there is no such trial.
pub fn run_trial(machine: &Machine, trial: &Trial) -> Result<Option<Finding>, TrialError> {
    let mut all = cases::<SimKernel, SimDevice>();
    let last = all.len() - 1;
    if trial.case > last {
        return Err(TrialError::Case { case: trial.case, last });
    }
    let case = all.swap_remove(trial.case);
    let name = case.name;
    let profile = Profile::parse(case.device.profile(), name)?;
    let mut sim = Sim::new(machine, trial.seed);
    let kernel = sim.kernel();
    let config = DeviceConfig { pages: PAGES, ..DeviceConfig::new(profile, trial.seed) };
    let device = SimDevice::new(kernel.clone(), &config);
    sim.attach(Arc::clone(&device) as Arc<dyn crate::Device>);
    let (variant, bug) = (trial.variant, trial.bug);
    let ended = sim.run(move || {
        let driver = start(&kernel, &device, variant, bug).map_err(|error| error.to_string())?;
        run_case(&case, &driver)
    });
    let what = match ended {
        Ok(Ok(())) => return Ok(None),
        Ok(Err(wrong)) => wrong,
        Err(error) => error.to_string(),
    };
    Ok(Some(Finding { case: name, what }))
}

fn run_case(case: &Case<SimKernel, SimDevice>, driver: &Arc<SimDriver>) -> Result<(), String> {
    case.run(driver).map_err(|failure| failure.to_string())
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
