//! The execlist submit port: from four dwords to a list of contexts, and what an accepted list does to the one
//! that runs.

use execlab_abi::csb::{self, Entry};
use execlab_abi::descriptor::{CONTEXT_ID_MASK, Descriptor};
use execlab_abi::engine::Engine;
use execlab_abi::lab::Violation;
use execlab_abi::ring;
use execlab_profile::Point;

use crate::engine::{Leave, Phase};
use crate::error::Fault;
use crate::{Env, Gpu, TraceKind};

/// One submission: element 0, then element 1 or the empty element.
pub(crate) type List = [Descriptor; 2];

/// One engine's port.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Port {
    words: [u32; 4],
    count: usize,
    /// Element 0 of a submission that no event has acknowledged yet.
    unacknowledged: Option<Descriptor>,
    /// A submission on its way into the execlist unit, and when it is taken.
    accepting: Option<(u64, List)>,
    /// A list that was taken and waits for the running one to let go.
    pub queued: Option<List>,
    /// The list that runs, and which of its elements.
    pub active: Option<(List, usize)>,
    /// Which of the two internal lists runs.
    current: bool,
    /// Status bits of the last switch.
    last_switch: u32,
}

impl Port {
    /// After reset.
    pub(crate) const fn new() -> Self {
        Self {
            words: [0; 4],
            count: 0,
            unacknowledged: None,
            accepting: None,
            queued: None,
            active: None,
            current: false,
            last_switch: 0,
        }
    }

    /// An event with bit 0 or 1 became visible: ELSP may be written again.
    pub(crate) fn acknowledged(&mut self) {
        self.unacknowledged = None;
    }

    /// When the submission under way is taken, or `u64::MAX`.
    pub(crate) fn accept_due(&self) -> u64 {
        self.accepting.map_or(u64::MAX, |(due, _)| due)
    }

    /// The element that runs.
    pub(crate) fn running(&self) -> Option<Descriptor> {
        self.active.map(|(list, at)| list[at])
    }

    /// EXECLIST_STATUS_LO.
    pub(crate) fn status(&self, arbitration: bool) -> u32 {
        let (valid, active) = if self.current {
            (ring::EXECLIST_LIST1_VALID, ring::EXECLIST_LIST1_ACTIVE)
        } else {
            (ring::EXECLIST_LIST0_VALID, ring::EXECLIST_LIST0_ACTIVE)
        };
        let other_valid = valid ^ (ring::EXECLIST_LIST1_VALID | ring::EXECLIST_LIST0_VALID);
        let mut status = (self.last_switch & 0x1ff) << ring::EXECLIST_LAST_SWITCH_SHIFT;
        if self.current {
            status |= ring::EXECLIST_CURRENT_LIST;
        } else {
            // The free list is the other one.
            status |= ring::EXECLIST_WRITE_POINTER;
        }
        if let Some((_, at)) = self.active {
            let element = if at == 0 { 1 } else { 2 };
            status |= valid | active | (element << ring::EXECLIST_ACTIVE_ELEMENT_SHIFT);
        }
        if self.queued.is_some() {
            status |= other_valid | ring::EXECLIST_QUEUE_FULL;
        }
        if arbitration {
            status |= ring::EXECLIST_ARB_ENABLE;
        }
        status
    }
}

/// What is wrong with a pair of elements in itself.
fn check(list: List) -> Option<Violation> {
    let [first, second] = list;
    let reserved = |d: Descriptor| d.hi & !CONTEXT_ID_MASK != 0;
    let second_present = second != Descriptor::NULL;
    if !first.is_valid() || reserved(first) || (second_present && (!second.is_valid() || reserved(second))) {
        return Some(Violation::InvalidDescriptor);
    }
    let same = first.lrca() == second.lrca() || first.context_id() == second.context_id();
    (second_present && same).then_some(Violation::SameContextTwice)
}

/// Whether `new` only goes on with the context that runs. With force restore it must be read again, so it has to
/// leave first, as any other context would.
fn is_lite(running: Descriptor, new: Descriptor) -> bool {
    running.lrca() == new.lrca() && running.context_id() == new.context_id() && !new.force_restore()
}

impl Gpu {
    /// A write of RING_ELSP. The fourth one submits.
    pub(crate) fn write_elsp<E: Env>(&mut self, e: Engine, value: u32, t: u64, env: &mut E) {
        let off = self.regs.get(e.reg(ring::MODE)) & ring::MODE_RUN_LIST_ENABLE == 0;
        let state = &mut self.engines[e.index()];
        let port = &mut state.port;
        port.words[port.count] = value;
        port.count += 1;
        if port.count < 4 {
            return;
        }
        port.count = 0;
        let words = port.words;
        let [hi1, lo1, hi0, lo0] = words;
        let list = [Descriptor { lo: lo0, hi: hi0 }, Descriptor { lo: lo1, hi: hi1 }];
        let violation = if off || state.held || state.in_reset {
            Some((Violation::ElspWhileOff, words))
        } else if let Some(last) = port.unacknowledged {
            Some((Violation::ElspBeforeAck, [last.lo, last.hi, lo0, hi0]))
        } else {
            check(list).map(|violation| (violation, words))
        };
        if let Some((violation, words)) = violation {
            let fault = Fault::new(violation, e.reg(ring::ELSP), words);
            self.report(Some(e), fault, t, env);
            return;
        }
        port.unacknowledged = Some(list[0]);
        let due = t.saturating_add(self.sampler.draw(Point::ElspAccept, e));
        self.engines[e.index()].port.accepting = Some((due, list));
        self.stats.submissions += 1;
        let [first, second] = list;
        let second = second.is_valid().then(|| second.context_id());
        self.trace(Some(e), TraceKind::Submit { first: first.context_id(), second }, t, env);
    }

    /// The execlist unit takes the submission.
    pub(crate) fn accept<E: Env>(&mut self, e: Engine, t: u64, env: &mut E) {
        let state = &mut self.engines[e.index()];
        let Some((_, list)) = state.port.accepting.take() else { return };
        let running = state.port.running();
        let phase = state.phase;
        self.trace(Some(e), TraceKind::Accept, t, env);
        let Some(running) = running else {
            self.start_list(e, list, t);
            self.switch_event(e, csb::IDLE_ACTIVE, 0, true, t, env);
            return;
        };
        let on_engine = !matches!(phase, Phase::Save { .. } | Phase::Hung);
        if is_lite(running, list[0]) && on_engine {
            self.lite_restore(e, list, t, env);
            return;
        }
        let state = &mut self.engines[e.index()];
        state.port.queued = Some(list);
        if let Phase::Wait { at } = &mut state.phase {
            // A wait is an arbitration point: look again now.
            *at = t;
        }
    }

    /// The running context was submitted again: only its tail is read.
    fn lite_restore<E: Env>(&mut self, e: Engine, list: List, t: u64, env: &mut E) {
        let state = &mut self.engines[e.index()];
        state.port.active = Some((list, 0));
        if state.context.is_some()
            && let Err(fault) = self.reload_tail(e, list[0], env)
        {
            self.hang(e, fault, t, env);
        }
        self.switch_event(e, csb::PREEMPTED | csb::LITE_RESTORE, list[0].context_id(), true, t, env);
    }

    /// The running context's image is saved and it leaves the engine.
    pub(crate) fn leave<E: Env>(&mut self, e: Engine, then: Leave, t: u64, env: &mut E) {
        if let Err(fault) = self.save_context(e, t, env) {
            self.hang(e, fault, t, env);
            return;
        }
        let port = &mut self.engines[e.index()].port;
        let Some((list, at)) = port.active else { return };
        let id = list[at].context_id();
        let next = if at == 0 { list[1] } else { Descriptor::NULL };
        match then {
            Leave::Preempted => {
                if let Some(queued) = port.queued.take() {
                    self.start_list(e, queued, t);
                    self.switch_event(e, csb::PREEMPTED, id, true, t, env);
                }
            }
            Leave::Complete if next.is_valid() => {
                port.active = Some((list, 1));
                let queued = port.queued.take();
                self.begin_restore(e, t);
                self.switch_event(e, csb::COMPLETE | csb::ELEMENT_SWITCH, id, true, t, env);
                if let Some(queued) = queued {
                    // Element 1 has not begun: the queued list takes its place at once.
                    let lite = if is_lite(next, queued[0]) { csb::LITE_RESTORE } else { 0 };
                    self.start_list(e, queued, t);
                    self.switch_event(e, csb::PREEMPTED | lite, next.context_id(), true, t, env);
                }
            }
            Leave::Complete => {
                let queued = port.queued.take();
                port.active = None;
                self.engines[e.index()].phase = Phase::Idle;
                self.switch_event(e, csb::COMPLETE | csb::ACTIVE_IDLE, id, queued.is_none(), t, env);
                if let Some(queued) = queued {
                    self.start_list(e, queued, t);
                    self.switch_event(e, csb::IDLE_ACTIVE, 0, true, t, env);
                }
            }
        }
    }

    /// A list becomes the active one and its element 0 is restored.
    fn start_list(&mut self, e: Engine, list: List, t: u64) {
        let port = &mut self.engines[e.index()].port;
        port.active = Some((list, 0));
        port.current = !port.current;
        self.begin_restore(e, t);
    }

    fn begin_restore(&mut self, e: Engine, t: u64) {
        let at = t.saturating_add(self.sampler.draw(Point::ContextRestore, e));
        let state = &mut self.engines[e.index()];
        state.context = None;
        // An event that could not be stored has hung the engine: it stays so.
        if state.phase != Phase::Hung {
            state.phase = Phase::Restore { at };
        }
    }

    fn switch_event<E: Env>(
        &mut self,
        e: Engine,
        status: u32,
        context_id: u32,
        interrupt: bool,
        t: u64,
        env: &mut E,
    ) {
        self.engines[e.index()].port.last_switch = status;
        self.event(e, Entry { status, context_id }, interrupt, t, env);
    }
}
