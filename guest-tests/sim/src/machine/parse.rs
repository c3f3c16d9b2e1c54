//! A machine out of TOML.

use execlab_driver::kernel::Step;
use serde::de::{Deserialize, Deserializer, Error as _};

use super::{KernelVersion, Machine};

/// CPUs that a machine can have.
const CPUS_MAX: usize = 64;

/// A length of time in nanoseconds; in files a quantity with its unit, such as "1200ns" or "2ms".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Ns(pub u64);

impl<'de> Deserialize<'de> for Ns {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let length = humantime::parse_duration(&text).map_err(|error| {
            D::Error::custom(format!("{text:?} is not a length of time such as \"1200ns\": {error}"))
        })?;
        u64::try_from(length.as_nanos())
            .map(Self)
            .map_err(|_| D::Error::custom(format!("{text:?} is too long")))
    }
}

impl<'de> Deserialize<'de> for KernelVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let parts = text.split_once('.').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        let (major, minor) = parts
            .ok_or_else(|| D::Error::custom(format!("{text:?} is not a kernel version such as \"4.17\"")))?;
        Ok(Self { major, minor })
    }
}

/// What is wrong with a machine's file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {message}")]
pub struct MachineError {
    file: String,
    message: String,
}

impl MachineError {
    pub(super) fn new(file: &str, message: String) -> Self {
        Self { file: file.to_owned(), message }
    }
}

impl Machine {
    /// Reads a machine; `file` names the text in errors.
    ///
    /// # Errors
    /// [`MachineError`] with the place in the text.
    pub fn parse(text: &str, file: &str) -> Result<Self, MachineError> {
        let error = |message: String| MachineError::new(file, message);
        let machine: Self = toml::from_str(text).map_err(|bad| error(bad.to_string()))?;
        machine.check().map_err(error)?;
        Ok(machine)
    }

    fn check(&self) -> Result<(), String> {
        let refuse =
            |condition: bool, message: &str| if condition { Err(message.to_owned()) } else { Ok(()) };
        refuse(!(1..=CPUS_MAX).contains(&self.cpu.len()), "a machine has 1 to 64 CPUs")?;
        let no_speed = |speed: f64| !(speed.is_finite() && (0.001..=1000.0).contains(&speed));
        refuse(self.cpu.iter().any(|cpu| no_speed(cpu.speed)), "a CPU's speed is between 0.001 and 1000")?;
        refuse(!(1..=10_000).contains(&self.hz), "hz is between 1 and 10000")?;
        refuse(self.cost.cpu_relax.0 == 0, "cost.cpu_relax must not be 0: a busy-wait loop would never end")?;
        refuse(self.softirq.rounds == 0, "softirq.rounds is at least 1")?;
        refuse(self.longest() > 1_000_000_000, "no cost is longer than a second")?;
        match self.step.keys().find(|name| Step::ALL.iter().all(|step| step.name() != *name)) {
            Some(name) => {
                let known = Step::ALL.map(Step::name).join(", ");
                Err(format!("unknown step `{name}`; there are: {known}"))
            }
            None => Ok(()),
        }
    }

    fn longest(&self) -> u64 {
        let c = &self.cost;
        let costs = [c.context_switch, c.wake, c.irq_entry, c.irq_exit, c.timer_irq, c.softirq_entry, c.lock];
        let more = [c.cache_line, c.cpu_relax, c.clock_read, self.timer_slack];
        let idle = self.idle.iter().map(|state| state.exit);
        let all = costs.into_iter().chain(more).chain(idle).chain(self.step.values().copied());
        all.map(|ns| ns.0).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(from: &str, to: &str) -> String {
        let text = Machine::builtin_text("kbl-2018").unwrap();
        assert!(text.contains(from));
        Machine::parse(&text.replacen(from, to, 1), "mine.toml").unwrap_err().to_string()
    }

    #[test]
    fn every_shipped_machine_parses_and_has_its_own_name() {
        for name in Machine::builtin_names() {
            let text = Machine::builtin_text(name).unwrap();
            assert_eq!(Machine::parse(text, name).unwrap().name, name);
        }
    }

    #[test]
    fn nonsense_is_refused_with_the_place_and_the_reason() {
        assert!(with("hz = 250", "hertz = 250").contains("unknown field `hertz`"));
        assert!(with("hz = 250", "hz = 0").contains("hz is between"));
        assert!(with("\"35ns\"", "\"0ns\"").contains("cpu_relax"));
        assert!(with("\"35ns\"", "35").contains("invalid type"));
        assert!(with("\"35ns\"", "\"35\"").contains("is not a length of time"));
        assert!(with("\"35ns\"", "\"35s\"").contains("longer than a second"));
        assert!(with("csb-event =", "csb-events =").contains("unknown step `csb-events`"));
        assert!(with("kernel = \"4.17\"", "kernel = \"new\"").contains("not a kernel version"));
        assert!(with("preemption = \"full\"", "preemption = \"rt\"").contains("unknown variant"));
        assert!(with("speed = 1.0", "speed = nan").contains("speed"));
    }

    #[test]
    fn tasklets_wait_for_ksoftirqd_in_4_9_to_4_15_only() {
        let leaves = |major, minor| KernelVersion { major, minor }.leaves_tasklets_to_ksoftirqd();
        assert!(!leaves(4, 8) && leaves(4, 9) && leaves(4, 15) && !leaves(4, 16) && !leaves(6, 1));
    }
}
