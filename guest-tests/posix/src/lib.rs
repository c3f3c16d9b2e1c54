//! The driver's kernel trait on POSIX threads with SCHED_FIFO: one modelled CPU on one real CPU.
//!
//! [`Cpu`] owns the model and its ksoftirqd, [`Posix`] is the handle that a driver gets, [`IrqThread`] delivers
//! interrupts, [`RtThread`] and [`System`] see to it that threads and machine are what a measurement needs.
//!
//! What is a model here, and no measurement of a kernel: interrupts off by priority ([`IRQ_OFF_PRIORITY`]);
//! bottom halves that stop after 2 ms or 10 rounds but not at need_resched, which user space cannot see;
//! interrupts that wait for the end of a bh-off section.

mod claim;
mod clock;
mod cpu;
mod irq;
mod level;
mod posix;
mod rt;
mod sched;
mod spans;
mod system;
mod wait;

pub use claim::ClaimError;
pub use clock::{clock_cost_ns, now_ns, sleep_until_ns, spin_until_ns};
pub use cpu::{Config, Cpu};
pub use execlab_driver::kernel::Policy;
pub use irq::{IrqLine, IrqThread};
pub use posix::{Posix, SpinLock};
pub use rt::{RtHandle, RtThread};
pub use sched::{IRQ_OFF_PRIORITY, SchedError, pin};
pub use spans::{CpuStats, SpanStats};
pub use system::System;
pub use wait::WaitQueue;
