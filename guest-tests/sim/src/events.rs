//! What happens next: a binary heap of events, one per source, keyed by time and order of arrival.

/// Where an event comes from; each source has at most one event at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The coroutine of this CPU goes on: its burst is over, a thread switch is done, an interrupt came.
    Cpu(usize),
    /// The tick of this CPU.
    Tick(usize),
    /// The simulation has run for as long as it may.
    Limit,
    /// The timer of this thread.
    Timer(usize),
}

/// The order of events. Equal times go in order of arrival, unless exploration has drawn the tie.
type Key = (u64, u32, u64);

/// Not in the heap.
const ABSENT: u32 = u32::MAX;

/// The heap. Moving or removing the event of a source costs O(log n), and nothing stale stays behind.
#[derive(Debug)]
pub(crate) struct Events {
    cpus: usize,
    heap: Vec<(Key, u32)>,
    /// Position in `heap` by source.
    at: Vec<u32>,
    sequence: u64,
}

impl Events {
    pub fn new(cpus: usize) -> Self {
        Self { cpus, heap: Vec::new(), at: vec![ABSENT; 2 * cpus + 1], sequence: 0 }
    }

    fn index(&self, source: Source) -> usize {
        match source {
            Source::Cpu(cpu) => cpu,
            Source::Tick(cpu) => self.cpus + cpu,
            Source::Limit => 2 * self.cpus,
            Source::Timer(thread) => 2 * self.cpus + 1 + thread,
        }
    }

    fn source(&self, index: usize) -> Source {
        match index {
            index if index < self.cpus => Source::Cpu(index),
            index if index < 2 * self.cpus => Source::Tick(index - self.cpus),
            index if index == 2 * self.cpus => Source::Limit,
            index => Source::Timer(index - 2 * self.cpus - 1),
        }
    }

    /// Time of the source's event.
    pub fn time(&self, source: Source) -> Option<u64> {
        let at = *self.at.get(self.index(source))?;
        self.heap.get(at as usize).map(|(key, _)| key.0)
    }

    /// The first event.
    pub fn peek(&self) -> Option<(u64, Source)> {
        self.heap.first().map(|(key, index)| (key.0, self.source(*index as usize)))
    }

    /// Time of the first event; the end of time when there is none.
    pub fn next(&self) -> u64 {
        self.heap.first().map_or(u64::MAX, |(key, _)| key.0)
    }

    /// Whether anything is due that could change more than the count of ticks.
    pub fn has_work(&self) -> bool {
        self.heap
            .iter()
            .any(|(_, index)| matches!(self.source(*index as usize), Source::Cpu(_) | Source::Timer(_)))
    }

    /// Sets the source's event, in place of one that it has.
    pub fn set(&mut self, source: Source, time: u64, tie: u32) {
        let index = self.index(source);
        if index >= self.at.len() {
            self.at.resize(index + 1, ABSENT);
        }
        self.sequence += 1;
        let entry = ((time, tie, self.sequence), index as u32);
        let at = match self.at[index] {
            ABSENT => {
                self.heap.push(entry);
                self.heap.len() - 1
            }
            at => {
                self.heap[at as usize] = entry;
                at as usize
            }
        };
        self.settle(at);
    }

    /// Removes the source's event, if it has one.
    pub fn clear(&mut self, source: Source) {
        let index = self.index(source);
        let Some(at) = self.at.get(index).copied().filter(|at| *at != ABSENT) else { return };
        self.at[index] = ABSENT;
        self.heap.swap_remove(at as usize);
        if (at as usize) < self.heap.len() {
            self.settle(at as usize);
        }
    }

    /// Moves the entry at `at` to where it belongs.
    fn settle(&mut self, mut at: usize) {
        let entry = self.heap[at];
        while at > 0 && entry.0 < self.heap[(at - 1) / 2].0 {
            self.place(at, self.heap[(at - 1) / 2]);
            at = (at - 1) / 2;
        }
        loop {
            let mut child = 2 * at + 1;
            if child + 1 < self.heap.len() && self.heap[child + 1].0 < self.heap[child].0 {
                child += 1;
            }
            if child >= self.heap.len() || entry.0 < self.heap[child].0 {
                break;
            }
            self.place(at, self.heap[child]);
            at = child;
        }
        self.place(at, entry);
    }

    fn place(&mut self, at: usize, entry: (Key, u32)) {
        self.heap[at] = entry;
        self.at[entry.1 as usize] = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};

    use super::*;

    fn drain(events: &mut Events) -> Vec<(u64, Source)> {
        std::iter::from_fn(|| {
            let first = events.peek()?;
            events.clear(first.1);
            Some(first)
        })
        .collect()
    }

    #[test]
    fn equal_times_come_in_order_of_arrival_and_a_moved_event_is_a_late_arrival() {
        let mut events = Events::new(2);
        events.set(Source::Timer(3), 5, 0);
        events.set(Source::Cpu(1), 5, 0);
        events.set(Source::Tick(0), 4, 0);
        events.set(Source::Timer(3), 5, 0);
        let order = [(4, Source::Tick(0)), (5, Source::Cpu(1)), (5, Source::Timer(3))];
        assert_eq!(drain(&mut events), order);
    }

    #[test]
    fn random_sets_and_clears_drain_in_the_order_of_a_sorted_list() {
        let mut rng = SmallRng::seed_from_u64(1);
        for _ in 0..200 {
            let mut events = Events::new(1);
            let mut expected: Vec<(u64, u64, usize)> = Vec::new();
            for sequence in 0..60 {
                let thread = rng.random_range(0..20);
                expected.retain(|(_, _, t)| *t != thread);
                if rng.random_bool(0.3) {
                    events.clear(Source::Timer(thread));
                } else {
                    let time = rng.random_range(0..10);
                    events.set(Source::Timer(thread), time, 0);
                    expected.push((time, sequence, thread));
                    assert_eq!(events.time(Source::Timer(thread)), Some(time));
                }
            }
            expected.sort_unstable();
            let expected: Vec<_> = expected.iter().map(|(time, _, t)| (*time, Source::Timer(*t))).collect();
            assert_eq!(drain(&mut events), expected);
        }
    }
}
