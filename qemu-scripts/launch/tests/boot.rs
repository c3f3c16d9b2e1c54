//! Boots real guests: QEMU, a Debian kernel and PID 1, each ending in another way.
//!
//! Needs QEMU (the one on the search path, or `EXECLAB_TEST_QEMU`) and a kernel: on Debian and Ubuntu it is
//! downloaded once into `.cache/kernels`, elsewhere name one with `EXECLAB_TEST_KERNEL` (a bzImage) and
//! `EXECLAB_TEST_MODULES` (its directory of modules).

// clippy.toml lets tests unwrap, but does not see that helpers of an integration test are tests.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use execlab_images::{Flavour, Initramfs, Kernel, KernelChoice};
use execlab_init::{BootPlan, GuestExit, ResultsChannel};
use execlab_launch::cargo::{Build, StaticTarget};
use execlab_launch::vm::{Event, VmConfig};
use execlab_launch::{Accelerator, Carrier, DeviceConfig, Ended, Interrupt, Outcome, Qemu, setup, vm};
use execlab_report::Line;

/// What every test boots, made once.
struct Lab {
    qemu: Qemu,
    kernel: Kernel,
    image: Initramfs,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn lab(flavour: Flavour) -> Lab {
    let say = |text: &str| eprintln!("{text}");
    let root = root();
    let target = StaticTarget::ensure(&say).unwrap();
    let build = Build { root: &root, packages: &["execlab-init"], target: Some(target) };
    let init = build.run().unwrap().remove("execlab-init").unwrap();
    let given = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let choice = match given("EXECLAB_TEST_KERNEL") {
        Some(vmlinuz) => KernelChoice::Files { vmlinuz, modules: given("EXECLAB_TEST_MODULES") },
        None => KernelChoice::Distribution(flavour),
    };
    let qemu = given("EXECLAB_TEST_QEMU");
    let kernel = execlab_images::fetch(&choice, &root.join(".cache/kernels"), &say).unwrap();
    let binaries = [("behave".to_owned(), behave(target))];
    let image = Initramfs::build(&kernel, &init, &binaries).unwrap();
    Lab { qemu: Qemu::find(qemu.as_deref()).unwrap(), kernel, image }
}

fn cloud() -> &'static Lab {
    static LAB: OnceLock<Lab> = OnceLock::new();
    LAB.get_or_init(|| lab(Flavour::Cloud))
}

/// Builds the guest's test program.
fn behave(target: StaticTarget) -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("behave-{}", std::process::id()));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guest/behave.rs");
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2024", "--target", target.triple(), "-Ctarget-feature=+crt-static"]);
    let status = rustc.arg("-o").arg(&program).arg(source).status().unwrap();
    assert!(status.success());
    program
}

fn boot(lab: &Lab, how: &str, change: impl FnOnce(&mut VmConfig<'_>)) -> (Ended, Vec<Line>, Vec<String>) {
    let plan = BootPlan::new(vec!["/bin/behave".into(), how.into()]);
    let mut config = VmConfig::new(&lab.qemu, Accelerator::Tcg, &lab.kernel, &lab.image, plan);
    change(&mut config);
    let (mut lines, mut console) = (Vec::new(), Vec::new());
    let ended = vm::run(&config, &Interrupt::never(), &mut |event| match event {
        Event::Line(line) => lines.push(line),
        Event::Console(line) => console.push(line.to_owned()),
        Event::Starting { .. } => {}
    });
    let ended = ended.unwrap();
    eprintln!("{how}: {ended} after {:?}, boot {:?}", ended.elapsed, ended.boot);
    (ended, lines, console)
}

#[test]
fn a_program_that_finishes_yields_all_its_lines_and_status_0() {
    let (ended, lines, console) = boot(cloud(), "finish", |config| config.test_plan = Some(b"{\"x\":1}"));
    assert_eq!(ended.outcome, Outcome::Finished(GuestExit::Code(0)), "{console:#?}");
    assert_eq!(lines.len(), 3001);
    assert_eq!(lines.last(), Some(&Line::Done));
    let console = console.join("\n");
    assert!(console.contains("behave: plan is {\"x\":1}"), "{console}");
    for module in ["uio_pci_generic", "vfio_pci", "vfio_iommu_type1"] {
        assert!(console.contains(module), "{module} is not loaded: {console}");
    }
    assert!(ended.boot.is_some());
}

#[test]
fn the_serial_results_channel_works_as_well() {
    let lab = cloud();
    let image = Initramfs { results: ResultsChannel::IsaSerial, ..lab.image.clone() };
    let lab = Lab { qemu: lab.qemu.clone(), kernel: lab.kernel.clone(), image };
    let (ended, lines, console) = boot(&lab, "finish", |config| config.test_plan = Some(b"{}"));
    assert!(ended.outcome.success(), "{console:#?}");
    assert_eq!(lines.len(), 3001);
}

#[test]
fn a_program_that_exits_with_7_is_finished_with_7() {
    let (ended, ..) = boot(cloud(), "fail", |_| {});
    assert_eq!(ended.outcome, Outcome::Finished(GuestExit::Code(7)));
}

#[test]
fn a_program_that_aborts_is_finished_by_its_signal() {
    let (ended, ..) = boot(cloud(), "abort", |_| {});
    assert_eq!(ended.outcome, Outcome::Finished(GuestExit::Signal(6)));
}

#[test]
fn a_missing_program_is_a_failure_of_init_that_names_it() {
    let change = |config: &mut VmConfig<'_>| config.boot.argv = vec!["/bin/absent".into()];
    let (ended, ..) = boot(cloud(), "absent", change);
    let Outcome::Finished(GuestExit::InitFailed(reason)) = ended.outcome else { panic!("{ended}") };
    assert!(reason.contains("/bin/absent"), "{reason}");
}

#[test]
fn a_kernel_panic_is_reported_with_the_console() {
    let (ended, lines, _) = boot(cloud(), "panic-kernel", |_| {});
    assert!(
        matches!(&ended.outcome, Outcome::Panic { reason: Some(text) } if text.contains("sysrq")),
        "{ended}"
    );
    assert!(!ended.console_tail.is_empty());
    assert_eq!(lines.len(), 1);
}

#[test]
fn a_guest_that_hangs_is_ended_by_the_silence_limit() {
    let (ended, ..) = boot(cloud(), "hang", |config| config.limits.silence = Duration::from_secs(15));
    assert!(matches!(ended.outcome, Outcome::Hang { silent: true, .. }), "{ended}");
    assert!(ended.console_tail.iter().any(|line| line.contains("behave: on the console")), "{ended}");
}

#[test]
fn rubbish_on_the_results_channel_ends_the_run_with_its_beginning() {
    let (ended, ..) = boot(cloud(), "rubbish", |_| {});
    assert!(
        matches!(&ended.outcome, Outcome::Rubbish { problem } if problem.contains("this is not a result")),
        "{ended}"
    );
}

#[test]
fn a_qemu_that_refuses_its_arguments_is_reported_with_its_words() {
    let (ended, ..) =
        boot(cloud(), "finish", |config| config.qemu_args = vec!["-device".into(), "nonsense".into()]);
    assert!(
        matches!(&ended.outcome, Outcome::QemuFailed { stderr, .. } if stderr.contains("nonsense")),
        "{ended}"
    );
}

#[test]
fn an_interrupted_run_leaves_neither_process_nor_directory() {
    let lab = cloud();
    let interrupt = Interrupt::never();
    let plan = BootPlan::new(vec!["/bin/behave".into(), "hang".into()]);
    let config = VmConfig::new(&lab.qemu, Accelerator::Tcg, &lab.kernel, &lab.image, plan);
    let mut line = String::new();
    let started = Instant::now();
    let ended = vm::run(&config, &interrupt, &mut |event| {
        if let Event::Starting { qemu_line, .. } = event {
            line = qemu_line.to_owned();
            interrupt.set();
        }
    });
    assert_eq!(ended.unwrap().outcome, Outcome::Interrupted);
    assert!(started.elapsed() < Duration::from_secs(10));
    let words = shlex::split(&line).unwrap();
    let initrd = words.iter().skip_while(|word| *word != "-initrd").nth(1).unwrap();
    let directory = Path::new(initrd).parent().unwrap();
    assert!(!directory.exists(), "{} is left", directory.display());
    assert_eq!(processes_with(initrd), 0);
}

/// How many processes have `text` on their command lines.
fn processes_with(text: &str) -> usize {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter(|process| {
        let command = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(text)
    })
    .count()
}

/// Waits up to 20 s.
fn eventually(mut holds: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    while !holds() {
        if started.elapsed() > Duration::from_secs(20) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

#[test]
fn a_starter_killed_with_sigkill_leaves_no_process() {
    cloud();
    let mut starter = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "helper_that_hangs_in_a_vm"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mark = format!("/execlab-{}-", starter.id());
    let appeared = eventually(|| processes_with(&mark) == 1);
    starter.kill().unwrap();
    starter.wait().unwrap();
    assert!(appeared, "the starter started no QEMU");
    assert!(eventually(|| processes_with(&mark) == 0), "QEMU is left");
}

#[test]
#[ignore = "it only serves a test that kills it"]
fn helper_that_hangs_in_a_vm() {
    boot(cloud(), "hang", |_| {});
}

#[test]
fn the_guest_s_clock_runs_at_the_host_s_rate() {
    let lab = cloud();
    let plan = BootPlan::new(vec!["/bin/behave".into(), "clock".into()]);
    let config = VmConfig::new(&lab.qemu, Accelerator::Tcg, &lab.kernel, &lab.image, plan);
    let mut readings = Vec::new();
    let ended = vm::run(&config, &Interrupt::never(), &mut |event| {
        if let Event::Line(Line::Progress(progress)) = event {
            readings.push((Instant::now(), Duration::from_millis(progress.done.into())));
        }
    });
    assert!(ended.unwrap().outcome.success());
    let [first, .., last] = readings.as_slice() else { panic!("{readings:?}") };
    let ratio = (last.1 - first.1).as_secs_f64() / (last.0 - first.0).as_secs_f64();
    eprintln!("guest seconds per host second: {ratio:.4} over {:?}", last.0 - first.0);
    // Lines travel through two processes on a busy host; a clock that lost ticks would be far outside.
    assert!((0.9..1.1).contains(&ratio), "{ratio}");
}

/// The device process, and the carrier of this QEMU.
fn device(lab: &Lab) -> (DeviceConfig, Carrier) {
    let binary = setup::device(&root(), &|text| eprintln!("{text}")).unwrap();
    let config = DeviceConfig { binary, seed: Some(1), ..DeviceConfig::default() };
    (config, lab.qemu.carrier(None).unwrap())
}

#[test]
fn a_guest_beside_the_device_process_sees_its_carrier() {
    let lab = cloud();
    let device = device(lab);
    let id = match device.1 {
        Carrier::Block => "behave: pci 0x1af4:0x1042",
        Carrier::TestDevice => "behave: pci 0x1af4:0x1067",
    };
    let (ended, _, console) = boot(lab, "list-pci", |config| config.device = Some(device));
    assert!(ended.outcome.success(), "{ended}");
    assert!(console.iter().any(|line| line.contains(id)), "{console:#?}");
}

#[test]
fn a_device_that_is_killed_during_the_run_has_died() {
    let lab = cloud();
    let device = device(lab);
    let plan = BootPlan::new(vec!["/bin/behave".into(), "hang".into()]);
    let mut config = VmConfig::new(&lab.qemu, Accelerator::Tcg, &lab.kernel, &lab.image, plan);
    config.device = Some(device);
    let mut line = String::new();
    let ended = vm::run(&config, &Interrupt::never(), &mut |event| match event {
        Event::Starting { device_line, .. } => line = device_line.unwrap().to_owned(),
        Event::Console(text) if text.contains("behave: on the console") => kill_device(&line),
        _ => {}
    });
    let ended = ended.unwrap();
    assert!(matches!(&ended.outcome, Outcome::DeviceDied { status, .. } if status.contains("9")), "{ended}");
}

/// Kills the process whose command line is `line`.
fn kill_device(line: &str) {
    let words = shlex::split(line).unwrap();
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        let command = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).into_owned();
        if command.split_terminator('\0').eq(words.iter().map(String::as_str)) {
            let pid = process.file_name().to_string_lossy().parse().unwrap();
            let pid = rustix::process::Pid::from_raw(pid).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
    }
}

/// Downloads 70 MB and boots for half a minute: run it with `--ignored`.
#[test]
#[ignore = "downloads the rt kernel, which is large"]
fn the_rt_kernel_boots_as_well() {
    let (ended, lines, console) = boot(&lab(Flavour::Rt), "finish", |config| config.test_plan = Some(b"{}"));
    assert!(ended.outcome.success(), "{console:#?}");
    assert_eq!(lines.len(), 3001);
}

#[test]
fn the_accelerator_is_chosen_by_a_trial_and_the_answer_is_kept() {
    let lab = cloud();
    let root = root();
    let target = StaticTarget::installed();
    let build = Build { root: &root, packages: &["execlab-init"], target };
    let init = build.run().unwrap().remove("execlab-init").unwrap();
    let cache = tempfile::tempdir().unwrap();
    let ask =
        || execlab_launch::choose(&lab.qemu, &lab.kernel, &init, cache.path(), &Interrupt::never(), &|_| {});
    let choice = ask().unwrap();
    eprintln!("{}: {}", choice.accelerator, choice.reason);
    let again = Instant::now();
    assert_eq!(ask().unwrap(), choice);
    assert!(again.elapsed() < Duration::from_secs(1), "the answer was not kept");
    let (ended, ..) = boot(lab, "fail", |config| config.accelerator = choice.accelerator);
    assert_eq!(ended.outcome, Outcome::Finished(GuestExit::Code(7)));
}
