//! A machine whose work costs nothing, so that a test's numbers are its own.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::sync::{Arc, Mutex};

use execlab_driver::kernel::{Kernel, Policy, Thread as _, Threads};
use execlab_sim::{Machine, Sim, SimKernel, SimThread};

/// The text of a machine on which the kernel's own work is free, without idle states.
const FREE: &str = r#"
name = "free"
kernel = "4.17"
cpu = [{ speed = 1.0 }, { speed = 1.0 }]
preemption = "full"
hz = 250
nohz = true
timer_slack = "50us"
[cost]
context_switch = "0ns"
wake = "0ns"
irq_entry = "0ns"
irq_exit = "0ns"
timer_irq = "0ns"
softirq_entry = "0ns"
lock = "0ns"
cache_line = "0ns"
cpu_relax = "10ns"
clock_read = "0ns"
[softirq]
time = "2ms"
rounds = 10
[fair]
latency = "6ms"
min_granularity = "750us"
wakeup_granularity = "1ms"
"#;

/// The free machine with some of its lines replaced.
pub fn machine(changes: &[(&str, &str)]) -> Machine {
    let mut text = FREE.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "no {from}");
        text = text.replacen(from, to, 1);
    }
    Machine::parse(&text, "free").unwrap()
}

pub fn sim(changes: &[(&str, &str)]) -> Sim {
    Sim::new(&machine(changes), 1)
}

/// What happened, in order, as the threads of a test tell it.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub fn add(&self, text: impl Into<String>) {
        self.0.lock().unwrap().push(text.into());
    }
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// Starts a thread whose CPU and policy are right.
pub fn spawn<R: Send + 'static>(
    kernel: &SimKernel,
    name: &str,
    cpu: usize,
    policy: Policy,
    body: impl FnOnce() -> R + Send + 'static,
) -> SimThread<R> {
    kernel.spawn(name, cpu, policy, body).unwrap()
}

/// Lets the simulation run until `ns` from now, as the main thread sees it.
pub fn sleep(kernel: &SimKernel, ns: u64) {
    kernel.sleep_until(kernel.time() + ns);
}

pub fn join<R: Send + 'static>(thread: SimThread<R>) -> R {
    thread.join().unwrap()
}
