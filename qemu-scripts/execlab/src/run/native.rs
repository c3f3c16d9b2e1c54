//! Running a test binary as a process of this machine, with the device process beside it if it needs one; results
//! come through its standard output.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use execlab_launch::process::Process;
use execlab_launch::{DeviceConfig, DeviceProcess, Interrupt};
use execlab_report::{Line, read_line};

/// How often the clock and Ctrl-C are looked at when no line comes.
const TICK: Duration = Duration::from_millis(50);
/// How long the binary may take to end after its results have ended, or after it was asked to.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs `program` with the plan in `plan`, against a device started as `device` says if it wants one; hands each line
/// to `on_line`.
///
/// # Errors
/// When something cannot be started, the device dies, the binary stays silent for `silence` or writes what is no result.
/// A binary that ends with a failure is no error here: its own last line may say why.
pub fn run(
    program: &Path,
    plan: &Path,
    device: Option<&DeviceConfig>,
    silence: Duration,
    interrupt: &Interrupt,
    on_line: &mut dyn FnMut(Line) -> Result<()>,
) -> Result<ExitStatus> {
    let mut device = device.map(|config| DeviceProcess::start(config, interrupt)).transpose()?;
    let mut command = Command::new(program);
    command.arg("--plan").arg(plan).args(["--results", "-"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut process = Process::spawn(command, &program.display().to_string())?;
    let stdout = process.take_stdout().context("the test binary has no standard output")?;
    let (sender, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines() {
            let Ok(line) = line else { return };
            // A receiver that went away has given up on the run.
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let mut last_sign = Instant::now();
    loop {
        match lines.recv_timeout(TICK) {
            Ok(text) => {
                last_sign = Instant::now();
                on_line(read_line(&text).context("the test binary wrote rubbish")?)?;
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if interrupt.is_set() {
            process.terminate(PATIENCE);
            bail!("interrupted");
        }
        if let Some(device) = &mut device
            && let Some(status) = device.ended()?
        {
            bail!("the device process died ({status}); its last words: {}", device.log());
        }
        if last_sign.elapsed() > silence {
            bail!("the test binary hangs: no result for {} s", silence.as_secs());
        }
    }
    let end = Instant::now() + PATIENCE;
    loop {
        match process.try_wait()? {
            Some(status) => return Ok(status),
            None if Instant::now() > end => bail!("the test binary closed its results and did not end"),
            None => thread::sleep(Duration::from_millis(2)),
        }
    }
}
