//! The readable error state: what the driver, or a command stream, did wrong last.

use execlab_abi::engine::Engine;
use execlab_abi::lab::{self, Violation};

use crate::env::Env;
use crate::gpu::Gpu;
use crate::trace::{TraceEvent, TraceKind};
use crate::translate::Fault;

/// A broken rule, with what identifies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) violation: Violation,
    pub(crate) addr: u32,
    pub(crate) words: [u32; 4],
}

impl Report {
    pub(crate) const fn new(violation: Violation, addr: u32, words: [u32; 4]) -> Self {
        Self { violation, addr, words }
    }
}

impl From<Fault> for Report {
    fn from(fault: Fault) -> Self {
        let (lo, hi) = (|v: u64| v as u32, |v: u64| (v >> 32) as u32);
        match fault {
            Fault::Ggtt { address, entry } => {
                Self::new(Violation::UnmappedPage, address, [address, lo(entry), hi(entry), 0])
            }
            Fault::Ppgtt { address, level, entry } => {
                Self::new(Violation::UnmappedPpgtt, lo(address), [lo(address), hi(address), level, lo(entry)])
            }
            Fault::Memory { address, gpa } => {
                Self::new(Violation::UnmappedPage, lo(address), [lo(address), lo(gpa), hi(gpa), 0])
            }
        }
    }
}

impl Gpu {
    /// Counts and traces a violation, and leaves it in the registers of `execlab_abi::lab`.
    pub(crate) fn report<E: Env>(&mut self, engine: Option<Engine>, report: Report, now: u64, env: &mut E) {
        self.stats.violations += 1;
        let count = self.regs.get(lab::ERROR_COUNT).wrapping_add(1);
        // The count goes last: who sees it change finds the rest in place.
        self.regs.set(lab::ERROR_CODE, report.violation as u32, env);
        self.regs.set(lab::ERROR_ENGINE, engine.map_or(lab::NO_ENGINE, |e| e.index() as u32), env);
        self.regs.set(lab::ERROR_ADDR, report.addr, env);
        for (at, word) in (0_u32..).zip(report.words) {
            self.regs.set(lab::ERROR_WORDS + 4 * at, word, env);
        }
        self.regs.set(lab::ERROR_TIME_LO, now as u32, env);
        self.regs.set(lab::ERROR_TIME_HI, (now >> 32) as u32, env);
        self.regs.set(lab::ERROR_COUNT, count, env);
        env.trace(TraceEvent { time: now, engine, kind: TraceKind::Violation(report.violation) });
    }

    /// Records a violation that the door saw, not the model; no engine is concerned. `words` are as `violation`
    /// describes them.
    pub fn violation<E: Env>(&mut self, violation: Violation, words: [u32; 4], now: u64, env: &mut E) {
        let now = now.max(self.now);
        self.report(None, Report::new(violation, 0, words), now, env);
    }

    /// Forgets the error state.
    pub(crate) fn clear_errors<E: Env>(&mut self, env: &mut E) {
        let last =
            [lab::ERROR_CODE, lab::ERROR_ENGINE, lab::ERROR_ADDR, lab::ERROR_TIME_LO, lab::ERROR_TIME_HI];
        let words = (0..4).map(|n| lab::ERROR_WORDS + 4 * n);
        for offset in last.into_iter().chain(words).chain([lab::ERROR_COUNT]) {
            self.regs.set(offset, 0, env);
        }
    }
}
