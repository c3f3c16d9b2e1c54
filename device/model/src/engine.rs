//! One engine: which context it runs, and how it comes to another one.

use execlab_abi::csb::{self, Entry};
use execlab_abi::descriptor::Descriptor;
use execlab_abi::engine::Engine;
use execlab_abi::{irq, ring};
use execlab_profile::Point;

use crate::context::{self, Running};
use crate::effects::{Effect, Effects};
use crate::env::Env;
use crate::error::Report;
use crate::fetch::Fetch;
use crate::gpu::Gpu;
use crate::port::Port;
use crate::trace::{TraceEvent, TraceKind};

/// A pair of elements, as submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct List {
    pub(crate) elements: [Descriptor; 2],
    /// Element that runs, 0 or 1.
    pub(crate) active: usize,
}

impl List {
    pub(crate) fn current(&self) -> Descriptor {
        self.elements[self.active]
    }

    fn has_next(&self) -> bool {
        self.active == 0 && self.elements[1].is_valid()
    }
}

/// What an engine is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No list.
    Idle,
    /// Reading the current element's image.
    Restoring,
    /// Executing commands.
    Running,
    /// Blocked at a semaphore; memory is compared again at the due time.
    Waiting,
    /// Held by STOP_RING between two commands.
    Stopped,
    /// Writing the image back before the context is left.
    Saving(Leave),
    /// An error was met; only a reset helps.
    Hung,
    /// In reset.
    Resetting,
}

/// Why a context is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leave {
    Complete,
    Preempt,
}

/// State of one engine.
#[derive(Debug)]
pub(crate) struct EngineState {
    pub(crate) phase: Phase,
    /// When the phase goes on; `None` while nothing in the engine itself will happen.
    pub(crate) due: Option<u64>,
    pub(crate) port: Port,
    /// A submission on its way into the engine.
    pub(crate) accept: Option<(u64, List)>,
    /// The list that runs.
    pub(crate) list: Option<List>,
    /// The list that waits for an arbitration point or for the end of the running one.
    pub(crate) queued: Option<List>,
    /// A submission has not been acknowledged by an event.
    pub(crate) ack_due: bool,
    pub(crate) running: Running,
    /// When the running context was restored.
    pub(crate) since: u64,
    /// MI_ARB_ON_OFF.
    pub(crate) arbitration: bool,
    pub(crate) fetch: Fetch,
    pub(crate) effects: Effects,
    /// When the last store becomes visible: nothing that reports it may come earlier.
    pub(crate) store_due: u64,
    /// When RESET_CTL shows ready.
    pub(crate) reset_ctl_due: Option<u64>,
    /// The semaphore-wait interrupt was raised for this wait.
    pub(crate) wait_reported: bool,
}

impl EngineState {
    pub(crate) fn new() -> Self {
        Self {
            phase: Phase::Idle,
            due: None,
            port: Port::default(),
            accept: None,
            list: None,
            queued: None,
            ack_due: false,
            running: Running::default(),
            since: 0,
            arbitration: true,
            fetch: Fetch::new(),
            effects: Effects::new(),
            store_due: 0,
            reset_ctl_due: None,
            wait_reported: false,
        }
    }
}

impl Gpu {
    /// The engine takes the submission that was on its way.
    pub(crate) fn accept<E: Env>(&mut self, engine: Engine, now: u64, env: &mut E) {
        let state = &mut self.engines[engine.index()];
        let Some((_, list)) = state.accept.take() else { return };
        env.trace(TraceEvent { time: now, engine: Some(engine), kind: TraceKind::Accept });
        match state.phase {
            Phase::Idle => self.start(engine, list, now, env),
            Phase::Restoring | Phase::Running | Phase::Waiting | Phase::Stopped
                if state.list.is_some_and(|old| is_lite_restore(&old, &list)) =>
            {
                self.lite_restore(engine, list, now, env);
            }
            _ => {
                state.queued = Some(list);
                if state.phase == Phase::Waiting && state.arbitration {
                    self.preempt(engine, now);
                }
            }
        }
        self.show_status(engine, env);
    }

    /// idle → active: the acknowledgement, then the first element.
    fn start<E: Env>(&mut self, engine: Engine, list: List, now: u64, env: &mut E) {
        self.publish(engine, Entry { status: csb::IDLE_ACTIVE, context_id: 0 }, now, env);
        self.engines[engine.index()].ack_due = false;
        self.enter(engine, list, now);
        self.raise(engine, irq::CONTEXT_SWITCH, now, env);
    }

    /// Begins to restore the current element of `list`.
    fn enter(&mut self, engine: Engine, list: List, now: u64) {
        let delay = self.sampler.draw(Point::ContextRestore, engine);
        let state = &mut self.engines[engine.index()];
        state.list = Some(list);
        state.phase = Phase::Restoring;
        state.due = Some(now.saturating_add(delay));
    }

    fn lite_restore<E: Env>(&mut self, engine: Engine, list: List, now: u64, env: &mut E) {
        let context_id = list.current().context_id();
        let state = &mut self.engines[engine.index()];
        state.list = Some(list);
        state.ack_due = false;
        state.fetch.invalidate();
        if state.phase != Phase::Restoring {
            let sampled = context::resample_tail(env, &self.ggtt, list.current(), &mut state.running);
            if let Err(report) = sampled {
                self.hang(engine, report, now, env);
            }
        }
        let status = csb::PREEMPTED | csb::LITE_RESTORE;
        self.publish(engine, Entry { status, context_id }, now, env);
        self.raise(engine, irq::CONTEXT_SWITCH, now, env);
    }

    /// The image has been read.
    pub(crate) fn restored<E: Env>(&mut self, engine: Engine, now: u64, env: &mut E) {
        let state = &mut self.engines[engine.index()];
        let Some(list) = state.list else { return };
        state.fetch.invalidate();
        match context::restore(env, &self.ggtt, list.current()) {
            Ok(running) => {
                state.running = running;
                state.since = now;
                state.arbitration = true;
                state.phase = Phase::Running;
                state.due = Some(now);
                self.stats.context_restores += 1;
                let kind = TraceKind::ContextStart {
                    id: list.current().context_id(),
                    head: running.head,
                    tail: running.tail,
                };
                env.trace(TraceEvent { time: now, engine: Some(engine), kind });
                if self.engines[engine.index()].queued.is_some() {
                    self.preempt(engine, now);
                }
                self.show_status(engine, env);
            }
            Err(report) => self.hang(engine, report, now, env),
        }
    }

    /// The running context has come to an arbitration point while another list waits.
    pub(crate) fn preempt(&mut self, engine: Engine, now: u64) {
        let delay = self.sampler.draw(Point::Arbitration, engine);
        self.leave(engine, Leave::Preempt, now.saturating_add(delay));
    }

    /// The running context has come to its tail.
    pub(crate) fn complete(&mut self, engine: Engine, now: u64) {
        self.leave(engine, Leave::Complete, now);
    }

    fn leave(&mut self, engine: Engine, why: Leave, now: u64) {
        let delay = self.sampler.draw(Point::ContextSave, engine);
        let state = &mut self.engines[engine.index()];
        state.phase = Phase::Saving(why);
        // The event says that the context's stores are visible.
        state.due = Some(now.saturating_add(delay).max(state.store_due));
    }

    /// The image has been written back: report, and go on with what comes next.
    pub(crate) fn saved<E: Env>(&mut self, engine: Engine, why: Leave, now: u64, env: &mut E) {
        let state = &mut self.engines[engine.index()];
        let Some(mut list) = state.list.take() else { return };
        let ticks = timestamp(now.saturating_sub(state.since)) as u32;
        state.running.timestamp = state.running.timestamp.wrapping_add(ticks);
        if let Err(report) = context::save(env, &self.ggtt, list.current(), &state.running) {
            state.list = Some(list);
            self.hang(engine, report, now, env);
            return;
        }
        let context_id = list.current().context_id();
        self.stats.context_saves += 1;
        let kind = TraceKind::ContextStop { id: context_id, head: state.running.head };
        env.trace(TraceEvent { time: now, engine: Some(engine), kind });
        match (why, state.queued.take()) {
            (Leave::Preempt, Some(next)) => {
                self.publish(engine, Entry { status: csb::PREEMPTED, context_id }, now, env);
                self.engines[engine.index()].ack_due = false;
                self.enter(engine, next, now);
            }
            (_, queued) if list.has_next() => {
                state.queued = queued;
                let status = csb::COMPLETE | csb::ELEMENT_SWITCH;
                self.publish(engine, Entry { status, context_id }, now, env);
                list.active = 1;
                self.enter(engine, list, now);
            }
            (_, queued) => {
                let status = csb::COMPLETE | csb::ACTIVE_IDLE;
                self.publish(engine, Entry { status, context_id }, now, env);
                let state = &mut self.engines[engine.index()];
                state.phase = Phase::Idle;
                state.due = None;
                if let Some(next) = queued {
                    // One interrupt after both events.
                    self.publish(engine, Entry { status: csb::IDLE_ACTIVE, context_id: 0 }, now, env);
                    self.engines[engine.index()].ack_due = false;
                    self.enter(engine, next, now);
                }
            }
        }
        self.raise(engine, irq::CONTEXT_SWITCH, now, env);
        self.show_status(engine, env);
    }

    /// The engine met an error that it cannot go on from.
    pub(crate) fn hang<E: Env>(&mut self, engine: Engine, report: Report, now: u64, env: &mut E) {
        self.report(Some(engine), report, now, env);
        self.stats.hangs += 1;
        let state = &mut self.engines[engine.index()];
        state.phase = Phase::Hung;
        state.due = None;
        let error = ring::ERROR_INSTRUCTION;
        self.regs.store(engine.reg(ring::ESR), error);
        if self.regs.get(engine.reg(ring::EMR)) & error == 0 {
            let eir = engine.reg(ring::EIR);
            let value = self.regs.get(eir) | error;
            self.regs.set(eir, value, env);
            self.raise(engine, irq::CS_ERROR, now, env);
        }
        self.show_status(engine, env);
    }

    /// Carries out an effect.
    pub(crate) fn apply<E: Env>(&mut self, engine: Engine, effect: Effect, now: u64, env: &mut E) {
        match effect {
            Effect::Store { gpa, value, qword } => self.show_store(engine, gpa, value, qword, now, env),
            Effect::CsbEntry { qword, gpa } => self.show_entry(engine, qword, gpa, now, env),
            Effect::Raise { bits } => self.raise(engine, bits, now, env),
        }
    }

    /// Brings the registers that show the engine's state up to date.
    pub(crate) fn show_status<E: Env>(&mut self, engine: Engine, env: &mut E) {
        let state = &self.engines[engine.index()];
        let (running, list, queued) = (state.running, state.list, state.queued);
        let stop = self.regs.get(engine.reg(ring::MI_MODE)) & ring::MI_MODE_STOP_RING;
        let idle = matches!(state.phase, Phase::Idle | Phase::Stopped | Phase::Resetting);
        let mut status = if state.arbitration { ring::EXECLIST_ARB_ENABLE } else { 0 };
        if let Some(list) = list {
            status |= ring::EXECLIST_LIST0_VALID | ring::EXECLIST_LIST0_ACTIVE | ring::EXECLIST_WRITE_POINTER;
            status |= (list.active as u32 + 1) << ring::EXECLIST_ACTIVE_ELEMENT_SHIFT;
        }
        if queued.is_some() || state.accept.is_some() {
            status |= ring::EXECLIST_LIST1_VALID;
            if list.is_some() {
                status |= ring::EXECLIST_QUEUE_FULL;
            }
        }
        let id = list.map_or(0, |l| l.current().context_id());
        let mode = stop | if idle { ring::MI_MODE_IDLE } else { 0 };
        let values = [
            (ring::EXECLIST_STATUS_LO, status),
            (ring::EXECLIST_STATUS_HI, id),
            (ring::MI_MODE, mode),
            (ring::HEAD, running.head),
            (ring::TAIL, running.tail),
            (ring::START, running.start),
            (ring::CTL, running.ctl),
            (ring::TIMESTAMP, timestamp(self.now) as u32),
        ];
        for (relative, value) in values {
            self.regs.set(engine.reg(relative), value, env);
        }
    }
}

/// Whether `new` goes on with the context that runs.
fn is_lite_restore(old: &List, new: &List) -> bool {
    let (old, new) = (old.current(), new.elements[0]);
    old.lrca() == new.lrca() && old.context_id() == new.context_id() && !new.force_restore()
}

/// Ticks of RING_TIMESTAMP in `ns` nanoseconds.
pub(crate) fn timestamp(ns: u64) -> u64 {
    (u128::from(ns) * u128::from(ring::TIMESTAMP_NS_DEN) / u128::from(ring::TIMESTAMP_NS_NUM)) as u64
}
