//! KVM or TCG: decided by booting, not by looking.

use std::fmt;
use std::fs;
use std::path::Path;
use std::time::Duration;

use execlab_images::{Initramfs, Kernel};
use execlab_init::{BootPlan, ResultsChannel};
use serde::{Deserialize, Serialize};

use crate::vm::{Limits, VmConfig, run};
use crate::{Error, Interrupt, Qemu, Say};

/// How long the trial guest may take. A machine with working KVM needs about one second.
const TRIAL_LIMIT: Duration = Duration::from_secs(20);

/// What executes the guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accelerator {
    /// The host's processor.
    Kvm,
    /// QEMU's translator.
    Tcg,
}

impl Accelerator {
    /// Name for `-accel`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
        }
    }
}

impl fmt::Display for Accelerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The accelerator to use, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The accelerator.
    pub accelerator: Accelerator,
    /// Why, in one line.
    pub reason: String,
}

/// An answer in the cache.
#[derive(Debug, Serialize, Deserialize)]
struct Remembered {
    /// Everything on which the answer depends.
    key: String,
    choice: Choice,
}

/// Chooses the accelerator: KVM only if a guest really boots under it within 20 s. `/dev/kvm` can open and
/// still be unusable; QEMU then aborts, or the guest hangs. The answer is kept in `cache` until QEMU, kernels
/// or the host's boot change. An interrupted trial is not kept. `say` hears of a trial, not of an answer that is known.
///
/// # Errors
/// [`Error`] when the trial could not even be set up, or the cache cannot be written.
pub fn choose(
    qemu: &Qemu,
    kernel: &Kernel,
    init: &Path,
    cache: &Path,
    interrupt: &Interrupt,
    say: &Say<'_>,
) -> Result<Choice, Error> {
    if let Err(error) = fs::File::options().read(true).write(true).open("/dev/kvm") {
        return Ok(tcg(format!("/dev/kvm cannot be opened: {error}")));
    }
    let path = cache.join("kvm-trial.json");
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let key = [
        qemu.path.display().to_string(),
        qemu.version.clone(),
        kernel.release.clone(),
        read("/proc/sys/kernel/osrelease"),
        read("/proc/sys/kernel/random/boot_id"),
    ]
    .join("; ");
    if let Some(choice) = remembered(&path, &key) {
        return Ok(choice);
    }
    let limit = TRIAL_LIMIT.as_secs();
    say(&format!(
        "trying KVM with a small guest ({limit} s at most; the answer is kept until this machine boots again)"
    ));
    let choice = trial(qemu, kernel, init, interrupt)?;
    if !interrupt.is_set() {
        let text =
            serde_json::to_string_pretty(&Remembered { key, choice: choice.clone() }).unwrap_or_default();
        fs::create_dir_all(cache).map_err(Error::file("creating", cache))?;
        fs::write(&path, text).map_err(Error::file("writing", &path))?;
    }
    Ok(choice)
}

fn tcg(reason: String) -> Choice {
    Choice { accelerator: Accelerator::Tcg, reason }
}

fn remembered(path: &Path, key: &str) -> Option<Choice> {
    let remembered: Remembered = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
    (remembered.key == key).then_some(remembered.choice)
}

fn trial(qemu: &Qemu, kernel: &Kernel, init: &Path, interrupt: &Interrupt) -> Result<Choice, Error> {
    let image = Initramfs::build(kernel, init, &[])?;
    let mut boot = BootPlan::new(Vec::new());
    boot.results = ResultsChannel::None;
    let mut config = VmConfig::new(qemu, Accelerator::Kvm, kernel, &image, boot);
    config.limits = Limits { overall: TRIAL_LIMIT, silence: TRIAL_LIMIT };
    let ended = run(&config, interrupt, &mut |_| {})?;
    if ended.outcome.success() {
        let reason = format!("a guest booted under KVM in {:.1} s", ended.elapsed.as_secs_f64());
        return Ok(Choice { accelerator: Accelerator::Kvm, reason });
    }
    // Registers may follow; the first line says enough.
    let outcome = ended.outcome.to_string();
    let outcome = outcome.lines().next().unwrap_or_default();
    Ok(tcg(format!("/dev/kvm opens, but no guest boots under it: {outcome}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_remembered_for_its_key_only() {
        let work = tempfile::tempdir().unwrap();
        let path = work.path().join("x.json");
        let choice = tcg("because".into());
        let text = serde_json::to_string(&Remembered { key: "a".into(), choice: choice.clone() }).unwrap();
        fs::write(&path, text).unwrap();
        assert_eq!(remembered(&path, "a"), Some(choice));
        assert_eq!(remembered(&path, "b"), None);
        assert_eq!(remembered(&work.path().join("y"), "a"), None);
    }
}
