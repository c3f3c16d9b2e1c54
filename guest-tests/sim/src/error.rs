//! What ends a run early.

/// Why a run did not come to its end, or a thread did not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// Nothing is runnable and nothing is due.
    #[error("deadlock at {time_ns} ns: nothing can run and nothing is due\n{}", .threads.join("\n"))]
    Deadlock {
        /// Simulated time.
        time_ns: u64,
        /// Name and state of every thread.
        threads: Vec<String>,
    },
    /// A thread, or an interrupt on top of it, panicked.
    #[error("{thread} panicked at {time_ns} ns: {message}")]
    Panicked {
        /// Name of the thread.
        thread: String,
        /// Simulated time.
        time_ns: u64,
        /// What it said.
        message: String,
    },
    /// Simulated time ran out.
    #[error("the run is not over after its limit of {limit_ns} ns of simulated time\n{}", .threads.join("\n"))]
    TimeLimit {
        /// Simulated time at which it ended.
        limit_ns: u64,
        /// Name and state of every thread.
        threads: Vec<String>,
    },
    /// A device whose deadline does not pass.
    #[error("the device's deadline of {deadline_ns} ns does not pass, however often it is advanced")]
    DeviceStuck {
        /// The deadline.
        deadline_ns: u64,
    },
    /// The machine has no such CPU.
    #[error("{thread}: there is no CPU {cpu}; the machine has {cpus}")]
    NoSuchCpu {
        /// Name of the thread.
        thread: String,
        /// The CPU asked for.
        cpu: usize,
        /// CPUs that there are.
        cpus: usize,
    },
    /// SCHED_FIFO knows priorities 1 to 99.
    #[error("{thread}: SCHED_FIFO has priorities 1 to 99, not {priority}")]
    NoSuchPriority {
        /// Name of the thread.
        thread: String,
        /// The priority asked for.
        priority: u8,
    },
}
