//! Simulated threads.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use execlab_driver::kernel::{Policy, Thread as KernelThread};
use spin::mutex::SpinMutex;

use crate::core::{Core, Start};
use crate::cpu::Point;
use crate::error::SimError;
use crate::sched::{State, Thread, Why};

/// A started thread.
#[derive(Debug)]
pub struct SimThread<R> {
    core: Arc<Core>,
    number: usize,
    result: Arc<SpinMutex<Option<R>>>,
}

impl<R: Send + 'static> SimThread<R> {
    pub(crate) fn spawn(
        core: &Arc<Core>,
        name: &str,
        cpu: usize,
        policy: Policy,
        body: impl FnOnce() -> R + Send + 'static,
    ) -> Result<Self, SimError> {
        let cpus = core.cpus.len();
        if cpu >= cpus {
            return Err(SimError::NoSuchCpu { thread: name.to_owned(), cpu, cpus });
        }
        if let Policy::Fifo(priority) = policy
            && !(1..=99).contains(&priority)
        {
            return Err(SimError::NoSuchPriority { thread: name.to_owned(), priority });
        }
        let result = Arc::new(SpinMutex::new(None));
        let (told, inside) = (Arc::clone(&result), Arc::clone(core));
        let start: Start = Box::new(move || {
            run(&inside, || {
                let returned = body();
                *told.lock() = Some(returned);
            });
        });
        let number = {
            let mut sched = core.sched.borrow_mut();
            sched.threads.push(Thread::new(name, cpu, policy));
            sched.threads.len() - 1
        };
        core.starts.lock().push((number, start));
        if core.is_live() {
            core.irq_save();
            core.busy(core.my_costs().wake);
            core.make_runnable(number, true);
            core.irq_restore();
            core.preempt_point(Point::Call);
        } else {
            core.make_runnable(number, true);
        }
        Ok(Self { core: Arc::clone(core), number, result })
    }

    /// What it returned, if it has ended.
    pub(crate) fn take(&self) -> Option<R> {
        self.result.lock().take()
    }
}

/// A thread from its first switch to its last.
pub(crate) fn run(core: &Core, body: impl FnOnce()) {
    let result = catch_unwind(AssertUnwindSafe(|| {
        core.finish_switch();
        body();
        core.exit();
    }));
    if let Err(panic) = result {
        if core.closed.is_set() {
            resume_unwind(panic); // Not a panic: the coroutine is being dropped.
        }
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let message = text.or_else(|| panic.downcast_ref::<String>().cloned());
        let thread = core.sched.borrow().threads[core.current()].name.clone();
        let message = message.unwrap_or_else(|| "something that is not text".to_owned());
        core.fail(SimError::Panicked { thread, time_ns: core.now(), message });
    }
}

impl<R: Send + 'static> KernelThread<R> for SimThread<R> {
    /// A panic in a simulated thread ends the run, so that nobody sees this return nothing but those who ask outside
    /// of it.
    fn join(self) -> Option<R> {
        let core = &*self.core;
        if core.is_live() {
            core.might_sleep();
            let current = core.current();
            while !self.is_finished() {
                core.sched.borrow_mut().threads[self.number].joiners.push(current);
                core.sleep(Why::Join(self.number), None);
            }
        }
        self.take()
    }

    fn is_finished(&self) -> bool {
        self.core.sched.borrow().threads[self.number].state == State::Dead
    }
}
