//! How a guest says on its console how it ended.

use std::fmt;

use serde::{Deserialize, Serialize};

const CODE: &str = "execlab-init: exit status ";
const SIGNAL: &str = "execlab-init: killed by signal ";
const FAILED: &str = "execlab-init: failed: ";

/// How the program in the guest ended. Its text form is the last line of the console.
///
/// A console line is used, not `isa-debug-exit`: Debian's cloud kernels have no `/dev/port`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuestExit {
    /// It exited with this status.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// PID 1 could not even start it, for this reason.
    InitFailed(String),
}

impl GuestExit {
    /// True for exit status 0.
    #[must_use]
    pub fn success(&self) -> bool {
        *self == Self::Code(0)
    }

    /// Finds the statement in a console line, wherever in the line it stands: kernel messages may precede it.
    #[must_use]
    pub fn parse_console_line(line: &str) -> Option<Self> {
        let after = |prefix: &str| line.split_once(prefix).map(|(_, rest)| rest.trim());
        if let Some(number) = after(CODE) {
            return number.parse().ok().map(Self::Code);
        }
        if let Some(number) = after(SIGNAL) {
            return number.parse().ok().map(Self::Signal);
        }
        after(FAILED).map(|reason| Self::InitFailed(reason.to_owned()))
    }
}

impl fmt::Display for GuestExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "{CODE}{code}"),
            Self::Signal(signal) => write!(f, "{SIGNAL}{signal}"),
            // One line, whatever the reason contains.
            Self::InitFailed(reason) => write!(f, "{FAILED}{}", reason.replace(['\n', '\r'], " ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exit_written_is_read_back_the_same() {
        let all = [
            GuestExit::Code(7),
            GuestExit::Code(0),
            GuestExit::Signal(11),
            GuestExit::InitFailed("no such file: /bin/x".into()),
        ];
        for exit in all {
            assert_eq!(GuestExit::parse_console_line(&exit.to_string()), Some(exit));
        }
    }

    #[test]
    fn a_kernel_message_before_it_and_a_carriage_return_after_it_do_not_matter() {
        let line = "[    1.0] random: crng init done execlab-init: exit status 3\r";
        assert_eq!(GuestExit::parse_console_line(line), Some(GuestExit::Code(3)));
    }

    #[test]
    fn other_lines_and_cut_numbers_are_no_exit() {
        assert_eq!(GuestExit::parse_console_line("execlab-init: started after 4.2 s"), None);
        assert_eq!(GuestExit::parse_console_line("execlab-init: exit status "), None);
    }
}
