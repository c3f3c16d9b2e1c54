//! Trying seeds until something fails or the budget is used up.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use execlab_driver::Bug;

use super::trial::{Finding, Trial, TrialError, run_trial};
use crate::Machine;

/// How much to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The first seed.
    pub first_seed: u64,
    /// Seeds.
    pub seeds: u64,
    /// Longest time, if there is one.
    pub time: Option<Duration>,
    /// OS threads, each with simulations of its own; at least 1.
    pub jobs: usize,
}

/// How far a search has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Trials made.
    pub trials: u64,
}

/// A trial that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The trial.
    pub trial: Trial,
    /// What went wrong.
    pub finding: Finding,
}

/// What the threads of a search share.
struct Shared {
    next: AtomicU64,
    trials: AtomicU64,
    stop: AtomicBool,
    found: Mutex<Vec<Found>>,
    failed: Mutex<Option<TrialError>>,
}

/// Tries seed after seed on `machine` until one fails, the budget is used up, or `cancel` is set; `progress` is told now
/// and then. What it gives is the failing trial of the lowest seed that was tried, and how many were.
///
/// # Errors
/// [`TrialError`] when trials cannot be made at all.
pub fn search(
    machine: &Machine,
    bug: Option<Bug>,
    budget: &Budget,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Option<Found>, Progress), TrialError> {
    let shared = Shared {
        next: AtomicU64::new(0),
        trials: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        found: Mutex::new(Vec::new()),
        failed: Mutex::new(None),
    };
    let end = budget.time.map(|time| Instant::now() + time);
    thread::scope(|scope| {
        let workers: Vec<_> =
            (0..budget.jobs.max(1)).map(|_| scope.spawn(|| work(machine, bug, budget, &shared))).collect();
        while !workers.iter().all(thread::ScopedJoinHandle::is_finished) {
            if cancel.load(Relaxed) || end.is_some_and(|end| Instant::now() >= end) {
                shared.stop.store(true, Relaxed);
            }
            progress(Progress { trials: shared.trials.load(Relaxed) });
            thread::sleep(Duration::from_millis(20));
        }
    });
    let take = |e: std::sync::PoisonError<Vec<Found>>| e.into_inner();
    let mut found = shared.found.into_inner().unwrap_or_else(take);
    found.sort_by_key(|found| found.trial.seed);
    if let Some(error) = shared.failed.into_inner().unwrap_or_default() {
        return Err(error);
    }
    Ok((found.into_iter().next(), Progress { trials: shared.trials.load(Relaxed) }))
}

/// One thread of a search.
fn work(machine: &Machine, bug: Option<Bug>, budget: &Budget, shared: &Shared) {
    while !shared.stop.load(Relaxed) {
        let nth = shared.next.fetch_add(1, Relaxed);
        if nth >= budget.seeds {
            return;
        }
        let trial = Trial::draw(budget.first_seed.wrapping_add(nth), bug);
        let outcome = run_trial(machine, &trial, |_, _| ());
        shared.trials.fetch_add(1, Relaxed);
        match outcome {
            Ok(outcome) => {
                let Some(finding) = outcome.finding else { continue };
                shared.stop.store(true, Relaxed);
                if let Ok(mut found) = shared.found.lock() {
                    found.push(Found { trial, finding });
                }
            }
            Err(error) => {
                shared.stop.store(true, Relaxed);
                if let Ok(mut failed) = shared.failed.lock() {
                    *failed = Some(error);
                }
            }
        }
    }
}
