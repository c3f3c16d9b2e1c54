//! The execlist submit port: four writes make a submission.

use execlab_abi::descriptor::{self, Descriptor};
use execlab_abi::engine::Engine;
use execlab_abi::lab::Violation;
use execlab_abi::ring;
use execlab_profile::Point;

use crate::engine::{List, Phase};
use crate::env::Env;
use crate::error::Report;
use crate::gpu::Gpu;
use crate::trace::{TraceEvent, TraceKind};

/// Writes of the submission that is being written.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Port {
    words: [u32; 4],
    count: usize,
}

impl Port {
    /// Takes one write; the fourth gives the submission's words in the order they were written.
    fn take(&mut self, value: u32) -> Option<[u32; 4]> {
        self.words[self.count] = value;
        self.count = (self.count + 1) % 4;
        (self.count == 0).then_some(self.words)
    }
}

impl Gpu {
    /// A write to ELSP.
    pub(crate) fn write_elsp<E: Env>(&mut self, engine: Engine, value: u32, now: u64, env: &mut E) {
        let Some(words) = self.engines[engine.index()].port.take(value) else { return };
        let [hi1, lo1, hi0, lo0] = words;
        let elements = [Descriptor { lo: lo0, hi: hi0 }, Descriptor { lo: lo1, hi: hi1 }];
        if let Err(violation) = self.check(engine, elements) {
            let addr = engine.reg(ring::ELSP);
            self.report(Some(engine), Report::new(violation, addr, words), now, env);
            return;
        }
        self.stats.submissions += 1;
        let second = elements[1].is_valid().then_some(elements[1].context_id());
        let kind = TraceKind::Submit { first: elements[0].context_id(), second };
        env.trace(TraceEvent { time: now, engine: Some(engine), kind });
        let delay = self.sampler.draw(Point::ElspAccept, engine);
        let state = &mut self.engines[engine.index()];
        state.ack_due = true;
        state.accept = Some((now.saturating_add(delay), List { elements, active: 0 }));
    }

    fn check(&self, engine: Engine, elements: [Descriptor; 2]) -> Result<(), Violation> {
        let state = &self.engines[engine.index()];
        let enabled = self.regs.get(engine.reg(ring::MODE)) & ring::MODE_RUN_LIST_ENABLE != 0;
        if !enabled || state.phase == Phase::Resetting {
            return Err(Violation::ElspWhileOff);
        }
        if state.ack_due {
            return Err(Violation::ElspBeforeAck);
        }
        let [first, second] = elements;
        let well_formed = |d: Descriptor| d.is_valid() && d.hi & !descriptor::CONTEXT_ID_MASK == 0;
        if !well_formed(first) || !(well_formed(second) || second == Descriptor::NULL) {
            return Err(Violation::InvalidDescriptor);
        }
        let same = second.is_valid() && (first.lrca() == second.lrca() || first.hi == second.hi);
        if same { Err(Violation::SameContextTwice) } else { Ok(()) }
    }
}
