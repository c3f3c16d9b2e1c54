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

/// A piece of the driver's own work, told to the kernel when it is done: a world whose time is computed spends what
/// it costs there, and a trace shows it. Where time passes by itself this is nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// A request written into its ring, with what had completed retired before.
    Emit,
    /// A request put into the priority queue.
    Queue,
    /// One CSB entry read and acted on (`process_csb`).
    CsbEvent,
    /// A look at the queue and the ports (`execlists_dequeue`).
    Dequeue,
    /// One request moved from the queue into a port.
    DequeueRequest,
    /// Tails and descriptors made ready for ELSP; the writes themselves are the bus's.
    Ports,
    /// The interrupt handler around what it calls for each engine.
    Irq,
}

impl Step {
    /// Every step, in the order of its number.
    pub const ALL: [Self; 7] = [
        Self::Emit,
        Self::Queue,
        Self::CsbEvent,
        Self::Dequeue,
        Self::DequeueRequest,
        Self::Ports,
        Self::Irq,
    ];

    /// The name in profiles and traces.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Emit => "emit",
            Self::Queue => "queue",
            Self::CsbEvent => "csb-event",
            Self::Dequeue => "dequeue",
            Self::DequeueRequest => "dequeue-request",
            Self::Ports => "ports",
            Self::Irq => "irq",
        }
    }
}

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

    /// A step of the driver has been taken.
    #[inline]
    fn step(&self, _step: Step) {}

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

/// A scheduling policy with its priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    /// SCHED_FIFO at a priority of 1 to 99.
    Fifo(u8),
    /// SCHED_OTHER at nice 0.
    Other,
    /// SCHED_IDLE: runs only when nothing else on the CPU wants to.
    Idle,
}

impl core::fmt::Display for Policy {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Fifo(priority) => write!(f, "SCHED_FIFO {priority}"),
            Self::Other => f.write_str("SCHED_OTHER"),
            Self::Idle => f.write_str("SCHED_IDLE"),
        }
    }
}

/// A kernel's threads: for what runs beside a driver, such as a load or a probe. The driver needs none.
pub trait Threads: Kernel {
    /// Why a thread does not run as it was asked to.
    type Error: core::error::Error + Send + Sync + 'static;
    /// A started thread. Dropping it leaves the thread alone.
    type Thread<R: Send + 'static>: Thread<R>;

    /// Starts a thread pinned to `cpu`. It runs as asked when this returns, or not at all.
    ///
    /// # Errors
    /// When policy or CPU is refused.
    fn spawn<R, F>(
        &self,
        name: &str,
        cpu: usize,
        policy: Policy,
        body: F,
    ) -> Result<Self::Thread<R>, Self::Error>
    where
        R: Send + 'static,
        F: FnOnce() -> R + Send + 'static;

    /// `sched_yield`: to the end of the line of threads with the caller's priority.
    fn yield_now(&self);

    /// What one reading of the clock costs, in nanoseconds; 0 where time is computed.
    fn clock_cost_ns(&self) -> u64;
}

/// A started thread.
pub trait Thread<R> {
    /// Waits for its end: what it returned, or nothing if it panicked.
    fn join(self) -> Option<R>;

    /// Whether it has ended.
    fn is_finished(&self) -> bool;
}
