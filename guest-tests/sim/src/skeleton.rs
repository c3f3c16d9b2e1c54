//! The public names, while what is behind them is being written.
#![allow(missing_docs, unused_variables, missing_debug_implementations)]
use std::sync::Arc;

use atomic_refcell::AtomicRefCell;
use execlab_driver::kernel::{self, Kernel, Policy, TaskletBody, TaskletId, Threads};

#[derive(Debug, Clone)]
pub struct Machine {}
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct MachineError {
    message: String,
}
impl Machine {
    pub fn builtin(name: &str) -> Option<Self> {
        Some(Self {})
    }
    pub fn parse(text: &str, file: &str) -> Result<Self, MachineError> {
        Ok(Self {})
    }
}
pub trait Device: Send + Sync {
    /// When the device next does something by itself, if it does.
    fn next_deadline(&self) -> Option<u64>;
    /// Time has reached `now`.
    fn advance(&self, now: u64);
}
#[derive(Debug, Clone, thiserror::Error)]
pub enum SimError {
    #[error("nothing can run any more: {0}")]
    Deadlock(String),
}
pub struct Sim {}
impl Sim {
    pub fn new(machine: &Machine, seed: u64) -> Self {
        Self {}
    }
    pub fn kernel(&self) -> SimKernel {
        SimKernel { now: Arc::default() }
    }
    pub fn attach(&self, device: Arc<dyn Device>) {}
    pub fn run<R: Send + 'static>(&mut self, main: impl FnOnce() -> R + Send + 'static) -> Result<R, SimError> {
        Ok(main())
    }
    pub fn trace_hash(&self) -> u64 {
        0
    }
}
#[derive(Clone, Debug)]
pub struct SimKernel {
    now: Arc<AtomicRefCell<u64>>,
}
impl SimKernel {
    /// The simulated time, for who looks from outside: it costs nothing.
    pub fn time(&self) -> u64 {
        *self.now.borrow()
    }
    /// Connects the device's interrupt to a CPU.
    pub fn connect_irq(&self, cpu: usize, handler: Box<dyn FnMut() + Send>) {}
    /// An edge on the device's interrupt line.
    pub fn raise_irq(&self) {}
}
pub struct SimLock<T>(spin::mutex::SpinMutex<T>);
impl<T: Send> kernel::SpinLock<T> for SimLock<T> {
    fn with_irqsave<R>(&self, section: impl FnOnce(&mut T) -> R) -> R {
        section(&mut self.0.lock())
    }
}
#[derive(Debug)]
pub struct SimWaitQueue;
impl kernel::WaitQueue for SimWaitQueue {
    fn wait_until(&self, deadline_ns: u64, condition: &mut dyn FnMut() -> bool) -> bool {
        condition()
    }
    fn wake_all(&self) {}
}
impl Kernel for SimKernel {
    type SpinLock<T: Send + 'static> = SimLock<T>;
    type WaitQueue = SimWaitQueue;
    fn new_lock<T: Send + 'static>(&self, class: &'static str, value: T) -> SimLock<T> {
        SimLock(spin::mutex::SpinMutex::new(value))
    }
    fn new_wait_queue(&self) -> SimWaitQueue {
        SimWaitQueue
    }
    fn now(&self) -> u64 {
        *self.now.borrow()
    }
    fn irq_off<R>(&self, section: impl FnOnce() -> R) -> R {
        section()
    }
    fn bh_off<R>(&self, section: impl FnOnce() -> R) -> R {
        section()
    }
    fn new_tasklet(&self, body: TaskletBody) -> TaskletId {
        TaskletId(0)
    }
    fn tasklet_hi_schedule(&self, tasklet: TaskletId) {}
    fn spend(&self, ns: u64) {
        *self.now.borrow_mut() += ns;
    }
    fn cpu_relax(&self) {}
    fn sleep_until(&self, deadline_ns: u64) {}
}
#[derive(Debug)]
pub struct SimThread<R>(Option<R>);
impl<R> kernel::Thread<R> for SimThread<R> {
    fn join(self) -> Option<R> {
        self.0
    }
    fn is_finished(&self) -> bool {
        true
    }
}
impl Threads for SimKernel {
    type Error = SimError;
    type Thread<R: Send + 'static> = SimThread<R>;
    fn spawn<R, F>(&self, name: &str, cpu: usize, policy: Policy, body: F) -> Result<SimThread<R>, SimError>
    where
        R: Send + 'static,
        F: FnOnce() -> R + Send + 'static,
    {
        Ok(SimThread(Some(body())))
    }
    fn yield_now(&self) {}
    fn clock_cost_ns(&self) -> u64 {
        0
    }
}
