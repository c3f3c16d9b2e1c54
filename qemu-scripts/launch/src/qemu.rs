//! Finding a QEMU and asking it what it is.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::run::output_within;
use crate::{Carrier, Error};

/// The program's usual name.
pub const PROGRAM: &str = "qemu-system-x86_64";

/// How long a QEMU may take to say what it is. One on a cold disk needs about a second.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// A QEMU that has answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Qemu {
    /// The program, or a wrapper script. A wrapper must `exec` the program.
    pub path: PathBuf,
    /// Its version as it says it, for example `7.2.22 (Debian 1:7.2+dfsg-7)`.
    pub version: String,
    /// Major and minor version.
    pub number: (u32, u32),
    /// The carrier it offers, if any.
    pub carrier: Option<Carrier>,
}

impl Qemu {
    /// Asks `path`, or the QEMU on the search path.
    ///
    /// # Errors
    /// [`Error`] when there is none, or it does not answer as QEMU does.
    pub fn find(path: Option<&Path>) -> Result<Self, Error> {
        let path = match path {
            Some(path) => executable(path)?,
            None => which::which(PROGRAM).map_err(|_| Error::NotFound {
                program: PROGRAM.to_owned(),
                advice: "install it (Debian and Ubuntu: qemu-system-x86) or name one with --qemu PATH".into(),
            })?,
        };
        let said = output_within(Command::new(&path).arg("--version"), ANSWER_LIMIT)?;
        let (version, number) = parse_version(&said).ok_or_else(|| Error::Unexpected {
            program: path.display().to_string(),
            problem: format!("--version says {:?}", said.lines().next().unwrap_or_default()),
        })?;
        let help = output_within(Command::new(&path).args(["-device", "help"]), ANSWER_LIMIT)?;
        let carrier = Carrier::choose(number, &help);
        Ok(Self { path, version, number, carrier })
    }

    /// The carrier to use: the one asked for, or the best one.
    ///
    /// # Errors
    /// [`Error::NoCarrier`] when this QEMU has none.
    pub fn carrier(&self, wanted: Option<Carrier>) -> Result<Carrier, Error> {
        let refused = || Error::NoCarrier { path: self.path.clone(), version: self.version.clone() };
        let best = self.carrier.ok_or_else(refused)?;
        match (wanted, best) {
            (None, best) => Ok(best),
            // Whatever has the test device has the block device, too.
            (Some(Carrier::Block), _) => Ok(Carrier::Block),
            (Some(Carrier::TestDevice), Carrier::TestDevice) => Ok(Carrier::TestDevice),
            (Some(Carrier::TestDevice), Carrier::Block) => Err(refused()),
        }
    }
}

/// The program that a person named, as a path or as a name on the search path.
fn executable(named: &Path) -> Result<PathBuf, Error> {
    which::which(named).map_err(|_| {
        let program = named.display().to_string();
        if named.is_dir() {
            Error::NotExecutable { program, problem: "is a folder" }
        } else if named.exists() {
            Error::NotExecutable { program, problem: "is not executable" }
        } else {
            Error::NotFound { program, advice: "give the path of a QEMU: --qemu PATH".into() }
        }
    })
}

fn parse_version(said: &str) -> Option<(String, (u32, u32))> {
    let version = said.lines().next()?.split_once("version ")?.1.trim().to_owned();
    let mut parts = version.split(|c: char| !c.is_ascii_digit());
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next()?.parse().ok()?;
    Some((version, (major, minor)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_line_is_understood() {
        let said = "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)\nCopyright";
        let (version, number) = parse_version(said).unwrap();
        assert_eq!((version.as_str(), number), ("7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)", (7, 2)));
        assert_eq!(parse_version("QEMU emulator version 11.1.3").unwrap().1, (11, 1));
        assert_eq!(parse_version("hello"), None);
    }

    #[test]
    fn a_program_that_is_no_qemu_is_refused_by_name() {
        let error = Qemu::find(Some(Path::new("/bin/echo"))).unwrap_err().to_string();
        assert!(error.contains("echo"), "{error}");
        let error = Qemu::find(Some(Path::new("/nonexistent/qemu"))).unwrap_err().to_string();
        assert!(error.contains("--qemu PATH"), "{error}");
        let error = Qemu::find(Some(Path::new("/etc/passwd"))).unwrap_err().to_string();
        assert!(error.contains("/etc/passwd is not executable"), "{error}");
        let error = Qemu::find(Some(Path::new("/etc"))).unwrap_err().to_string();
        assert!(error.contains("/etc is a folder"), "{error}");
    }
}
