//! Sections really keep the probe's priority off the CPU. Needs the right to use SCHED_FIFO; says so and does
//! nothing without it.
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests count as no tests to clippy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use execlab_driver::kernel::{Kernel, Place};
use execlab_posix::{Config, Cpu, Policy, RtThread, SchedError, now_ns, sleep_until_ns};

fn cpu() -> Option<Cpu> {
    match Cpu::start(Config::default()) {
        Ok(cpu) => Some(cpu),
        Err(error @ SchedError::PolicyRefused { .. }) => {
            eprintln!("not tested: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A thread at the probe's priority which stores when it last ran, every 200 us.
fn ticker(stop: &Arc<AtomicBool>, ticks: &Arc<AtomicU64>) -> execlab_posix::RtHandle<()> {
    let (stop, ticks) = (Arc::clone(stop), Arc::clone(ticks));
    RtThread::new("ticker")
        .cpu(0)
        .policy(Policy::Fifo(98))
        .spawn(move || {
            while !stop.load(SeqCst) {
                sleep_until_ns(now_ns() + 200_000);
                ticks.fetch_add(1, SeqCst);
            }
        })
        .unwrap()
}

/// Ticks seen while the CPU is kept busy for 20 ms inside `section`, by a SCHED_OTHER thread.
fn ticks_during(cpu: &Cpu, section: impl FnOnce(&execlab_posix::Posix, &dyn Fn()) + Send + 'static) -> u64 {
    let (stop, ticks) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let ticker = ticker(&stop, &ticks);
    let kernel = cpu.kernel();
    let seen = Arc::clone(&ticks);
    let task = RtThread::new("task").cpu(0).spawn(move || {
        let result = AtomicU64::new(0);
        section(&kernel, &|| {
            let before = seen.load(SeqCst);
            kernel.spend(20_000_000);
            result.store(seen.load(SeqCst) - before, SeqCst);
        });
        result.into_inner()
    });
    let seen = task.unwrap().join().unwrap();
    stop.store(true, SeqCst);
    ticker.join().unwrap();
    seen
}

#[test]
fn a_fifo_98_thread_runs_during_task_work_and_never_inside_a_section() {
    let Some(cpu) = cpu() else { return };
    // A shared host may steal the CPU for a while: any tick at all tells.
    assert!(ticks_during(&cpu, |_, busy| busy()) > 0);
    assert_eq!(ticks_during(&cpu, |kernel, busy| kernel.irq_off(busy)), 0);
    assert_eq!(ticks_during(&cpu, |kernel, busy| kernel.bh_off(busy)), 0);
    assert_eq!(ticks_during(&cpu, |kernel, busy| kernel.interrupt(busy, &mut || ())), 0);
    let stats = cpu.stats();
    assert_eq!((stats.raises, stats.refused), (3, 0));
}

#[test]
fn bottom_halves_run_raised_wherever_they_run() {
    let Some(cpu) = cpu() else { return };
    let kernel = cpu.kernel();
    let (stop, ticks) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let ticker = ticker(&stop, &ticks);
    let (seen, busy) = (Arc::clone(&ticks), kernel.clone());
    let (runs, during) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (ran, noted) = (Arc::clone(&runs), Arc::clone(&during));
    let tasklet = kernel.new_tasklet(Box::new(move |_: Place| {
        let before = seen.load(SeqCst);
        busy.spend(5_000_000);
        noted.fetch_add(seen.load(SeqCst) - before, SeqCst);
        ran.fetch_add(1, SeqCst);
    }));
    let task = RtThread::new("task").cpu(0);
    let in_task = kernel.clone();
    task.spawn(move || {
        in_task.bh_off(|| in_task.tasklet_hi_schedule(tasklet));
        in_task.tasklet_hi_schedule(tasklet);
    })
    .unwrap()
    .join()
    .unwrap();
    let deadline = now_ns() + 10_000_000_000;
    while runs.load(SeqCst) < 2 {
        assert!(now_ns() < deadline);
        std::thread::yield_now();
    }
    stop.store(true, SeqCst);
    ticker.join().unwrap();
    assert_eq!(during.load(SeqCst), 0);
    assert_eq!((cpu.stats().at_bh_enable, cpu.stats().in_ksoftirqd), (1, 1));
}
