//! What both programs do alike.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::{Context as _, ensure};

/// Runs `program`; an error becomes one line and status 1.
pub fn exit_of(name: &str, program: impl FnOnce() -> anyhow::Result<ExitCode>) -> ExitCode {
    program().unwrap_or_else(|error| {
        // Some errors say their cause themselves; it is not said twice.
        let words = error
            .chain()
            .map(ToString::to_string)
            .reduce(|said, cause| if said.contains(&cause) { said } else { format!("{said}: {cause}") });
        eprintln!("{name}: {}", words.unwrap_or_default());
        ExitCode::FAILURE
    })
}

/// A flag that SIGINT and SIGTERM set: the machine's settings must be put back, so neither may end the process.
///
/// # Errors
/// When the system refuses handlers.
pub fn cancelled_by_signals() -> anyhow::Result<Arc<AtomicBool>> {
    let cancel = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&cancel)).context("signal handlers")?;
    }
    Ok(cancel)
}

/// Whether there is a reason to go on.
///
/// # Errors
/// When a signal came.
pub fn go_on(cancel: &AtomicBool) -> anyhow::Result<()> {
    ensure!(!cancel.load(Relaxed), "stopped by a signal");
    Ok(())
}

/// The value in the middle, the mean of two if there are two; nothing of nothing.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(*values.get(values.len() / 2 - 1)?, upper))
}
