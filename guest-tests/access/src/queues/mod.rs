//! The three queues of the wire, each on its own lock.

mod control;
mod interrupts;
mod posted;

pub(crate) use control::Control;
pub(crate) use interrupts::Interrupts;
pub(crate) use posted::Posted;

#[cfg(test)]
mod tests;
