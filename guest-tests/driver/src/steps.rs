//! The steps of a submission. No variant has a step of its own: a [`Variant`](crate::Variant) only says where each
//! of these runs.

use execlab_abi::csb::{self, Entry};
use execlab_abi::descriptor::Descriptor;
use execlab_abi::ring;
use execlab_abi::wire::PostedWrite;

use crate::bus::{Bus, Dma};
use crate::engine::EngineState;
use crate::kernel::{Kernel, Place};
use crate::ports::{Ports, same_context};
use crate::queue::Queue;
use crate::request::Request;
use crate::variant::{CsbSection, OnIrq, OnSubmit};

/// How long a CSB entry may lag behind its index before the MMIO copy is read instead (`wa_csb_read`, 10 us).
const LATE_ENTRY_NS: u64 = 10_000;

impl<K: Kernel, B: Bus> EngineState<K, B> {
    /// `execlists_submit_request` inside `local_bh_disable` … `local_bh_enable`.
    pub(crate) fn submit_request(&self, request: Request<B::Dma>) {
        self.counting.submissions.add(1);
        self.kernel.bh_off(|| {
            self.irq_off(|queue| {
                // `submit_queue`: only a request that goes before all others can change what runs.
                let first = queue.first().is_none_or(|first| request.priority > first.priority);
                queue.insert(request);
                match self.variant.on_submit() {
                    _ if !first => {}
                    OnSubmit::Tasklet => self.kernel.tasklet_hi_schedule(self.tasklet),
                    OnSubmit::CsbAndDequeue => self.csb_and_dequeue(queue),
                }
            });
        });
    }

    /// The hardirq half of a context-switch interrupt.
    pub(crate) fn cs_irq(&self) {
        match self.variant.on_irq() {
            OnIrq::Tasklet => self.kernel.tasklet_hi_schedule(self.tasklet),
        }
    }

    /// `execlists_submission_tasklet`.
    pub(crate) fn tasklet(&self, place: Place) {
        let counter = match place {
            Place::BhEnable => &self.counting.bh_at_enable,
            Place::IrqExit => &self.counting.bh_at_irq_exit,
            Place::Ksoftirqd => &self.counting.bh_in_ksoftirqd,
        };
        counter.add(1);
        match self.variant.csb_section() {
            CsbSection::OutsideLock => {
                self.process_csb(&mut self.ports.borrow_mut());
                self.irq_off(|queue| self.dequeue(queue, &mut self.ports.borrow_mut()));
            }
            CsbSection::InsideLock => self.irq_off(|queue| self.csb_and_dequeue(queue)),
        }
    }

    /// `__execlists_submission_tasklet` of 9512f985: both under the lock.
    fn csb_and_dequeue(&self, queue: &mut Queue<B::Dma>) {
        let mut ports = self.ports.borrow_mut();
        self.process_csb(&mut ports);
        self.dequeue(queue, &mut ports);
    }

    /// `process_csb`: reads the entries from the status page that came since the last time.
    fn process_csb(&self, ports: &mut Ports<B::Dma>) {
        let tail = self.hwsp.load32_acquire(csb::HWSP_WRITE_INDEX as usize);
        // An index that no entry has would be read for ever.
        while tail < csb::ENTRIES && ports.csb_head != tail {
            ports.csb_head = csb::next_index(ports.csb_head);
            let entry = self.read_entry(ports.csb_head);
            self.counting.csb_events.add(1);
            self.process_event(ports, entry);
        }
    }

    fn read_entry(&self, index: u32) -> Entry {
        let offset = Entry::hwsp_offset(index) as usize;
        let mut qword = self.hwsp.load64_acquire(offset);
        if qword == Entry::POISON {
            self.counting.csb_late_entries.add(1);
            let deadline = self.kernel.now() + LATE_ENTRY_NS;
            while qword == Entry::POISON && self.kernel.now() < deadline {
                self.kernel.cpu_relax();
                qword = self.hwsp.load64_acquire(offset);
            }
        }
        if qword == Entry::POISON {
            let copy = self.engine.reg(ring::CONTEXT_STATUS_BUF) + csb::ENTRY_SIZE * index;
            return Entry { status: self.mmio.read(copy), context_id: self.mmio.read(copy + 4) };
        }
        self.hwsp.store64_release(offset, Entry::POISON);
        Entry::from_qword(qword)
    }

    fn process_event(&self, ports: &mut Ports<B::Dma>, entry: Entry) {
        if entry.is_ack() {
            ports.hwack = true;
        }
        if entry.status & csb::LITE_RESTORE != 0 {
            self.counting.csb_lite_restores.add(1);
        }
        if entry.status & csb::COMPLETE != 0 {
            self.counting.csb_completions.add(1);
        }
        // GEN8_CTX_STATUS_COMPLETED_MASK: each ELSP write of a context is answered by one of these.
        if entry.status & (csb::COMPLETE | csb::PREEMPTED) == 0 {
            return;
        }
        if !ports.active() || ports.context_id() != entry.context_id {
            self.counting.stray_events.add(1);
            return;
        }
        ports.answered();
    }

    /// `execlists_dequeue` without preemption: fills the ports, and submits if that changed something.
    fn dequeue(&self, queue: &mut Queue<B::Dma>, ports: &mut Ports<B::Dma>) {
        if !ports.hwack || ports.port[1].is_some() {
            // The last write is not acknowledged, or a second context waits already: coalesce.
            return;
        }
        let mut last: Option<Request<B::Dma>> = ports.port[0].as_ref().map(|port| port.request.clone());
        if let Some(last) = &mut last {
            // WaIdleLiteRestore: on resubmission the tail moves over the two dwords behind the request.
            last.tail = last.wa_tail;
        }
        let mut index = 0;
        let mut submit = false;
        while let Some(next) = queue.first() {
            if last.as_ref().is_some_and(|last| !same_context(last, next)) {
                if index == 1 {
                    break;
                }
                if let Some(last) = last.take() {
                    ports.assign(index, last);
                }
                index = 1;
            }
            last = queue.pop();
            submit = true;
        }
        if submit {
            if let Some(last) = last {
                ports.assign(index, last);
            }
            self.elsp_write(ports);
        }
    }

    /// `execlists_submit_ports`: tails into the images, then four writes to ELSP.
    fn elsp_write(&self, ports: &mut Ports<B::Dma>) {
        let mut descriptors = [Descriptor::NULL; 2];
        for (port, descriptor) in ports.port.iter_mut().zip(&mut descriptors) {
            if let Some(port) = port {
                port.count += 1;
                port.request.hw.set_tail(port.request.tail);
                *descriptor = port.request.hw.descriptor;
            }
        }
        let [first, second] = descriptors;
        let offset = self.engine.reg(ring::ELSP);
        let words = [second.hi, second.lo, first.hi, first.lo];
        self.counting.elsp_writes.add(1);
        ports.hwack = false;
        self.mmio.write(&words.map(|value| PostedWrite { offset, value }));
    }
}
