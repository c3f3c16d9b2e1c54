//! The steps of a submission. No variant has a step of its own: a [`Variant`](crate::Variant) only says where each of
//! these runs, and `placement` runs them there.
//!
//! | step | what it does | where it stands |
//! |---|---|---|
//! | `submit_request` | queues a request, then runs or defers the others | `placement` |
//! | `cs_irq` | the hardirq half of a context-switch interrupt | `placement` |
//! | `process_csb` | reads events, which acknowledge and empty ports | `csb` |
//! | `dequeue` | moves requests from the queue into ports | here |
//! | `elsp_write` | tails into the images, descriptors into ELSP | here |
//! | `schedule_out` | a context has left the hardware | `csb` |
//! | `retire` | gives room in the ring back, in the submitter | `context` |

use core::sync::atomic::Ordering;

use execlab_abi::descriptor::Descriptor;
use execlab_abi::ring;
use execlab_abi::wire::PostedWrite;

use crate::bus::Bus;
use crate::engine::EngineState;
use crate::kernel::{Kernel, Step};
use crate::planted::Bug;
use crate::ports::{Ports, same_context};
use crate::queue::{ANY_PRIORITY, Queue};

impl<K: Kernel, B: Bus> EngineState<K, B> {
    /// `execlists_dequeue` without preemption: fills the ports, and submits if that changed something.
    ///
    /// Runs of requests of one context become one: only the tail of the last one is told to the hardware.
    pub(crate) fn dequeue(&self, queue: &mut Queue<B::Dma>, ports: &mut Ports<B::Dma>) {
        self.kernel.step(Step::Dequeue);
        let unanswered = self.planted.has(Bug::SubmitBeforeAck) && ports.port[1].is_none();
        if !ports.can_submit() && !unanswered {
            // A second write before the hardware has answered the first is undefined; and with two contexts in the
            // ports the next event comes soon enough, while the queue coalesces.
            return;
        }
        let mut last = ports.port[0].as_ref().map(|port| port.request.clone());
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
            self.kernel.step(Step::DequeueRequest);
        }
        // `queue_priority`: with a port free, any request is worth a look; else one that outranks the last in line.
        queue.hint = match &last {
            Some(last) if index == 1 => last.priority,
            _ => ANY_PRIORITY,
        };
        if submit {
            if let Some(last) = last {
                ports.assign(index, last);
            }
            self.elsp_write(ports);
            self.ports_active.store(true, Ordering::Release);
        }
    }

    /// `execlists_submit_ports`: tails into the images, then four writes to ELSP.
    fn elsp_write(&self, ports: &mut Ports<B::Dma>) {
        let mut descriptors = [Descriptor::NULL; 2];
        for (port, descriptor) in ports.port.iter_mut().zip(&mut descriptors) {
            if let Some(port) = port {
                port.count += 1;
                *descriptor = port.request.hw.update(port.request.tail);
            }
        }
        let [first, second] = descriptors;
        if first.force_restore() || second.force_restore() {
            self.counting.force_restores.add(1);
        }
        let offset = self.engine.reg(ring::ELSP);
        let words = [second.hi, second.lo, first.hi, first.lo];
        self.counting.elsp_writes.add(1);
        self.kernel.step(Step::Ports);
        ports.hwack = false;
        self.mmio.take_forcewake();
        self.mmio.write(&words.map(|value| PostedWrite { offset, value }));
    }
}
