//! A simulated machine: CPUs, a kernel's scheduling, and time that is computed.

pub mod device;
mod skeleton;

pub use skeleton::{
    Device, Machine, MachineError, Sim, SimError, SimKernel, SimLock, SimThread, SimWaitQueue,
};
