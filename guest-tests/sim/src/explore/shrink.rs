//! Making a failure short and plain.

use super::search::Found;
use super::trial::{BusSpeed, Outcome, Trial, TrialError, run_trial};
use crate::{Machine, Perturb};

/// Seeds tried for a shorter failure of the same case.
const OTHER_SEEDS: u64 = 200;

/// The plainest trial that can be found in which the same case of the same variant still fails, and of the plainest the
/// one that is over first: no perturbation that it does not need, the cheapest bus, the shortest run. Takes at most some
/// hundred runs.
///
/// # Errors
/// [`TrialError`] when `found` is no trial.
pub fn shrink(machine: &Machine, found: &Found) -> Result<Found, TrialError> {
    let mut best = found.clone();
    let mut took_ns = run_trial(machine, &found.trial, |_, _| ())?.took_ns;
    let plain = Perturb::default();
    let simpler: [&dyn Fn(Trial) -> Trial; 4] = [
        &|trial| Trial { perturb: Perturb { ties: plain.ties, ..trial.perturb }, ..trial },
        &|trial| Trial {
            perturb: Perturb { stretch_permille: plain.stretch_permille, ..trial.perturb },
            ..trial
        },
        &|trial| Trial { bus: trial.bus.min(BusSpeed::Usual), ..trial },
        &|trial| Trial { bus: trial.bus.min(BusSpeed::Free), ..trial },
    ];
    for change in simpler {
        let trial = change(best.trial);
        if trial != best.trial
            && let Some((failed, outcome)) = fails(machine, trial)?
        {
            (best, took_ns) = (failed, outcome.took_ns);
        }
    }
    for seed in 0..OTHER_SEEDS {
        if let Some((failed, outcome)) = fails(machine, Trial { seed, ..best.trial })?
            && outcome.took_ns < took_ns
        {
            (best, took_ns) = (failed, outcome.took_ns);
        }
    }
    Ok(best)
}

fn fails(machine: &Machine, trial: Trial) -> Result<Option<(Found, Outcome)>, TrialError> {
    let outcome = run_trial(machine, &trial, |_, _| ())?;
    Ok(outcome.finding.clone().map(|finding| (Found { trial, finding }, outcome)))
}
