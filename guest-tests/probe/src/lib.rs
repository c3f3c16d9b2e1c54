//! The real-time latency probe.
