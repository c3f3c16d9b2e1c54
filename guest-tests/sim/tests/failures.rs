//! What ends a run early.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod support;

use execlab_driver::kernel::{Kernel as _, Policy, SpinLock as _, Threads as _, WaitQueue as _};
use execlab_sim::SimError;
use support::{join, sim, sleep, spawn};

#[test]
fn a_deadlock_names_every_thread_and_what_it_waits_for() {
    for nohz in ["nohz = true", "nohz = false"] {
        let mut sim = sim(&[("nohz = true", nohz)]);
        let kernel = sim.kernel();
        let error = sim.run(move || {
            let queue = kernel.new_wait_queue();
            join(spawn(&kernel, "waiter", 1, Policy::Fifo(3), move || {
                queue.wait_until(u64::MAX, &mut || false)
            }));
        });
        let Err(SimError::Deadlock { threads, .. }) = error else { panic!("{error:?}") };
        let text = threads.join("\n");
        assert!(text.contains("waiter (SCHED_FIFO 3, CPU 1) waits on a wait queue"), "{text}");
        assert!(text.contains("main (SCHED_OTHER, CPU 0) waits for the end of waiter"), "{text}");
        assert_eq!(sim.run(|| ()), Err(SimError::Deadlock { time_ns: sim.kernel().time(), threads }));
    }
}

#[test]
fn a_panic_names_its_thread() {
    let mut sim = sim(&[]);
    let kernel = sim.kernel();
    let error = sim.run(move || {
        let inside = kernel.clone();
        join(spawn(&kernel, "unlucky", 1, Policy::Other, move || {
            inside.spend(5);
            inside.irq_off(|| panic!("no luck"));
        }));
    });
    let Err(SimError::Panicked { thread, message, .. }) = error else { panic!("{error:?}") };
    assert_eq!((thread.as_str(), message.as_str()), ("unlucky", "no luck"));
}

#[test]
fn a_loop_that_never_ends_meets_the_time_limit() {
    let mut sim = sim(&[]);
    sim.set_time_limit(1_000_000);
    let kernel = sim.kernel();
    let error = sim.run(move || {
        loop {
            kernel.cpu_relax();
        }
    });
    assert!(matches!(error, Err(SimError::TimeLimit { limit_ns: 1_001_000_000, .. })), "{error:?}");
}

#[test]
fn two_cpus_that_take_two_locks_in_opposite_order_are_a_deadlock_with_their_classes() {
    let mut sim = sim(&[]);
    let kernel = sim.kernel();
    let error = sim.run(move || {
        let locks = std::sync::Arc::new([kernel.new_lock("a", ()), kernel.new_lock("b", ())]);
        let threads = [0, 1].map(|cpu: usize| {
            let (inside, locks) = (kernel.clone(), std::sync::Arc::clone(&locks));
            spawn(&kernel, "locker", cpu, Policy::Fifo(1), move || {
                sleep(&inside, 1000);
                locks[cpu].with_irqsave(|()| {
                    inside.spend(1000);
                    locks[1 - cpu].with_irqsave(|()| ());
                });
            })
        });
        threads.into_iter().for_each(join);
    });
    let text = error.unwrap_err().to_string();
    assert!(text.contains("spins on the lock a") && text.contains("spins on the lock b"), "{text}");
}

#[test]
fn sleeping_in_a_section_and_taking_a_lock_twice_are_panics() {
    let said = |body: fn(&execlab_sim::SimKernel)| {
        let mut sim = sim(&[]);
        let kernel = sim.kernel();
        sim.run(move || body(&kernel)).unwrap_err().to_string()
    };
    assert!(said(|kernel| kernel.bh_off(|| sleep(kernel, 1))).contains("scheduling while atomic"));
    assert!(
        said(|kernel| {
            let lock = kernel.new_lock("twice", ());
            lock.with_irqsave(|()| lock.with_irqsave(|()| ()));
        })
        .contains("the lock twice is taken on a CPU that holds it")
    );
}

#[test]
fn a_thread_that_cannot_run_as_asked_is_refused() {
    let kernel = sim(&[]).kernel();
    let error = |cpu, policy| kernel.spawn("x", cpu, policy, || ()).unwrap_err().to_string();
    assert_eq!(error(2, Policy::Other), "x: there is no CPU 2; the machine has 2");
    assert_eq!(error(0, Policy::Fifo(0)), "x: SCHED_FIFO has priorities 1 to 99, not 0");
}

#[test]
fn threads_that_are_left_go_on_in_the_next_run_and_are_unwound_in_the_end() {
    let mut sim = sim(&[]);
    let kernel = sim.kernel();
    let alive = std::sync::Arc::new(());
    let held = std::sync::Arc::clone(&alive);
    let inside = kernel.clone();
    sim.run(move || {
        spawn(&kernel.clone(), "left", 1, Policy::Other, move || {
            loop {
                let _held = &held;
                sleep(&kernel, 1000);
            }
        });
    })
    .unwrap();
    let before = inside.time();
    sim.run(move || sleep(&inside, 1_000_000)).unwrap();
    assert!(sim.kernel().time() > before);
    assert_eq!(std::sync::Arc::strong_count(&alive), 2);
    drop(sim);
    assert_eq!(std::sync::Arc::strong_count(&alive), 1);
}
