//! The smallest kernel that the driver runs on: one thread, nothing to mask, bottom halves when a section ends.

use std::sync::{Arc, Mutex, PoisonError};

use execlab_driver::kernel::{self, Kernel, Place, TaskletBody, TaskletId};
use execlab_posix::{now_ns, sleep_until_ns, spin_until_ns};

/// The kernel. Everything runs in the thread that calls.
#[derive(Default)]
pub struct Inline {
    tasklets: Mutex<Vec<Arc<TaskletBody>>>,
    pending: Mutex<Vec<TaskletId>>,
}

impl Inline {
    /// Runs what was scheduled.
    pub fn run_tasklets(&self, place: Place) {
        while let Some(id) = lock(&self.pending).pop() {
            let body = lock(&self.tasklets).get(id.0 as usize).map(Arc::clone);
            if let Some(body) = body {
                body(place);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A lock of [`Inline`].
pub struct InlineLock<T>(Mutex<T>);

impl<T: Send> kernel::SpinLock<T> for InlineLock<T> {
    fn with_irqsave<R>(&self, section: impl FnOnce(&mut T) -> R) -> R {
        section(&mut lock(&self.0))
    }
}

/// A wait queue of [`Inline`]: it polls.
pub struct InlineWaitQueue;

impl kernel::WaitQueue for InlineWaitQueue {
    fn wait_until(&self, deadline_ns: u64, condition: &mut dyn FnMut() -> bool) -> bool {
        loop {
            if condition() {
                return true;
            }
            if now_ns() >= deadline_ns {
                return false;
            }
            std::hint::spin_loop();
        }
    }
    fn wake_all(&self) {}
}

impl Kernel for Inline {
    type SpinLock<T: Send + 'static> = InlineLock<T>;
    type WaitQueue = InlineWaitQueue;

    fn new_lock<T: Send + 'static>(&self, _class: &'static str, value: T) -> InlineLock<T> {
        InlineLock(Mutex::new(value))
    }
    fn new_wait_queue(&self) -> InlineWaitQueue {
        InlineWaitQueue
    }
    fn now(&self) -> u64 {
        now_ns()
    }
    fn irq_off<R>(&self, section: impl FnOnce() -> R) -> R {
        section()
    }
    fn bh_off<R>(&self, section: impl FnOnce() -> R) -> R {
        let result = section();
        self.run_tasklets(Place::BhEnable);
        result
    }
    fn new_tasklet(&self, body: TaskletBody) -> TaskletId {
        let mut all = lock(&self.tasklets);
        all.push(Arc::new(body));
        TaskletId(u32::try_from(all.len()).unwrap_or(u32::MAX) - 1)
    }
    fn tasklet_hi_schedule(&self, tasklet: TaskletId) {
        let mut pending = lock(&self.pending);
        if !pending.contains(&tasklet) {
            pending.push(tasklet);
        }
    }
    fn spend(&self, ns: u64) {
        spin_until_ns(now_ns() + ns);
    }
    fn cpu_relax(&self) {
        std::hint::spin_loop();
    }
    fn sleep_until(&self, deadline_ns: u64) {
        sleep_until_ns(deadline_ns);
    }
}
