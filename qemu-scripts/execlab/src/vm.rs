//! `execlab vm`: the bare lines, printed and run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};
use execlab_images::plan_segment;
use execlab_init::{BootPlan, GuestExit, ResultsChannel};
use execlab_launch::process::Process;
use execlab_launch::{DeviceConfig, DeviceProcess, Interrupt, Machine, Outcome, Sink, WorkDir};

use crate::cli::{Place, VmArgs};
use crate::{out, prepare, workspace};

/// Prints the line of the device and the line of QEMU; unless `--print`, runs both with the console on the
/// terminal. Without a program of its own the guest boots, says so and powers off.
///
/// # Errors
/// When something is missing or ends with a failure, the program in the guest included.
pub fn vm(root: &Path, args: &VmArgs, interrupt: &Interrupt) -> Result<()> {
    let dilation = args.device.dilation(Place::Vm)?;
    let programs = prepare::guest_programs(root)?;
    let device = prepare::device(root)?;
    let parts = prepare::vm(root, &args.guest, &programs, interrupt)?;
    let work = WorkDir::create()?;
    // What is printed to be run later must outlive us.
    let folder = if args.print { workspace::cache(root) } else { work.path().to_owned() };
    let initrd = initrd(args, &parts.initramfs.bytes, &folder)?;
    let socket = if args.print { PathBuf::from("/tmp/execlab-device.sock") } else { work.join("device") };
    let device = DeviceConfig {
        binary: device,
        socket: socket.clone(),
        profile: Some(args.device.profile.clone()),
        wait: Some(args.device.wait(Place::Vm)),
        dilation: Some(dilation),
        seed: Some(args.device.seed),
        cpu: None,
        extra_args: Vec::new(),
    };
    let accelerator = parts.accelerator.accelerator;
    let mut machine = Machine::new(&parts.qemu.path, accelerator, &parts.kernel.vmlinuz, &initrd);
    machine.cpus = args.guest.smp();
    machine.kernel_args = args.guest.append();
    machine.extra_args.clone_from(&args.guest.qemu_args);
    machine.device = Some((parts.carrier, socket));
    // What the guest says of its program's end is read there.
    let console = work.join("console");
    if !args.print {
        machine.console = Sink::StdioAndFile(console.clone());
    }
    if !args.program.is_empty() {
        prepare::say(&format!(
            "the device runs at dilation {dilation}: a program that models durations itself must be told"
        ));
    }
    out::print(&format!("# device (dilation {dilation})\n{}\n", device.shell_line()))?;
    out::print(&format!("# guest\n{}\n", machine.shell_line()))?;
    if args.print {
        return Ok(());
    }
    let status = run(&device, machine.command(), interrupt)?;
    if interrupt.is_set() {
        bail!("interrupted");
    }
    if !status.success() {
        bail!("QEMU ended with {status}");
    }
    let text = fs::read(&console).with_context(|| format!("cannot read {}", console.display()))?;
    let outcome = outcome(&String::from_utf8_lossy(&text));
    if outcome.success() { Ok(()) } else { bail!("{outcome}") }
}

/// Runs the device and QEMU to QEMU's end.
fn run(device: &DeviceConfig, mut command: Command, interrupt: &Interrupt) -> Result<ExitStatus> {
    let mut device = DeviceProcess::start(device, interrupt)?;
    command.stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
    let mut qemu = Process::spawn_on_terminal(command, "QEMU")?;
    loop {
        if let Some(status) = qemu.try_wait()? {
            return Ok(status);
        }
        if let Some(status) = device.ended()? {
            bail!("the device process died ({status}); its last words: {}", device.log());
        }
        if interrupt.is_set() {
            bail!("interrupted");
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// What the guest's console says of how its program ended.
fn outcome(console: &str) -> Outcome {
    let exit = console.lines().rev().find_map(GuestExit::parse_console_line);
    let panic = || console.lines().find(|line| line.contains("Kernel panic - not syncing"));
    exit.map_or_else(
        || Outcome::Panic { reason: panic().map(|line| line.trim().to_owned()) },
        Outcome::Finished,
    )
}

/// The image with its plan, in `folder`.
fn initrd(args: &VmArgs, image: &[u8], folder: &Path) -> Result<PathBuf> {
    let boot = BootPlan { results: ResultsChannel::None, ..BootPlan::new(args.program.clone()) };
    let mut bytes = image.to_vec();
    bytes.extend(plan_segment(&boot, None)?);
    let path = folder.join("vm-initrd");
    fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::outcome;

    #[test]
    fn only_a_guest_that_says_status_0_has_succeeded() {
        assert!(outcome("x\r\nexeclab-init: exit status 0\r\n[ 1.0] reboot: Power down\r\n").success());
        for (console, words) in [
            ("execlab-init: exit status 7\n", "status 7"),
            ("execlab-init: killed by signal 11\n", "signal 11"),
            ("execlab-init: failed: no such file: /bin/x\n", "/bin/x"),
            ("Kernel panic - not syncing: x\n", "panicked"),
            ("", "without saying how"),
        ] {
            let outcome = outcome(console);
            assert!(!outcome.success() && outcome.to_string().contains(words), "{outcome}");
        }
    }
}
