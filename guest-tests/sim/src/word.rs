//! A shared variable of the simulation.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A cell that may be shared because the type system wants it: the whole simulation runs on one OS thread, so a
/// relaxed load and store are two plain moves.
#[derive(Debug, Default)]
pub(crate) struct Word(AtomicU64);

impl Word {
    pub const fn new(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }

    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    #[inline]
    pub fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    #[inline]
    pub fn is_set(&self) -> bool {
        self.get() != 0
    }

    #[inline]
    pub fn up(&self) {
        self.set(self.get() + 1);
    }

    #[inline]
    pub fn down(&self) {
        debug_assert!(self.is_set(), "a section ended that had not begun");
        self.set(self.get() - 1);
    }
}
