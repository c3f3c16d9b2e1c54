//! Violations: what is recorded, what stops an engine.

use execlab_abi::engine::Engine;
use execlab_abi::lab::{self, Violation};
use execlab_abi::{irq, ring};

use crate::engine::Phase;
use crate::{Env, Gpu, TraceKind};

/// A violation on its way to the error registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Which.
    pub violation: Violation,
    /// Register offset or GGTT address.
    pub addr: u32,
    /// The offending dwords, as [`Violation`] describes them.
    pub words: [u32; 4],
}

impl Fault {
    /// A fault of `violation` at `addr`.
    pub(crate) const fn new(violation: Violation, addr: u32, words: [u32; 4]) -> Self {
        Self { violation, addr, words }
    }
}

impl Gpu {
    /// Records a violation in the registers that the guest can read.
    pub(crate) fn report<E: Env>(&mut self, engine: Option<Engine>, fault: Fault, t: u64, env: &mut E) {
        self.stats.violations += 1;
        let count = self.regs.get(lab::ERROR_COUNT).wrapping_add(1);
        let engine_index = engine.map_or(lab::NO_ENGINE, |e| u32::from(e as u8));
        let fields = [
            (lab::ERROR_CODE, fault.violation as u32),
            (lab::ERROR_ENGINE, engine_index),
            (lab::ERROR_ADDR, fault.addr),
            (lab::ERROR_TIME_LO, low(t)),
            (lab::ERROR_TIME_HI, low(t >> 32)),
        ];
        for (offset, value) in fields {
            self.regs.publish(offset, value, env);
        }
        for (at, word) in (0..).zip(fault.words) {
            self.regs.publish(lab::ERROR_WORDS + 4 * at, word, env);
        }
        // The count last: a reader that sees it move finds the rest in place.
        self.regs.publish(lab::ERROR_COUNT, count, env);
        self.trace(engine, TraceKind::Violation(fault.violation), t, env);
    }

    /// Records a violation that the door saw, not the model; no engine is concerned. `words` are as `violation`
    /// describes them.
    pub fn violation<E: Env>(&mut self, violation: Violation, words: [u32; 4], now: u64, env: &mut E) {
        let t = self.moved_to(now);
        self.report(None, Fault::new(violation, 0, words), t, env);
    }

    /// Records a violation that the command streamer cannot get past: an instruction error. The engine hangs until
    /// it is reset.
    pub(crate) fn hang<E: Env>(&mut self, e: Engine, fault: Fault, t: u64, env: &mut E) {
        self.report(Some(e), fault, t, env);
        self.stats.hangs += 1;
        self.engines[e.index()].phase = Phase::Hung;
        let esr = self.regs.get(e.reg(ring::ESR)) | ring::ERROR_INSTRUCTION;
        self.regs.set(e.reg(ring::ESR), esr);
        let eir = self.regs.get(e.reg(ring::EIR)) | (esr & !self.regs.get(e.reg(ring::EMR)));
        self.regs.publish(e.reg(ring::EIR), eir, env);
        if eir & ring::ERROR_INSTRUCTION != 0 {
            self.raise(e, irq::CS_ERROR, t, env);
        }
    }

    /// Forgets the error state ([`lab::ERROR_CLEAR`]).
    pub(crate) fn clear_errors<E: Env>(&mut self, env: &mut E) {
        for offset in (lab::ERROR_COUNT..lab::ERROR_CLEAR).step_by(4) {
            self.regs.publish(offset, 0, env);
        }
    }
}

/// The low dword.
#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
pub(crate) const fn low(value: u64) -> u32 {
    value as u32
}
