//! The interrupt: a thread above everything else on the CPU.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

use crate::{IRQ_OFF_PRIORITY, Policy, Posix, RtHandle, RtThread, SchedError};

/// Where interrupts come from.
pub trait IrqLine: Send + 'static {
    /// One interrupt.
    type Record;

    /// Blocks until an interrupt may be there, or for some tenths of a second, so that the thread sees that it
    /// is to stop.
    ///
    /// # Errors
    /// When the device is gone; the thread then ends with that error.
    fn wait(&mut self) -> io::Result<()>;

    /// The next interrupt, without waiting.
    fn take(&mut self) -> Option<Self::Record>;
}

/// The interrupt thread of a CPU: SCHED_FIFO 99, pinned. Dropping it stops and joins it.
///
/// At the same priority as a section it does not preempt one: an interrupt that comes in an irq-off section
/// runs after it, as it must. One that comes in a bh-off section waits as well, which a real one would not; the
/// probe below cannot tell.
#[derive(Debug)]
pub struct IrqThread {
    stop: Arc<AtomicBool>,
    error: Arc<Mutex<Option<io::Error>>>,
    thread: Option<RtHandle<()>>,
}

impl IrqThread {
    /// Starts it. `handler` is called with interrupts off, once per interrupt.
    ///
    /// # Errors
    /// [`SchedError`] when CPU or priority is refused.
    pub fn start<L, H>(kernel: &Posix, line: L, handler: H) -> Result<Self, SchedError>
    where
        L: IrqLine,
        H: FnMut(L::Record) + Send + 'static,
    {
        let stop = Arc::new(AtomicBool::new(false));
        let error = Arc::new(Mutex::new(None));
        let (kernel, seen, told) = (kernel.clone(), Arc::clone(&stop), Arc::clone(&error));
        let config = kernel.state.config;
        let policy = if config.priorities { Policy::Fifo(IRQ_OFF_PRIORITY) } else { Policy::Other };
        let thread = RtThread::new("irq").policy(policy).cpu(config.cpu).spawn(move || {
            if let Err(failed) = serve(&kernel, line, handler, &seen) {
                *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(failed);
            }
        })?;
        Ok(Self { stop, error, thread: Some(thread) })
    }

    /// Why the thread ended, if it did.
    #[must_use]
    pub fn error(&self) -> Option<String> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(ToString::to_string)
    }
}

impl Drop for IrqThread {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve<L: IrqLine>(
    kernel: &Posix,
    mut line: L,
    mut handler: impl FnMut(L::Record),
    stop: &AtomicBool,
) -> io::Result<()> {
    while !stop.load(SeqCst) {
        line.wait()?;
        while let Some(record) = line.take() {
            // The handler is wanted twice, one after the other: by the interrupt, and by one on top of its
            // bottom halves.
            let handler = std::cell::RefCell::new(&mut handler);
            kernel.interrupt(|| (handler.borrow_mut())(record), &mut || {
                while let Some(next) = line.take() {
                    kernel.hardirq(|| (handler.borrow_mut())(next));
                }
            });
        }
    }
    Ok(())
}
