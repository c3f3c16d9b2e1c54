//! The machine and the device, as found.

use std::fs;

use anyhow::Result;
use execlab_access::AnyDevice;
use execlab_driver::kernel::Kernel as _;
use execlab_posix::{Config, Cpu, now_ns};
use execlab_report::{Environment, ProbePlan};

/// Pairs of raising and lowering that are measured.
const RAISES: usize = 501;

/// Reads everything that the results must say about where they come from. The calling thread must be pinned to
/// the probe's CPU.
///
/// # Errors
/// When the device does not answer, or no thread may be raised.
pub fn describe(device: &AnyDevice, probe: &ProbePlan, mut notes: Vec<String>) -> Result<Environment> {
    let system = rustix::system::uname();
    let identity = device.identity();
    let mut about = identity.description.clone();
    about.entry("seed".into()).or_insert_with(|| identity.identity.seed.to_string());
    let costs = &identity.identity;
    about.insert("bus-read-ns".into(), costs.bus_read_ns.to_string());
    about.insert("bus-write-ns".into(), costs.bus_write_ns.to_string());
    about.insert("forcewake-ns".into(), costs.forcewake_ns.to_string());
    notes.push(format!("probe: SCHED_FIFO {} on CPU {}, read back", probe.priority, probe.cpu));
    notes.push(format!(
        "irq-off is a model: a thread raised to SCHED_FIFO 99; raising and lowering costs {} ns (median)",
        raise_cost_ns(probe.cpu as usize)?
    ));
    Ok(Environment {
        kernel: system.release().to_string_lossy().into_owned(),
        kernel_version: system.version().to_string_lossy().into_owned(),
        cpus: cpus_online(),
        clocksource: read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        access: device.access_name().to_owned(),
        device: about,
        clock_error_ns: device.clock_relation()?.error_ns,
        notes,
    })
}

fn read(file: &str) -> String {
    fs::read_to_string(file).map(|text| text.trim().to_owned()).unwrap_or_else(|_| "unknown".to_owned())
}

fn cpus_online() -> u32 {
    count_list(&read("/sys/devices/system/cpu/online")).unwrap_or_else(|| {
        std::thread::available_parallelism().map_or(1, |cpus| u32::try_from(cpus.get()).unwrap_or(u32::MAX))
    })
}

/// Number of CPUs in a list such as `0-3,6`.
fn count_list(list: &str) -> Option<u32> {
    list.split(',').try_fold(0_u32, |sum, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

/// Median cost of entering and leaving an irq-off section from SCHED_OTHER.
fn raise_cost_ns(cpu: usize) -> Result<u64> {
    let cpu = Cpu::start(Config { cpu, ..Config::default() })?;
    let kernel = cpu.kernel();
    let mut costs: Vec<u64> = (0..RAISES)
        .map(|_| {
            let start = now_ns();
            kernel.irq_off(|| ());
            now_ns() - start
        })
        .collect();
    costs.sort_unstable();
    Ok(costs[RAISES / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_counted() {
        assert_eq!(count_list("0"), Some(1));
        assert_eq!(count_list("0-3,6"), Some(5));
        assert_eq!(count_list("unknown"), None);
        assert_eq!(count_list("3-1"), None);
    }
}
