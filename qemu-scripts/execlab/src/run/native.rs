//! Running a test binary as a process of this machine, with the device process beside it if it needs one; results
//! come through its standard output.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
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
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = Process::spawn(command, &program.display().to_string())?;
    let stdout = process.take_stdout().context("the test binary has no standard output")?;
    let words = process.take_stderr().map(pass_on);
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
    let mut failure = None;
    loop {
        match lines.recv_timeout(TICK) {
            Ok(text) => {
                last_sign = Instant::now();
                let line = read_line(&text).context("the test binary wrote rubbish")?;
                if let Line::Failure(said) = &line {
                    failure = Some(said.message.clone());
                }
                on_line(line)?;
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
            Some(status) => {
                last_words(words, failure.as_deref());
                return Ok(status);
            }
            None if Instant::now() > end => bail!("the test binary closed its results and did not end"),
            None => thread::sleep(Duration::from_millis(2)),
        }
    }
}

/// Passes on what a program writes for people, line by line, all but the last line, which is the answer.
fn pass_on(source: impl Read + Send + 'static) -> JoinHandle<Option<String>> {
    thread::spawn(move || {
        let mut held: Option<String> = None;
        for line in BufReader::new(source).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            if let Some(line) = held.replace(line) {
                tell(&line);
            }
        }
        held
    })
}

/// Says a program's last line, unless it is the failure that its results end with, which is told by us.
fn last_words(words: Option<JoinHandle<Option<String>>>, failure: Option<&str>) {
    let last = words.and_then(|words| words.join().ok()).flatten();
    if let Some(line) = last.filter(|line| !failure.is_some_and(|failure| line.contains(failure))) {
        tell(&line);
    }
}

/// Writes a line to standard error; nobody has to listen there.
fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(script: &str) -> (ExitStatus, Vec<Line>) {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("x");
        let mut lines = Vec::new();
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let status = run(
            &program,
            Path::new("/dev/null"),
            None,
            Duration::from_secs(20),
            &Interrupt::never(),
            &mut |line| {
                lines.push(line);
                Ok(())
            },
        );
        (status.unwrap(), lines)
    }

    #[test]
    fn a_binary_that_gives_up_hands_over_its_status_and_its_words() {
        let (status, lines) =
            ran(r#"echo '{"type":"failure","message":"no device"}'; echo "x: no device" >&2; exit 1"#);
        assert_eq!(status.code(), Some(1));
        assert!(
            matches!(&lines[..], [Line::Failure(failure)] if failure.message == "no device"),
            "{lines:?}"
        );
    }
}
