//! What must become visible, from the history of submissions: interval arithmetic over whole lists, with no state
//! of an engine and no queue of events.

use execlab_abi::irq;
use execlab_profile::Profile;

use crate::drive::{Append, CONTEXTS, Seen, Submission};
use crate::program::Step;
use crate::support::Random;

const IDLE_ACTIVE: u32 = 0x1;
const PREEMPTED: u32 = 0x2;
const ELEMENT_SWITCH: u32 = 0x14;
const ACTIVE_IDLE: u32 = 0x18;
const LITE_RESTORE: u32 = 0x8002;

/// Constant delays in nanoseconds, each a number of microseconds.
#[derive(Debug, Clone, Copy)]
pub struct Delays {
    accept: u64,
    restore: u64,
    save: u64,
    arbitration: u64,
    command: u64,
    seqno: u64,
    irq: u64,
}

impl Delays {
    /// Set number 0 is all zeroes.
    pub fn draw(random: &mut Random, n: u64) -> Self {
        let mut us = |below: u64| if n == 0 { 0 } else { 1_000 * random.below(below) };
        let command = us(3);
        Self {
            accept: us(4),
            restore: us(4),
            save: us(3),
            arbitration: us(3),
            command,
            // Few enough stores and interrupts under way that the streamer never waits for one and none coalesce.
            seqno: if command == 0 { 0 } else { us(5) },
            irq: if command == 0 { 0 } else { us(4) },
        }
    }

    pub fn profile(&self) -> Profile {
        let text = format!(
            "name = \"constant\"\n[delay]\n\"elsp.accept\" = \"{}ns\"\n\"context.restore\" = \"{}ns\"\n\
             \"context.save\" = \"{}ns\"\n\"arbitration\" = \"{}ns\"\n\"command.execute\" = \"{}ns\"\n\
             \"seqno.visible\" = \"{}ns\"\n\"irq.deliver\" = \"{}ns\"\n",
            self.accept, self.restore, self.save, self.arbitration, self.command, self.seqno, self.irq
        );
        Profile::parse(&text, "constant").expect("a profile of constants")
    }

    fn cost(&self, step: Step) -> u64 {
        self.command + if let Step::Busy(ns) = step { u64::from(ns) } else { 0 }
    }
}

/// Something executed, before it is visible.
#[derive(Debug, Clone, Copy)]
enum Done {
    Event(u32, u32, bool),
    Step(usize, Step),
}

/// A stretch of one context on the engine.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    context: usize,
    /// When its image was read.
    ready: u64,
    /// Steps done before.
    from: usize,
    /// Steps that the tail showed last.
    to: usize,
}

/// How a list comes onto the engine.
enum Entry {
    /// Its first element is restored from then on.
    At(u64),
    /// Its first element is on the engine already.
    On(Stretch),
}

struct Reference<'a> {
    history: &'a [Submission],
    delays: &'a Delays,
    /// Each context's steps with the time at which they were appended.
    steps: [Vec<(u64, Step)>; CONTEXTS],
    done: [usize; CONTEXTS],
    out: Vec<(u64, Done)>,
}

/// What the driver must see, and when.
pub fn expected(history: &[Submission], appended: &[Append], delays: &Delays) -> Vec<(u64, Seen)> {
    let mut steps: [Vec<(u64, Step)>; CONTEXTS] = Default::default();
    for append in appended {
        steps[append.context].extend(append.steps.iter().map(|step| (append.time, *step)));
    }
    let mut reference = Reference { history, delays, steps, done: [0; CONTEXTS], out: Vec::new() };
    let mut entry = None;
    for k in 0..history.len() {
        let at = entry.take().unwrap_or_else(|| {
            let at = reference.accepted(k);
            reference.event(at, IDLE_ACTIVE, 0, true);
            Entry::At(at)
        });
        entry = reference.list(k, at);
    }
    let Reference { mut out, .. } = reference;
    out.sort_by_key(|(time, _)| *time);
    visible(&out, delays)
}

impl Reference<'_> {
    /// When submission `k` is taken; the end of time for the one after the last.
    fn accepted(&self, k: usize) -> u64 {
        self.history.get(k).map_or(u64::MAX, |s| s.time + self.delays.accept)
    }

    fn event(&mut self, time: u64, status: u32, context: u32, interrupt: bool) {
        self.out.push((time, Done::Event(status, context, interrupt)));
    }

    /// Number of a context's steps that an image read at `time` shows.
    fn shown(&self, context: usize, time: u64) -> usize {
        self.steps[context].iter().filter(|(appended, _)| *appended <= time).count()
    }

    /// When each step of a stretch begins, and when the last one ends.
    fn times(&self, stretch: Stretch) -> (Vec<u64>, u64) {
        let mut at = stretch.ready;
        let begin = self.steps[stretch.context][stretch.from..stretch.to]
            .iter()
            .map(|(_, step)| {
                at += self.delays.cost(*step);
                at - self.delays.cost(*step)
            })
            .collect();
        (begin, at)
    }

    /// The first `n` steps of a stretch were executed.
    fn execute(&mut self, stretch: Stretch, n: usize) {
        let (begin, _) = self.times(stretch);
        for (at, time) in begin.into_iter().enumerate().take(n) {
            let step = self.steps[stretch.context][stretch.from + at].1;
            self.out.push((time, Done::Step(stretch.context, step)));
        }
        self.done[stretch.context] = stretch.from + n;
    }

    /// List `k` runs until it is over or the next one takes its place; gives how the next one enters, or `None` if
    /// the engine goes idle before.
    fn list(&mut self, k: usize, entry: Entry) -> Option<Entry> {
        let Submission { first, second, .. } = self.history[k];
        let next = self.accepted(k + 1);
        let next_first = self.history.get(k + 1).map(|s| s.first);
        let mut entry = entry;
        for (context, follower) in [(Some(first), second), (second, None)] {
            let context = context?;
            let stretch = match entry {
                Entry::On(stretch) => stretch,
                Entry::At(at) => {
                    let ready = at + self.delays.restore;
                    let to = self.shown(context, ready);
                    Stretch { context, ready, from: self.done[context], to }
                }
            };
            let id = context as u32 + 1;
            let (begin, end) = self.times(stretch);
            if next < end.max(stretch.ready) && next_first == Some(context) {
                self.event(next, LITE_RESTORE, id, true);
                let to = if next < stretch.ready { stretch.to } else { self.shown(context, next) };
                return Some(Entry::On(Stretch { to, ..stretch }));
            }
            if let Some((executed, yields)) = self.yields(stretch, &begin, next) {
                self.execute(stretch, executed);
                let left = yields + self.delays.arbitration + self.delays.save;
                self.event(left, PREEMPTED, id, true);
                return Some(Entry::At(left));
            }
            self.execute(stretch, begin.len());
            let saved = end + self.delays.save;
            let Some(follower) = follower else {
                let queued = next < saved;
                self.event(saved, ACTIVE_IDLE, id, !queued);
                if queued {
                    self.event(saved, IDLE_ACTIVE, 0, true);
                }
                return queued.then_some(Entry::At(saved));
            };
            self.event(saved, ELEMENT_SWITCH, id, true);
            if next < saved {
                let status = if next_first == Some(follower) { LITE_RESTORE } else { PREEMPTED };
                self.event(saved, status, follower as u32 + 1, true);
                return Some(Entry::At(saved));
            }
            entry = Entry::At(saved);
        }
        None
    }

    /// Where a stretch lets go for a list taken at `next`: after how many steps, and when.
    fn yields(&self, stretch: Stretch, begin: &[u64], next: u64) -> Option<(usize, u64)> {
        if next < stretch.ready {
            return Some((0, stretch.ready));
        }
        (0..begin.len().saturating_sub(1)).find_map(|n| {
            let step = self.steps[stretch.context][stretch.from + n].1;
            let lets_go = step == Step::ArbCheck && next < begin[n];
            lets_go.then(|| (n + 1, begin[n] + self.delays.cost(step)))
        })
    }
}

/// From execution to visibility: stores take their delay and nothing overtakes them; interrupts follow after theirs.
fn visible(done: &[(u64, Done)], delays: &Delays) -> Vec<(u64, Seen)> {
    let mut seen = Vec::new();
    let mut last = 0;
    for (time, done) in done {
        let own = if matches!(done, Done::Step(_, Step::Store(_))) { delays.seqno } else { 0 };
        let shows = last.max(time + own);
        let interrupt = |bits| (shows + delays.irq, Seen::Interrupt(bits));
        match *done {
            Done::Event(status, context, raises) => {
                seen.push((shows, Seen::Event { status, context }));
                if raises {
                    seen.push(interrupt(irq::CONTEXT_SWITCH));
                }
            }
            Done::Step(context, Step::Store(value)) => seen.push((shows, Seen::Seqno { context, value })),
            Done::Step(_, Step::User) => seen.push(interrupt(irq::USER)),
            Done::Step(..) => continue,
        }
        last = shows;
    }
    in_order(seen, delays)
}

/// By time. A delayed interrupt that arrives at the very time of something else has no order against it, so those
/// go last; an undelayed one stays right behind what raised it.
pub fn in_order(mut seen: Vec<(u64, Seen)>, delays: &Delays) -> Vec<(u64, Seen)> {
    let late = |what: &Seen| delays.irq > 0 && matches!(what, Seen::Interrupt(_));
    seen.sort_by_key(|(time, what)| (*time, late(what)));
    seen
}
