//! Settings of the machine that a measurement needs for as long as it runs.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{Resource, getrlimit};
use rustix::thread::{CapabilitySet, capabilities};

use crate::claim::{Claim, ClaimError};

const DMA_LATENCY: &str = "/dev/cpu_dma_latency";
const RT_RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";
/// Enough for programs, stacks and samples of a run, in bytes.
const LOCKED_MEMORY: u64 = 64 << 20;
/// No throttling (Linux, `Documentation/scheduler/sched-rt-group.rst`).
const OFF: &str = "-1";

/// Memory locked, deep idle states forbidden, real-time throttling off, and no other measurement of ours on this
/// machine, while this lives. What could not be had is not an error, but stands in [`System::notes`].
#[derive(Debug)]
pub struct System {
    /// The request lasts as long as the file is open (Linux, `Documentation/power/pm_qos_interface.rst`).
    _dma_latency: Option<File>,
    /// Value of `sched_rt_runtime_us` to put back.
    rt_runtime: Option<String>,
    notes: Vec<String>,
    /// Given up last, when everything is as it was before.
    claim: Option<Claim>,
}

impl System {
    /// Prepares the machine for real-time threads on CPU `cpu`. One of these can live on a machine at a time: the
    /// first to end would put the settings back under the others.
    ///
    /// # Errors
    /// [`ClaimError::Busy`] when another one lives, in this process or another.
    pub fn prepare(cpu: usize) -> Result<Self, ClaimError> {
        let mut notes = Vec::new();
        let mut claim = Claim::take(&Claim::places(), &mut notes)?;
        lock_memory(&mut notes);
        let dma_latency = hold_dma_latency(&mut notes);
        let rt_runtime = stop_throttling(claim.as_mut(), &mut notes);
        note_fair_server(cpu, &mut notes);
        Ok(Self { _dma_latency: dma_latency, rt_runtime, notes, claim })
    }

    /// What was found and done, one fact per line.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

impl Drop for System {
    fn drop(&mut self) {
        let restored = self.rt_runtime.as_ref().is_none_or(|value| fs::write(RT_RUNTIME, value).is_ok());
        if let Some(claim) = &mut self.claim {
            claim.end(restored);
        }
    }
}

fn lock_memory(notes: &mut Vec<String>) {
    // Under a limit the lock itself may succeed, and the stack of some later thread be refused.
    let limit = getrlimit(Resource::Memlock).current;
    let privileged = capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::IPC_LOCK));
    if let Some(bytes) = limit
        && bytes < LOCKED_MEMORY
        && !privileged
    {
        notes.push(format!(
            "memory is not locked (only {} KiB may be); page faults may show in the tail; \
             run as root or raise RLIMIT_MEMLOCK (ulimit -l unlimited)",
            bytes / 1024
        ));
        return;
    }
    notes.push(match mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE) {
        Ok(()) => "memory is locked (mlockall)".to_owned(),
        Err(error) => format!(
            "memory is not locked (mlockall: {error}); page faults may show in the tail; \
             run as root or raise RLIMIT_MEMLOCK (ulimit -l unlimited)"
        ),
    });
}

fn hold_dma_latency(notes: &mut Vec<String>) -> Option<File> {
    let held = OpenOptions::new().write(true).open(DMA_LATENCY).and_then(|mut file| {
        file.write_all(&0_i32.to_ne_bytes())?;
        Ok(file)
    });
    match held {
        Ok(file) => {
            notes.push(format!("{DMA_LATENCY} is held at 0"));
            Some(file)
        }
        Err(error) => {
            notes.push(format!("{DMA_LATENCY} is not held ({error}); idle states may show in the latency"));
            None
        }
    }
}

/// Returns the value to put back.
fn stop_throttling(mut claim: Option<&mut Claim>, notes: &mut Vec<String>) -> Option<String> {
    let found = match fs::read_to_string(RT_RUNTIME) {
        Ok(text) => text.trim().to_owned(),
        Err(error) => {
            notes.push(format!("real-time throttling is unknown ({RT_RUNTIME}: {error})"));
            return None;
        }
    };
    let left = claim.as_ref().and_then(|claim| claim.left().cloned());
    let Some(before) = value_to_put_back(&found, left.as_deref()) else {
        notes.push("real-time throttling was off already".to_owned());
        return None;
    };
    // Before the setting changes: we may be killed at any moment.
    if let Some(claim) = &mut claim {
        claim.remember(&before, notes);
    }
    // Whether the kernel took it is read back, not believed.
    let written = fs::write(RT_RUNTIME, OFF);
    let off = fs::read_to_string(RT_RUNTIME).is_ok_and(|text| text.trim() == OFF);
    notes.push(match (off, written) {
        (true, Ok(())) if found == OFF => format!(
            "real-time throttling is off: a run that was killed left it so; it gets its {before} us back after this run"
        ),
        (true, Err(error)) if found == OFF => format!(
            "real-time throttling is off: a run that was killed left it so, and it cannot be put back ({error}); \
             as root: echo {before} > {RT_RUNTIME}"
        ),
        (true, _) => format!("real-time throttling is off for the run (sched_rt_runtime_us was {before})"),
        (false, Err(error)) => format!(
            "real-time throttling stays at {before} us per period ({error}); long irq-off storms are cut short"
        ),
        (false, Ok(())) => {
            format!("real-time throttling stays at {before} us per period; long irq-off storms are cut short")
        }
    });
    // Even what is not ours to write: the attempt fails again at the end, and the value stays remembered.
    off.then_some(before)
}

/// The value that holds without us: what was `found`, unless throttling is off because a run that was killed
/// `left` it so and remembered its value. Nothing when it is off by somebody else's wish.
fn value_to_put_back(found: &str, left: Option<&str>) -> Option<String> {
    if found == OFF { left.filter(|value| *value != OFF) } else { Some(found) }.map(str::to_owned)
}

/// Linux 6.12 replaced throttling by a deadline server that gives SCHED_OTHER 50 ms of a starved second.
fn note_fair_server(cpu: usize, notes: &mut Vec<String>) {
    let file = format!("/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime");
    if let Ok(runtime) = fs::read_to_string(file) {
        let runtime = runtime.trim();
        notes.push(format!("fair server: SCHED_OTHER gets {runtime} ns of a starved second on CPU {cpu}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throttling_that_is_on_is_put_back_as_found_whatever_a_dead_run_left() {
        assert_eq!(value_to_put_back("950000", None).as_deref(), Some("950000"));
        assert_eq!(value_to_put_back("900000", Some("950000")).as_deref(), Some("900000"));
    }

    #[test]
    fn throttling_that_a_dead_run_left_off_is_put_back_as_that_run_found_it() {
        assert_eq!(value_to_put_back("-1", Some("950000")).as_deref(), Some("950000"));
    }

    #[test]
    fn throttling_that_somebody_else_turned_off_stays_off() {
        assert_eq!(value_to_put_back("-1", None), None);
        assert_eq!(value_to_put_back("-1", Some("-1")), None);
    }
}
