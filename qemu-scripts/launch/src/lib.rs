//! Running things from outside: host set-up, QEMU, the device process.
//!
//! [`doctor`] looks, [`setup`] installs and builds, [`vm`] runs one program in a VM beside the device process,
//! [`machine`] is the bare QEMU line. Nothing here outlives the process that uses it: see [`process`].
//!
//! This crate knows how to start the device, not what its registers mean, and no experiment.

mod accelerator;
pub mod cargo;
mod carrier;
mod device_process;
pub mod doctor;
mod error;
mod interrupt;
pub mod machine;
mod outcome;
pub mod process;
mod qemu;
mod run;
pub mod setup;
mod stream;
mod tail;
pub mod tools;
pub mod vm;
mod watch;
mod workdir;

pub use accelerator::{Accelerator, Choice, choose};
pub use carrier::Carrier;
pub use device_process::{DeviceConfig, DeviceProcess};
pub use error::Error;
pub use execlab_images::Say;
pub use interrupt::Interrupt;
pub use machine::{Machine, Sink};
pub use outcome::{Ended, Outcome};
pub use qemu::Qemu;
pub use workdir::WorkDir;
