//! `execlab vm`: the bare lines, printed and run.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use execlab_images::plan_segment;
use execlab_init::{BootPlan, ResultsChannel};
use execlab_launch::process::Process;
use execlab_launch::{DeviceConfig, DeviceProcess, Interrupt, Machine, WorkDir};

use crate::cli::VmArgs;
use crate::{prepare, workspace};

/// Prints the line of the device and the line of QEMU; unless `--print`, runs both with the console on the
/// terminal. Without a program of its own the guest boots, says so and powers off.
///
/// # Errors
/// When something is missing or ends with a failure.
pub fn vm(root: &Path, args: &VmArgs, interrupt: &Interrupt) -> Result<()> {
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
        wait: Some(args.device.wait.clone().unwrap_or_else(|| "hybrid".to_owned())),
        dilation: Some(args.device.dilation.unwrap_or(1.0)),
        seed: Some(args.device.seed),
        cpu: None,
        extra_args: Vec::new(),
    };
    let accelerator = parts.accelerator.accelerator;
    let mut machine = Machine::new(&parts.qemu.path, accelerator, &parts.kernel.vmlinuz, &initrd);
    machine.cpus = args.guest.smp;
    machine.kernel_args = args.guest.append.split_whitespace().map(str::to_owned).collect();
    machine.extra_args.clone_from(&args.guest.qemu_args);
    machine.device = Some((parts.carrier, socket));
    println!("# device\n{}\n# guest\n{}", device.shell_line(), machine.shell_line());
    if args.print {
        return Ok(());
    }
    let mut device = DeviceProcess::start(&device, interrupt)?;
    let mut command = machine.command();
    command.stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
    let mut qemu = Process::spawn_on_terminal(command, "QEMU")?;
    loop {
        if let Some(status) = qemu.try_wait()? {
            return if status.success() { Ok(()) } else { Err(anyhow::anyhow!("QEMU ended with {status}")) };
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

/// The image with its plan, in `folder`.
fn initrd(args: &VmArgs, image: &[u8], folder: &Path) -> Result<PathBuf> {
    let boot = BootPlan { results: ResultsChannel::None, ..BootPlan::new(args.program.clone()) };
    let mut bytes = image.to_vec();
    bytes.extend(plan_segment(&boot, None)?);
    let path = folder.join("vm-initrd");
    std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}
