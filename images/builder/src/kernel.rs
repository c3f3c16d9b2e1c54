//! Which kernel boots, and where its files are.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Error, Say, apt};

/// A kernel flavour of the host's distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Flavour {
    /// Small kernel for virtual machines (Debian's `cloud`, Ubuntu's `virtual`).
    Cloud,
    /// Kernel with PREEMPT_RT (Debian's `rt`, Ubuntu's `realtime`).
    Rt,
}

impl fmt::Display for Flavour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cloud => "cloud",
            Self::Rt => "rt",
        })
    }
}

impl FromStr for Flavour {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "cloud" => Ok(Self::Cloud),
            "rt" => Ok(Self::Rt),
            other => Err(format!("no kernel flavour {other:?}; there are cloud and rt")),
        }
    }
}

/// The kernel that a person asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KernelChoice {
    /// A flavour of the host's own distribution and suite.
    Distribution(Flavour),
    /// Files of their own.
    Files {
        /// Kernel image (bzImage).
        vmlinuz: PathBuf,
        /// Directory with the modules: the one that contains `kernel/`, or any above it that holds only this
        /// release. None for a kernel with everything built in.
        modules: Option<PathBuf>,
    },
}

/// A kernel with its files in place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// Kernel image (bzImage).
    pub vmlinuz: PathBuf,
    /// Directory that contains `kernel/` and `modules.builtin`.
    pub modules: Option<PathBuf>,
    /// What `uname -r` will say.
    pub release: String,
}

/// Yields the kernel of a choice. A flavour is downloaded at first use into `cache` and taken from there ever
/// after (also without network); delete its folder there to get a newer one.
///
/// # Errors
/// [`Error`] when the host's distribution is not known, its package manager or mirror does not deliver, or a
/// file is missing or no kernel.
pub fn fetch(choice: &KernelChoice, cache: &Path, say: &Say<'_>) -> Result<Kernel, Error> {
    match choice {
        KernelChoice::Distribution(flavour) => apt::fetch(*flavour, cache, say),
        KernelChoice::Files { vmlinuz, modules } => {
            let release = release_of(vmlinuz)?;
            let modules = modules.as_deref().map(|root| modules_directory(root, &release)).transpose()?;
            Ok(Kernel { vmlinuz: vmlinuz.clone(), modules, release })
        }
    }
}

/// Reads the release out of a bzImage (Documentation/arch/x86/boot.rst: `HdrS` at 0x202, `kernel_version` at
/// 0x20e points 0x200 bytes before a zero-terminated string).
pub(crate) fn release_of(vmlinuz: &Path) -> Result<String, Error> {
    let image = fs::read(vmlinuz).map_err(Error::file("reading", vmlinuz))?;
    parse_release(&image).ok_or_else(|| {
        Error::content(vmlinuz, "this is no x86 bzImage; give the file that a distribution calls vmlinuz")
    })
}

fn parse_release(image: &[u8]) -> Option<String> {
    if image.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let pointer: [u8; 2] = image.get(0x20e..0x210)?.try_into().ok()?;
    let text = image.get(usize::from(u16::from_le_bytes(pointer)) + 0x200..)?;
    let end = text.iter().take(256).position(|byte| *byte == 0)?;
    let text = std::str::from_utf8(&text[..end]).ok()?;
    text.split_whitespace().next().map(str::to_owned)
}

/// Finds the directory with `kernel/` under what a person or a package calls the modules' place. Debian moved
/// it from `/lib` to `/usr/lib` with Debian 13.
pub(crate) fn modules_directory(root: &Path, release: &str) -> Result<PathBuf, Error> {
    let candidates = [
        root.to_owned(),
        root.join(release),
        root.join("lib/modules").join(release),
        root.join("usr/lib/modules").join(release),
    ];
    candidates.into_iter().find(|directory| directory.join("kernel").is_dir()).ok_or_else(|| {
        Error::content(root, format!("no modules of kernel {release} here: no `kernel` directory was found"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(version: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 0x400];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x20e..0x210].copy_from_slice(&0x100u16.to_le_bytes());
        image[0x300..0x300 + version.len()].copy_from_slice(version);
        image
    }

    #[test]
    fn a_bzimage_yields_its_release() {
        assert_eq!(parse_release(&image(b"6.1.0-57-cloud-amd64 (x@y) #1")).unwrap(), "6.1.0-57-cloud-amd64");
    }

    #[test]
    fn what_is_no_bzimage_yields_none() {
        assert_eq!(parse_release(b"\x7fELF"), None);
        let mut cut = image(b"6.1");
        cut[0x20e..0x210].copy_from_slice(&0xffffu16.to_le_bytes());
        assert_eq!(parse_release(&cut), None);
    }

    #[test]
    fn modules_are_found_under_a_root_under_lib_and_by_themselves() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("usr/lib/modules/6.12");
        fs::create_dir_all(home.join("kernel")).unwrap();
        for given in [root.path().to_owned(), root.path().join("usr/lib/modules"), home.clone()] {
            assert_eq!(modules_directory(&given, "6.12").unwrap(), home);
        }
        assert!(modules_directory(root.path(), "6.13").is_err());
    }
}
