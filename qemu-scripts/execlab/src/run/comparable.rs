//! Whether two runs can be compared: every setting in which they differ.

use execlab_report::{Access, Plan};
use serde::Serialize;

use super::setting::Setting;

/// One setting that two runs do not share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Which one.
    pub name: &'static str,
    /// Its value in the first run.
    pub first: String,
    /// Its value in the second run.
    pub second: String,
    /// True when the numbers of the two runs are no longer of the same kind, so that no verdict on the arms can follow.
    pub forbids_verdict: bool,
}

/// Every setting in which two runs differ, those that forbid a verdict first. Time, host and version are no settings of
/// the experiment, but are named: they may explain what is seen.
pub fn differences(first: (&Setting, &Plan), second: (&Setting, &Plan)) -> Vec<Difference> {
    let (a, b) = (values(first.0, first.1), values(second.0, second.1));
    let mut all: Vec<Difference> = a
        .into_iter()
        .zip(b)
        .filter(|(a, b)| a.1 != b.1)
        .map(|((name, first, forbids_verdict), (_, second, _))| Difference {
            name,
            first,
            second,
            forbids_verdict,
        })
        .collect();
    all.sort_by_key(|difference| !difference.forbids_verdict);
    all
}

/// Name, value, and whether another value forbids a verdict.
fn values(setting: &Setting, plan: &Plan) -> [(&'static str, String, bool); 18] {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
    let machine = match &plan.access {
        Access::Sim { machine, .. } => machine.clone(),
        Access::Native { .. } | Access::Pci { .. } => "none".to_owned(),
    };
    // Why an accelerator was chosen is no difference.
    let accelerator = text(&setting.accelerator);
    let accelerator = accelerator.split(" (").next().unwrap_or_default().to_owned();
    [
        ("experiment", setting.experiment.clone(), true),
        ("on", setting.on.clone(), true),
        ("simulated machine", machine, true),
        ("profile", setting.profile.clone(), true),
        ("dilation", setting.dilation.to_string(), true),
        ("kernel", setting.kernel.clone(), false),
        ("accelerator", accelerator, false),
        ("qemu", text(&setting.qemu), false),
        ("carrier", text(&setting.carrier), false),
        ("access", setting.access.clone(), false),
        ("wait", setting.wait.clone(), false),
        ("seed", setting.seed.to_string(), false),
        ("blocks per arm", plan.blocks.to_string(), false),
        ("block length", format!("{} s", plan.block_seconds), false),
        (
            "probe interval",
            format!("{} + 0..{} us", plan.probe.min_interval_us, plan.probe.random_interval_us),
            false,
        ),
        (
            "load",
            format!(
                "{} ns batches on {}, {} contexts each",
                plan.load.batch_ns,
                plan.load.engines.join(","),
                plan.load.contexts
            ),
            false,
        ),
        ("host kernel", setting.host_kernel.clone(), false),
        ("execlab", setting.version.clone(), false),
    ]
}

/// The differences, a line each.
pub fn lines(differences: &[Difference]) -> String {
    differences
        .iter()
        .map(|d| {
            let mark = if d.forbids_verdict { "!" } else { " " };
            format!("{mark} {:<18} {}  |  {}\n", d.name, d.first, d.second)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(on: &str, dilation: f64, kernel: &str) -> (Setting, Plan) {
        let setting = Setting {
            experiment: "submit-latency".into(),
            on: on.into(),
            started: String::new(),
            version: "0".into(),
            host_kernel: "6".into(),
            accelerator: Some(format!("tcg (asked for on {dilation})")),
            qemu: None,
            carrier: None,
            kernel: kernel.into(),
            access: "vfio-pci".into(),
            profile: "kbl-2018".into(),
            wait: "hybrid".into(),
            dilation,
            seed: 1,
            clock_error_ns: 0,
            notes: Vec::new(),
        };
        let plan = Plan {
            experiment: "submit-latency".into(),
            variants: Vec::new(),
            blocks: 6,
            block_seconds: 0.5,
            dilation,
            seed: 1,
            access: Access::Pci { driver: None },
            probe: Default::default(),
            load: Default::default(),
        };
        (setting, plan)
    }

    fn names(a: &(Setting, Plan), b: &(Setting, Plan)) -> Vec<(&'static str, bool)> {
        differences((&a.0, &a.1), (&b.0, &b.1)).iter().map(|d| (d.name, d.forbids_verdict)).collect()
    }

    #[test]
    fn equal_runs_differ_in_nothing() {
        assert!(names(&run("vm", 20.0, "cloud"), &run("vm", 20.0, "cloud")).is_empty());
    }

    #[test]
    fn another_kernel_is_said_and_another_dilation_or_place_forbids_a_verdict() {
        let base = run("vm", 20.0, "cloud");
        assert_eq!(names(&base, &run("vm", 20.0, "rt")), [("kernel", false)]);
        assert_eq!(names(&base, &run("vm", 50.0, "rt")), [("dilation", true), ("kernel", false)]);
        assert_eq!(names(&base, &run("native", 20.0, "cloud")), [("on", true)]);
    }
}
