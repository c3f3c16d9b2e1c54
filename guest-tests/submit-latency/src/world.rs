//! What the experiment needs of the place it runs in.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use execlab_abi::engine::Engine;
use execlab_driver::bus::Bus;
use execlab_driver::kernel::Threads;
use execlab_driver::{Driver, Variant};
use execlab_report::Environment;

/// A machine with a device, for the length of a run.
pub trait World {
    /// Kernel of driver, load and probe.
    type Kernel: Threads + Clone;
    /// How the driver reaches the device.
    type Bus: Bus;
    /// What is made anew for each block.
    type Rig: Rig<Kernel = Self::Kernel, Bus = Self::Bus>;

    /// The kernel that the probe's threads belong to. They outlive no block, but the kernel outlives all.
    fn kernel(&self) -> &Self::Kernel;

    /// A GPU as after power-on, with nothing of the past in its queues, and a driver of its own for it that gets its
    /// interrupts.
    ///
    /// # Errors
    /// When the device does not answer, or something is refused.
    fn rig(&self, variant: Variant, engines: &[Engine]) -> Result<Self::Rig>;

    /// Whether the device is still there and well.
    ///
    /// # Errors
    /// What is wrong with it.
    fn check(&self) -> Result<()>;

    /// Where results come from, `notes` among it.
    ///
    /// # Errors
    /// When the device does not answer.
    fn environment(&self, notes: Vec<String>) -> Result<Environment>;
}

/// One driver with its CPU and its interrupts, for one block.
pub trait Rig {
    /// As the world's.
    type Kernel: Threads;
    /// As the world's.
    type Bus: Bus;

    /// The driver.
    fn driver(&self) -> &Arc<Driver<Self::Kernel, Self::Bus>>;

    /// What CPU and bus have counted so far, by name.
    fn counters(&self) -> BTreeMap<String, u64>;

    /// Whether everything around the driver is as it should be.
    ///
    /// # Errors
    /// What is not.
    fn check(&self) -> Result<()>;

    /// Takes everything down: no interrupt comes for a driver that is gone, and no device writes to its memory.
    ///
    /// # Errors
    /// When the device does not answer.
    fn finish(self) -> Result<()>;
}
