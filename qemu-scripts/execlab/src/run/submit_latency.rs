//! `execlab run submit-latency`: plan, run, analyse, keep, print.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use execlab_init::{BIN_DIR, BootPlan, TEST_PLAN_PATH};
use execlab_launch::vm::{Event, VmConfig};
use execlab_launch::{DeviceConfig, Interrupt, Outcome, WorkDir, vm};
use execlab_report::{Access, Line, LoadPlan, Plan, ProbePlan, words};
use serde::Serialize;

use super::analyse::{Analysis, analyse};
use super::arms::{Metric, arms};
use super::folder::{CONSOLE, Folder, RUN};
use super::saved::FORMAT;
use super::setting::Setting;
use super::stream::{Collected, Complete};
use super::{native, text};
use crate::cli::{Place, RunArgs};
use crate::explore::SIM;
use crate::out::Json;
use crate::prepare::{self, VmParts};
use crate::progress::Progress;

/// Name of the experiment and of its test binary.
const EXPERIMENT: &str = "submit-latency";
/// The machine that is simulated unless another one is asked for.
const SIM_MACHINE: &str = "kbl-2018";
/// Longest time without a sign of life. The first block follows a boot and the set-up of the device.
const SILENCE: Duration = Duration::from_secs(90);
/// Time for a boot, on top of the blocks.
const BOOT: Duration = Duration::from_secs(120);

/// `run.json`, and what `--json` writes.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Version of this format.
    pub format: u32,
    /// What ran on what.
    pub setting: Setting,
    /// The plan as the test binary understood it.
    pub plan: Plan,
    /// What the device said of itself.
    pub device: BTreeMap<String, String>,
    /// The line that started QEMU, for VM runs.
    pub qemu_line: Option<String>,
    /// Arms, comparisons, verdicts.
    #[serde(flatten)]
    pub analysis: Analysis,
}

/// Where and with what a run happens.
enum Site {
    /// The test binary and the device process on this machine.
    Native {
        program: PathBuf,
        device: PathBuf,
    },
    Vm(Box<VmSite>),
    /// The test binary that simulates everything else.
    Sim {
        program: PathBuf,
    },
}

struct VmSite {
    device: PathBuf,
    parts: VmParts,
}

impl Site {
    /// Builds and fetches what the place needs.
    fn prepare(root: &Path, args: &RunArgs, interrupt: &Interrupt) -> Result<Self> {
        if args.on == Place::Sim {
            return Ok(Self::Sim { program: prepare::host_program(root, SIM, SIM)?.get_program().into() });
        }
        let mut programs = prepare::guest_programs(root)?;
        let device = prepare::device(root)?;
        if args.on == Place::Vm {
            let parts = prepare::vm(root, &args.guest, &programs, interrupt)?;
            return Ok(Self::Vm(Box::new(VmSite { device, parts })));
        }
        let program = programs.tests.remove(EXPERIMENT).context("there is no program submit-latency")?;
        Ok(Self::Native { program, device })
    }
}

/// Runs the experiment and prints its report.
///
/// # Errors
/// When the arguments make no sense, something is missing, or the run fails; the message says which.
pub fn run(root: &Path, args: &RunArgs, interrupt: &Interrupt) -> Result<Report> {
    let mut json = Json::open(args.json.as_deref())?;
    let (report, text) = run_silently(root, args, interrupt)?;
    json.print(&text)?;
    json.write(&report)?;
    Ok(report)
}

/// As [`run`], and prints nothing: gives the report with its text.
///
/// # Errors
/// As [`run`].
pub fn run_silently(root: &Path, args: &RunArgs, interrupt: &Interrupt) -> Result<(Report, String)> {
    check(args)?;
    let site = Site::prepare(root, args, interrupt)?;
    let mut folder = Folder::create(root, args.out.as_deref(), &format!("{EXPERIMENT}-{}", args.on.name()))?;
    let finished = measure(args, &site, &mut folder, interrupt);
    let (report, text) = match finished {
        Ok(finished) => finished,
        Err(error) => {
            let reason = if interrupt.is_set() { "interrupted".to_owned() } else { words(error.as_ref()) };
            if let Some(kept) = folder.give_up(&reason, !interrupt.is_set()) {
                prepare::say(&format!("what came until then: {}", kept.display()));
            }
            return Err(error);
        }
    };
    Ok((report, format!("{text}Results: {}\n", folder.path().display())))
}

/// Runs, analyses and keeps; gives the report and its text.
fn measure(
    args: &RunArgs,
    site: &Site,
    folder: &mut Folder,
    interrupt: &Interrupt,
) -> Result<(Report, String)> {
    let started = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let (complete, qemu_line) = execute(args, site, folder, interrupt)?;
    let report = report(args, site, started, complete, qemu_line)?;
    let text = text::report(&report.setting, &report.analysis);
    keep(folder, &report, &text)?;
    Ok((report, text))
}

fn check(args: &RunArgs) -> Result<()> {
    if let Some(twice) = args.variants.iter().enumerate().find(|(n, name)| args.variants[..*n].contains(name))
    {
        bail!("--variants: {0} stands there twice; give the second a name such as {0}#2", twice.1);
    }
    if !(args.block_seconds.is_finite() && (0.01..=3600.0).contains(&args.block_seconds)) {
        bail!("--block-seconds {}: must lie between 0.01 and 3600", args.block_seconds);
    }
    if args.on == Place::Sim && args.device.wait.is_some() {
        bail!("--wait: on the simulator nobody waits, time is computed");
    }
    if args.on != Place::Sim && args.machine.is_some() {
        bail!("--machine: only the simulator has a machine to choose; give --on sim as well");
    }
    let for_vm = args.guest.given();
    if args.on != Place::Vm && !for_vm.is_empty() {
        bail!(
            "{}: there is no VM with --on {}; leave it out, or give --on vm",
            for_vm.join(", "),
            args.on.name()
        );
    }
    args.device.dilation(args.on)?;
    Ok(())
}

fn device_config(args: &RunArgs, binary: &Path, socket: PathBuf) -> Result<DeviceConfig> {
    Ok(DeviceConfig {
        binary: binary.to_owned(),
        socket,
        profile: Some(args.device.profile.clone()),
        wait: Some(args.device.wait(args.on)),
        dilation: Some(args.device.dilation(args.on)?),
        seed: Some(args.device.seed),
        // Natively the driver and the probe have CPU 0, the device the next one.
        cpu: (args.on == Place::Native).then_some(1),
        extra_args: Vec::new(),
    })
}

fn plan(args: &RunArgs, access: Access) -> Result<Plan> {
    Ok(Plan {
        experiment: EXPERIMENT.to_owned(),
        variants: args.variants.clone(),
        blocks: args.blocks,
        block_seconds: args.block_seconds,
        dilation: args.device.dilation(args.on)?,
        seed: args.device.seed,
        access,
        probe: ProbePlan {
            min_interval_us: args.probe_min_us,
            random_interval_us: args.probe_random_us,
            ..ProbePlan::default()
        },
        load: LoadPlan { batch_ns: args.batch_ns, ..LoadPlan::default() },
    })
}

/// Runs the test binary where the site says and collects its results.
fn execute(
    args: &RunArgs,
    site: &Site,
    folder: &mut Folder,
    interrupt: &Interrupt,
) -> Result<(Complete, Option<String>)> {
    let mut collected = Collected::default();
    let mut progress = Progress::new(EXPERIMENT, 0);
    let mut on_line = |line: Line, folder: &mut Folder| -> Result<()> {
        if let Line::Progress(now) = &line {
            progress.set_total(u64::from(now.total));
            progress.set(u64::from(now.done), &now.what);
        } else {
            folder.keep_line(&line)?;
        }
        collected.take(line)
    };
    let ended = match site {
        Site::Native { program, device } => {
            let work = WorkDir::create()?;
            let socket = work.join("device");
            let access = Access::Native { socket: socket.display().to_string() };
            let plan = write_plan(&work, &plan(args, access)?)?;
            let device = device_config(args, device, socket)?;
            native::run(program, &plan, Some(&device), SILENCE, interrupt, &mut |line| on_line(line, folder))
                .map(Finish::of_process)
        }
        Site::Sim { program } => {
            let work = WorkDir::create()?;
            let access = Access::Sim {
                machine: args.machine.clone().unwrap_or_else(|| SIM_MACHINE.to_owned()),
                profile: args.device.profile.clone(),
            };
            let plan = write_plan(&work, &plan(args, access)?)?;
            native::run(program, &plan, None, SILENCE, interrupt, &mut |line| on_line(line, folder))
                .map(Finish::of_process)
        }
        Site::Vm(site) => run_vm(args, site, folder, interrupt, &mut on_line),
    };
    progress.finish();
    match (ended, collected.failure()) {
        // Two causes, neither of which says the other.
        (Err(error), Some(failure)) => Err(error.context(format!("the test binary gave up: {failure}"))),
        (Err(error), None) => Err(error),
        // The test binary's own words explain its exit status.
        (Ok(Finish { hint, .. }), Some(failure)) => bail!("the test binary gave up: {failure}{hint}"),
        (Ok(Finish { failed: Some(how), hint, .. }), None) => bail!("{how}{hint}"),
        (Ok(Finish { failed: None, qemu_line, .. }), None) => Ok((collected.complete()?, qemu_line)),
    }
}

/// How a test binary ended.
struct Finish {
    /// How, unless it ended well.
    failed: Option<String>,
    /// Where to read more.
    hint: String,
    /// The line that started QEMU.
    qemu_line: Option<String>,
}

impl Finish {
    fn of_process(status: ExitStatus) -> Self {
        let failed = (!status.success()).then(|| format!("the test binary ended with {status}"));
        Self { failed, hint: String::new(), qemu_line: None }
    }
}

/// Writes a plan where the test binary finds it.
fn write_plan(work: &WorkDir, plan: &Plan) -> Result<PathBuf> {
    let file = work.join("plan.json");
    std::fs::write(&file, serde_json::to_vec_pretty(plan)?)
        .with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file)
}

fn run_vm(
    args: &RunArgs,
    site: &VmSite,
    folder: &mut Folder,
    interrupt: &Interrupt,
    on_line: &mut dyn FnMut(Line, &mut Folder) -> Result<()>,
) -> Result<Finish> {
    let driver = args.guest.guest_driver().map(str::to_owned);
    let plan = serde_json::to_vec_pretty(&plan(args, Access::Pci { driver })?)?;
    let argv = vec![format!("{BIN_DIR}/{EXPERIMENT}"), "--plan".to_owned(), TEST_PLAN_PATH.to_owned()];
    let parts = &site.parts;
    let accelerator = parts.accelerator.accelerator;
    let boot = BootPlan::new(argv);
    let mut config = VmConfig::new(&parts.qemu, accelerator, &parts.kernel, &parts.initramfs, boot);
    config.test_plan = Some(&plan);
    config.device = Some((device_config(args, &site.device, PathBuf::new())?, parts.carrier));
    config.cpus = args.guest.smp();
    // A guest that halts when idle is woken through QEMU, milliseconds late. The person's own words come after ours.
    config.kernel_args = std::iter::once("idle=poll".to_owned()).chain(args.guest.append()).collect();
    config.qemu_args.clone_from(&args.guest.qemu_args);
    config.console_log = Some(folder.file(CONSOLE));
    config.limits.silence = SILENCE.max(Duration::from_secs_f64(3.0 * args.block_seconds));
    // The null arm takes as many blocks as each variant; twice the time is patience enough for a busy host.
    let blocks = f64::from(args.blocks) * (args.variants.len() + 1) as f64;
    config.limits.overall = BOOT + Duration::from_secs_f64(2.0 * blocks * (args.block_seconds + 1.0));
    let mut failed = None;
    prepare::say(&format!("booting {} under {accelerator}", parts.kernel.release));
    let ended = vm::run(&config, interrupt, &mut |event| {
        if let Event::Line(line) = event
            && failed.is_none()
        {
            failed = on_line(line, folder).err();
        }
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    let failed = match ended.outcome {
        Outcome::Finished(ref exit) if exit.success() => None,
        // An interrupted run has nothing to explain.
        Outcome::Interrupted => bail!("interrupted"),
        _ => Some(ended.to_string()),
    };
    let hint = format!("\nThe whole console: {}", folder.file(CONSOLE).display());
    Ok(Finish { failed, hint, qemu_line: Some(ended.qemu_line) })
}

fn report(
    args: &RunArgs,
    site: &Site,
    started: String,
    complete: Complete,
    qemu_line: Option<String>,
) -> Result<Report> {
    let analysis = analyse(arms(&complete.blocks, complete.hello.plan.dilation)?, args.device.seed)?;
    let environment = complete.environment;
    let vm = match site {
        Site::Native { .. } | Site::Sim { .. } => None,
        Site::Vm(site) => Some(&site.parts),
    };
    let setting = Setting {
        experiment: EXPERIMENT.to_owned(),
        on: args.on.name().to_owned(),
        started,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host_kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease")
            .unwrap_or_default()
            .trim()
            .to_owned(),
        accelerator: vm.map(|v| format!("{} ({})", v.accelerator.accelerator, v.accelerator.reason)),
        qemu: vm.map(|v| v.qemu.version.clone()),
        carrier: vm.map(|v| v.carrier.name().to_owned()),
        kernel: format!("{} {}", environment.kernel, environment.kernel_version),
        access: environment.access,
        profile: args.device.profile.clone(),
        wait: args.device.wait(args.on),
        dilation: complete.hello.plan.dilation,
        seed: args.device.seed,
        clock_error_ns: environment.clock_error_ns,
        notes: environment.notes,
    };
    Ok(Report {
        format: FORMAT,
        setting,
        plan: complete.hello.plan,
        device: environment.device,
        qemu_line,
        analysis,
    })
}

/// Keeps everything; `run.json`, which says that the run is complete, comes last.
fn keep(folder: &Folder, report: &Report, text: &str) -> Result<()> {
    for described in &report.analysis.arms {
        for metric in Metric::ALL {
            let numbers = described.arm.values(metric);
            let numbers: String = numbers.iter().map(|us| format!("{us}\n")).collect();
            folder.write(&format!("block-{}-{}.txt", metric.name(), described.arm.name), &numbers)?;
        }
    }
    folder.write("report.txt", text)?;
    folder.write_json(RUN, report)
}
