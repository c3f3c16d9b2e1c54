//! Settings of the machine that a measurement needs for as long as it runs.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;

use rustix::mm::{MlockAllFlags, mlockall};

const DMA_LATENCY: &str = "/dev/cpu_dma_latency";
const RT_RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";

/// Memory locked, deep idle states forbidden, real-time throttling off, while this lives. What could not be
/// had is not an error, but stands in [`System::notes`].
#[derive(Debug)]
pub struct System {
    /// The request lasts as long as the file is open (Linux, `Documentation/power/pm_qos_interface.rst`).
    _dma_latency: Option<File>,
    /// Value of `sched_rt_runtime_us` to put back.
    rt_runtime: Option<String>,
    notes: Vec<String>,
}

impl System {
    /// Prepares the machine for real-time threads on CPU `cpu`.
    #[must_use]
    pub fn prepare(cpu: usize) -> Self {
        let mut notes = Vec::new();
        lock_memory(&mut notes);
        let dma_latency = hold_dma_latency(&mut notes);
        let rt_runtime = stop_throttling(&mut notes);
        note_fair_server(cpu, &mut notes);
        Self { _dma_latency: dma_latency, rt_runtime, notes }
    }

    /// What was found and done, one fact per line.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

impl Drop for System {
    fn drop(&mut self) {
        if let Some(value) = &self.rt_runtime {
            let _ = fs::write(RT_RUNTIME, value);
        }
    }
}

fn lock_memory(notes: &mut Vec<String>) {
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
fn stop_throttling(notes: &mut Vec<String>) -> Option<String> {
    let before = match fs::read_to_string(RT_RUNTIME) {
        Ok(text) => text.trim().to_owned(),
        Err(error) => {
            notes.push(format!("real-time throttling is unknown ({RT_RUNTIME}: {error})"));
            return None;
        }
    };
    if before == "-1" {
        notes.push("real-time throttling was off already".to_owned());
        return None;
    }
    // Whether the kernel took it is read back, not believed.
    let written = fs::write(RT_RUNTIME, "-1");
    let off = fs::read_to_string(RT_RUNTIME).is_ok_and(|text| text.trim() == "-1");
    notes.push(match (off, written) {
        (true, _) => format!("real-time throttling is off for the run (sched_rt_runtime_us was {before})"),
        (false, Err(error)) => format!(
            "real-time throttling stays at {before} us per period ({error}); long irq-off storms are cut short"
        ),
        (false, Ok(())) => {
            format!("real-time throttling stays at {before} us per period; long irq-off storms are cut short")
        }
    });
    off.then_some(before)
}

/// Linux 6.12 replaced throttling by a deadline server that gives SCHED_OTHER 50 ms of a starved second.
fn note_fair_server(cpu: usize, notes: &mut Vec<String>) {
    let file = format!("/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime");
    if let Ok(runtime) = fs::read_to_string(file) {
        let runtime = runtime.trim();
        notes.push(format!("fair server: SCHED_OTHER gets {runtime} ns of a starved second on CPU {cpu}"));
    }
}
