//! What PID 1 is asked to do.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One boot, as the starter writes it to [`crate::BOOT_PLAN_PATH`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BootPlan {
    /// Program and arguments. Empty: boot, report status 0, power off.
    pub argv: Vec<String>,
    /// Environment of the program, beside [`crate::RESULTS_FD_ENV`].
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Huge pages of 2 MiB to reserve before the program starts.
    #[serde(default = "default_hugepages")]
    pub hugepages: u32,
    /// Where results go.
    #[serde(default)]
    pub results: ResultsChannel,
    /// After [`crate::END_OF_RESULTS`], wait (2 s at most) for one byte from the host before powering off, so
    /// that no result is lost in a queue of the machine. Only for a host that answers.
    #[serde(default)]
    pub acknowledge_end: bool,
}

/// The device behind the results channel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResultsChannel {
    /// The virtio-serial port named [`crate::RESULTS_PORT_NAME`]: fast, needs the module `virtio_console`.
    #[default]
    VirtioSerial,
    /// The second ISA serial port, `/dev/ttyS1`: slow, but in every kernel.
    IsaSerial,
    /// Nowhere: the program gets no results channel.
    None,
}

fn default_hugepages() -> u32 {
    16
}

impl BootPlan {
    /// A boot that runs `argv` with everything else as usual.
    #[must_use]
    pub fn new(argv: Vec<String>) -> Self {
        Self {
            argv,
            env: BTreeMap::new(),
            hugepages: default_hugepages(),
            results: ResultsChannel::default(),
            acknowledge_end: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_with_only_argv_gets_the_usual_rest() {
        let plan: BootPlan = serde_json::from_str(r#"{"argv":["/bin/x"]}"#).unwrap();
        assert_eq!(plan, BootPlan::new(vec!["/bin/x".into()]));
    }

    #[test]
    fn an_unknown_field_is_refused() {
        assert!(serde_json::from_str::<BootPlan>(r#"{"argv":[],"hugepage":1}"#).is_err());
    }
}
