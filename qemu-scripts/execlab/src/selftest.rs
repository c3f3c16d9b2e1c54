//! Steps of `execlab test` that run programs rather than unit tests.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use execlab_launch::Interrupt;
use execlab_launch::{setup, tools};
use execlab_stats::BlockValue;
use execlab_stats::verdict::{Call, Rule, judge};

use crate::cli::{RunArgs, TestArgs};
use crate::explore::SIM;
use crate::prepare;
use crate::run::arms::Metric;
use crate::run::submit_latency::{self, Report};
use crate::workspace::run_until;

/// Cases of the fuzz step, over all targets.
const FUZZ_CASES: u32 = 1_000_000;
/// Seeds of the explore step.
const EXPLORE_SEEDS: &str = "20000";
/// Comparisons of a variant with itself, and how many of them may be called different.
const SAME_COMPARISONS: usize = 40;
const SAME_ALLOWED: usize = 4;
/// Blocks of each half of such a comparison: three rounds A B B A.
const SAME_BLOCKS: usize = 6;

/// Hostile input of every kind.
pub fn fuzz(root: &Path, interrupt: &Interrupt) -> Result<()> {
    let mut command = prepare::host_program(root, "execlab-fuzz", "execlab-fuzz")?;
    command.args(["--target", "all", "--seed", "1", "--cases", &(FUZZ_CASES / FUZZ_TARGETS).to_string()]);
    run_until(command, interrupt)
}

/// Targets of the fuzz program, which counts cases for each.
const FUZZ_TARGETS: u32 = 4;

/// The driver under schedules that no machine would show in a day.
pub fn explore(root: &Path, interrupt: &Interrupt) -> Result<()> {
    let mut command = prepare::host_program(root, SIM, SIM)?;
    command.args(["explore", "--seeds", EXPLORE_SEEDS]);
    run_until(command, interrupt)
}

/// Injected delays are never early.
pub fn delays(root: &Path, interrupt: &Interrupt) -> Result<()> {
    let device = prepare::device(root)?;
    let mut command = prepare::host_program(root, "execlab-bench", "execlab-bench")?;
    command.arg("delays").arg("--device").arg(device);
    run_until(command, interrupt)
}

/// The probe against the formula and against cyclictest.
pub fn oracle(root: &Path, interrupt: &Interrupt) -> Result<()> {
    for name in ["probe-oracle", "probe-check"] {
        let mut command = prepare::host_program(root, "execlab-probe", name)?;
        command.arg("--check");
        run_until(command, interrupt)?;
    }
    Ok(())
}

/// One variant natively in many short blocks, dealt to two halves A B B A: equal arms must be called equal.
pub fn same(root: &Path, interrupt: &Interrupt) -> Result<()> {
    let blocks = (SAME_COMPARISONS * 2 * SAME_BLOCKS).to_string();
    let args = RunArgs::from_words(&[
        "--on=native",
        "--variants=tasklet",
        "--block-seconds=0.1",
        "--blocks",
        &blocks,
    ])?;
    // Its own text, with a plot of hundreds of blocks, is no result here.
    let (report, _) = submit_latency::run_silently(root, &args, interrupt)?;
    for metric in Metric::ALL {
        let different = self_comparisons(&report, metric)?;
        println!(
            "{}: {different} of {SAME_COMPARISONS} comparisons with itself called different",
            metric.name()
        );
        ensure!(
            different <= SAME_ALLOWED,
            "more than {SAME_ALLOWED}: the verdict sees differences where none are"
        );
    }
    Ok(())
}

fn self_comparisons(report: &Report, metric: Metric) -> Result<usize> {
    let arm =
        report.analysis.arms.iter().find(|a| a.arm.name == "tasklet").context("there is no arm tasklet")?;
    let values = arm.arm.values(metric);
    ensure!(values.len() == SAME_COMPARISONS * 2 * SAME_BLOCKS, "{} blocks came", values.len());
    let mut different = 0;
    for group in values.chunks(2 * SAME_BLOCKS) {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for (round, four) in (0..).zip(group.chunks(4)) {
            for (at, value) in four.iter().enumerate() {
                let half = if matches!(at, 0 | 3) { &mut a } else { &mut b };
                half.push(BlockValue { round, value: *value });
            }
        }
        let call = judge(&a, &b, &Rule::default())?.call;
        ensure!(call != Call::NotEnoughData, "{SAME_BLOCKS} blocks a half are too few for a verdict");
        different += usize::from(call != Call::NoDifferenceSeen);
    }
    Ok(different)
}

/// The experiment in a VM under both kernels: it must end with verdicts.
pub fn vm(root: &Path, args: &TestArgs, interrupt: &Interrupt) -> Result<()> {
    let qemu = args.qemu.as_ref().map(|path| format!("--qemu={}", path.display()));
    for (kernel, driver) in [("cloud", "auto"), ("rt", "auto"), ("cloud", "uio_pci_generic")] {
        let mut words = vec!["--on=vm", "--blocks=6", "--block-seconds=0.5", "--kernel", kernel];
        words.extend(["--guest-driver", driver]);
        words.extend(qemu.as_deref());
        let report = submit_latency::run(root, &RunArgs::from_words(&words)?, interrupt)?;
        check_vm(&report)?;
    }
    Ok(())
}

fn check_vm(report: &Report) -> Result<()> {
    for described in &report.analysis.arms {
        let arm = &described.arm;
        let submitted = arm.counters.get("submissions").copied().unwrap_or(0);
        let loaded = arm.name != crate::run::arms::NULL_ARM;
        ensure!(loaded == (submitted > 0), "arm {}: {submitted} submissions", arm.name);
        let stray = arm.counters.get("stray-events").copied().unwrap_or(0);
        ensure!(stray == 0, "arm {}: {stray} CSB events that fit no port", arm.name);
    }
    for compared in &report.analysis.metrics {
        ensure!(!compared.against.is_empty(), "no verdict on the {}", compared.metric.name());
        for against in &compared.against {
            ensure!(against.verdict.call != Call::NotEnoughData, "{}", against.verdict);
        }
    }
    Ok(())
}

/// What the steps need, before the first of them: a missing right or package is said at once. `realtime` names the
/// steps that need real-time priorities.
pub fn set_up(args: &TestArgs, realtime: &[&str]) -> Result<()> {
    if !realtime.is_empty() {
        // Tried in a process of its own: nothing here shall run at that priority. Without chrt the steps speak for themselves.
        match Command::new("chrt").args(["--fifo", "99", "true"]).stdin(Stdio::null()).output() {
            Ok(tried) if !tried.status.success() => bail!(realtime_advice(realtime, &tried.stderr)),
            _ => {}
        }
    }
    tools::install(&[tools::MINISTAT, tools::CYCLICTEST], &prepare::say)?;
    if !args.no_vm {
        setup::qemu(args.qemu.as_deref(), &prepare::say)?;
    }
    Ok(())
}

fn realtime_advice(steps: &[&str], said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let (step, needs, them) =
        if steps.len() == 1 { ("step", "needs", "it") } else { ("steps", "need", "them") };
    format!(
        "the {step} {} {needs} SCHED_FIFO 99, which is refused ({}): run as root, or set `rtprio 99` and \
         `memlock unlimited` for this user in /etc/security/limits.conf and log in again, or leave {them} out \
         (--only names the steps to run)",
        steps.join(" and "),
        said.lines().next().unwrap_or("no reason given").trim()
    )
}
