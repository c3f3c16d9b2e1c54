//! The GPU: registers in, time in, effects out.

use execlab_abi::engine::{ENGINE_COUNT, Engine};
use execlab_abi::lab::{self, Violation};
use execlab_abi::{MMIO_SIZE, ggtt, gt, irq, ring};
use execlab_profile::Sampler;

use crate::engine::{EngineState, Phase, timestamp};
use crate::env::Env;
use crate::error::Report;
use crate::irq::Message;
use crate::regs::Regs;
use crate::stats::Stats;
use crate::trace::{TraceEvent, TraceKind};
use crate::translate::Ggtt;

/// Most commands that one [`Gpu::advance`] executes. An engine that would need more (a batch that jumps to itself
/// while nobody advanced the time for long) is behind afterwards, not the caller.
const COMMANDS_PER_ADVANCE: u32 = 1 << 18;

/// Registers that invalidate a TLB and clear themselves (`GEN8_RTCR` … `GEN8_BTCR`, 0x4260 to 0x4274).
const TLB_INVALIDATE: std::ops::RangeInclusive<u32> = 0x4260..=0x4274;

/// What a GPU is made with.
#[derive(Debug, Clone)]
pub struct Config {
    /// Source of every delay.
    pub sampler: Sampler,
    /// Modelled nanoseconds between two looks at the memory of a blocked MI_SEMAPHORE_WAIT, before dilation.
    /// Each MMIO write makes the engine look too. At least 1. A model choice: silicon polls far more often, which
    /// no host could follow.
    pub semaphore_poll_ns: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self { sampler: Sampler::zero(), semaphore_poll_ns: 5_000 }
    }
}

/// A gen9 GPU.
#[derive(Debug)]
pub struct Gpu {
    pub(crate) engines: [EngineState; ENGINE_COUNT],
    pub(crate) regs: Regs,
    pub(crate) ggtt: Ggtt,
    pub(crate) message: Message,
    pub(crate) gdrst_due: Option<u64>,
    pub(crate) sampler: Sampler,
    pub(crate) semaphore_poll_ns: u64,
    pub(crate) stats: Stats,
    pub(crate) now: u64,
}

/// What happens next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Gdrst,
    ResetReady(Engine),
    Effect(Engine),
    Accept(Engine),
    Phase(Engine),
    Message,
}

impl Gpu {
    /// A GPU after power-on. Call [`reset`](Self::reset) once before use if a mirror has to be filled.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let mut gpu = Self {
            engines: std::array::from_fn(|_| EngineState::new()),
            regs: Regs::new(),
            ggtt: Ggtt::new(),
            message: Message::default(),
            gdrst_due: None,
            sampler: config.sampler,
            semaphore_poll_ns: config.semaphore_poll_ns,
            stats: Stats::default(),
            now: 0,
        };
        gpu.reset(0, &mut NoEnv);
        gpu.stats = Stats::default();
        gpu
    }

    /// Replaces the source of delays; those under way keep their due times.
    pub fn set_sampler(&mut self, sampler: Sampler) {
        self.sampler = sampler;
    }

    /// Counters since power-on.
    #[must_use]
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Reads a register at `now` (device time in nanoseconds). Offsets outside the BAR read 0. What became due
    /// since the last [`advance`](Self::advance) is not in it.
    pub fn mmio_read(&mut self, offset: u32, now: u64) -> u32 {
        if offset >= ggtt::GSM_OFFSET {
            return self.ggtt.read_half(offset - ggtt::GSM_OFFSET);
        }
        if offset == irq::MASTER {
            return self.master();
        }
        match Engine::decode(offset) {
            Some((_, ring::TIMESTAMP)) => timestamp(now) as u32,
            Some((_, ring::TIMESTAMP_UDW)) => (timestamp(now) >> 32) as u32,
            Some((_, ring::ELSP)) => 0,
            _ => self.regs.get(offset),
        }
    }

    /// Writes a register or half a GGTT entry at `now` (device time in nanoseconds, not before the last call's).
    pub fn mmio_write<E: Env>(&mut self, offset: u32, value: u32, now: u64, env: &mut E) {
        self.stats.mmio_writes += 1;
        if (ggtt::GSM_OFFSET..ggtt::GSM_OFFSET + ggtt::GSM_SIZE).contains(&offset) && offset.is_multiple_of(4)
        {
            self.ggtt.write_half(offset - ggtt::GSM_OFFSET, value);
            return;
        }
        self.advance(now, env);
        let now = self.now;
        if offset >= MMIO_SIZE || !offset.is_multiple_of(4) {
            self.report(None, Report::new(Violation::BadOffset, offset, [offset, value, 0, 0]), now, env);
            return;
        }
        match Engine::decode(offset) {
            Some((engine, relative)) => self.write_engine(engine, relative, value, now, env),
            None => self.write_global(offset, value, now, env),
        }
        for engine in Engine::ALL {
            let state = &mut self.engines[engine.index()];
            if state.phase == Phase::Waiting {
                state.due = Some(now);
            }
        }
        self.advance(now, env);
    }

    fn write_engine<E: Env>(&mut self, engine: Engine, relative: u32, value: u32, now: u64, env: &mut E) {
        let offset = engine.reg(relative);
        match relative {
            ring::ELSP => self.write_elsp(engine, value, now, env),
            ring::CONTEXT_STATUS_PTR => self.write_csb_pointer(engine, value, env),
            ring::RESET_CTL => self.write_reset_ctl(engine, value, now, env),
            ring::MI_MODE => self.write_mi_mode(engine, value, now, env),
            ring::MODE | ring::CONTEXT_CONTROL => {
                let new = ring::masked_apply(self.regs.get(offset), value) & 0xffff;
                self.regs.store(offset, new);
            }
            // Write 1 to clear, as i915 does after an error.
            ring::EIR => {
                let left = self.regs.get(offset) & !value;
                self.regs.set(offset, left, env);
            }
            ring::EXECLIST_STATUS_LO | ring::EXECLIST_STATUS_HI | ring::TIMESTAMP | ring::TIMESTAMP_UDW => {}
            _ => self.regs.set(offset, value, env),
        }
    }

    fn write_mi_mode<E: Env>(&mut self, engine: Engine, value: u32, now: u64, env: &mut E) {
        let register = engine.reg(ring::MI_MODE);
        let stop = ring::masked_apply(self.regs.get(register), value) & ring::MI_MODE_STOP_RING;
        let rest = self.regs.get(register) & ring::MI_MODE_IDLE;
        self.regs.set(register, stop | rest, env);
        let state = &mut self.engines[engine.index()];
        if stop == 0 && state.phase == Phase::Stopped {
            state.phase = Phase::Running;
            state.due = Some(now);
        }
        self.show_status(engine, env);
    }

    fn write_global<E: Env>(&mut self, offset: u32, value: u32, now: u64, env: &mut E) {
        if self.write_irq(offset, value, now, env) {
            return;
        }
        if offset == gt::GDRST {
            self.write_gdrst(value, now, env);
        } else if let Some(at) = gt::FORCEWAKE.iter().position(|f| *f == offset) {
            let new = ring::masked_apply(self.regs.get(offset), value) & 0xffff;
            self.regs.store(offset, new);
            self.regs.set(gt::FORCEWAKE_ACK[at], new, env);
        } else if offset == lab::ERROR_CLEAR {
            self.clear_errors(env);
        } else if TLB_INVALIDATE.contains(&offset) || (lab::CS_BUSY..=lab::ERROR_TIME_HI).contains(&offset) {
            // Self-clearing, or read only.
        } else {
            self.regs.set(offset, value, env);
        }
    }

    /// Due time of the next thing that will happen, in device time.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        self.next_event(None).map(|(due, _)| due)
    }

    /// Makes everything happen that is due at or before `now`, in order of due times. Delays are counted from due
    /// time to due time, however late this is called; nothing happens before its time.
    pub fn advance<E: Env>(&mut self, now: u64, env: &mut E) {
        let now = now.max(self.now);
        let mut budget = COMMANDS_PER_ADVANCE;
        while let Some((due, event)) = self.next_event(None) {
            if due > now {
                break;
            }
            self.now = self.now.max(due);
            match event {
                Event::Gdrst => self.finish_gdrst(due, env),
                Event::ResetReady(engine) => self.show_reset_ready(engine, env),
                Event::Effect(engine) => {
                    if let Some((_, effect)) = self.engines[engine.index()].effects.pop() {
                        self.apply(engine, effect, due, env);
                    }
                }
                Event::Accept(engine) => self.accept(engine, due, env),
                Event::Message => self.deliver_message(due, env),
                Event::Phase(engine) => {
                    let other = self.next_event(Some(engine)).map_or(u64::MAX, |(due, _)| due);
                    self.go_on(engine, due, now.min(other), &mut budget, env);
                    if budget == 0 {
                        self.stats.deferrals += 1;
                        env.trace(TraceEvent { time: due, engine: Some(engine), kind: TraceKind::Deferred });
                        self.slip(now);
                        budget = COMMANDS_PER_ADVANCE;
                    }
                }
            }
        }
        self.now = now;
    }

    /// The phase of `engine` goes on at `due`; commands may be executed up to `limit`.
    fn go_on<E: Env>(&mut self, engine: Engine, due: u64, limit: u64, budget: &mut u32, env: &mut E) {
        match self.engines[engine.index()].phase {
            Phase::Restoring => self.restored(engine, due, env),
            Phase::Saving(why) => self.saved(engine, why, due, env),
            Phase::Running | Phase::Waiting => self.stream(engine, limit, budget, env),
            Phase::Idle | Phase::Stopped | Phase::Hung | Phase::Resetting => {
                self.engines[engine.index()].due = None;
            }
        }
    }

    /// Engines that execute commands fall behind: they go on after `now`.
    fn slip(&mut self, now: u64) {
        for state in &mut self.engines {
            if state.phase == Phase::Running {
                state.due = state.due.map(|due| due.max(now.saturating_add(1)));
            }
        }
    }

    /// The earliest event; with `but`, without that engine's phase. Among equals, stores come before the events that
    /// report them, and the message comes last.
    fn next_event(&self, but: Option<Engine>) -> Option<(u64, Event)> {
        let mut first: Option<(u64, Event)> = None;
        let mut offer = |due: Option<u64>, event: Event| {
            if let Some(due) = due
                && first.is_none_or(|(earliest, _)| due < earliest)
            {
                first = Some((due, event));
            }
        };
        offer(self.gdrst_due, Event::Gdrst);
        for (engine, state) in Engine::ALL.into_iter().zip(&self.engines) {
            offer(state.effects.next_due(), Event::Effect(engine));
            offer(state.accept.map(|(due, _)| due), Event::Accept(engine));
            offer(state.reset_ctl_due, Event::ResetReady(engine));
            if but != Some(engine) {
                offer(state.due, Event::Phase(engine));
            }
        }
        offer(self.message.due, Event::Message);
        first
    }
}

/// The outside of a GPU that is being made: no memory, and nobody listens.
struct NoEnv;

impl Env for NoEnv {
    fn read(&mut self, _: u64, _: &mut [u8]) -> Result<(), crate::BadAddress> {
        Err(crate::BadAddress)
    }
    fn write(&mut self, _: u64, _: &[u8]) -> Result<(), crate::BadAddress> {
        Err(crate::BadAddress)
    }
    fn load32_acquire(&mut self, _: u64) -> Result<u32, crate::BadAddress> {
        Err(crate::BadAddress)
    }
    fn store32_release(&mut self, _: u64, _: u32) -> Result<(), crate::BadAddress> {
        Err(crate::BadAddress)
    }
    fn store64_release(&mut self, _: u64, _: u64) -> Result<(), crate::BadAddress> {
        Err(crate::BadAddress)
    }
    fn interrupt(&mut self) {}
    fn mirror(&mut self, _: u32, _: u32) {}
    fn trace(&mut self, _: crate::TraceEvent) {}
}
