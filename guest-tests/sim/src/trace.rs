//! What happened: a hash over all of it, always on, and the events themselves for who asks.

use execlab_driver::kernel::{Place, Step};

use crate::word::Word;

/// Where a trace goes.
pub type Sink = Box<dyn FnMut(&TraceEvent) + Send>;

/// Something that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceEvent {
    /// Simulated time, in nanoseconds.
    pub time_ns: u64,
    /// The CPU it happened on.
    pub cpu: usize,
    /// What it was.
    pub what: What,
}

/// Why a CPU was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Vector {
    /// The device's edge.
    Device = 1,
    /// The tick, or the timer of a thread.
    Timer = 2,
    /// Another CPU wants it to schedule (RESCHEDULE_VECTOR).
    Reschedule = 4,
}

/// What can happen. Threads are named by their number, see [`crate::Sim::thread_name`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The CPU turns from one thread to another.
    Switch {
        /// It leaves this one.
        from: usize,
        /// The next.
        to: usize,
    },
    /// A thread became runnable.
    Wake {
        /// Which.
        thread: usize,
    },
    /// A thread has ended.
    Exit {
        /// Which.
        thread: usize,
    },
    /// An interrupt begins.
    IrqEnter(Vector),
    /// It ends; bottom halves may follow.
    IrqExit(Vector),
    /// A run of bottom halves begins.
    SoftirqEnter(Place),
    /// It ends.
    SoftirqExit {
        /// What was left went to ksoftirqd.
        handed_over: bool,
    },
    /// The CPU waits for a spinlock.
    LockWait {
        /// Class of the lock.
        class: &'static str,
        /// Number of the lock.
        lock: u64,
    },
    /// It has it.
    LockGot {
        /// Class of the lock.
        class: &'static str,
        /// Number of the lock.
        lock: u64,
    },
    /// A step of the driver begins.
    Step(Step),
    /// The CPU goes idle, into this state of the machine's list.
    Idle {
        /// Its index, counting from 1; 0 is polling.
        state: usize,
    },
    /// The device did something by itself.
    Device,
    /// The machine boots, and the CPU's tick comes at this phase of its period.
    Boot {
        /// In nanoseconds, within a period.
        tick_phase: u64,
    },
}

impl What {
    /// What goes into the hash: no address, nothing of the host.
    fn code(self) -> u64 {
        let (kind, value) = match self {
            Self::Switch { from, to } => (1, (from as u64) << 24 | to as u64),
            Self::Wake { thread } => (2, thread as u64),
            Self::Exit { thread } => (3, thread as u64),
            Self::IrqEnter(vector) => (4, vector as u64),
            Self::IrqExit(vector) => (5, vector as u64),
            Self::SoftirqEnter(place) => (6, place as u64),
            Self::SoftirqExit { handed_over } => (7, u64::from(handed_over)),
            Self::LockWait { lock, .. } => (8, lock),
            Self::LockGot { lock, .. } => (9, lock),
            Self::Step(step) => (10, step as u64),
            Self::Idle { state } => (11, state as u64),
            Self::Device => (12, 0),
            Self::Boot { tick_phase } => (13, tick_phase),
        };
        kind << 56 | value
    }
}

/// A multiplier with its bits well spread (the golden ratio, as in Fibonacci hashing).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The hash so far, and the sink.
pub(crate) struct Trace {
    hash: Word,
    wanted: Word,
    sink: spin::mutex::SpinMutex<Option<Sink>>,
}

impl Trace {
    pub fn new() -> Self {
        Self { hash: Word::new(SPREAD), wanted: Word::default(), sink: spin::mutex::SpinMutex::new(None) }
    }

    pub fn set_sink(&self, sink: Option<Sink>) {
        self.wanted.set(u64::from(sink.is_some()));
        *self.sink.lock() = sink;
    }

    #[inline]
    pub fn add(&self, time_ns: u64, cpu: usize, what: What) {
        let mut hash = self.hash.get();
        for word in [time_ns, what.code() ^ (cpu as u64) << 48] {
            hash = (hash ^ word).wrapping_mul(SPREAD).rotate_left(29);
        }
        self.hash.set(hash);
        if self.wanted.is_set() {
            self.tell(&TraceEvent { time_ns, cpu, what });
        }
    }

    #[cold]
    fn tell(&self, event: &TraceEvent) {
        // A sink that calls the kernel finds itself taken, and is not told.
        if let Some(mut guard) = self.sink.try_lock()
            && let Some(sink) = guard.as_mut()
        {
            sink(event);
        }
    }

    pub fn hash(&self) -> u64 {
        self.hash.get()
    }
}
