//! What can go wrong.

use alloc::string::String;

use execlab_abi::lab::Violation;

/// The driver could not be set up, or found its device in a state it cannot go on from.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriverError {
    /// Memory shared with the device is used up.
    #[error("no memory for {what}: {reason}")]
    Memory {
        /// What for.
        what: &'static str,
        /// What the bus said.
        reason: String,
    },
    /// The GGTT is used up.
    #[error("the GGTT has no room for {pages} pages")]
    GgttFull {
        /// How many were wanted.
        pages: usize,
    },
    /// A ring has 1 to 512 pages: RING_CTL holds no other length.
    #[error("a ring of {pages} pages; it can have 1 to 512")]
    RingSize {
        /// How many were wanted.
        pages: usize,
    },
    /// No engine was asked for, or one twice.
    #[error("the driver needs at least one engine, and each at most once")]
    Engines,
    /// The driver was not made for this engine.
    #[error("the driver does not drive {0}")]
    NoSuchEngine(&'static str),
    /// The device recorded a violation.
    #[error("the device reports: {} ({count} so far, last on engine {engine} at {addr:#x}, words {words:#x?})", violation.map_or("unknown violation", Violation::name))]
    Violation {
        /// Which one was last.
        violation: Option<Violation>,
        /// How many.
        count: u32,
        /// Engine index, or 0xff.
        engine: u32,
        /// Register or address at fault.
        addr: u32,
        /// Offending words.
        words: [u32; 4],
    },
    /// CSB events named a context that was in no port.
    #[error("{count} CSB events named a context that was in no port: device and driver disagree")]
    StrayEvents {
        /// How many.
        count: u64,
    },
    /// Contexts left the hardware in a way that hardware has not.
    #[error(
        "{unexpected} contexts left with an event that does not say where the engine went, {early} before their \
         seqno was visible"
    )]
    Disorder {
        /// Events without element switch or active→idle as it should be, or with a preemption.
        unexpected: u64,
        /// Events that came before the seqno of the last request.
        early: u64,
    },
}

/// A request could not be submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The ring has no room until a request retires.
    #[error("the ring is full")]
    RingFull,
    /// The context has requests in flight.
    #[error("the context has requests in flight")]
    Busy,
}

/// A wait ended without its request being complete, or without room for a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    /// The deadline came first.
    #[error("request {seqno} was not complete in time; the context has come to {reached}")]
    TimedOut {
        /// The request.
        seqno: u32,
        /// Last seqno that the context stored.
        reached: u32,
    },
}
