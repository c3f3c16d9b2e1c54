//! What a kernel gives a driver. Behind it stand POSIX threads today, and a deterministic simulator or a real
//! kernel elsewhere: the driver has no second copy.
//!
//! All times are nanoseconds of one monotonic clock.

use alloc::boxed::Box;

/// Where a bottom half runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// In the task that left its last bh-off section (`local_bh_enable`).
    BhEnable,
    /// On the way out of an interrupt (`irq_exit`).
    IrqExit,
    /// In ksoftirqd, a SCHED_OTHER thread.
    Ksoftirqd,
}

/// The body of a tasklet. It never runs concurrently with itself.
pub type TaskletBody = Box<dyn Fn(Place) + Send + Sync>;

/// Names a tasklet of one [`Kernel`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TaskletId(pub u32);

/// The kernel under the driver.
pub trait Kernel: Send + Sync + 'static {
    /// A spinlock.
    type SpinLock<T: Send + 'static>: SpinLock<T>;
    /// A wait queue.
    type WaitQueue: WaitQueue;

    /// A lock around `value`; `class` names it in traces.
    fn new_lock<T: Send + 'static>(&self, class: &'static str, value: T) -> Self::SpinLock<T>;

    /// An empty wait queue.
    fn new_wait_queue(&self) -> Self::WaitQueue;

    /// The monotonic clock.
    fn now(&self) -> u64;

    /// `local_irq_save` … `local_irq_restore` around `section`. Sections nest; the span is that of the outermost.
    fn irq_off<R>(&self, section: impl FnOnce() -> R) -> R;

    /// `local_bh_disable` … `local_bh_enable` around `section`. Bottom halves raised meanwhile run when the
    /// outermost section ends ([`Place::BhEnable`]), unless interrupts are off or this is an interrupt.
    fn bh_off<R>(&self, section: impl FnOnce() -> R) -> R;

    /// Creates a tasklet.
    fn new_tasklet(&self, body: TaskletBody) -> TaskletId;

    /// `tasklet_hi_schedule`: the body runs once, soon, on this CPU: at irq exit, at bh-enable, or in ksoftirqd,
    /// by the kernel's rules. Scheduling it again before it starts changes nothing.
    fn tasklet_hi_schedule(&self, tasklet: TaskletId);

    /// Keeps this CPU busy for `ns`: the modelled cost of an access to the device.
    fn spend(&self, ns: u64);

    /// One turn of a busy-wait loop.
    fn cpu_relax(&self);

    /// Sleeps until `deadline_ns` or later. Not in irq-off or bh-off sections.
    fn sleep_until(&self, deadline_ns: u64);
}

/// A spinlock as Linux has them: the holder is never scheduled away from its CPU.
pub trait SpinLock<T>: Send + Sync {
    /// `spin_lock_irqsave` … `spin_unlock_irqrestore` around `section`.
    fn with_irqsave<R>(&self, section: impl FnOnce(&mut T) -> R) -> R;
}

/// A wait queue.
pub trait WaitQueue: Send + Sync {
    /// Sleeps until `condition` holds (true) or the clock reaches `deadline_ns` (false). The condition is tested
    /// first, after every wake-up, and once more at the deadline.
    fn wait_until(&self, deadline_ns: u64, condition: &mut dyn FnMut() -> bool) -> bool;

    /// Wakes every sleeper. Callable from any context.
    fn wake_all(&self);
}
