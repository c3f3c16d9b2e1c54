//! The driver's kernel trait on POSIX threads with SCHED_FIFO.
