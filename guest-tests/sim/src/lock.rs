//! Spinlocks.

use std::collections::VecDeque;
use std::sync::Arc;

use atomic_refcell::AtomicRefCell;
use execlab_driver::kernel::SpinLock;
use spin::mutex::SpinMutex;

use crate::core::Core;
use crate::cpu::Point;
use crate::events::Source;
use crate::trace::What;
use crate::word::Word;

/// Nobody.
const FREE: u64 = 0;

/// A queued spinlock: who waits gets it in the order of arrival (ticket locks until 4.1, qspinlock since: both fair),
/// spinning with interrupts off, and the lock's cache line travels with it.
pub struct SimLock<T> {
    core: Arc<Core>,
    class: &'static str,
    number: u64,
    /// The CPU that holds it, plus one.
    owner: Word,
    /// The CPU in whose cache its line is, plus one.
    line: Word,
    waiters: AtomicRefCell<VecDeque<usize>>,
    /// Guarded by `owner`, and never contended: there is one OS thread.
    value: SpinMutex<T>,
}

impl<T> SimLock<T> {
    pub(crate) fn new(core: Arc<Core>, class: &'static str, value: T) -> Self {
        core.next_lock.up();
        Self {
            class,
            number: core.next_lock.get(),
            core,
            owner: Word::new(FREE),
            line: Word::new(FREE),
            waiters: AtomicRefCell::default(),
            value: SpinMutex::new(value),
        }
    }

    #[allow(
        clippy::panic,
        reason = "a bug in the code under test, which the run reports with the thread's name"
    )]
    fn acquire(&self) {
        let (core, me) = (&*self.core, self.core.me() as u64 + 1);
        if self.owner.get() == me {
            panic!("the lock {} is taken on a CPU that holds it", self.class);
        }
        let costs = core.my_costs();
        let far = self.line.get() != me && self.line.get() != FREE;
        core.busy(costs.lock + if far { costs.cache_line } else { 0 });
        if self.owner.get() == FREE {
            self.owner.set(me);
        } else {
            self.wait_for_it();
        }
        self.line.set(me);
    }

    #[cold]
    fn wait_for_it(&self) {
        let core = &*self.core;
        let (class, lock) = (self.class, self.number);
        core.note(What::LockWait { class, lock });
        let spins_on = |class| {
            let current = core.current();
            core.sched.borrow_mut().threads[current].spins_on = class;
        };
        spins_on(Some(class));
        self.waiters.borrow_mut().push_back(core.me());
        // The holder hands it over and arms this CPU. Interrupts are off: nothing else does.
        core.park(core.me(), None);
        debug_assert_eq!(self.owner.get(), core.me() as u64 + 1);
        spins_on(None);
        core.note(What::LockGot { class, lock });
    }
}

/// Gives a lock back, also when its section panics.
struct Release<'a, T>(&'a SimLock<T>);

impl<T> Drop for Release<'_, T> {
    fn drop(&mut self) {
        let (lock, core) = (self.0, &*self.0.core);
        if !core.is_live() {
            return;
        }
        let next = lock.waiters.borrow_mut().pop_front();
        lock.owner.set(next.map_or(FREE, |cpu| cpu as u64 + 1));
        if let Some(cpu) = next {
            core.arm(Source::Cpu(cpu), core.now() + core.costs[cpu].cache_line);
        }
        core.irq_restore();
    }
}

impl<T: Send> SpinLock<T> for SimLock<T> {
    /// # Panics
    /// When this CPU holds it.
    fn with_irqsave<R>(&self, section: impl FnOnce(&mut T) -> R) -> R {
        if !self.core.is_live() {
            return section(&mut self.value.lock());
        }
        self.core.irq_save();
        self.acquire();
        let release = Release(self);
        let result = section(&mut self.value.lock());
        drop(release);
        self.core.preempt_point(Point::Call);
        result
    }
}

impl<T> std::fmt::Debug for SimLock<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimLock")
            .field("class", &self.class)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}
