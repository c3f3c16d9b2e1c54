//! The machine that is simulated: what its file says.

mod parse;

pub use parse::{MachineError, Ns};

use std::collections::BTreeMap;

use serde::Deserialize;

/// Name and text of every machine that ships.
const BUILTIN: &[(&str, &str)] = &[
    ("kbl-2018", include_str!("../../machines/kbl-2018.toml")),
    ("bdw-2016", include_str!("../../machines/bdw-2016.toml")),
    ("bxt-2017", include_str!("../../machines/bxt-2017.toml")),
    ("nouveau-2011", include_str!("../../machines/nouveau-2011.toml")),
    ("biglittle-2017", include_str!("../../machines/biglittle-2017.toml")),
];

/// A machine: CPUs, a kernel's configuration, and what its work costs.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Short name.
    pub name: String,
    /// One line for lists.
    #[serde(default)]
    pub description: String,
    /// Where the numbers are from.
    #[serde(default)]
    pub source: String,
    /// The kernel whose rules hold.
    pub kernel: KernelVersion,
    /// The CPUs, at least one.
    pub cpu: Vec<CpuSpec>,
    /// Where a thread can be preempted in the kernel.
    pub preemption: Preemption,
    /// Ticks per second (CONFIG_HZ), 1 to 10000.
    pub hz: u32,
    /// Whether an idle CPU stops its tick (CONFIG_NO_HZ_IDLE).
    pub nohz: bool,
    /// How much later than asked the timer of a thread of the fair class may fire.
    pub timer_slack: Ns,
    /// Idle states by depth; none means that an idle CPU polls.
    #[serde(default)]
    pub idle: Vec<IdleState>,
    /// What the kernel's own work costs, at speed 1.
    pub cost: Costs,
    /// What the driver's steps cost, by [`execlab_driver::kernel::Step::name`]; a step that is absent is free.
    #[serde(default)]
    pub step: BTreeMap<String, Ns>,
    /// Limits of one run of bottom halves.
    pub softirq: SoftirqLimits,
    /// The fair class.
    pub fair: Fair,
}

/// A kernel's version as far as its rules depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KernelVersion {
    /// Before the dot.
    pub major: u16,
    /// After it.
    pub minor: u16,
}

impl std::fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl KernelVersion {
    /// Whether tasklets that are pending stay with ksoftirqd while that is runnable: from 4cd13c21b207 (4.9) until
    /// 3c53776e29f8 (4.16) made an exception for them.
    #[must_use]
    pub fn leaves_tasklets_to_ksoftirqd(self) -> bool {
        let version = |major, minor| Self { major, minor };
        (version(4, 9)..version(4, 16)).contains(&self)
    }
}

/// A CPU.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuSpec {
    /// Its speed relative to the one that the costs are for; above 0. Accesses to the device do not scale with it.
    pub speed: f64,
}

/// CONFIG_PREEMPT_*.
///
/// The driver is kernel code, and a simulated thread returns to user mode between its calls of the driver. What the
/// engine sees of that is the end of each call of the kernel trait outside irq-off, bh-off and locked sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preemption {
    /// Only on the way out of a system call: not at the end of a driver's step.
    None,
    /// There, and at `might_sleep`: at the end of any burst outside a section.
    Voluntary,
    /// Wherever `preempt_count` is 0: on the way out of an interrupt, too.
    Full,
}

impl Preemption {
    /// The word of machine files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Voluntary => "voluntary",
            Self::Full => "full",
        }
    }
}

/// An idle state as cpuidle knows them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdleState {
    /// Its name.
    pub name: String,
    /// Time from the interrupt to the first instruction.
    pub exit: Ns,
    /// How long the CPU must stay for the state to pay.
    pub residency: Ns,
}

/// What the kernel's own work costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Costs {
    /// From one thread to another.
    pub context_switch: Ns,
    /// Waking a thread, paid by the waker.
    pub wake: Ns,
    /// From the interrupt to its handler.
    pub irq_entry: Ns,
    /// From the handler to the end of the interrupt.
    pub irq_exit: Ns,
    /// The handler of the timer interrupt.
    pub timer_irq: Ns,
    /// A round of bottom halves, beside the bodies.
    pub softirq_entry: Ns,
    /// A spinlock that nobody holds, taken and released.
    pub lock: Ns,
    /// A cache line that another CPU has modified.
    pub cache_line: Ns,
    /// One turn of a busy-wait loop; above 0, so that such loops end.
    pub cpu_relax: Ns,
    /// One reading of the clock.
    pub clock_read: Ns,
}

/// `kernel/softirq.c`: when bottom halves go to ksoftirqd.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoftirqLimits {
    /// MAX_SOFTIRQ_TIME; compared in jiffies, as the kernel does.
    pub time: Ns,
    /// MAX_SOFTIRQ_RESTART, at least 1.
    pub rounds: u32,
}

/// The fair class (CFS of that time).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fair {
    /// In this time every runnable thread runs once.
    pub latency: Ns,
    /// But none for less than this.
    pub min_granularity: Ns,
    /// A woken thread preempts one that has had this much more.
    pub wakeup_granularity: Ns,
}

impl Machine {
    /// The shipped machine of that name.
    #[must_use]
    pub fn builtin(name: &str) -> Option<Self> {
        // The tests parse every shipped text, so `ok` hides nothing.
        Self::parse(Self::builtin_text(name)?, name).ok()
    }

    /// The text of the shipped machine of that name.
    #[must_use]
    pub fn builtin_text(name: &str) -> Option<&'static str> {
        BUILTIN.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
    }

    /// The shipped machine of that name, or the one that the file of that path describes.
    ///
    /// # Errors
    /// [`MachineError`] when it is neither, or the file is no good.
    pub fn load(name_or_path: &str) -> Result<Self, MachineError> {
        let text = match Self::builtin_text(name_or_path) {
            Some(text) => text.to_owned(),
            None => std::fs::read_to_string(name_or_path).map_err(|error| {
                let known = Self::builtin_names().collect::<Vec<_>>().join(", ");
                MachineError::new(
                    name_or_path,
                    format!("no machine of that name ({known}), and as a file: {error}"),
                )
            })?,
        };
        Self::parse(&text, name_or_path)
    }

    /// Names of the shipped machines.
    pub fn builtin_names() -> impl Iterator<Item = &'static str> {
        BUILTIN.iter().map(|(name, _)| *name)
    }

    /// Length of a tick, in nanoseconds.
    #[must_use]
    pub fn tick_ns(&self) -> u64 {
        1_000_000_000 / u64::from(self.hz.max(1))
    }
}
