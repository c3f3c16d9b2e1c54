//! Where a thread runs, and how urgently.

use std::io;

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::error::DeviceError;
use crate::sys;

/// Gives the calling thread CPU `cpu` alone and SCHED_FIFO priority `realtime`, as far as asked for.
///
/// # Errors
/// [`DeviceError::Cpu`] or [`DeviceError::Realtime`].
pub fn place(cpu: Option<usize>, realtime: Option<u8>) -> Result<(), DeviceError> {
    if let Some(cpu) = cpu {
        if cpu >= CpuSet::MAX_CPU {
            return Err(DeviceError::Cpu { cpu, source: io::Error::from_raw_os_error(libc::EINVAL) });
        }
        let mut set = CpuSet::new();
        set.set(cpu);
        sched_setaffinity(None, &set).map_err(|e| DeviceError::Cpu { cpu, source: e.into() })?;
    }
    if let Some(priority) = realtime {
        sys::fifo(priority).map_err(|source| DeviceError::Realtime { priority, source })?;
    }
    Ok(())
}
