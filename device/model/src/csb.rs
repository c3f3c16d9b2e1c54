//! The context status buffer: entry first, index last, MMIO copies beside them.

use execlab_abi::csb::{self, Entry};
use execlab_abi::engine::Engine;
use execlab_abi::lab::Violation;
use execlab_abi::ring;
use execlab_profile::Point;

use crate::effects::Effect;
use crate::env::Env;
use crate::error::Report;
use crate::gpu::Gpu;
use crate::trace::{TraceEvent, TraceKind};

impl Gpu {
    /// Publishes one entry. The interrupt is the caller's, so that two entries may share one.
    pub(crate) fn publish<E: Env>(&mut self, engine: Engine, entry: Entry, now: u64, env: &mut E) {
        let pointer = engine.reg(ring::CONTEXT_STATUS_PTR);
        let pointers = self.regs.get(pointer);
        let index = csb::next_index(pointers & 7);
        self.count_event(entry.status);
        env.trace(TraceEvent {
            time: now,
            engine: Some(engine),
            kind: TraceKind::Csb { index, status: entry.status, id: entry.context_id },
        });

        let qword = entry.to_qword();
        let copy = engine.reg(ring::CONTEXT_STATUS_BUF) + csb::ENTRY_SIZE * index;
        let hwsp = self.regs.get(engine.reg(ring::HWS_PGA)) & !0xfff;
        // The registers hold the entry at once; it is the write to memory that may be late.
        self.regs.set(copy, entry.status, env);
        self.regs.set(copy + 4, entry.context_id, env);
        let delay = self.sampler.draw(Point::CsbVisible, engine);
        match self.ggtt.translate(hwsp) {
            Ok(page) => {
                let gpa = page + u64::from(Entry::hwsp_offset(index));
                let late = Effect::CsbEntry { qword, gpa };
                if delay == 0 || !self.engines[engine.index()].effects.has_room(1) {
                    self.apply(engine, late, now, env);
                } else {
                    self.stats.csb_late += 1;
                    self.engines[engine.index()].effects.push(now.saturating_add(delay), late);
                }
                let index_gpa = page + u64::from(csb::HWSP_WRITE_INDEX);
                if env.store32_release(index_gpa, index).is_err() {
                    self.report_bad_hwsp(engine, hwsp, index_gpa, now, env);
                }
            }
            Err(fault) => self.report(Some(engine), fault.into(), now, env),
        }
        self.regs.set(pointer, (pointers & !7) | index, env);
    }

    /// An entry becomes visible in the status page.
    pub(crate) fn show_entry<E: Env>(&mut self, engine: Engine, qword: u64, gpa: u64, now: u64, env: &mut E) {
        if env.store64_release(gpa, qword).is_err() {
            let hwsp = self.regs.get(engine.reg(ring::HWS_PGA));
            self.report_bad_hwsp(engine, hwsp, gpa, now, env);
        }
    }

    fn count_event(&mut self, status: u32) {
        self.stats.csb_events += 1;
        let counter = match status {
            csb::IDLE_ACTIVE => &mut self.stats.csb_idle_active,
            s if s & csb::LITE_RESTORE != 0 => &mut self.stats.csb_lite_restore,
            s if s & csb::PREEMPTED != 0 => &mut self.stats.csb_preempted,
            s if s & csb::ELEMENT_SWITCH != 0 => &mut self.stats.csb_element_switch,
            _ => &mut self.stats.csb_active_idle,
        };
        *counter += 1;
    }

    fn report_bad_hwsp<E: Env>(&mut self, engine: Engine, hwsp: u32, gpa: u64, now: u64, env: &mut E) {
        let words = [hwsp, gpa as u32, (gpa >> 32) as u32, 0];
        self.report(Some(engine), Report::new(Violation::UnmappedPage, hwsp, words), now, env);
    }

    /// A write to CONTEXT_STATUS_PTR: the upper half masks the lower.
    pub(crate) fn write_csb_pointer<E: Env>(&mut self, engine: Engine, value: u32, env: &mut E) {
        let pointer = engine.reg(ring::CONTEXT_STATUS_PTR);
        let new = ring::masked_apply(self.regs.get(pointer), value) & 0xffff;
        self.regs.set(pointer, new, env);
    }
}
