//! Guest kernels and initramfs images.
//!
//! [`fetch`] yields a [`Kernel`]: one of the host distribution's own flavours, downloaded and unpacked but never
//! installed, or files that a person named. [`Initramfs::build`] packs PID 1, test binaries and the modules that
//! a test needs; [`plan_segment`] makes the small second archive that says what to run. The kernel accepts
//! both, one after the other, as its initrd.
//!
//! This crate knows no experiment and no QEMU.

mod apt;
mod error;
mod initramfs;
mod kernel;
mod modules;

pub use error::Error;
pub use initramfs::{Initramfs, plan_segment};
pub use kernel::{Flavour, Kernel, KernelChoice, fetch};
pub use modules::{Module, ModuleSet, WANTED_MODULES, collect};

/// Receives one line of progress at a time, for people.
pub type Say<'a> = dyn Fn(&str) + 'a;
