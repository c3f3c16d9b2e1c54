//! A check of Cargo.lock: the rust-vmm crates move in lock-step, so one version of each may be there.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Crates of which a second version means that types of one do not fit the other.
const ONE_OF_EACH: [&str; 7] = [
    "event-manager",
    "vhost",
    "vhost-user-backend",
    "virtio-bindings",
    "virtio-queue",
    "vm-memory",
    "vmm-sys-util",
];

/// Checks the lock file of the checkout.
///
/// # Errors
/// When a crate is there in two versions; the message names them.
pub fn check(root: &Path) -> Result<()> {
    let file = root.join("Cargo.lock");
    let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let doubled = doubled(&text);
    if !doubled.is_empty() {
        bail!("Cargo.lock holds more than one version of {}: bump them together", doubled.join(", "));
    }
    Ok(())
}

fn doubled(lock: &str) -> Vec<String> {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut name = "";
    for line in lock.lines() {
        if let Some(value) = value_of(line, "name") {
            name = value;
        } else if let Some(value) = value_of(line, "version")
            && ONE_OF_EACH.contains(&name)
        {
            versions.entry(name).or_default().push(value);
        }
    }
    versions
        .into_iter()
        .filter(|(_, v)| v.len() > 1)
        .map(|(n, v)| format!("{n} ({})", v.join(" and ")))
        .collect()
}

fn value_of<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use super::doubled;

    #[test]
    fn two_versions_of_a_lock_step_crate_are_named() {
        let lock = "[[package]]\nname = \"vhost\"\nversion = \"0.17.0\"\n\n[[package]]\nname = \"vhost\"\nversion = \"0.18.0\"\n";
        assert_eq!(doubled(lock), ["vhost (0.17.0 and 0.18.0)"]);
    }

    #[test]
    fn two_versions_of_another_crate_are_no_matter() {
        let lock = "[[package]]\nname = \"bitflags\"\nversion = \"1.3.2\"\n\n[[package]]\nname = \"bitflags\"\nversion = \"2.9.0\"\n";
        assert!(doubled(lock).is_empty());
    }
}
