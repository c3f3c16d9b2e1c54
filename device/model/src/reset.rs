//! Reset: per engine through RESET_CTL and GDRST, and of everything.

use execlab_abi::csb;
use execlab_abi::engine::Engine;
use execlab_abi::{gt, irq, ring};
use execlab_profile::Point;

use crate::engine::{EngineState, Phase};
use crate::env::Env;
use crate::gpu::Gpu;
use crate::trace::{TraceEvent, TraceKind};

/// Value of CONTEXT_STATUS_PTR after reset: both pointers past the last entry.
const POINTERS: u32 = csb::RESET_WRITE_INDEX | (csb::RESET_WRITE_INDEX << 8);

impl Gpu {
    /// A write to GDRST: the domains go into reset now and come out of it later.
    pub(crate) fn write_gdrst<E: Env>(&mut self, value: u32, now: u64, env: &mut E) {
        if value == 0 {
            return;
        }
        let mut due = now.saturating_add(self.sampler.draw(Point::ResetReady, Engine::Rcs0));
        for engine in Engine::ALL {
            if value & (engine.grdom() | gt::GRDOM_FULL) == 0 {
                continue;
            }
            if engine != Engine::Rcs0 {
                due = due.max(now.saturating_add(self.sampler.draw(Point::ResetReady, engine)));
            }
            env.trace(TraceEvent { time: now, engine: Some(engine), kind: TraceKind::Reset });
            let state = &mut self.engines[engine.index()];
            *state = EngineState::new();
            state.phase = Phase::Resetting;
        }
        let bits = value | self.regs.get(gt::GDRST);
        self.regs.set(gt::GDRST, bits, env);
        self.gdrst_due = Some(due.max(self.gdrst_due.unwrap_or(0)));
    }

    /// The domains in reset come out of it.
    pub(crate) fn finish_gdrst<E: Env>(&mut self, now: u64, env: &mut E) {
        self.gdrst_due = None;
        let bits = self.regs.get(gt::GDRST);
        for engine in Engine::ALL {
            if bits & (engine.grdom() | gt::GRDOM_FULL) != 0 {
                self.reset_engine(engine, now, env);
            }
        }
        self.regs.set(gt::GDRST, 0, env);
    }

    /// Brings an engine to its state after reset: no list, registers that i915 writes again at resume cleared.
    fn reset_engine<E: Env>(&mut self, engine: Engine, now: u64, env: &mut E) {
        self.stats.resets += 1;
        self.engines[engine.index()] = EngineState::new();
        let zeroed =
            [ring::MODE, ring::HWS_PGA, ring::HWSTAM, ring::MI_MODE, ring::RESET_CTL, ring::EIR, ring::ESR];
        for relative in zeroed {
            self.regs.set(engine.reg(relative), 0, env);
        }
        self.regs.store(engine.reg(ring::IMR), u32::MAX);
        self.regs.set(engine.reg(ring::CONTEXT_STATUS_PTR), POINTERS, env);
        self.show_status(engine, env);
        env.trace(TraceEvent { time: now, engine: Some(engine), kind: TraceKind::ResetReady });
    }

    /// A masked write to RESET_CTL.
    pub(crate) fn write_reset_ctl<E: Env>(&mut self, engine: Engine, value: u32, now: u64, env: &mut E) {
        let register = engine.reg(ring::RESET_CTL);
        let old = self.regs.get(register);
        let writable = ring::RESET_CTL_REQUEST;
        let mut new = (old & !writable) | (ring::masked_apply(old, value) & writable);
        let state = &mut self.engines[engine.index()];
        if new & ring::RESET_CTL_REQUEST == 0 {
            new &= !ring::RESET_CTL_READY;
            state.reset_ctl_due = None;
        } else if old & ring::RESET_CTL_REQUEST == 0 {
            let delay = self.sampler.draw(Point::ResetReady, engine);
            state.reset_ctl_due = Some(now.saturating_add(delay));
        }
        self.regs.set(register, new, env);
    }

    /// The engine is ready for reset.
    pub(crate) fn show_reset_ready<E: Env>(&mut self, engine: Engine, env: &mut E) {
        self.engines[engine.index()].reset_ctl_due = None;
        let register = engine.reg(ring::RESET_CTL);
        let value = self.regs.get(register) | ring::RESET_CTL_READY;
        self.regs.set(register, value, env);
    }

    /// Everything as after power-on, GGTT included. Counters and the random streams go on.
    pub fn reset<E: Env>(&mut self, now: u64, env: &mut E) {
        self.now = self.now.max(now);
        self.regs.clear(env);
        self.ggtt = crate::translate::Ggtt::new();
        self.message.due = None;
        self.gdrst_due = None;
        for engine in Engine::ALL {
            self.reset_engine(engine, now, env);
        }
        for bank in 0..irq::BANKS {
            self.regs.store(irq::imr(bank), u32::MAX);
        }
    }
}
