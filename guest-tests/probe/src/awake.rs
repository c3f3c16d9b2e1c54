//! Keeping the CPU out of idle states.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use execlab_posix::{Policy, RtHandle, RtThread, SchedError};

/// A SCHED_IDLE thread that spins on the CPU while this lives.
///
/// On real hardware `/dev/cpu_dma_latency` at 0 keeps an idle CPU polling. In a VM idling means HLT, an exit to
/// the host, and tens of microseconds to come back, whatever that file says: an idle arm would then show a
/// *larger* latency than a loaded one. Any other thread preempts this one at once.
#[derive(Debug)]
pub struct KeepAwake {
    stop: Arc<AtomicBool>,
    thread: Option<RtHandle<()>>,
}

impl KeepAwake {
    /// Starts it on `cpu`.
    ///
    /// # Errors
    /// [`SchedError`] when the CPU is refused.
    pub fn start(cpu: usize) -> Result<Self, SchedError> {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = RtThread::new("keep-awake").cpu(cpu).policy(Policy::Idle).spawn(move || {
            // No PAUSE: hypervisors take a long run of it as a reason to exit.
            while !black_box(&seen).load(Relaxed) {}
        })?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for KeepAwake {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
