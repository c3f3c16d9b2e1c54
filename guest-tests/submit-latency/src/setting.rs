//! A plan, checked: what this experiment can do.

use anyhow::{Context as _, Result, bail, ensure};
use execlab_abi::engine::Engine;
use execlab_driver::Variant;
use execlab_report::Plan;

/// Name of this experiment in plans.
pub const EXPERIMENT: &str = "submit-latency";
/// The arm without load.
pub const NULL_ARM: &str = "null";

/// An arm: a name, and the variant behind it; none for the null arm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arm {
    /// As in the results.
    pub name: String,
    /// How the driver submits.
    pub variant: Option<Variant>,
}

/// A checked plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// The plan as it came.
    pub plan: Plan,
    /// The null arm, and one for each variant.
    pub arms: Vec<Arm>,
    /// Engines to load.
    pub engines: Vec<Engine>,
    /// Length of a block in nanoseconds.
    pub block_ns: u64,
}

impl Setting {
    /// Checks a plan. A variant may be named more than once by adding `#` and anything (`tasklet#2`): the arm
    /// has the whole name, the driver is the one before the `#`.
    ///
    /// # Errors
    /// What is wrong with it, and what would be right.
    pub fn new(plan: Plan) -> Result<Self> {
        if plan.experiment != EXPERIMENT {
            bail!("the plan is for experiment {:?}, and this is {EXPERIMENT}", plan.experiment);
        }
        let mut arms = vec![Arm { name: NULL_ARM.to_owned(), variant: None }];
        for name in &plan.variants {
            let base = name.split('#').next().unwrap_or_default();
            let known = || Variant::ALL.map(Variant::name).join(", ");
            let variant = Variant::from_name(base)
                .with_context(|| format!("variants: {base:?} is none; there are {}", known()))?;
            if arms.iter().any(|arm| arm.name == *name) {
                bail!("variants: {name:?} stands there twice; give the second a name such as {base}#2");
            }
            arms.push(Arm { name: name.clone(), variant: Some(variant) });
        }
        ensure!(plan.blocks >= 1, "blocks: at least 1 is needed");
        let seconds = plan.block_seconds;
        ensure!((0.01..=3600.0).contains(&seconds), "block_seconds: {seconds} is not within 0.01 to 3600");
        let dilation = plan.dilation;
        ensure!((0.001..=1e6).contains(&dilation), "dilation: {dilation} is not within 0.001 to 1000000");
        let probe = &plan.probe;
        ensure!(
            (1..=98).contains(&probe.priority),
            "probe.priority: {} is not within 1 to 98",
            probe.priority
        );
        ensure!(probe.min_interval_us >= 1, "probe.min_interval_us: at least 1 is needed");
        let contexts = plan.load.contexts;
        ensure!((1..=64).contains(&contexts), "load.contexts: {contexts} is not within 1 to 64");
        let engines = engines(&plan.load.engines)?;
        let block_ns = (seconds * 1e9) as u64;
        Ok(Self { plan, arms, engines, block_ns })
    }
}

fn engines(names: &[String]) -> Result<Vec<Engine>> {
    ensure!(!names.is_empty(), "load.engines: at least one is needed");
    let mut engines = Vec::new();
    for name in names {
        let known = || Engine::ALL.map(Engine::name).join(", ");
        let engine = Engine::from_name(name)
            .with_context(|| format!("load.engines: {name:?} is none; there are {}", known()))?;
        ensure!(!engines.contains(&engine), "load.engines: {name} stands there twice");
        engines.push(engine);
    }
    Ok(engines)
}

#[cfg(test)]
mod tests {
    use execlab_report::Access;

    use super::*;

    fn plan() -> Plan {
        Plan {
            experiment: EXPERIMENT.into(),
            variants: vec!["tasklet".into(), "direct-2018".into()],
            blocks: 4,
            block_seconds: 0.5,
            dilation: 1.0,
            seed: 1,
            access: Access::Native { socket: "s".into() },
            probe: Default::default(),
            load: Default::default(),
        }
    }

    fn refusal(change: impl FnOnce(&mut Plan)) -> String {
        let mut plan = plan();
        change(&mut plan);
        Setting::new(plan).unwrap_err().to_string()
    }

    #[test]
    fn a_good_plan_has_the_null_arm_first_and_all_engines() {
        let setting = Setting::new(plan()).unwrap();
        let names: Vec<&str> = setting.arms.iter().map(|arm| arm.name.as_str()).collect();
        assert_eq!(names, ["null", "tasklet", "direct-2018"]);
        assert_eq!((setting.engines.len(), setting.block_ns), (4, 500_000_000));
    }

    #[test]
    fn a_variant_may_be_compared_with_itself_under_another_name() {
        let mut both = plan();
        both.variants = vec!["tasklet".into(), "tasklet#2".into()];
        let setting = Setting::new(both).unwrap();
        assert_eq!(setting.arms[1].variant, setting.arms[2].variant);
        assert!(refusal(|plan| plan.variants[1] = "tasklet".into()).contains("tasklet#2"));
    }

    #[test]
    fn each_wrong_field_is_refused_by_name() {
        assert!(refusal(|plan| plan.experiment = "other".into()).contains("other"));
        assert!(refusal(|plan| plan.variants[0] = "direct".into()).contains("direct-2018"));
        assert!(refusal(|plan| plan.blocks = 0).contains("blocks"));
        assert!(refusal(|plan| plan.block_seconds = f64::NAN).contains("block_seconds"));
        assert!(refusal(|plan| plan.dilation = 0.0).contains("dilation"));
        assert!(refusal(|plan| plan.probe.priority = 99).contains("priority"));
        assert!(refusal(|plan| plan.probe.min_interval_us = 0).contains("min_interval"));
        assert!(refusal(|plan| plan.load.contexts = 0).contains("contexts"));
        assert!(refusal(|plan| plan.load.engines.clear()).contains("engines"));
        assert!(refusal(|plan| plan.load.engines[0] = "gpu".into()).contains("rcs0"));
        assert!(refusal(|plan| plan.load.engines[0] = "bcs0".into()).contains("twice"));
    }
}
