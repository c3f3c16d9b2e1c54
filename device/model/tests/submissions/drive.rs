//! A driver that obeys the acknowledgement, and a record of what it did and saw.

use execlab_abi::csb;
use execlab_abi::descriptor::Descriptor;
use execlab_abi::engine::Engine;
use execlab_abi::{context, ring};
use execlab_model::TraceKind;

use crate::program::{self, Step};
use crate::support::{Bench, Context, RING_SIZE, Random, SHIFT};

/// Contexts of a case.
pub const CONTEXTS: usize = 3;

/// A submission: when its fourth word was written, and the contexts of its elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Submission {
    pub time: u64,
    pub first: usize,
    pub second: Option<usize>,
}

/// Steps that became part of a context's ring at `time`.
#[derive(Debug, Clone)]
pub struct Append {
    pub time: u64,
    pub context: usize,
    pub steps: Vec<Step>,
}

/// Something that a driver can see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// A CSB event; `context` is 0 for idle→active, else 1 + its number.
    Event { status: u32, context: u32 },
    /// A seqno of a context.
    Seqno { context: usize, value: u32 },
    /// Interrupt bits of the engine.
    Interrupt(u32),
}

/// A case as it went.
#[derive(Debug)]
pub struct Run {
    pub history: Vec<Submission>,
    pub appended: Vec<Append>,
    pub visible: Vec<(u64, Seen)>,
    /// CSB indices as they were written, and the one before the first.
    pub indices: Vec<u32>,
}

/// A bench that serves case after case.
pub struct Lab {
    pub bench: Bench,
    contexts: [Context; CONTEXTS],
}

impl Lab {
    pub fn new() -> Self {
        let mut bench = Bench::new();
        let contexts = [0, 1, 2].map(|n| bench.context(n));
        Self { bench, contexts }
    }

    /// A case: up to eight submissions at random times, each as soon as or later than the last was acknowledged.
    /// Submission `k` happens `k` ns past a microsecond, and every delay is a number of microseconds: so no two
    /// chains of events ever meet at the same time.
    pub fn run(&mut self, case: u64, random: &mut Random) -> Run {
        let engine = Engine::ALL[(case % 4) as usize];
        self.bench.world.trace.clear();
        self.bench.now = (self.bench.now / 1_000 + 1_000) * 1_000;
        for context in &mut self.contexts {
            // Near the end of the ring, so that it wraps.
            context.tail = RING_SIZE - 8 * random.below(40) as u32 - 8;
            let state = context.lrca + context::STATE_OFFSET;
            for slot in [context::RING_HEAD, context::RING_TAIL] {
                self.bench.poke(state + 4 * slot as u32, context.tail);
            }
        }
        let before = self.bench.read(engine.reg(ring::CONTEXT_STATUS_PTR)) & ring::CSB_WRITE_PTR_MASK;
        let (mut history, mut appended) = (Vec::new(), Vec::new());
        let mut seqno = 0;
        for k in 0..=random.below(8) {
            self.wait_for_acknowledgement(engine, &history);
            let late = if random.below(3) == 0 { 0 } else { random.below(12) };
            let time = (self.bench.now / 1_000 + 1 + late) * 1_000 + k;
            self.settle_until(time);
            let first = random.below(CONTEXTS as u64) as usize;
            let second = (random.below(2) == 0).then(|| (first + 1 + random.below(2) as usize) % CONTEXTS);
            for context in [Some(first), second].into_iter().flatten() {
                for _ in 0..random.below(3) {
                    seqno += 1;
                    let steps = program::request(random.below(4), seqno);
                    self.append(context, &steps);
                    appended.push(Append { time, context, steps });
                }
            }
            let descriptor = |n: usize| self.contexts[n].descriptor();
            let pair = [descriptor(first), second.map_or(Descriptor::NULL, descriptor)];
            self.bench.submit(engine, pair[0], pair[1]);
            history.push(Submission { time, first, second });
        }
        self.bench.settle(1_000_000_000);
        let mut indices = vec![before];
        let visible = self.visible(engine, &mut indices);
        Run { history, appended, visible, indices }
    }

    fn append(&mut self, context: usize, steps: &[Step]) {
        let mut dwords = Vec::new();
        let address = self.contexts[context].seqno_address();
        for step in steps {
            step.encode(address, &mut dwords);
        }
        self.bench.emit(&mut self.contexts[context], &dwords);
    }

    /// As HWACK: as many events with bit 0 or 1 as submissions.
    fn wait_for_acknowledgement(&mut self, engine: Engine, history: &[Submission]) {
        let acknowledged = |bench: &Bench| {
            let ack = |(status, _): &(u32, u32)| status & (csb::IDLE_ACTIVE | csb::PREEMPTED) != 0;
            bench.events(engine).iter().filter(|event| ack(event)).count()
        };
        while acknowledged(&self.bench) < history.len() {
            let due = self.bench.gpu.next_deadline().expect("an acknowledgement comes by itself");
            self.settle_until(due);
        }
    }

    fn settle_until(&mut self, time: u64) {
        self.bench.settle(time - self.bench.now);
        self.bench.now = time;
        self.bench.gpu.advance(time, &mut self.bench.world);
    }

    fn visible(&self, engine: Engine, indices: &mut Vec<u32>) -> Vec<(u64, Seen)> {
        let number = |id: u32| id.checked_sub(self.contexts[0].id).map_or(0, |n| n + 1);
        let mut visible = Vec::new();
        for event in self.bench.world.trace.iter().filter(|event| event.engine == Some(engine)) {
            let seen = match event.kind {
                TraceKind::Csb { index, status, id } => {
                    indices.push(index);
                    Seen::Event { status, context: number(id) }
                }
                TraceKind::Store { gpa, value } => {
                    let at = |c: &Context| SHIFT + u64::from(c.seqno_address()) == gpa;
                    let context = self.contexts.iter().position(at).expect("a store to a seqno");
                    Seen::Seqno { context, value: value as u32 }
                }
                TraceKind::EngineInterrupt { bits } => Seen::Interrupt(bits),
                _ => continue,
            };
            visible.push((event.time, seen));
        }
        visible
    }
}
