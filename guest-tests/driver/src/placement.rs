//! Where the steps run: the three ways into an engine, each of which asks the variant what to do there.
//!
//! A new variant adds arms here and in `variant`, and leaves the steps alone.

use crate::bus::Bus;
use crate::engine::EngineState;
use crate::kernel::{Kernel, Place, SpinLock as _, Step};
use crate::planted::Bug;
use crate::queue::Queue;
use crate::request::Request;
use crate::variant::{CsbSection, OnIrq, OnSubmit};

impl<K: Kernel, B: Bus> EngineState<K, B> {
    /// From the submitter: `execlists_submit_request` inside the `local_bh_disable` … `local_bh_enable` of
    /// `i915_request_add`.
    pub(crate) fn submit_request(&self, request: Request<B::Dma>) {
        self.counting.submissions.add(1);
        self.kernel.bh_off(|| {
            self.irq_off(|queue| {
                // `submit_queue`: the others are looked after by the next event.
                let kick = request.priority > queue.hint;
                queue.hint = queue.hint.max(request.priority);
                queue.insert(request);
                self.kernel.step(Step::Queue);
                match self.variant.on_submit() {
                    _ if !kick => {}
                    OnSubmit::Tasklet => self.kernel.tasklet_hi_schedule(self.tasklet),
                    OnSubmit::CsbAndDequeue => self.csb_and_dequeue(queue),
                }
            });
        });
    }

    /// From the interrupt handler: a context-switch interrupt came.
    pub(crate) fn cs_irq(&self) {
        match self.variant.on_irq() {
            OnIrq::Tasklet => self.kernel.tasklet_hi_schedule(self.tasklet),
        }
    }

    /// From the bottom half: `execlists_submission_tasklet`.
    pub(crate) fn tasklet(&self, place: Place) {
        let start = self.kernel.now();
        match self.variant.csb_section() {
            CsbSection::OutsideLock => {
                self.process_csb(&mut self.ports.borrow_mut());
                self.acknowledge_late();
                self.irq_off(|queue| self.dequeue(queue, &mut self.ports.borrow_mut()));
            }
            CsbSection::InsideLock => self.irq_off(|queue| self.csb_and_dequeue(queue)),
        }
        if self.planted.has(Bug::TaskletRearmed) && !self.timeline.with_irqsave(|queue| queue.is_empty()) {
            self.kernel.tasklet_hi_schedule(self.tasklet);
        }
        self.counting.bottom_half(place, self.kernel.now().saturating_sub(start));
    }

    /// `__execlists_submission_tasklet` of 9512f985: both under the lock.
    fn csb_and_dequeue(&self, queue: &mut Queue<B::Dma>) {
        let mut ports = self.ports.borrow_mut();
        self.process_csb(&mut ports);
        self.acknowledge_late();
        self.dequeue(queue, &mut ports);
    }

    /// [`Bug::AckAfterCsb`].
    fn acknowledge_late(&self) {
        if self.planted.has(Bug::AckAfterCsb) {
            self.mmio.drop_irq();
        }
    }
}
