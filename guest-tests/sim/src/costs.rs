//! The machine's costs, as one of its CPUs pays them.

use execlab_driver::kernel::Step;

use crate::machine::{Machine, Ns};

/// Nanoseconds by what they are for; see [`crate::machine::Costs`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuCosts {
    pub context_switch: u64,
    pub wake: u64,
    pub irq_entry: u64,
    pub irq_exit: u64,
    pub timer_irq: u64,
    pub softirq_entry: u64,
    pub lock: u64,
    pub cache_line: u64,
    pub cpu_relax: u64,
    pub clock_read: u64,
    pub steps: [u64; Step::ALL.len()],
}

impl CpuCosts {
    pub fn new(machine: &Machine, cpu: usize) -> Self {
        let speed = machine.cpu[cpu].speed;
        let scaled = |ns: Ns| (ns.0 as f64 / speed).round() as u64;
        let cost = &machine.cost;
        let step = |step: Step| machine.step.get(step.name()).copied().map_or(0, scaled);
        Self {
            context_switch: scaled(cost.context_switch),
            wake: scaled(cost.wake),
            irq_entry: scaled(cost.irq_entry),
            irq_exit: scaled(cost.irq_exit),
            timer_irq: scaled(cost.timer_irq),
            softirq_entry: scaled(cost.softirq_entry),
            lock: scaled(cost.lock),
            // The line travels at the interconnect's speed.
            cache_line: cost.cache_line.0,
            cpu_relax: scaled(cost.cpu_relax).max(1),
            clock_read: scaled(cost.clock_read),
            steps: Step::ALL.map(step),
        }
    }
}
