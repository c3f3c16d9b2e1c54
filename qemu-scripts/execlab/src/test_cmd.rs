//! `execlab test`: the whole test suite, step by step, each step by name.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use anyhow::{Result, bail};
use execlab_launch::Interrupt;

use crate::cli::TestArgs;
use crate::workspace::{cargo, run_until};
use crate::{lockfile, selftest};

struct Step {
    name: &'static str,
    what: &'static str,
    vm: bool,
    /// Whether it needs real-time priorities.
    realtime: bool,
    action: fn(&Path, &TestArgs, &Interrupt) -> Result<()>,
}

const STEPS: [Step; 10] = [
    Step {
        name: "style",
        what: "formatting",
        vm: false,
        realtime: false,
        action: |root, _, interrupt| cargo_step(root, interrupt, &["fmt", "--all", "--check"]),
    },
    Step {
        name: "lockfile",
        what: "one version of each rust-vmm crate",
        vm: false,
        realtime: false,
        action: |root, _, _| lockfile::check(root),
    },
    Step {
        name: "lint",
        what: "clippy, warnings are errors",
        vm: false,
        realtime: false,
        action: |root, _, interrupt| {
            cargo_step(
                root,
                interrupt,
                &["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"],
            )
        },
    },
    Step {
        name: "unit",
        what: "unit, property and integration tests",
        vm: false,
        realtime: false,
        action: |root, _, interrupt| cargo_step(root, interrupt, &["test", "--workspace"]),
    },
    Step {
        name: "fuzz",
        what: "hostile input, 10^6 cases",
        vm: false,
        realtime: false,
        action: |root, _, interrupt| selftest::fuzz(root, interrupt),
    },
    Step {
        name: "explore",
        what: "the conformance suite under 20 000 simulated schedules",
        vm: false,
        realtime: false,
        action: |root, _, interrupt| selftest::explore(root, interrupt),
    },
    Step {
        name: "delays",
        what: "injected delays natively: never early",
        vm: false,
        realtime: false,
        action: |root, _, interrupt| selftest::delays(root, interrupt),
    },
    Step {
        name: "oracle",
        what: "probe against the oracle and cyclictest",
        vm: false,
        realtime: true,
        action: |root, _, interrupt| selftest::oracle(root, interrupt),
    },
    Step {
        name: "same",
        what: "40 comparisons of a variant with itself",
        vm: false,
        realtime: true,
        action: |root, _, interrupt| selftest::same(root, interrupt),
    },
    Step {
        name: "vm",
        what: "the experiment in a VM, both kernels",
        vm: true,
        realtime: false,
        action: |root, args, interrupt| selftest::vm(root, args, interrupt),
    },
];

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Passed,
    Failed,
    Interrupted,
    NotRun,
}

impl Ending {
    fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::NotRun => "not run",
        }
    }
}

/// A line of the table at the end.
struct Done {
    name: &'static str,
    ending: Ending,
    seconds: f64,
}

/// Runs the steps that `args` asks for, in order, also after one that failed; ends with a table of them.
///
/// # Errors
/// A wrong name, something missing, the names of the steps that failed, or Ctrl-C, which ends at once.
pub fn test(root: &Path, args: &TestArgs, interrupt: &Interrupt) -> Result<()> {
    for name in &args.only {
        if !STEPS.iter().any(|step| step.name == name) {
            let known: Vec<_> = STEPS.iter().map(|step| step.name).collect();
            bail!("there is no step {name:?}; the steps are {}", known.join(", "));
        }
    }
    let chosen: Vec<&Step> = STEPS
        .iter()
        .filter(|step| {
            let asked_for = args.only.is_empty() || args.only.iter().any(|name| name == step.name);
            asked_for && !(args.no_vm && step.vm)
        })
        .collect();
    let realtime: Vec<&str> = chosen.iter().filter(|step| step.realtime).map(|step| step.name).collect();
    selftest::set_up(args, &realtime)?;
    let done: Vec<Done> = chosen.into_iter().map(|step| pass(step, root, args, interrupt)).collect();
    print!("\n{}", table(&done));
    if interrupt.is_set() {
        bail!("interrupted");
    }
    verdict(&done)
}

/// Runs one step, or leaves it out after Ctrl-C.
fn pass(step: &Step, root: &Path, args: &TestArgs, interrupt: &Interrupt) -> Done {
    if interrupt.is_set() {
        return Done { name: step.name, ending: Ending::NotRun, seconds: 0.0 };
    }
    println!("== {}: {}", step.name, step.what);
    let start = Instant::now();
    let result = (step.action)(root, args, interrupt);
    let seconds = start.elapsed().as_secs_f64();
    let ending = match result {
        Ok(()) => Ending::Passed,
        // Whatever it says then is only a consequence.
        Err(_) if interrupt.is_set() => Ending::Interrupted,
        Err(error) => {
            println!("== {}: {error:#}", step.name);
            Ending::Failed
        }
    };
    println!("== {} {} in {seconds:.0} s", step.name, ending.name());
    Done { name: step.name, ending, seconds }
}

fn table(done: &[Done]) -> String {
    let mut text = format!("{:<10} {:<12} {:>7}\n", "step", "result", "seconds");
    for Done { name, ending, seconds } in done {
        let seconds = if *ending == Ending::NotRun { "-".to_owned() } else { format!("{seconds:.0}") };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:<10} {:<12} {seconds:>7}", ending.name());
    }
    text
}

fn verdict(done: &[Done]) -> Result<()> {
    let failed: Vec<&str> = done.iter().filter(|d| d.ending == Ending::Failed).map(|d| d.name).collect();
    if !failed.is_empty() {
        bail!("{} of {} steps failed: {}", failed.len(), done.len(), failed.join(", "));
    }
    Ok(())
}

fn cargo_step(root: &Path, interrupt: &Interrupt, args: &[&str]) -> Result<()> {
    run_until(cargo(root, args), interrupt)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARGS: TestArgs = TestArgs { no_vm: true, only: Vec::new(), qemu: None };

    fn step(name: &'static str, action: fn(&Path, &TestArgs, &Interrupt) -> Result<()>) -> Step {
        Step { name, what: "", vm: false, realtime: false, action }
    }

    fn endings(steps: &[Step]) -> Vec<Done> {
        let interrupt = Interrupt::never();
        steps.iter().map(|step| pass(step, Path::new("."), &ARGS, &interrupt)).collect()
    }

    #[test]
    fn a_step_that_fails_is_named_and_the_next_one_still_runs() {
        let done = endings(&[step("bad", |_, _, _| bail!("no")), step("good", |_, _, _| Ok(()))]);
        assert_eq!(done[0].ending, Ending::Failed);
        assert_eq!(done[1].ending, Ending::Passed);
        assert_eq!(verdict(&done).unwrap_err().to_string(), "1 of 2 steps failed: bad");
        assert!(verdict(&done[1..]).is_ok());
    }

    #[test]
    fn after_an_interrupt_the_rest_is_not_run() {
        let done = endings(&[
            step("cut", |_, _, interrupt| {
                interrupt.set();
                bail!("a consequence")
            }),
            step("rest", |_, _, _| bail!("must not run")),
        ]);
        assert_eq!((done[0].ending, done[1].ending), (Ending::Interrupted, Ending::NotRun));
        let table = table(&done);
        assert!(table.contains("interrupted") && table.contains("not run            -"), "{table}");
    }
}
