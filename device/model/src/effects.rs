//! What executed commands make visible, in the order of execution.

use execlab_abi::engine::Engine;
use execlab_abi::lab::Violation;

use crate::engine::{Effect, Pending};
use crate::error::{Fault, low};
use crate::{Env, Gpu, TraceKind};

impl Gpu {
    /// An effect of something executed at `t` becomes visible `delay` later, but not before the effects of what
    /// was executed earlier on this engine.
    pub(crate) fn effect<E: Env>(&mut self, e: Engine, effect: Effect, delay: u64, t: u64, env: &mut E) {
        let queue = &mut self.engines[e.index()].effects;
        let due = t.saturating_add(delay);
        if queue.is_empty() && due <= t {
            self.apply_effect(e, effect, t, env);
            return;
        }
        let due = queue.back_mut().map_or(due, |last| due.max(last.due));
        let mut pending = Pending { due, effect };
        // The streamer keeps room, so this loop does not turn; if it did, the oldest would come out early rather
        // than one be lost.
        while let Err(back) = self.engines[e.index()].effects.push(pending) {
            pending = back;
            if let Some(oldest) = self.engines[e.index()].effects.pop() {
                self.apply_effect(e, oldest.effect, t, env);
            }
        }
    }

    /// Makes an effect visible.
    pub(crate) fn apply_effect<E: Env>(&mut self, e: Engine, effect: Effect, t: u64, env: &mut E) {
        match effect {
            Effect::Store32 { gpa, value } => {
                let stored = env.store32_release(gpa, value);
                self.stored(e, (gpa, u64::from(value), 4), stored.is_ok(), t, env);
            }
            Effect::Store64 { gpa, value } => {
                let stored = env.store64_release(gpa, value);
                self.stored(e, (gpa, value, 8), stored.is_ok(), t, env);
            }
            Effect::Interrupt { bits } => self.raise(e, bits, t, env),
            Effect::Csb { entry, interrupt } => self.publish_event(e, entry, interrupt, t, env),
        }
    }

    fn stored<E: Env>(&mut self, e: Engine, store: (u64, u64, u32), ok: bool, t: u64, env: &mut E) {
        let (gpa, value, len) = store;
        // The command that follows may have been changed.
        self.engines[e.index()].line.invalidate();
        if ok {
            self.trace(Some(e), TraceKind::Store { gpa, value }, t, env);
        } else {
            let words = [low(gpa), low(gpa), low(gpa >> 32), len];
            self.hang(e, Fault::new(Violation::UnmappedPage, low(gpa), words), t, env);
        }
    }
}
