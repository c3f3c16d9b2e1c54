//! The command streamer: fetches commands from ring or batch and executes them, in modelled time.

use execlab_abi::engine::Engine;
use execlab_abi::ring;
use execlab_profile::Point;

use crate::command::Step;
use crate::context::Context;
use crate::engine::{EFFECTS_PER_STEP, Leave, Phase};
use crate::error::{Fault, low};
use crate::{Env, Gpu, TraceKind, ppgtt};

/// Commands that an engine may execute while modelled time stands still. A batch that starts itself is legal and
/// must not keep the caller for ever.
const STREAK: u32 = 1024;
/// Steps that an engine may take within one call, so that a long gap is not made up for in one go.
pub(crate) const BUDGET: u32 = 1 << 16;
/// Nanoseconds after which an engine goes on that has used up one of these.
const SLICE_NS: u64 = 5_000;

const LINE_BYTES: usize = 64;
const LINE_DWORDS: usize = LINE_BYTES / 4;

/// The 64 bytes fetched last. Thrown away whenever memory may have changed: at each wake-up and each store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line {
    /// Address of the line, with [`TAG_VALID`] and [`TAG_PPGTT`]; 0 if there is none.
    tag: u64,
    dwords: [u32; LINE_DWORDS],
}

const TAG_VALID: u64 = 1;
const TAG_PPGTT: u64 = 2;

impl Line {
    /// Nothing fetched.
    pub(crate) const fn new() -> Self {
        Self { tag: 0, dwords: [0; LINE_DWORDS] }
    }

    /// Forgets what was fetched.
    pub(crate) fn invalidate(&mut self) {
        self.tag = 0;
    }
}

impl Gpu {
    /// The streamer's next step is due at `t`; the caller's time is `now`.
    pub(crate) fn run_streamer<E: Env>(&mut self, e: Engine, t: u64, now: u64, env: &mut E) {
        let state = &mut self.engines[e.index()];
        if state.budget == 0 {
            let at = now.saturating_add(SLICE_NS);
            self.postpone(e, at);
            self.deferred(e, t, env);
            return;
        }
        state.budget -= 1;
        if state.effects.room() < EFFECTS_PER_STEP
            && let Some(pending) = state.effects.front()
        {
            // As hardware does with its write buffer full: wait until the oldest store is out.
            let at = pending.due;
            self.postpone(e, at);
            return;
        }
        match state.phase {
            Phase::Restore { .. } => match self.load_context(e, t, env) {
                Ok(()) => {
                    // The start of a context is an arbitration point.
                    let queued = self.engines[e.index()].port.queued.is_some();
                    let next = if queued { self.yielding(e, t) } else { Phase::Execute { at: t } };
                    let state = &mut self.engines[e.index()];
                    state.streak = 0;
                    state.phase = next;
                }
                Err(fault) => self.hang(e, fault, t, env),
            },
            Phase::Execute { .. } | Phase::Wait { .. } => self.execute(e, t, now, env),
            Phase::Yield { .. } => {
                let at = t.saturating_add(self.sampler.draw(Point::ContextSave, e));
                self.engines[e.index()].phase = Phase::Save { at, then: Leave::Preempted };
            }
            Phase::Save { then, .. } => self.leave(e, then, t, env),
            Phase::Idle | Phase::Stopped | Phase::Hung => {}
        }
    }

    /// Puts the current step off.
    fn postpone(&mut self, e: Engine, to: u64) {
        match &mut self.engines[e.index()].phase {
            Phase::Restore { at }
            | Phase::Execute { at }
            | Phase::Wait { at }
            | Phase::Yield { at }
            | Phase::Save { at, .. } => *at = to,
            Phase::Idle | Phase::Stopped | Phase::Hung => {}
        }
    }

    fn deferred<E: Env>(&mut self, e: Engine, t: u64, env: &mut E) {
        self.stats.deferrals += 1;
        self.trace(Some(e), TraceKind::Deferred, t, env);
    }

    fn yielding(&mut self, e: Engine, t: u64) -> Phase {
        Phase::Yield { at: t.saturating_add(self.sampler.draw(Point::Arbitration, e)) }
    }

    /// Executes commands until time has to pass or something else must happen.
    fn execute<E: Env>(&mut self, e: Engine, t: u64, now: u64, env: &mut E) {
        let state = &mut self.engines[e.index()];
        let Some(mut context) = state.context.take() else {
            state.phase = Phase::Idle;
            return;
        };
        state.line.invalidate();
        let outcome = self.burst(e, &mut context, t, now, env);
        let state = &mut self.engines[e.index()];
        state.context = Some(context);
        match outcome {
            // A store may have failed under way.
            Ok(phase) if state.phase != Phase::Hung => state.phase = phase,
            Ok(_) => {}
            Err(fault) => self.hang(e, fault, t, env),
        }
    }

    fn burst<E: Env>(
        &mut self,
        e: Engine,
        context: &mut Context,
        t: u64,
        now: u64,
        env: &mut E,
    ) -> Result<Phase, Fault> {
        loop {
            let state = &mut self.engines[e.index()];
            if state.phase == Phase::Hung {
                return Ok(Phase::Hung);
            }
            if state.stop || state.held {
                return Ok(Phase::Stopped);
            }
            if context.finished() {
                let at = t.saturating_add(self.sampler.draw(Point::ContextSave, e));
                return Ok(Phase::Save { at, then: Leave::Complete });
            }
            if state.streak >= STREAK || state.budget == 0 {
                state.streak = 0;
                self.deferred(e, t, env);
                return Ok(Phase::Execute { at: t.max(now).saturating_add(SLICE_NS) });
            }
            if state.effects.room() < EFFECTS_PER_STEP
                && let Some(pending) = state.effects.front()
            {
                return Ok(Phase::Execute { at: pending.due });
            }
            state.budget -= 1;
            state.streak += 1;
            let (cost, arbitrate) = match self.command(e, context, t, env)? {
                Step::Next { cost } => (cost, false),
                Step::Arbitrate { cost } => (cost, true),
                Step::Wait => {
                    self.engines[e.index()].streak = 0;
                    if context.arbitration && self.engines[e.index()].port.queued.is_some() {
                        return Ok(self.yielding(e, t));
                    }
                    let poll = self.sampler.scale(self.semaphore_poll_ns).max(1);
                    return Ok(Phase::Wait { at: t.saturating_add(poll) });
                }
            };
            if cost > 0 {
                self.engines[e.index()].streak = 0;
            }
            let next = t.saturating_add(cost);
            let queued = self.engines[e.index()].port.queued.is_some();
            if arbitrate && queued && context.arbitration && !context.finished() {
                return Ok(self.yielding(e, next));
            }
            if cost > 0 {
                return Ok(Phase::Execute { at: next });
            }
        }
    }

    /// The first `N` dwords of the current command.
    #[inline]
    pub(crate) fn fetch<const N: usize, E: Env>(
        &mut self,
        e: Engine,
        context: &Context,
        env: &mut E,
    ) -> Result<[u32; N], Fault> {
        let mut dwords = [0; N];
        for (at, dword) in (0..).zip(&mut dwords) {
            *dword = self.fetch_dword(e, context, at, env)?;
        }
        Ok(dwords)
    }

    /// Dword `index` of the current command.
    #[inline]
    pub(crate) fn fetch_dword<E: Env>(
        &mut self,
        e: Engine,
        context: &Context,
        index: u32,
        env: &mut E,
    ) -> Result<u32, Fault> {
        let (address, ppgtt) = if context.depth > 0 {
            let frame = context.batch[context.depth - 1];
            (frame.address.wrapping_add(u64::from(4 * index)), frame.ppgtt)
        } else {
            // A command is shorter than a ring: one wrap at most.
            let at = context.head + 4 * index;
            let at = if at >= context.size { at - context.size } else { at };
            (u64::from(context.start.wrapping_add(at)), false)
        };
        let tag = (address & !63) | TAG_VALID | if ppgtt { TAG_PPGTT } else { 0 };
        if self.engines[e.index()].line.tag != tag {
            self.fill(e, context, address & !63, tag, env)?;
        }
        let at = (address as usize / 4) % LINE_DWORDS;
        Ok(self.engines[e.index()].line.dwords[at])
    }

    #[cold]
    #[inline(never)]
    fn fill<E: Env>(
        &mut self,
        e: Engine,
        context: &Context,
        address: u64,
        tag: u64,
        env: &mut E,
    ) -> Result<(), Fault> {
        let mut bytes = [0; LINE_BYTES];
        if tag & TAG_PPGTT != 0 {
            let gpa = context.tables.translate(address, env)?;
            env.read(gpa, &mut bytes).map_err(|_| ppgtt::fault(address, 0, low(gpa)))?;
        } else {
            let address = low(address);
            let gpa = self.ggtt.translate(address, LINE_BYTES as u32)?;
            env.read(gpa, &mut bytes).map_err(|_| self.ggtt.fault(address, LINE_BYTES as u32))?;
        }
        let line = &mut self.engines[e.index()].line;
        for (dword, b) in line.dwords.iter_mut().zip(bytes.chunks_exact(4)) {
            *dword = u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
        }
        line.tag = tag;
        Ok(())
    }

    /// Brings the registers that show an engine's state up to date.
    pub(crate) fn publish_state<E: Env>(&mut self, e: Engine, env: &mut E) {
        let state = &self.engines[e.index()];
        let running = state.port.running();
        let arbitration = state.context.is_some_and(|c| c.arbitration);
        let status = state.port.status(arbitration);
        let id = running.map_or(0, execlab_abi::descriptor::Descriptor::context_id);
        let idle = match state.phase {
            Phase::Idle | Phase::Stopped => true,
            Phase::Hung => state.stop,
            _ => false,
        };
        let place = state.context.map(|c| (c.head, c.tail, c.place()));
        self.regs.publish(e.reg(ring::EXECLIST_STATUS_LO), status, env);
        self.regs.publish(e.reg(ring::EXECLIST_STATUS_HI), id, env);
        let mode = self.regs.get(e.reg(ring::MI_MODE)) & !ring::MI_MODE_IDLE;
        let mode = if idle { mode | ring::MI_MODE_IDLE } else { mode };
        self.regs.publish(e.reg(ring::MI_MODE), mode, env);
        if let Some((head, tail, active)) = place {
            self.regs.publish(e.reg(ring::HEAD), head, env);
            self.regs.publish(e.reg(ring::TAIL), tail, env);
            self.regs.publish(e.reg(ring::ACTHD), active, env);
        }
    }
}
