//! Hostile input for the device, on stable Rust: no sanitizer, no nightly compiler, no external fuzzer.
//!
//! A [`Target`] turns bytes into something that the device has to survive and checks what came of it. A
//! [`campaign`] makes the bytes: from a seed, so that every case can be had again, and by changing inputs that
//! reached something new, as told by the target's [`Reached`] set.

pub mod campaign;
mod catch;
pub mod hostile;
pub mod mutate;
pub mod reached;
pub mod targets;

pub use reached::Reached;

/// What a case ended with: what it reached, or what was wrong.
pub type Verdict = Result<Reached, String>;

/// Runs cases, one after another.
pub type Runner = Box<dyn FnMut(&[u8]) -> Verdict>;

/// One way into the device.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Name on the command line.
    pub name: &'static str,
    /// What is fed with what, in one line.
    pub about: &'static str,
    /// Longest input in bytes.
    pub max_len: usize,
    /// Names of the first members of the [`Reached`] set, for the report; an empty one is not expected.
    pub labels: &'static [&'static str],
    /// Inputs to start from, such as valid ones.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Makes a runner. A runner may keep buffers from case to case but no state that a case can see.
    pub runner: fn() -> Runner,
}

/// Every target.
pub const TARGETS: &[Target] =
    &[targets::profile::TARGET, targets::mmio::TARGET, targets::context::TARGET, targets::wire::TARGET];

impl Target {
    /// The target of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        TARGETS.iter().find(|t| t.name == name).copied()
    }
}
