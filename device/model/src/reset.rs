//! Reset: RESET_CTL's handshake, GDRST's domains, power-on.

use execlab_abi::engine::Engine;
use execlab_abi::{csb, gt, ring};
use execlab_profile::Point;

use crate::engine::{EngineState, Phase};
use crate::{Env, Gpu, TraceKind};

/// Registers of an engine that a reset clears.
const CLEARED: [u32; 12] = [
    ring::TAIL,
    ring::HEAD,
    ring::START,
    ring::CTL,
    ring::ACTHD,
    ring::HWS_PGA,
    ring::MI_MODE,
    ring::MODE,
    ring::EIR,
    ring::ESR,
    ring::RESET_CTL,
    ring::CONTEXT_CONTROL,
];

impl Gpu {
    /// A masked write of RING_RESET_CTL: the request stops the streamer, and is ready after a while.
    pub(crate) fn write_reset_ctl<E: Env>(&mut self, e: Engine, value: u32, t: u64, env: &mut E) {
        let offset = e.reg(ring::RESET_CTL);
        let old = self.regs.get(offset);
        let request = ring::masked_apply(old, value) & ring::RESET_CTL_REQUEST;
        let ready = if request == 0 { 0 } else { old & ring::RESET_CTL_READY };
        self.regs.publish(offset, request | ready, env);
        let held = request != 0;
        let state = &mut self.engines[e.index()];
        if held && !state.held {
            state.held = true;
            let due = t.saturating_add(self.sampler.draw(Point::ResetReady, e));
            self.engines[e.index()].reset_ready = due;
        } else if !held {
            state.held = false;
            state.reset_ready = u64::MAX;
            self.resume(e, t);
        }
    }

    /// RESET_CTL's delay is over.
    pub(crate) fn reset_ready<E: Env>(&mut self, e: Engine, t: u64, env: &mut E) {
        self.engines[e.index()].reset_ready = u64::MAX;
        let offset = e.reg(ring::RESET_CTL);
        let value = self.regs.get(offset) | ring::RESET_CTL_READY;
        self.regs.publish(offset, value, env);
        self.trace(Some(e), TraceKind::ResetReady, t, env);
    }

    /// Lets a stopped streamer go on, if nothing holds it any more.
    pub(crate) fn resume(&mut self, e: Engine, t: u64) {
        let state = &mut self.engines[e.index()];
        if state.phase == Phase::Stopped && !state.stop && !state.held {
            state.phase = Phase::Execute { at: t };
        }
    }

    /// A write of GDRST: the engines of the set domains are dead at once; the bits clear after a while.
    pub(crate) fn write_gdrst<E: Env>(&mut self, value: u32, t: u64, env: &mut E) {
        if value == 0 {
            return;
        }
        let mut delay = 0;
        for e in Engine::ALL {
            if value & (gt::GRDOM_FULL | e.grdom()) != 0 {
                delay = delay.max(self.sampler.draw(Point::ResetReady, e));
                self.trace(Some(e), TraceKind::Reset, t, env);
                self.stats.resets += 1;
                self.clear_engine(e, env);
                self.engines[e.index()].in_reset = true;
            }
        }
        let due = t.saturating_add(delay).max(self.gdrst_due().unwrap_or(0));
        self.gdrst = due;
        let bits = self.regs.get(gt::GDRST) | value;
        self.regs.publish(gt::GDRST, bits, env);
    }

    /// When the reset under way is done.
    pub(crate) fn gdrst_due(&self) -> Option<u64> {
        (self.gdrst != u64::MAX).then_some(self.gdrst)
    }

    /// The reset is done.
    pub(crate) fn finish_gdrst<E: Env>(&mut self, t: u64, env: &mut E) {
        self.gdrst = u64::MAX;
        for e in Engine::ALL {
            if self.engines[e.index()].in_reset {
                self.engines[e.index()].in_reset = false;
                self.trace(Some(e), TraceKind::ResetReady, t, env);
            }
        }
        self.regs.publish(gt::GDRST, 0, env);
    }

    /// An engine forgets everything; stores and events that were not visible yet never will be. RING_IMR and the
    /// interrupt banks, and identities that have reached them, are outside the domain.
    fn clear_engine<E: Env>(&mut self, e: Engine, env: &mut E) {
        let budget = self.engines[e.index()].budget;
        self.engines[e.index()] = EngineState { budget, ..EngineState::new() };
        for relative in CLEARED {
            self.regs.publish(e.reg(relative), 0, env);
        }
        self.regs.publish(e.reg(ring::CONTEXT_STATUS_PTR), csb::RESET_WRITE_INDEX, env);
        self.publish_state(e, env);
    }

    /// Power-on values of the registers that do not start at 0.
    pub(crate) fn power_on<E: Env>(&mut self, env: &mut E) {
        for e in Engine::ALL {
            self.regs.set(e.reg(ring::IMR), u32::MAX);
            self.clear_engine(e, env);
        }
    }
}
