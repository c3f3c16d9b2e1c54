//! The QEMU command line, as a typed value.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use execlab_init::{RESULTS_PORT_NAME, ResultsChannel};

use crate::run::shell_line;
use crate::{Accelerator, Carrier};

/// Where the bytes of a serial line of the guest go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sink {
    /// QEMU's own standard input and output.
    Stdio,
    /// The same, and a copy of what the guest writes in a file.
    StdioAndFile(PathBuf),
    /// A Unix socket on which somebody listens already.
    Socket(PathBuf),
    /// A file.
    File(PathBuf),
}

/// A guest machine, complete but for being started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// QEMU.
    pub qemu: PathBuf,
    /// What executes the guest's instructions.
    pub accelerator: Accelerator,
    /// Memory in MiB. It is shared with the device process.
    pub memory_mib: u32,
    /// Virtual CPUs.
    pub cpus: u32,
    /// An emulated IOMMU, which vfio-pci needs.
    pub iommu: bool,
    /// Kernel image.
    pub kernel: PathBuf,
    /// Initramfs.
    pub initrd: PathBuf,
    /// Words for the kernel's command line, after those that the machine needs itself.
    pub kernel_args: Vec<String>,
    /// The carrier and the socket of the device process.
    pub device: Option<(Carrier, PathBuf)>,
    /// The console (first serial port).
    pub console: Sink,
    /// The results channel.
    pub results: Option<(ResultsChannel, Sink)>,
    /// Further arguments, last on the line.
    pub extra_args: Vec<String>,
}

impl Machine {
    /// A machine with one CPU, 512 MiB, an IOMMU, its console on the terminal, and no device.
    #[must_use]
    pub fn new(qemu: &Path, accelerator: Accelerator, kernel: &Path, initrd: &Path) -> Self {
        Self {
            qemu: qemu.to_owned(),
            accelerator,
            memory_mib: 512,
            cpus: 1,
            iommu: true,
            kernel: kernel.to_owned(),
            initrd: initrd.to_owned(),
            kernel_args: Vec::new(),
            device: None,
            console: Sink::Stdio,
            results: None,
            extra_args: Vec::new(),
        }
    }

    /// The command that starts it.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.qemu);
        command.args(self.arguments());
        command
    }

    /// The same as a line to paste into a shell.
    #[must_use]
    pub fn shell_line(&self) -> String {
        shell_line(&self.command())
    }

    /// The kernel's command line.
    #[must_use]
    pub fn kernel_command_line(&self) -> String {
        // A panic reboots at once, which -no-reboot turns into the end of QEMU. Only errors are printed: a
        // character on an emulated serial port costs microseconds of everybody's time.
        let mut words = vec!["console=ttyS0", "rdinit=/init", "panic=-1", "loglevel=4"];
        // On a busy host an emulated timer may miss the kernel's boot-time check of it, which then panics.
        words.push("no_timer_check");
        if self.iommu {
            words.push("intel_iommu=on");
        }
        if host_clock_is_steady() {
            // Else the kernel's watchdog sees an emulator that was descheduled, distrusts the TSC, and every
            // reading of the clock becomes a slow one.
            words.push("tsc=reliable");
        }
        words.extend(self.kernel_args.iter().map(String::as_str));
        words.join(" ")
    }

    fn arguments(&self) -> Vec<String> {
        let mut args = Vec::new();
        let mut add = |words: &[&str]| args.extend(words.iter().map(|word| (*word).to_owned()));
        // Interrupt remapping needs the I/O APIC in QEMU, not in the kernel.
        let irqchip = if self.iommu { ",kernel-irqchip=split" } else { "" };
        add(&["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
        add(&["-machine", &format!("q35,memory-backend=memory{irqchip}")]);
        add(&["-accel", self.accelerator.name(), "-cpu", "max"]);
        add(&["-smp", &self.cpus.to_string(), "-m", &self.memory_mib.to_string()]);
        let memory = format!("memory-backend-memfd,id=memory,size={}M,share=on", self.memory_mib);
        add(&["-object", &memory]);
        if self.iommu {
            add(&["-device", "intel-iommu,intremap=on"]);
        }
        add(&["-kernel", &self.kernel.display().to_string()]);
        add(&["-initrd", &self.initrd.display().to_string()]);
        add(&["-append", &self.kernel_command_line()]);
        add(&["-chardev", &self.console.chardev("console"), "-serial", "chardev:console"]);
        match &self.results {
            Some((ResultsChannel::VirtioSerial, sink)) => {
                let port = format!("virtserialport,chardev=results,name={RESULTS_PORT_NAME}");
                add(&["-chardev", &sink.chardev("results")]);
                add(&["-device", "virtio-serial-pci-non-transitional", "-device", &port]);
            }
            Some((ResultsChannel::IsaSerial, sink)) => {
                add(&["-chardev", &sink.chardev("results"), "-serial", "chardev:results"]);
            }
            Some((ResultsChannel::None, _)) | None => {}
        }
        if let Some((carrier, socket)) = &self.device {
            args.extend(carrier.arguments(socket));
        }
        args.extend(self.extra_args.iter().cloned());
        args
    }
}

impl Sink {
    fn chardev(&self, id: &str) -> String {
        match self {
            Self::Stdio => format!("stdio,id={id}"),
            Self::StdioAndFile(path) => format!("stdio,id={id},logfile={}", escape(path)),
            Self::Socket(path) => format!("socket,id={id},path={}", escape(path)),
            Self::File(path) => format!("file,id={id},path={}", escape(path)),
        }
    }
}

/// A path inside a QEMU option: a comma is written twice.
pub(crate) fn escape(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

/// Whether the host's time stamp counter runs at one rate and never stops.
fn host_clock_is_steady() -> bool {
    fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| text.contains(" constant_tsc"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        Machine::new(Path::new("qemu"), Accelerator::Tcg, Path::new("/k v"), Path::new("/i"))
    }

    #[test]
    fn the_shell_line_splits_back_into_the_arguments() {
        let mut machine = machine();
        machine.device = Some((Carrier::Block, "/tmp/a,b".into()));
        machine.extra_args = vec!["-name".into(), "it's".into()];
        let words = shlex::split(&machine.shell_line()).unwrap();
        assert_eq!(words[1..], machine.arguments());
        assert!(words.contains(&"socket,id=execlab,path=/tmp/a,,b".to_owned()), "{words:?}");
        assert_eq!(words.last().unwrap(), "it's");
    }

    #[test]
    fn memory_is_shared_and_the_iommu_brings_its_kernel_argument() {
        let line = machine().shell_line();
        assert!(line.contains("memory-backend-memfd,id=memory,size=512M,share=on"), "{line}");
        assert!(line.contains("intel-iommu,intremap=on") && line.contains("intel_iommu=on"), "{line}");
        let without = Machine { iommu: false, ..machine() }.shell_line();
        assert!(!without.contains("iommu") && !without.contains("irqchip"), "{without}");
    }

    #[test]
    fn a_guest_that_panics_ends_qemu() {
        let line = machine().shell_line();
        assert!(line.contains("panic=-1") && line.contains("-no-reboot"), "{line}");
    }
}
