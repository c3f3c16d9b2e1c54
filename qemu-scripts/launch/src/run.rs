//! Running a program to its end and reading what it says.

use std::process::Command;

use crate::Error;

/// Standard output of a program that must succeed.
pub(crate) fn output_of(command: &mut Command) -> Result<String, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|source| Error::Start { program, source })?;
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
