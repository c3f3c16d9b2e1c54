//! The value that callers hold: the door to everything else, and the order of time.

use execlab_abi::engine::{ENGINE_COUNT, Engine};
use execlab_abi::{MMIO_SIZE, ggtt, irq, ring};
use execlab_profile::Sampler;

use crate::engine::{EngineState, Phase, Source};
use crate::ggtt::Ggtt;
use crate::irq::Banks;
use crate::regs::Registers;
use crate::streamer::BUDGET;
use crate::{Env, Stats, TraceEvent, TraceKind};

/// What a [`Gpu`] is made with.
#[derive(Debug, Clone)]
pub struct Config {
    /// Source of every delay.
    pub sampler: Sampler,
    /// Modelled nanoseconds between two looks at the memory of a blocked MI_SEMAPHORE_WAIT, before dilation; 0
    /// counts as 1. Each MMIO write makes the engine look too.
    pub semaphore_poll_ns: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self { sampler: Sampler::zero(), semaphore_poll_ns: 5_000 }
    }
}

/// The GPU. Times are device time in nanoseconds; one that lies before an earlier call's counts as that one.
///
/// A call does a bounded amount of work. An engine that has executed very many commands (a batch that starts
/// itself) goes on a little later, and [`next_deadline`](Self::next_deadline) says when.
#[derive(Debug)]
pub struct Gpu {
    pub(crate) sampler: Sampler,
    /// Nanoseconds between two looks at a semaphore, before dilation.
    pub(crate) semaphore_poll_ns: u64,
    pub(crate) regs: Registers,
    pub(crate) ggtt: Ggtt,
    pub(crate) irq: Banks,
    pub(crate) engines: [EngineState; ENGINE_COUNT],
    /// When the GDRST under way is done, or `u64::MAX`.
    pub(crate) gdrst: u64,
    pub(crate) stats: Stats,
    /// What each engine does next and when: kept, because it is asked for after every action.
    next: [(u64, Source); ENGINE_COUNT],
    /// A register was written: any engine may have something else to do next.
    pub(crate) written: bool,
    now: u64,
}

impl Gpu {
    /// A GPU after power-on. Allocates all that it ever will.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let Config { sampler, semaphore_poll_ns } = config;
        let mut gpu = Self {
            sampler,
            semaphore_poll_ns,
            regs: Registers::new(),
            ggtt: Ggtt::new(),
            irq: Banks::new(),
            engines: [const { EngineState::new() }; ENGINE_COUNT],
            gdrst: u64::MAX,
            stats: Stats::default(),
            next: [(u64::MAX, Source::ResetReady); ENGINE_COUNT],
            written: false,
            now: 0,
        };
        gpu.power_on(&mut crate::env::Nowhere);
        gpu.look_at_all();
        gpu
    }

    /// The value of the dword at BAR 0 `offset` as of the last [`advance`](Self::advance), the timestamps as of
    /// `now`; 0 where there is nothing.
    pub fn mmio_read(&mut self, offset: u32, now: u64) -> u32 {
        let now = self.moved_to(now);
        let gsm = ggtt::GSM_OFFSET..ggtt::GSM_OFFSET + ggtt::GSM_SIZE;
        if !offset.is_multiple_of(4) {
            0
        } else if offset < MMIO_SIZE {
            self.read_register(offset, now)
        } else if gsm.contains(&offset) {
            self.ggtt.read_half(offset - ggtt::GSM_OFFSET)
        } else {
            0
        }
    }

    /// Writes the dword at BAR 0 `offset` (a register or half a GGTT entry), after everything that is due; what
    /// follows from the write with no delay happens within the call, up to where `env` wants a pause.
    pub fn mmio_write<E: Env>(&mut self, offset: u32, value: u32, now: u64, env: &mut E) {
        let now = self.moved_to(now);
        self.refill_budgets();
        self.settle(now, env, |_| false);
        self.stats.mmio_writes += 1;
        self.write_bar(offset, value, now, env);
        let written = Engine::decode(offset).map(|(e, _)| e);
        for e in Engine::ALL {
            // Whoever writes a register may have written the semaphore just before.
            if let Phase::Wait { at } = &mut self.engines[e.index()].phase {
                *at = now;
            }
            if written == Some(e) {
                self.publish_state(e, env);
            }
        }
        self.look_at_all();
        self.settle(now, env, E::wants_pause);
    }

    /// Executes everything due at or before `now`, in order of due time, up to where `env` wants a pause.
    pub fn advance<E: Env>(&mut self, now: u64, env: &mut E) {
        let now = self.moved_to(now);
        self.refill_budgets();
        self.settle(now, env, E::wants_pause);
    }

    /// When [`advance`](Self::advance) has something to do next; `None` while only a write can change anything.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        let due = self.next.iter().map(|next| next.0).fold(self.gdrst, u64::min);
        (due != u64::MAX).then_some(due)
    }

    /// What the GT interrupt handler's first half finds with the master on: IIR & IER of each bank, moved out of
    /// IIR. `None` if that is nothing.
    pub fn take_interrupts<E: Env>(&mut self, now: u64, env: &mut E) -> Option<[u32; irq::BANKS]> {
        let now = self.moved_to(now);
        self.take_pending(now, env)
    }

    /// Power-on state: registers, GGTT, engines, error state. Counters, random streams and time go on.
    pub fn reset<E: Env>(&mut self, now: u64, env: &mut E) {
        self.moved_to(now);
        self.ggtt.clear();
        self.irq = Banks::new();
        self.gdrst = u64::MAX;
        self.regs.clear(env);
        self.power_on(env);
        self.look_at_all();
    }

    /// Replaces the source of delays; what is under way keeps its due time.
    pub fn set_sampler(&mut self, sampler: Sampler) {
        self.sampler = sampler;
    }

    /// Counters.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The caller's time, which does not go back.
    pub(crate) fn moved_to(&mut self, now: u64) -> u64 {
        self.now = self.now.max(now);
        self.now
    }

    fn refill_budgets(&mut self) {
        for engine in &mut self.engines {
            engine.budget = BUDGET;
        }
    }

    /// Asks every engine what it does next.
    fn look_at_all(&mut self) {
        self.written = false;
        for (next, engine) in self.next.iter_mut().zip(&self.engines) {
            *next = engine.next();
        }
    }

    /// Acts until nothing is due any more, or `pause` says so after an action.
    fn settle<E: Env>(&mut self, now: u64, env: &mut E, pause: impl Fn(&E) -> bool) {
        loop {
            let mut first = (self.gdrst, None);
            for e in Engine::ALL {
                let (due, source) = self.next[e.index()];
                debug_assert_eq!((due, source), self.engines[e.index()].next(), "{e:?}");
                if due < first.0 {
                    first = (due, Some((e, source)));
                }
            }
            let (due, actor) = first;
            if due > now || due == u64::MAX {
                return;
            }
            match actor {
                None => self.finish_gdrst(due, env),
                Some((e, source)) => {
                    self.act(e, source, due, now, env);
                    self.next[e.index()] = self.engines[e.index()].next();
                }
            }
            if self.written {
                self.look_at_all();
            }
            if pause(env) {
                return;
            }
        }
    }

    fn act<E: Env>(&mut self, e: Engine, source: Source, due: u64, now: u64, env: &mut E) {
        let state = &mut self.engines[e.index()];
        match source {
            Source::ResetReady => self.reset_ready(e, due, env),
            Source::Effect => {
                if let Some(pending) = state.effects.pop() {
                    self.apply_effect(e, pending.effect, due, env);
                }
            }
            Source::LateEntry => {
                if let Some(late) = state.late.pop() {
                    self.publish_late_entry(e, late, due, env);
                }
            }
            Source::Interrupt => {
                if let Some(raised) = state.irqs.pop() {
                    self.deliver(e, raised.bits, due, env);
                }
            }
            Source::Accept => {
                self.accept(e, due, env);
                self.publish_state(e, env);
            }
            Source::Streamer => {
                self.run_streamer(e, due, now, env);
                self.publish_state(e, env);
            }
        }
    }

    /// Hands out a trace event.
    #[inline]
    pub(crate) fn trace<E: Env>(&self, engine: Option<Engine>, kind: TraceKind, t: u64, env: &mut E) {
        env.trace(TraceEvent { time: t, engine, kind });
    }
}

/// RING_TIMESTAMP at device time `t`.
pub(crate) const fn ticks(t: u64) -> u64 {
    let (num, den) = (ring::TIMESTAMP_NS_NUM, ring::TIMESTAMP_NS_DEN);
    // Split, so that the product cannot overflow.
    t / num * den + t % num * den / num
}
