//! What is here, what is missing, and what to do.

use std::path::Path;
use std::process::Command;
use std::thread;

use execlab_images::{Kernel, KernelChoice, fetch};
use rustix::process::{Resource, getrlimit};
use serde::{Deserialize, Serialize};

use crate::cargo::StaticTarget;
use crate::run::output_of;
use crate::tools::{self, Tool};
use crate::{Accelerator, Error, Interrupt, Qemu, Say, choose, setup};

/// How good it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As it should be.
    Good,
    /// Works, with a loss that the advice names.
    Limited,
    /// Must be mended first.
    Missing,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What it is, in a word or two.
    pub name: String,
    /// How good it is.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// What to do, unless all is well.
    pub advice: Option<String>,
}

/// Everything that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// In the order of the list that people read.
    pub checks: Vec<Check>,
}

impl Diagnosis {
    /// The worst verdict.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.checks.iter().map(|check| check.verdict).max().unwrap_or(Verdict::Good)
    }
}

/// Looks at this host. Fetches the kernel and builds PID 1 if that is needed to try KVM, but installs nothing.
pub fn doctor(
    root: &Path,
    cache: &Path,
    qemu: Option<&Path>,
    kernel: &KernelChoice,
    interrupt: &Interrupt,
    say: &Say<'_>,
) -> Diagnosis {
    let mut checks = vec![system(), user(), cores(), realtime(), memlock(), target()];
    let found = Qemu::find(qemu);
    checks.push(emulator(&found, qemu.is_some()));
    let kernel = fetch(kernel, &cache.join("kernels"), say);
    checks.push(guest_kernel(&kernel));
    if let (Ok(qemu), Ok(kernel)) = (&found, &kernel) {
        checks.push(accelerator(root, cache, qemu, kernel, interrupt, say));
    }
    checks.extend([tools::MINISTAT, tools::CYCLICTEST].map(oracle));
    Diagnosis { checks }
}

fn check(name: &str, verdict: Verdict, found: impl Into<String>, advice: &str) -> Check {
    let advice = (verdict != Verdict::Good).then(|| advice.to_owned());
    Check { name: name.to_owned(), verdict, found: found.into(), advice }
}

/// Good or `otherwise`.
fn good_if(good: bool, otherwise: Verdict) -> Verdict {
    if good { Verdict::Good } else { otherwise }
}

fn system() -> Check {
    let apt = which::which("apt-get").is_ok() && which::which("dpkg-deb").is_ok();
    let advice = "guest kernels are fetched through apt only; give one: --kernel FILE --modules DIR";
    let found = format!("{}, {}", tools::host_system(), std::env::consts::ARCH);
    check("system", good_if(apt, Verdict::Limited), found, advice)
}

fn user() -> Check {
    let root = tools::is_root();
    let found = if root { "root" } else { "not root" };
    let advice = "missing packages are named instead of installed";
    check("user", good_if(root, Verdict::Limited), found, advice)
}

fn cores() -> Check {
    let count = thread::available_parallelism().map_or(1, usize::from);
    let advice = "the device process and what it is measured with need a core each: expect large latencies";
    check("cores", good_if(count >= 2, Verdict::Limited), count.to_string(), advice)
}

fn realtime() -> Check {
    // Tried in a process of its own: nothing here shall run at that priority.
    let tried = output_of(Command::new("chrt").args(["--fifo", "98", "true"]));
    let advice =
        "native runs need it: run as root, or set `rtprio 99` for this user in /etc/security/limits.conf";
    match tried {
        Ok(_) => check("real-time priority", Verdict::Good, "SCHED_FIFO 98 permitted", ""),
        Err(error) => check("real-time priority", Verdict::Limited, error.to_string(), advice),
    }
}

fn memlock() -> Check {
    const NEEDED: u64 = 64 << 20;
    let limit = getrlimit(Resource::Memlock).current;
    let enough = tools::is_root() || limit.is_none_or(|bytes| bytes >= NEEDED);
    let found = limit.map_or_else(|| "unlimited".to_owned(), |bytes| format!("{} MiB", bytes >> 20));
    let advice = "native runs lock their memory: set `memlock unlimited` in /etc/security/limits.conf";
    check("lockable memory", good_if(enough, Verdict::Limited), found, advice)
}

fn target() -> Check {
    let advice = "rustup target add x86_64-unknown-linux-musl (done by set-up where rustup is installed)";
    let (verdict, found) = match StaticTarget::installed() {
        Some(StaticTarget::Musl) => (Verdict::Good, StaticTarget::Musl.triple().to_owned()),
        Some(StaticTarget::StaticGlibc) => {
            (Verdict::Limited, "no musl target; static glibc instead".to_owned())
        }
        None => (Verdict::Missing, "no Rust target for static programs".to_owned()),
    };
    check("guest target", verdict, found, advice)
}

fn emulator(qemu: &Result<Qemu, Error>, given: bool) -> Check {
    const NAME: &str = "QEMU";
    match qemu {
        Err(error) => {
            let advice = if given {
                "or leave --qemu out: then it is the distribution's"
            } else {
                "set-up installs it when run as root"
            };
            check(NAME, Verdict::Missing, error.to_string(), advice)
        }
        Ok(qemu) => {
            let carrier = qemu.carrier.map_or_else(|| "no carrier".to_owned(), |carrier| carrier.to_string());
            let found = format!("{} {}, {carrier}", qemu.path.display(), qemu.version);
            let advice = "7.2 or newer with vhost-user devices is needed; give one with --qemu PATH";
            check(NAME, good_if(qemu.carrier.is_some(), Verdict::Missing), found, advice)
        }
    }
}

fn guest_kernel(kernel: &Result<Kernel, execlab_images::Error>) -> Check {
    const NAME: &str = "guest kernel";
    match kernel {
        Ok(kernel) => check(NAME, Verdict::Good, kernel.release.clone(), ""),
        Err(error) => {
            check(NAME, Verdict::Missing, error.to_string(), "give one with --kernel FILE --modules DIR")
        }
    }
}

fn accelerator(
    root: &Path,
    cache: &Path,
    qemu: &Qemu,
    kernel: &Kernel,
    interrupt: &Interrupt,
    say: &Say<'_>,
) -> Check {
    const NAME: &str = "accelerator";
    const ADVICE: &str = "guests run under TCG, ten to a hundred times slower: use a dilation";
    let choice = setup::guest_binaries(root, &[], say).and_then(|programs| {
        let init = programs.get("execlab-init").cloned().unwrap_or_default();
        choose(qemu, kernel, &init, cache, interrupt, say)
    });
    match choice {
        Ok(choice) => {
            let verdict = good_if(choice.accelerator == Accelerator::Kvm, Verdict::Limited);
            check(NAME, verdict, format!("{}: {}", choice.accelerator, choice.reason), ADVICE)
        }
        Err(error) => check(NAME, Verdict::Missing, error.to_string(), "mend this, then ask again"),
    }
}

fn oracle(tool: Tool) -> Check {
    let found = which::which(tool.program);
    let verdict = good_if(found.is_ok(), Verdict::Limited);
    let found = found.map_or_else(|_| "not found".to_owned(), |path| path.display().to_string());
    let advice = format!("{}, needed by tests only: apt-get install {}", tool.purpose, tool.package);
    check(tool.program, verdict, found, &advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_is_the_worst_and_only_trouble_has_advice() {
        let good = check("a", Verdict::Good, "x", "never shown");
        let limited = check("b", Verdict::Limited, "x", "do this");
        assert_eq!((good.advice.as_deref(), limited.advice.as_deref()), (None, Some("do this")));
        let diagnosis = Diagnosis { checks: vec![limited.clone(), good] };
        assert_eq!(diagnosis.verdict(), Verdict::Limited);
        let missing = check("c", Verdict::Missing, "x", "do that");
        assert_eq!(Diagnosis { checks: vec![missing, limited] }.verdict(), Verdict::Missing);
    }

    #[test]
    fn a_missing_qemu_is_missing_with_its_name() {
        let check = emulator(&Qemu::find(Some(Path::new("/nonexistent/qemu"))), true);
        assert_eq!(check.verdict, Verdict::Missing);
        assert!(check.found.contains("/nonexistent/qemu"), "{}", check.found);
        assert!(!check.advice.unwrap().contains("installs"));
    }
}
