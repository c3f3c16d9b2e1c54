//! A trial once more, with everything that happened in words.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use super::trial::{Outcome, Trial, TrialError, run_trial};
use crate::device::SimDevice;
use crate::trace::{TraceEvent, What};
use crate::{Machine, Sim};

/// Runs a trial and writes a line for each event of machine and device, in the order of time: nanoseconds since the
/// trial began, who, what.
///
/// # Errors
/// [`TrialError`] when there is no such trial; an error of `to` ends the writing and is in the inner result.
pub fn record(
    machine: &Machine,
    trial: &Trial,
    to: &mut dyn Write,
) -> Result<io::Result<Outcome>, TrialError> {
    let events: Arc<Mutex<Vec<TraceEvent>>> = Arc::default();
    let sink = Arc::clone(&events);
    let mut device: Option<Arc<SimDevice>> = None;
    let mut names = Vec::new();
    let mut begin = 0;
    let outcome = run_trial(machine, trial, |sim, made| {
        begin = sim.kernel().time();
        names = thread_names(sim);
        made.keep_trace();
        device = Some(Arc::clone(made));
        sim.set_trace(Some(Box::new(move |event| {
            sink.lock().unwrap_or_else(PoisonError::into_inner).push(*event);
        })));
    })?;
    let events = std::mem::take(&mut *events.lock().unwrap_or_else(PoisonError::into_inner));
    let device = device.map(|device| device.take_trace()).unwrap_or_default();
    let mut lines: Vec<(u64, String)> = events
        .iter()
        .map(|event| (event.time_ns, format!("cpu{} {}", event.cpu, words(event.what, &names))))
        .collect();
    lines.extend(device.iter().map(|event| {
        let engine = event.engine.map_or("gpu", |engine| engine.name());
        (event.time, format!("{engine} {:?}", event.kind))
    }));
    // Stable: what happened at one time stays in its order.
    lines.sort_by_key(|(time, _)| *time);
    let written = lines
        .iter()
        .try_for_each(|(time, text)| writeln!(to, "{:>12} {text}", time.saturating_sub(begin)))
        .map(|()| outcome);
    Ok(written)
}

/// Names of the threads that there are at the start; later ones are known by number.
fn thread_names(sim: &Sim) -> Vec<String> {
    (0..).map_while(|thread| sim.thread_name(thread)).collect()
}

fn words(what: What, names: &[String]) -> String {
    let name = |thread: usize| names.get(thread).cloned().unwrap_or_else(|| format!("thread-{thread}"));
    match what {
        What::Switch { from, to } => format!("switch {} -> {}", name(from), name(to)),
        What::Wake { thread } => format!("wake {}", name(thread)),
        What::Exit { thread } => format!("exit {}", name(thread)),
        What::IrqEnter(vector) => format!("irq enter {vector:?}"),
        What::IrqExit(vector) => format!("irq exit {vector:?}"),
        What::SoftirqEnter(place) => format!("softirq enter {place:?}"),
        What::SoftirqExit { handed_over: false } => "softirq exit".to_owned(),
        What::SoftirqExit { handed_over: true } => "softirq exit, the rest to ksoftirqd".to_owned(),
        What::LockWait { class, .. } => format!("waits for lock {class}"),
        What::LockGot { class, .. } => format!("has lock {class}"),
        What::Step(step) => format!("step {}", step.name()),
        What::Idle { state } => format!("idle, state {state}"),
        What::Device => "device acts".to_owned(),
        What::Boot { tick_phase } => format!("boot, tick at {tick_phase}"),
    }
}
