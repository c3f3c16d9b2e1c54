//! The step `process_csb`: reading context status events and what they say about the ports.

use core::sync::atomic::Ordering;

use execlab_abi::csb::{self, Entry};
use execlab_abi::ring;

use crate::bus::{Bus, Dma};
use crate::context::passed;
use crate::engine::EngineState;
use crate::kernel::{Kernel, Step};
use crate::planted::Bug;
use crate::ports::{Answer, Ports};

/// How long a CSB entry may lag behind its index before the MMIO copy is read instead (`wa_csb_read`, 10 us).
const LATE_ENTRY_NS: u64 = 10_000;

impl<K: Kernel, B: Bus> EngineState<K, B> {
    /// `process_csb`: takes the entries that came since the last time out of the status page.
    pub(crate) fn process_csb(&self, ports: &mut Ports<B::Dma>) {
        let too_early = self.planted.has(Bug::EntryBeforeIndex).then(|| self.entries_now());
        let tail = self.hwsp.load32_acquire(csb::HWSP_WRITE_INDEX as usize);
        // An index that no entry has would be read for ever.
        while tail < csb::ENTRIES && ports.csb_head != tail {
            ports.csb_head = csb::next_index(ports.csb_head);
            let entry = match &too_early {
                None => self.read_entry(ports, ports.csb_head),
                Some(entries) => Entry::from_qword(entries[ports.csb_head as usize]),
            };
            self.count_event(entry);
            self.process_event(ports, entry);
            self.kernel.step(Step::CsbEvent);
        }
        self.ports_active.store(ports.active(), Ordering::Release);
    }

    /// [`Bug::EntryBeforeIndex`]: the entries as they are before the index is read, which takes its time.
    fn entries_now(&self) -> [u64; csb::ENTRIES as usize] {
        let load = |index| self.hwsp.load64_acquire(Entry::hwsp_offset(index as u32) as usize);
        let entries = core::array::from_fn(load);
        self.kernel.cpu_relax();
        entries
    }

    /// An entry of the status page, or of its MMIO copy when it does not come.
    ///
    /// An entry that was given up still comes some time, into a slot that six events later is another's, and nothing in
    /// it tells one from the other. i915 would take it for the new one; here an engine on which that can happen has its
    /// entries read from the copies from then on, as `csb_use_mmio` had i915 do it in 4.16 to 4.19.
    fn read_entry(&self, ports: &mut Ports<B::Dma>, index: u32) -> Entry {
        let offset = Entry::hwsp_offset(index) as usize;
        if !ports.csb_use_mmio {
            let mut qword = self.hwsp.load64_acquire(offset);
            if qword == Entry::POISON {
                self.counting.csb_late_entries.add(1);
                let deadline = self.kernel.now() + self.mmio.dilated(LATE_ENTRY_NS);
                while qword == Entry::POISON && self.kernel.now() < deadline {
                    self.kernel.cpu_relax();
                    qword = self.hwsp.load64_acquire(offset);
                }
            }
            if qword != Entry::POISON {
                self.hwsp.store64_release(offset, Entry::POISON);
                return Entry::from_qword(qword);
            }
            ports.csb_use_mmio = true;
        }
        self.counting.csb_mmio_entries.add(1);
        let copy = self.engine.reg(ring::CONTEXT_STATUS_BUF) + csb::ENTRY_SIZE * index;
        self.mmio.take_forcewake();
        Entry { status: self.mmio.read(copy), context_id: self.mmio.read(copy + 4) }
    }

    fn count_event(&self, entry: Entry) {
        let counting = &self.counting;
        counting.csb_events.add(1);
        let kinds = [
            (csb::IDLE_ACTIVE, &counting.csb_idle_to_active),
            (csb::PREEMPTED, &counting.csb_preempted),
            (csb::ELEMENT_SWITCH, &counting.csb_element_switches),
            (csb::ACTIVE_IDLE, &counting.csb_active_to_idle),
            (csb::COMPLETE, &counting.csb_completions),
            (csb::LITE_RESTORE, &counting.csb_lite_restores),
        ];
        for (bit, counter) in kinds {
            if entry.status & bit != 0 {
                counter.add(1);
            }
        }
    }

    fn process_event(&self, ports: &mut Ports<B::Dma>, entry: Entry) {
        if entry.is_ack() {
            ports.hwack = true;
        }
        if entry.status & csb::ACTIVE_IDLE != 0 {
            ports.hwack = false;
        }
        // GEN8_CTX_STATUS_COMPLETED_MASK: each ELSP write of a context is answered by one of these.
        if entry.status & (csb::COMPLETE | csb::PREEMPTED) == 0 {
            return;
        }
        match ports.answer(entry.context_id) {
            Answer::Stray => self.counting.stray_events.add(1),
            Answer::More => {}
            Answer::Last => self.schedule_out(ports, entry),
        }
    }

    /// The step `schedule_out` (`execlists_context_schedule_out`): the context in port 0 has left the hardware.
    ///
    /// i915 asserts here what hardware promises: the last event of a context is no preemption, it says where the
    /// engine went, and the breadcrumb was visible before it. What breaks that is counted, and reported by
    /// [`crate::Driver::check_device`].
    fn schedule_out(&self, ports: &mut Ports<B::Dma>, entry: Entry) {
        let next = if ports.port[1].is_some() { csb::ELEMENT_SWITCH } else { csb::ACTIVE_IDLE };
        if entry.status & csb::PREEMPTED != 0 || entry.status & next == 0 {
            self.counting.unexpected_last_events.add(1);
        }
        let early = |request: &crate::request::Request<_>| !passed(request.hw.seqno(), request.seqno);
        if ports.complete().as_ref().is_some_and(early) {
            self.counting.events_before_seqno.add(1);
        }
    }
}
