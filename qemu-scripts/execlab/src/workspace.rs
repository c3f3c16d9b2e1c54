//! Where the checkout is, and how other programs of it are built and run.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use execlab_launch::Interrupt;
use execlab_launch::process::Process;

/// How often a command and Ctrl-C are looked at.
const TICK: Duration = Duration::from_millis(20);
/// How long a command may take to end after it was asked to.
const PATIENCE: Duration = Duration::from_secs(5);

/// The root of the checkout: the folder above that holds the workspace's Cargo.toml and `device/`.
///
/// # Errors
/// Outside a checkout.
pub fn root() -> Result<PathBuf> {
    let here = std::env::current_dir().context("cannot tell the current folder")?;
    let compiled_in = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors()
        .chain(compiled_in.ancestors())
        .find(|dir| dir.join("Cargo.toml").is_file() && dir.join("device/abi").is_dir())
        .map(Path::to_owned)
        .context("this is not inside a checkout of execlab: change into it and run the command again")
}

/// The git-ignored folder for kernels and probes' answers.
pub fn cache(root: &Path) -> PathBuf {
    root.join(".cache")
}

/// A cargo command in the checkout, with the cargo that started us.
pub fn cargo(root: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root).args(args);
    command
}

/// Runs a command to its end with our terminal.
///
/// # Errors
/// When it cannot start or ends with anything but 0.
pub fn run(mut command: Command) -> Result<()> {
    let shown = shown(&command);
    let status = command.status().with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` ended with {status}");
    }
    Ok(())
}

/// As [`run`], until Ctrl-C: then the command and all that it started are asked to end, so that what they set up is put
/// back. It does not read our terminal.
///
/// # Errors
/// As [`run`], and when interrupted.
pub fn run_until(mut command: Command, interrupt: &Interrupt) -> Result<()> {
    let shown = shown(&command);
    command.stdin(Stdio::null());
    let mut process = Process::spawn(command, &shown)?;
    loop {
        match process.try_wait()? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => bail!("`{shown}` ended with {status}"),
            None if interrupt.is_set() => {
                process.terminate(PATIENCE);
                bail!("interrupted");
            }
            None => thread::sleep(TICK),
        }
    }
}

/// A command as a person would type it.
pub fn shown(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}
