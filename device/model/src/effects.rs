//! Effects of one engine that are due later: a bounded list sorted by due time, first in first out among equals.

/// Something that will happen to the outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// A store becomes visible.
    Store { gpa: u64, value: u64, qword: bool },
    /// A CSB entry becomes visible behind its index.
    CsbEntry { qword: u64, gpa: u64 },
    /// Engine interrupt bits are raised.
    Raise { bits: u32 },
}

/// Most effects that an engine has under way; the streamer waits for a free place.
pub(crate) const CAPACITY: usize = 64;

/// The list. It never allocates.
#[derive(Debug, Clone)]
pub(crate) struct Effects {
    slots: [(u64, Effect); CAPACITY],
    len: usize,
}

impl Effects {
    pub(crate) fn new() -> Self {
        Self { slots: [(0, Effect::Raise { bits: 0 }); CAPACITY], len: 0 }
    }

    /// Whether `n` more effects fit.
    pub(crate) fn has_room(&self, n: usize) -> bool {
        self.len + n <= CAPACITY
    }

    /// Due time of the earliest.
    pub(crate) fn next_due(&self) -> Option<u64> {
        (self.len > 0).then(|| self.slots[0].0)
    }

    /// Adds an effect. A full list drops it: callers ask [`has_room`](Self::has_room) first.
    pub(crate) fn push(&mut self, due: u64, effect: Effect) {
        if self.len == CAPACITY {
            return;
        }
        let mut at = self.len;
        while at > 0 && self.slots[at - 1].0 > due {
            self.slots[at] = self.slots[at - 1];
            at -= 1;
        }
        self.slots[at] = (due, effect);
        self.len += 1;
    }

    /// Takes the earliest.
    pub(crate) fn pop(&mut self) -> Option<(u64, Effect)> {
        if self.len == 0 {
            return None;
        }
        let first = self.slots[0];
        self.slots.copy_within(1..self.len, 0);
        self.len -= 1;
        Some(first)
    }
}
