//! A kernel of one CPU and one thread, with a clock that moves only when it is told.
//!
//! It is strict where Linux is: sleeping or waiting in atomic context, taking a lock twice, an interrupt or a bottom
//! half while interrupts are off end the test. Interrupts come as soon as they may: when interrupts are enabled, and
//! whenever time passes with interrupts on.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use execlab_driver::kernel::{Kernel, Place, SpinLock, TaskletBody, TaskletId, WaitQueue};

/// What goes on beside the CPU.
pub trait Outside: Send + Sync {
    /// When something happens next.
    fn due(&self) -> Option<u64>;
    /// Lets everything happen that is due at `now`.
    fn advance(&self, now: u64);
    /// The handler of an interrupt that is asserted.
    fn interrupt(&self) -> Option<Box<dyn FnOnce()>>;
}

/// Where the CPU is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    Task,
    Softirq,
    Hardirq,
}

#[derive(Debug, Default)]
struct Cpu {
    now: u64,
    irq_off: u32,
    bh_off: u32,
    in_irq: bool,
    in_softirq: bool,
    pending: VecDeque<TaskletId>,
}

impl Cpu {
    fn atomic(&self) -> bool {
        self.irq_off > 0 || self.bh_off > 0 || self.in_irq || self.in_softirq
    }
    fn takes_interrupts(&self) -> bool {
        self.irq_off == 0 && !self.in_irq
    }
}

#[derive(Default)]
struct State {
    cpu: Mutex<Cpu>,
    tasklets: Mutex<Vec<Arc<TaskletBody>>>,
    outside: OnceLock<Box<dyn Outside>>,
}

/// The kernel. Clones are the same.
#[derive(Clone, Default)]
pub struct TestKernel(Arc<State>);

impl TestKernel {
    pub fn connect(&self, outside: impl Outside + 'static) {
        assert!(self.0.outside.set(Box::new(outside)).is_ok());
    }

    fn with<R>(&self, f: impl FnOnce(&mut Cpu) -> R) -> R {
        f(&mut self.0.cpu.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether interrupts are off, and where the CPU is.
    pub fn whereabouts(&self) -> (bool, Level) {
        self.with(|cpu| {
            let level = match (cpu.in_irq, cpu.in_softirq) {
                (true, _) => Level::Hardirq,
                (false, true) => Level::Softirq,
                (false, false) => Level::Task,
            };
            (!cpu.takes_interrupts(), level)
        })
    }

    fn set_time(&self, now: u64) {
        let now = self.with(|cpu| {
            cpu.now = cpu.now.max(now);
            cpu.now
        });
        if let Some(outside) = self.0.outside.get() {
            outside.advance(now);
        }
        self.take_interrupts();
    }

    fn take_interrupts(&self) {
        let Some(outside) = self.0.outside.get() else { return };
        while self.with(|cpu| cpu.takes_interrupts()) {
            let Some(handler) = outside.interrupt() else { return };
            self.interrupt(handler);
        }
    }

    /// An interrupt: the handler with interrupts off, then bottom halves unless they are off.
    pub fn interrupt(&self, handler: impl FnOnce()) {
        self.with(|cpu| {
            assert!(cpu.takes_interrupts(), "an interrupt while they are off");
            cpu.in_irq = true;
        });
        handler();
        let soft = self.with(|cpu| {
            cpu.in_irq = false;
            cpu.bh_off == 0
        });
        if soft {
            self.softirqs(Place::IrqExit);
        }
    }

    fn softirqs(&self, place: Place) {
        if self.with(|cpu| cpu.pending.is_empty() || std::mem::replace(&mut cpu.in_softirq, true)) {
            return;
        }
        while let Some(id) = self.with(|cpu| cpu.pending.pop_front()) {
            let body = Arc::clone(&self.0.tasklets.lock().unwrap()[id.0 as usize]);
            body(place);
            self.with(|cpu| assert_eq!(cpu.irq_off, 0, "a bottom half left interrupts off"));
        }
        self.with(|cpu| cpu.in_softirq = false);
    }

    /// Lets time pass up to `deadline`, or until the condition holds.
    fn run_until(&self, deadline: u64, condition: &mut dyn FnMut() -> bool) -> bool {
        self.with(|cpu| assert!(!cpu.atomic(), "sleeping in atomic context: {cpu:?}"));
        loop {
            self.softirqs(Place::Ksoftirqd);
            self.take_interrupts();
            if condition() {
                return true;
            }
            let now = self.now();
            if now >= deadline {
                return false;
            }
            let due = self.0.outside.get().and_then(|outside| outside.due()).unwrap_or(deadline);
            self.set_time(due.clamp(now, deadline));
        }
    }

    fn irqs_off<R>(&self, section: impl FnOnce() -> R) -> R {
        self.with(|cpu| cpu.irq_off += 1);
        let result = section();
        self.with(|cpu| cpu.irq_off -= 1);
        self.take_interrupts();
        result
    }
}

impl Kernel for TestKernel {
    type SpinLock<T: Send + 'static> = TestLock<T>;
    type WaitQueue = TestWaitQueue;

    fn new_lock<T: Send + 'static>(&self, class: &'static str, value: T) -> TestLock<T> {
        TestLock { class, kernel: self.clone(), value: Mutex::new(value) }
    }
    fn new_wait_queue(&self) -> TestWaitQueue {
        TestWaitQueue { kernel: self.clone(), woken: Mutex::new(false) }
    }
    fn now(&self) -> u64 {
        self.with(|cpu| cpu.now)
    }
    fn irq_off<R>(&self, section: impl FnOnce() -> R) -> R {
        self.irqs_off(section)
    }
    fn bh_off<R>(&self, section: impl FnOnce() -> R) -> R {
        self.with(|cpu| cpu.bh_off += 1);
        let result = section();
        let run = self.with(|cpu| {
            cpu.bh_off -= 1;
            cpu.bh_off == 0 && cpu.takes_interrupts()
        });
        if run {
            self.softirqs(Place::BhEnable);
        }
        result
    }
    fn new_tasklet(&self, body: TaskletBody) -> TaskletId {
        let mut all = self.0.tasklets.lock().unwrap();
        all.push(Arc::new(body));
        TaskletId(all.len() as u32 - 1)
    }
    fn tasklet_hi_schedule(&self, tasklet: TaskletId) {
        self.with(|cpu| {
            if !cpu.pending.contains(&tasklet) {
                cpu.pending.push_back(tasklet);
            }
        });
    }
    fn spend(&self, ns: u64) {
        self.set_time(self.now() + ns);
    }
    fn cpu_relax(&self) {
        self.spend(100);
    }
    fn sleep_until(&self, deadline_ns: u64) {
        self.run_until(deadline_ns, &mut || false);
    }
}

pub struct TestLock<T> {
    class: &'static str,
    kernel: TestKernel,
    value: Mutex<T>,
}

impl<T: Send> SpinLock<T> for TestLock<T> {
    fn with_irqsave<R>(&self, section: impl FnOnce(&mut T) -> R) -> R {
        self.kernel.irqs_off(|| {
            let mut value = self.value.try_lock().unwrap_or_else(|_| panic!("deadlock on {}", self.class));
            section(&mut value)
        })
    }
}

/// A sleeper looks at its condition when it is woken and at the deadline, and at no other time.
pub struct TestWaitQueue {
    kernel: TestKernel,
    woken: Mutex<bool>,
}

impl WaitQueue for TestWaitQueue {
    fn wait_until(&self, deadline_ns: u64, condition: &mut dyn FnMut() -> bool) -> bool {
        loop {
            *self.woken.lock().unwrap() = false;
            if condition() {
                return true;
            }
            let woken = self.kernel.run_until(deadline_ns, &mut || *self.woken.lock().unwrap());
            if !woken {
                return condition();
            }
        }
    }
    fn wake_all(&self) {
        *self.woken.lock().unwrap() = true;
    }
}
