//! Where the checkout is, and how other programs of it are built and run.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

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

/// A command as a person would type it.
pub fn shown(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}
