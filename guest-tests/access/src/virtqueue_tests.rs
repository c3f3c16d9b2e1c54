use std::collections::{BTreeSet, VecDeque};

use proptest::prelude::*;

use super::*;
use crate::memory::tests::private;

/// The device's side, as small as it can be.
pub(crate) struct Model {
    parts: [Pages; 3],
    size: u16,
    event_idx: bool,
    next_avail: u16,
    used: u16,
}

impl Model {
    pub(crate) fn new(queue: &VirtQueue) -> Self {
        let parts = queue.parts().map(Clone::clone);
        Self { parts, size: queue.size, event_idx: queue.event_idx, next_avail: 0, used: 0 }
    }

    /// The next chain: head and segments.
    pub(crate) fn pop(&mut self) -> Option<(u16, Vec<Segment>)> {
        let [table, avail, _] = &self.parts;
        if avail.load16(INDEX, Ordering::Acquire) == self.next_avail {
            return None;
        }
        let slot = usize::from(self.next_avail % self.size);
        let head = avail.load16(RING + 2 * slot, Ordering::Relaxed);
        self.next_avail = self.next_avail.wrapping_add(1);
        let (mut id, mut segments) = (head, Vec::new());
        loop {
            let at = 16 * usize::from(id);
            let flags = table.load16(at + 12, Ordering::Relaxed);
            segments.push(Segment {
                addr: table.load64(at),
                len: table.read32(at + 8),
                writable: flags & DESC_WRITE != 0,
            });
            if flags & DESC_NEXT == 0 {
                return Some((head, segments));
            }
            id = table.load16(at + 14, Ordering::Relaxed);
        }
    }

    /// Hands a chain back; true when the driver asked for an interrupt.
    pub(crate) fn push(&mut self, head: u16, len: u32) -> bool {
        let [_, avail, used] = &self.parts;
        let slot = RING + 8 * usize::from(self.used % self.size);
        used.write32(slot, u32::from(head));
        used.write32(slot + 4, len);
        let old = self.used;
        self.used = old.wrapping_add(1);
        used.store16(INDEX, self.used, Ordering::Release);
        fence(Ordering::SeqCst);
        if self.event_idx {
            need_event(avail.load16(RING + 2 * usize::from(self.size), Ordering::Relaxed), self.used, old)
        } else {
            avail.load16(FLAGS, Ordering::Relaxed) & QUIET == 0
        }
    }

    fn ask_for_kick(&self, at: u16) {
        self.parts[2].store16(RING + 8 * usize::from(self.size), at, Ordering::Relaxed);
    }

    fn set_flags(&self, flags: u16) {
        self.parts[2].store16(FLAGS, flags, Ordering::Relaxed);
    }
}

fn queue(size: u16, event_idx: bool) -> (VirtQueue, Model) {
    let queue = VirtQueue::new(&private(4), size, event_idx).unwrap();
    let model = Model::new(&queue);
    (queue, model)
}

fn read(addr: u64) -> Segment {
    Segment { addr, len: 8, writable: false }
}

#[test]
fn a_chain_of_two_arrives_as_posted_and_comes_back() {
    let (mut queue, mut device) = queue(4, false);
    let (a, b) = (queue.reserve().unwrap(), queue.reserve().unwrap());
    let write = Segment { addr: 0x2000, len: 64, writable: true };
    queue.post(&[(a, read(0x1000)), (b, write)]);
    assert_eq!(device.pop(), None, "not published yet");
    assert!(queue.publish());
    assert_eq!(device.pop(), Some((a, vec![read(0x1000), write])));
    assert!(!queue.has_used());
    device.push(a, 20);
    assert!(queue.has_used());
    assert_eq!(queue.take_used(), Ok(Some(Used { head: a, len: 20 })));
    assert_eq!(queue.take_used(), Ok(None));
    assert_eq!((queue.reserve(), queue.reserve()), (Some(a), Some(b)));
}

#[test]
fn a_full_queue_has_nothing_to_reserve() {
    let (mut queue, _) = queue(4, false);
    assert_eq!((0..5).filter_map(|_| queue.reserve()).collect::<BTreeSet<_>>().len(), 4);
}

#[test]
fn a_device_that_polls_is_not_notified() {
    let (mut queue, device) = queue(4, false);
    device.set_flags(QUIET);
    let id = queue.reserve().unwrap();
    queue.post(&[(id, read(0))]);
    assert!(!queue.publish());
}

#[test]
fn with_event_idx_a_notification_is_due_when_the_asked_index_is_passed() {
    let (mut queue, device) = queue(8, true);
    device.ask_for_kick(2);
    let due: Vec<bool> = (0..4)
        .map(|_| {
            let id = queue.reserve().unwrap();
            queue.post(&[(id, read(0))]);
            queue.publish()
        })
        .collect();
    assert_eq!(due, [false, false, true, false]);
}

#[test]
fn an_index_too_far_ahead_and_a_foreign_id_are_errors() {
    let (mut queue, mut device) = queue(4, false);
    device.push(1, 0);
    assert_eq!(queue.take_used(), Err(RingError::Id { id: 1 }));
    device.parts[2].write32(RING, 0x1_0000);
    assert_eq!(queue.take_used(), Err(RingError::Id { id: 0x1_0000 }));
    device.parts[2].store16(INDEX, 5, Ordering::Relaxed);
    assert_eq!(queue.take_used(), Err(RingError::Index { index: 5, seen: 0 }));
}

#[test]
fn the_same_chain_handed_back_twice_is_an_error() {
    let (mut queue, mut device) = queue(4, false);
    let id = queue.reserve().unwrap();
    queue.post(&[(id, read(0))]);
    queue.publish();
    device.push(id, 0);
    device.push(id, 0);
    assert!(queue.take_used().is_ok());
    assert_eq!(queue.take_used(), Err(RingError::Id { id: u32::from(id) }));
}

#[test]
fn interrupts_come_only_when_asked_for() {
    for event_idx in [false, true] {
        let (mut queue, mut device) = queue(4, event_idx);
        let mut round = |on: bool| {
            let id = queue.reserve().unwrap();
            queue.post(&[(id, read(0))]);
            queue.publish();
            if on {
                assert!(!queue.interrupts_on());
            } else {
                queue.interrupts_off();
            }
            let (head, _) = device.pop().unwrap();
            let interrupt = device.push(head, 0);
            assert!(queue.interrupts_on(), "one is there already");
            queue.take_used().unwrap();
            interrupt
        };
        assert_eq!([round(true), round(false), round(true)], [true, false, true], "event_idx {event_idx}");
    }
}

proptest! {
    /// Chains of random lengths, handed back in random order, around the 16-bit index: every chain arrives
    /// once with its own segments, no descriptor gets lost.
    #[test]
    fn chains_survive_the_wrap_of_the_index(
        event_idx: bool, start in 65_500_u16..=65_535,
        steps in prop::collection::vec((1_u16..=3, any::<prop::sample::Index>(), any::<bool>()), 1..300),
    ) {
        let (mut queue, mut device) = queue(8, event_idx);
        (queue.next_avail, queue.published, queue.last_used) = (start, start, start);
        (device.next_avail, device.used) = (start, start);
        device.parts[1].store16(INDEX, start, Ordering::Relaxed);
        device.parts[2].store16(INDEX, start, Ordering::Relaxed);
        let (mut expected, mut held, mut serial) = (VecDeque::new(), Vec::new(), 0_u64);
        for (length, which, hand_back) in steps {
            if queue.free_len >= length {
                let chain: Vec<_> = (0..length).map(|_| {
                    serial += 1;
                    (queue.reserve().unwrap(), Segment { addr: serial, len: 1, writable: serial % 2 == 0 })
                }).collect();
                queue.post(&chain);
                queue.publish();
                expected.push_back(chain.iter().map(|(_, s)| *s).collect::<Vec<_>>());
            }
            while let Some((head, segments)) = device.pop() {
                prop_assert_eq!(Some(segments), expected.pop_front());
                held.push(head);
            }
            if hand_back && !held.is_empty() {
                let head = held.swap_remove(which.index(held.len()));
                device.push(head, 7);
                prop_assert_eq!(queue.take_used(), Ok(Some(Used { head, len: 7 })));
            }
        }
        for head in held.drain(..) {
            device.push(head, 0);
            prop_assert!(queue.take_used().unwrap().is_some());
        }
        prop_assert_eq!(queue.free_len, 8);
        prop_assert_eq!(queue.free.iter().collect::<BTreeSet<_>>().len(), 8);
    }
}
