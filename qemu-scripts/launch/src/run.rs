//! Running a program to its end and reading what it says.

use std::io::Read;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::Error;
use crate::process::Process;

/// Standard output of a program that must succeed.
pub(crate) fn output_of(command: &mut Command) -> Result<String, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|source| Error::Start { program, source })?;
    judged(command, &output)
}

/// The same for a program that may not be what it is taken for: it gets no input, and no more time than `limit`.
pub(crate) fn output_within(command: &mut Command, limit: Duration) -> Result<String, Error> {
    let line = shell_line(command);
    let mut own = Command::new(command.get_program());
    own.args(command.get_args());
    own.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = Process::spawn(own, &command.get_program().to_string_lossy())?;
    // Both are read to their ends, so that a full pipe cannot keep the program from ending.
    let (stdout, stderr) = (process.take_stdout().map(all_of), process.take_stderr().map(all_of));
    let deadline = Instant::now() + limit;
    let status = loop {
        match process.try_wait()? {
            Some(status) => break status,
            None if Instant::now() > deadline => {
                return Err(Error::Silent { command: line, seconds: limit.as_secs() });
            }
            None => thread::sleep(Duration::from_millis(2)),
        }
    };
    // A child of the program's may hold the pipes open: what has not come by then is left out.
    let rest = |text: Option<Receiver<Vec<u8>>>| {
        let left = deadline.saturating_duration_since(Instant::now());
        text.and_then(|text| text.recv_timeout(left).ok()).unwrap_or_default()
    };
    let output = Output { status, stdout: rest(stdout), stderr: rest(stderr) };
    judged(command, &output)
}

fn all_of(mut source: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, text) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What cannot be read is missing in what the caller sees; it judges by that.
        let _ = source.read_to_end(&mut bytes);
        let _ = sender.send(bytes);
    });
    text
}

fn judged(command: &Command, output: &Output) -> Result<String, Error> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Error::Command {
        command: shell_line(command),
        status: output.status.to_string(),
        stderr: last_lines(&String::from_utf8_lossy(&output.stderr), 4),
    })
}

/// A command as a line for a shell.
pub(crate) fn shell_line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    quote(words.map(|word| word.to_string_lossy().into_owned()))
}

/// Words quoted for a shell. A word with a zero byte cannot be an argument at all; it is shown as it is.
pub(crate) fn quote(words: impl Iterator<Item = String>) -> String {
    words
        .map(|word| shlex::try_quote(&word).map(std::borrow::Cow::into_owned).unwrap_or(word.clone()))
        .collect::<Vec<_>>()
        .join(" ")
}

/// The last `count` lines of a text, on one line.
pub(crate) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.trim().lines().collect();
    lines[lines.len().saturating_sub(count)..].join(" / ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_hangs_is_an_error_after_its_limit_and_a_quick_one_is_read() {
        let start = Instant::now();
        let error = output_within(Command::new("sleep").arg("1000"), Duration::from_millis(100)).unwrap_err();
        assert!(matches!(error, Error::Silent { .. }), "{error}");
        assert!(start.elapsed() < Duration::from_secs(20));
        let said =
            output_within(Command::new("sh").args(["-c", "echo yes"]), Duration::from_secs(20)).unwrap();
        assert_eq!(said, "yes\n");
    }
}
