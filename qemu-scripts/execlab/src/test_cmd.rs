//! `execlab test`: the whole test suite, step by step, each step by name.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use execlab_launch::Interrupt;

use crate::cli::TestArgs;
use crate::workspace::{cargo, run};
use crate::{lockfile, selftest};

struct Step {
    name: &'static str,
    what: &'static str,
    vm: bool,
    action: fn(&Path, &TestArgs, &Interrupt) -> Result<()>,
}

const STEPS: [Step; 9] = [
    Step {
        name: "style",
        what: "formatting",
        vm: false,
        action: |root, _, _| cargo_step(root, &["fmt", "--all", "--check"]),
    },
    Step {
        name: "lockfile",
        what: "one version of each rust-vmm crate",
        vm: false,
        action: |root, _, _| lockfile::check(root),
    },
    Step {
        name: "lint",
        what: "clippy, warnings are errors",
        vm: false,
        action: |root, _, _| {
            cargo_step(root, &["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"])
        },
    },
    Step {
        name: "unit",
        what: "unit, property and integration tests",
        vm: false,
        action: |root, _, _| cargo_step(root, &["test", "--workspace"]),
    },
    Step {
        name: "fuzz",
        what: "hostile input, 10^6 cases",
        vm: false,
        action: |root, _, _| selftest::fuzz(root),
    },
    Step {
        name: "delays",
        what: "injected delays natively: never early",
        vm: false,
        action: |root, _, _| selftest::delays(root),
    },
    Step {
        name: "oracle",
        what: "probe against the oracle and cyclictest",
        vm: false,
        action: |root, _, _| selftest::oracle(root),
    },
    Step {
        name: "same",
        what: "40 comparisons of a variant with itself",
        vm: false,
        action: |root, _, interrupt| selftest::same(root, interrupt),
    },
    Step {
        name: "vm",
        what: "the experiment in a VM, both kernels",
        vm: true,
        action: |root, args, interrupt| selftest::vm(root, args, interrupt),
    },
];

/// Runs the steps that `args` asks for, in order; stops at the first that fails.
///
/// # Errors
/// The first failure, with the name of its step.
pub fn test(root: &Path, args: &TestArgs, interrupt: &Interrupt) -> Result<()> {
    for name in &args.only {
        if !STEPS.iter().any(|step| step.name == name) {
            let known: Vec<_> = STEPS.iter().map(|step| step.name).collect();
            bail!("there is no step {name:?}; the steps are {}", known.join(", "));
        }
    }
    selftest::set_up(args)?;
    let chosen = STEPS.iter().filter(|step| {
        let asked_for = args.only.is_empty() || args.only.iter().any(|name| name == step.name);
        asked_for && !(args.no_vm && step.vm)
    });
    let mut passed = 0;
    for step in chosen {
        println!("== {}: {}", step.name, step.what);
        let start = Instant::now();
        (step.action)(root, args, interrupt).with_context(|| format!("step `{}` failed", step.name))?;
        println!("== {} passed in {:.0} s", step.name, start.elapsed().as_secs_f64());
        passed += 1;
    }
    println!("{passed} steps passed.");
    Ok(())
}

fn cargo_step(root: &Path, args: &[&str]) -> Result<()> {
    run(cargo(root, args))
}
