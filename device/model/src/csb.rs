//! The context status buffer: six entries and a write index in the engine's status page, and their register copies.

use execlab_abi::csb::{self, Entry};
use execlab_abi::engine::Engine;
use execlab_abi::lab::Violation;
use execlab_abi::{irq, ring};
use execlab_profile::Point;

use crate::engine::{Effect, LateEntry};
use crate::error::{Fault, low};
use crate::gpu::ticks;
use crate::{Env, Gpu, TraceKind};

/// The pointers of one engine's CSB.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Csb {
    /// Entry written last.
    index: u32,
    /// Entries written since the driver moved the read pointer; kept only if it does.
    unread: u32,
    /// The driver moves the read pointer. Newer drivers leave it alone, and then no overrun can be seen.
    tracked: bool,
}

impl Csb {
    /// After reset.
    pub(crate) const fn new() -> Self {
        Self { index: csb::RESET_WRITE_INDEX, unread: 0, tracked: false }
    }
}

impl Gpu {
    /// A context-switch event happened. It becomes visible after every store that was executed before.
    pub(crate) fn event<E: Env>(&mut self, e: Engine, entry: Entry, interrupt: bool, t: u64, env: &mut E) {
        self.effect(e, Effect::Csb { entry, interrupt }, 0, t, env);
    }

    /// Makes an event visible: its registers, the entry in the status page, then the index, its register, the interrupt.
    pub(crate) fn publish_event<E: Env>(
        &mut self,
        e: Engine,
        entry: Entry,
        interrupt: bool,
        t: u64,
        env: &mut E,
    ) {
        let state = &mut self.engines[e.index()];
        let index = csb::next_index(state.csb.index);
        let overrun = state.csb.tracked && state.csb.unread >= csb::ENTRIES;
        state.csb.index = index;
        state.csb.unread = state.csb.unread.saturating_add(1).min(csb::ENTRIES);
        if entry.is_ack() {
            state.port.acknowledged();
        }
        if overrun {
            self.stats.csb_overruns += 1;
            let words = [index, entry.status, entry.context_id, 0];
            let fault = Fault::new(Violation::CsbOverrun, e.reg(ring::CONTEXT_STATUS_PTR), words);
            self.report(Some(e), fault, t, env);
        }
        self.count_event(entry);
        let late = self.sampler.draw(Point::CsbVisible, e);
        // The registers first: the status page is written from them, and who sees the index may read either.
        let copy = e.reg(ring::CONTEXT_STATUS_BUF) + index * csb::ENTRY_SIZE;
        self.regs.publish(copy, entry.status, env);
        self.regs.publish(copy + 4, entry.context_id, env);
        let stored = self.store_event(e, index, entry, late, t, env);
        let pointer = e.reg(ring::CONTEXT_STATUS_PTR);
        let value = (self.regs.get(pointer) & !ring::CSB_WRITE_PTR_MASK) | index;
        self.regs.publish(pointer, value, env);
        self.regs.publish(e.reg(ring::TIMESTAMP), low(ticks(t)), env);
        self.trace(Some(e), TraceKind::Csb { index, status: entry.status, id: entry.context_id }, t, env);
        if let Err(fault) = stored {
            self.hang(e, fault, t, env);
        }
        if interrupt {
            self.raise(e, irq::CONTEXT_SWITCH, t, env);
        }
    }

    /// Stores entry and index in the status page, the entry `late` ns after the index.
    fn store_event<E: Env>(
        &mut self,
        e: Engine,
        index: u32,
        entry: Entry,
        late: u64,
        t: u64,
        env: &mut E,
    ) -> Result<(), Fault> {
        let state = &mut self.engines[e.index()];
        if late == 0 && state.late.is_empty() {
            self.store_entry(e, index, entry, env)?;
        } else {
            let due = state.late.back_mut().map_or(0, |last| last.due).max(t.saturating_add(late));
            if state.late.room() == 0 {
                // Older than the whole buffer: a later entry under way takes the same slot.
                state.late.pop();
            }
            // There is room now.
            let _ = state.late.push(LateEntry { due, index, entry });
            self.stats.csb_late += 1;
        }
        let (address, gpa) = self.hwsp(e, csb::HWSP_WRITE_INDEX, 4)?;
        env.store32_release(gpa, index).map_err(|_| self.ggtt.fault(address, 4))
    }

    /// A late entry becomes visible.
    pub(crate) fn publish_late_entry<E: Env>(&mut self, e: Engine, late: LateEntry, t: u64, env: &mut E) {
        self.trace(Some(e), TraceKind::CsbEntryVisible { index: late.index }, t, env);
        if let Err(fault) = self.store_entry(e, late.index, late.entry, env) {
            self.hang(e, fault, t, env);
        }
    }

    fn store_entry<E: Env>(&mut self, e: Engine, index: u32, entry: Entry, env: &mut E) -> Result<(), Fault> {
        let (address, gpa) = self.hwsp(e, Entry::hwsp_offset(index), csb::ENTRY_SIZE)?;
        env.store64_release(gpa, entry.to_qword()).map_err(|_| self.ggtt.fault(address, csb::ENTRY_SIZE))
    }

    /// GGTT and guest-physical address of a place in the engine's status page.
    fn hwsp(&self, e: Engine, offset: u32, len: u32) -> Result<(u32, u64), Fault> {
        let page = self.regs.get(e.reg(ring::HWS_PGA)) & !0xfff;
        let address = page | offset;
        Ok((address, self.ggtt.translate(address, len)?))
    }

    /// A masked write of CONTEXT_STATUS_PTR. The driver may move both pointers.
    pub(crate) fn write_csb_pointer<E: Env>(&mut self, e: Engine, value: u32, env: &mut E) {
        let offset = e.reg(ring::CONTEXT_STATUS_PTR);
        let new = ring::masked_apply(self.regs.get(offset), value) & 0xffff;
        let read = (new & ring::CSB_READ_PTR_MASK) >> ring::CSB_READ_PTR_SHIFT;
        let csb = &mut self.engines[e.index()].csb;
        csb.index = new & ring::CSB_WRITE_PTR_MASK;
        if (value >> 16) & ring::CSB_WRITE_PTR_MASK != 0 {
            // Both pointers forced, as after a reset: everything counts as read.
            csb.unread = 0;
            csb.tracked = false;
        } else if (value >> 16) & ring::CSB_READ_PTR_MASK != 0 {
            csb.unread = (csb::next_index(csb.index) + csb::ENTRIES - csb::next_index(read)) % csb::ENTRIES;
            csb.tracked = true;
        }
        self.regs.publish(offset, new, env);
    }

    fn count_event(&mut self, entry: Entry) {
        self.stats.csb_events += 1;
        let status = entry.status;
        let counter = if status & csb::IDLE_ACTIVE != 0 {
            &mut self.stats.csb_idle_active
        } else if status & csb::LITE_RESTORE != 0 {
            &mut self.stats.csb_lite_restore
        } else if status & csb::PREEMPTED != 0 {
            &mut self.stats.csb_preempted
        } else if status & csb::ELEMENT_SWITCH != 0 {
            &mut self.stats.csb_element_switch
        } else {
            &mut self.stats.csb_active_idle
        };
        *counter += 1;
    }
}
