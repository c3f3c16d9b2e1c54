//! Running one program in a VM, from the device's start to the last line of results.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use execlab_images::{Initramfs, Kernel, plan_segment};
use execlab_init::{BootPlan, ResultsChannel};
use execlab_report::Line;

use crate::machine::{Machine, Sink};
use crate::outcome::{Ended, Outcome};
use crate::process::Process;
use crate::stream::Stream;
use crate::tail::Tail;
use crate::watch::Watch;
use crate::{Accelerator, Carrier, DeviceConfig, DeviceProcess, Error, Interrupt, Qemu, WorkDir};

/// How often processes and limits are looked at when nothing arrives.
const TICK: Duration = Duration::from_millis(50);

/// What QEMU says when KVM cannot go on. It then stops the guest and waits for a person.
const KVM_STOPPED: &str = "KVM internal error";

/// Bounds on the time of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From QEMU's start to its end.
    pub overall: Duration,
    /// Between two signs of life (bytes on the console or on the results channel), the boot included.
    pub silence: Duration,
}

/// Everything about one run.
#[derive(Debug, Clone)]
pub struct VmConfig<'a> {
    /// The QEMU to use.
    pub qemu: &'a Qemu,
    /// What executes the guest's instructions.
    pub accelerator: Accelerator,
    /// The guest's kernel.
    pub kernel: &'a Kernel,
    /// Its initramfs. The plan is appended to it.
    pub initramfs: &'a Initramfs,
    /// What PID 1 runs. Its results channel is chosen here.
    pub boot: BootPlan,
    /// The plan of the experiment, which the test binary finds at [`execlab_init::TEST_PLAN_PATH`].
    pub test_plan: Option<&'a [u8]>,
    /// The device process, whose socket is chosen here, and its carrier; None for a VM without it.
    pub device: Option<(DeviceConfig, Carrier)>,
    /// Virtual CPUs.
    pub cpus: u32,
    /// Guest memory in MiB.
    pub memory_mib: u32,
    /// Emulated IOMMU, for vfio-pci in the guest.
    pub iommu: bool,
    /// Further words for the kernel's command line.
    pub kernel_args: Vec<String>,
    /// Further arguments for QEMU.
    pub qemu_args: Vec<String>,
    /// File for the whole console.
    pub console_log: Option<PathBuf>,
    /// Bounds.
    pub limits: Limits,
}

impl<'a> VmConfig<'a> {
    /// A run of `boot` on one CPU with 512 MiB, an IOMMU, no device; ten minutes in all, one of silence.
    #[must_use]
    pub fn new(
        qemu: &'a Qemu,
        accelerator: Accelerator,
        kernel: &'a Kernel,
        image: &'a Initramfs,
        boot: BootPlan,
    ) -> Self {
        Self {
            qemu,
            accelerator,
            kernel,
            initramfs: image,
            boot,
            test_plan: None,
            device: None,
            cpus: 1,
            memory_mib: 512,
            iommu: true,
            kernel_args: Vec::new(),
            qemu_args: Vec::new(),
            console_log: None,
            limits: Limits { overall: Duration::from_secs(600), silence: Duration::from_secs(60) },
        }
    }
}

/// What happens during a run.
#[derive(Debug)]
pub enum Event<'a> {
    /// QEMU is about to start.
    Starting {
        /// The line that starts the device process, if there is one.
        device_line: Option<&'a str>,
        /// The line that starts QEMU.
        qemu_line: &'a str,
    },
    /// A line of the guest's console.
    Console(&'a str),
    /// A line of results.
    Line(Line),
}

/// Runs a VM to its end. Whatever happens, no process, socket or temporary file is left.
///
/// # Errors
/// [`Error`] when the run could not be started. Whatever goes wrong later is an [`Outcome`].
pub fn run(
    config: &VmConfig<'_>,
    interrupt: &Interrupt,
    on_event: &mut dyn FnMut(Event<'_>),
) -> Result<Ended, Error> {
    let work = WorkDir::create()?;
    let machine = prepare(config, &work)?;
    let log =
        config.console_log.as_deref().map(|path| File::create(path).map_err(Error::file("writing", path)));
    let log = log.transpose()?;

    let device_config = config
        .device
        .as_ref()
        .map(|(device, _)| DeviceConfig { socket: work.join("device"), ..device.clone() });
    let device_line = device_config.as_ref().map(DeviceConfig::shell_line);
    let qemu_line = machine.shell_line();
    on_event(Event::Starting { device_line: device_line.as_deref(), qemu_line: &qemu_line });
    let mut device = device_config.map(|device| DeviceProcess::start(&device, interrupt)).transpose()?;

    let (sender, messages) = channel();
    let mut streams = vec![Stream::console(&work.join("console"), log, sender.clone())?];
    if machine.results.is_some() {
        streams.push(Stream::results(&work.join("results"), sender.clone())?);
    }
    drop(sender);

    let started = Instant::now();
    let mut command = machine.command();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut qemu = Process::spawn(command, &machine.qemu.display().to_string())?;
    let stderr = Tail::default();
    let follower = qemu.take_stderr().map(|source| stderr.follow(source));

    let mut watch = Watch::new(config.limits, started);
    let early = loop {
        let message = messages.recv_timeout(TICK);
        // Asked before the message is handled: what QEMU said before its end is read below in any case.
        let ended = qemu.try_wait()?;
        match message {
            Ok(message) => watch.handle(message, Instant::now(), on_event),
            Err(RecvTimeoutError::Timeout) => {}
            // Both streams have ended; QEMU is about to.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(TICK),
        }
        if let Some(status) = ended {
            break Early::QemuEnded(status);
        }
        if interrupt.is_set() {
            break Early::Outcome(Outcome::Interrupted);
        }
        if let Some(device) = &mut device
            && let Some(status) = device.ended()?
        {
            break Early::Outcome(Outcome::DeviceDied { status: status.to_string(), log: device.log() });
        }
        if stderr.text().contains(KVM_STOPPED) {
            let status = "it stopped the guest".to_owned();
            break Early::Outcome(Outcome::QemuFailed { status, stderr: stderr.text() });
        }
        if let Some(outcome) = watch.exceeded(Instant::now()) {
            break Early::Outcome(outcome);
        }
    };
    let elapsed = started.elapsed();
    qemu.kill();
    streams.iter_mut().for_each(Stream::finish);
    messages.try_iter().for_each(|message| watch.handle(message, Instant::now(), on_event));
    let _ = follower.map(std::thread::JoinHandle::join);

    let outcome = watch.outcome(match early {
        Early::Outcome(outcome) => outcome,
        Early::QemuEnded(status) if status.success() => Outcome::Panic { reason: None },
        Early::QemuEnded(status) => Outcome::QemuFailed { status: status.to_string(), stderr: stderr.text() },
    });
    Ok(Ended {
        outcome,
        console_tail: watch.console_tail(),
        qemu_stderr: stderr.text(),
        boot: watch.boot(),
        elapsed,
        qemu_line,
    })
}

/// Why the loop was left.
enum Early {
    QemuEnded(ExitStatus),
    Outcome(Outcome),
}

/// Writes the image and describes the machine.
fn prepare(config: &VmConfig<'_>, work: &WorkDir) -> Result<Machine, Error> {
    let results = if config.boot.results == ResultsChannel::None {
        ResultsChannel::None
    } else {
        config.initramfs.results
    };
    let boot = BootPlan { results, acknowledge_end: true, ..config.boot.clone() };
    let mut image = config.initramfs.bytes.clone();
    image.extend(plan_segment(&boot, config.test_plan)?);
    let initrd = work.join("initrd");
    fs::write(&initrd, image).map_err(Error::file("writing", &initrd))?;

    let mut machine = Machine::new(&config.qemu.path, config.accelerator, &config.kernel.vmlinuz, &initrd);
    machine.memory_mib = config.memory_mib;
    machine.cpus = config.cpus;
    machine.iommu = config.iommu;
    machine.kernel_args.clone_from(&config.kernel_args);
    machine.extra_args.clone_from(&config.qemu_args);
    machine.console = Sink::Socket(work.join("console"));
    machine.results =
        (results != ResultsChannel::None).then(|| (results, Sink::Socket(work.join("results"))));
    machine.device = config.device.as_ref().map(|(_, carrier)| (*carrier, work.join("device")));
    Ok(machine)
}
