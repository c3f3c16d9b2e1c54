//! The command streamer: bursts of commands, and what may interrupt one.

use execlab_abi::engine::Engine;
use execlab_abi::{irq, ring};
use execlab_profile::Point;

use crate::command::Outcome;
use crate::effects::Effect;
use crate::engine::Phase;
use crate::env::Env;
use crate::error::Report;
use crate::fetch;
use crate::gpu::Gpu;
use crate::trace::{TraceEvent, TraceKind};
use crate::translate::Fault;

/// Commands that take no time are executed at most this many at one instant …
const COMMANDS_PER_INSTANT: u32 = 4096;
/// … then the streamer rests for this long, so that a batch that jumps to itself leaves room for its end. A model
/// choice; real streamers take time for each command.
const REST_NS: u64 = 1000;
/// Effects that one command may add at most.
const EFFECTS_PER_COMMAND: usize = 2;

impl Gpu {
    /// Executes commands from the engine's due time up to `limit`, at most `budget` of them.
    pub(crate) fn stream<E: Env>(&mut self, engine: Engine, limit: u64, budget: &mut u32, env: &mut E) {
        let index = engine.index();
        self.engines[index].fetch.invalidate();
        if self.engines[index].phase == Phase::Waiting {
            self.engines[index].phase = Phase::Running;
        }
        let mut instant = COMMANDS_PER_INSTANT;
        while *budget > 0 {
            let state = &mut self.engines[index];
            let Some(now) = state.due.filter(|due| *due <= limit && state.phase == Phase::Running) else {
                return;
            };
            if instant == 0 {
                state.due = Some(now.saturating_add(REST_NS));
                return;
            }
            if !state.effects.has_room(EFFECTS_PER_COMMAND) {
                state.due = state.effects.next_due().map(|due| due.max(now));
                return;
            }
            if self.regs.get(engine.reg(ring::MI_MODE)) & ring::MI_MODE_STOP_RING != 0 {
                state.phase = Phase::Stopped;
                state.due = None;
                self.show_status(engine, env);
                return;
            }
            if state.running.batch.is_none() && state.running.head == state.running.tail {
                self.complete(engine, now);
                return;
            }
            *budget -= 1;
            self.stats.commands += 1;
            match self.execute(engine, now, env) {
                Ok(Outcome::Took(ns)) => {
                    if ns == 0 {
                        instant -= 1;
                    } else {
                        instant = COMMANDS_PER_INSTANT;
                    }
                    self.engines[index].due = Some(now.saturating_add(ns));
                }
                Ok(Outcome::Arbitrate(ns)) => {
                    let state = &mut self.engines[index];
                    let after = now.saturating_add(ns);
                    state.due = Some(after);
                    if state.queued.is_some() && state.arbitration {
                        self.preempt(engine, after);
                        return;
                    }
                }
                Ok(Outcome::Blocked(dwords)) => {
                    self.block(engine, dwords, now, env);
                    return;
                }
                Err(report) => {
                    self.hang(engine, report, now, env);
                    return;
                }
            }
        }
    }

    /// The semaphore just met does not hold: wait in front of it.
    fn block<E: Env>(&mut self, engine: Engine, dwords: u32, now: u64, env: &mut E) {
        let poll = self.sampler.scale(self.semaphore_poll_ns).max(1);
        let state = &mut self.engines[engine.index()];
        fetch::rewind(&mut state.running, dwords);
        state.phase = Phase::Waiting;
        state.due = Some(now.saturating_add(poll));
        let first = !std::mem::replace(&mut state.wait_reported, true);
        let (queued, arbitration) = (state.queued.is_some(), state.arbitration);
        if first {
            self.stats.semaphore_waits += 1;
            env.trace(TraceEvent { time: now, engine: Some(engine), kind: TraceKind::SemaphoreBlocked });
            self.raise(engine, irq::WAIT_SEMAPHORE, now, env);
        }
        if queued && arbitration {
            self.preempt(engine, now);
        }
    }

    /// Schedules a store of the command streamer; stores of one engine become visible in order.
    pub(crate) fn store<E: Env>(
        &mut self,
        engine: Engine,
        gpa: u64,
        value: u64,
        qword: bool,
        now: u64,
        env: &mut E,
    ) {
        self.stats.stores += 1;
        let delay = self.sampler.draw(Point::SeqnoVisible, engine);
        let state = &mut self.engines[engine.index()];
        let due = now.saturating_add(delay).max(state.store_due);
        state.store_due = due;
        if due <= now {
            self.show_store(engine, gpa, value, qword, now, env);
        } else {
            state.effects.push(due, Effect::Store { gpa, value, qword });
        }
    }

    /// A store becomes visible.
    pub(crate) fn show_store<E: Env>(
        &mut self,
        engine: Engine,
        gpa: u64,
        value: u64,
        qword: bool,
        now: u64,
        env: &mut E,
    ) {
        let stored = match qword {
            true if gpa.is_multiple_of(8) => env.store64_release(gpa, value),
            // Hardware takes dword-aligned qwords; they are two dwords then.
            true => env
                .store32_release(gpa + 4, (value >> 32) as u32)
                .and_then(|()| env.store32_release(gpa, value as u32)),
            false => env.store32_release(gpa, value as u32),
        };
        match stored {
            Ok(()) => {
                let kind = TraceKind::Store { gpa, value };
                env.trace(TraceEvent { time: now, engine: Some(engine), kind });
            }
            Err(_) => {
                let fault = Fault::Memory { address: gpa, gpa };
                self.report(Some(engine), Report::from(fault), now, env);
            }
        }
    }

    /// Raises the user interrupt, not before the stores that it announces.
    pub(crate) fn user_interrupt<E: Env>(&mut self, engine: Engine, now: u64, env: &mut E) {
        self.stats.user_interrupts += 1;
        let state = &mut self.engines[engine.index()];
        if state.store_due > now {
            state.effects.push(state.store_due, Effect::Raise { bits: irq::USER });
        } else {
            self.raise(engine, irq::USER, now, env);
        }
    }
}
