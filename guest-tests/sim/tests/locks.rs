//! Spinlocks and wait queues.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use execlab_driver::kernel::{Kernel as _, Policy, SpinLock as _, WaitQueue as _};
use execlab_sim::{Perturb, Sim};
use support::{Log, join, machine, sim, spawn};

#[test]
fn two_cpus_that_want_one_lock_get_it_in_the_order_of_arrival_and_pay_for_its_cache_line() {
    let mut sim = sim(&[
        ("{ speed = 1.0 }]", "{ speed = 1.0 }, { speed = 1.0 }, { speed = 1.0 }]"),
        ("cache_line = \"0ns\"", "cache_line = \"70ns\""),
    ]);
    let (kernel, log) = (sim.kernel(), Log::default());
    let told = log.clone();
    let boot = kernel.time();
    sim.run(move || {
        let lock = Arc::new(kernel.new_lock("shared", 0_u32));
        let threads: Vec<_> = (1..4)
            .map(|cpu| {
                let (inside, lock, log) = (kernel.clone(), Arc::clone(&lock), told.clone());
                spawn(&kernel, "locker", cpu, Policy::Fifo(1), move || {
                    inside.sleep_until(boot + 10_000 + 100 * (4 - cpu as u64));
                    lock.with_irqsave(|value| {
                        log.add(format!("{cpu} at {}", inside.time() - boot));
                        inside.spend(1_000);
                        *value += 1;
                    });
                    log.add(format!("{cpu} out at {}", inside.time() - boot));
                })
            })
            .collect();
        threads.into_iter().for_each(join);
        assert_eq!(lock.with_irqsave(|value| *value), 3);
    })
    .unwrap();
    // 3 comes first; 2 has come at 10200 and 1 at 10300, each fetches the line when it spins for the first time.
    let expected =
        ["3 at 10100", "3 out at 11100", "2 at 11170", "2 out at 12170", "1 at 12240", "1 out at 13240"];
    assert_eq!(log.take(), expected);
}

#[test]
fn a_lock_that_nobody_else_has_had_costs_no_more_than_itself() {
    let mut sim =
        sim(&[("lock = \"0ns\"", "lock = \"20ns\""), ("cache_line = \"0ns\"", "cache_line = \"70ns\"")]);
    let kernel = sim.kernel();
    let boot = kernel.time();
    let costs = sim.run(move || {
        let lock = kernel.new_lock("own", ());
        (0..3).for_each(|_| lock.with_irqsave(|()| ()));
        kernel.time() - boot
    });
    assert_eq!(costs.unwrap(), 60);
}

/// A waiter and a waker on two CPUs, at every offset and with every order of what falls together.
#[test]
fn a_wake_up_is_never_lost_between_check_and_sleep() {
    for seed in 0..300 {
        let costs = [("wake = \"0ns\"", "wake = \"20ns\""), ("lock = \"0ns\"", "lock = \"10ns\"")];
        let mut sim = Sim::new(&machine(&costs), seed);
        sim.perturb(Perturb { ties: true, stretch_permille: 500 });
        let kernel = sim.kernel();
        let woken = sim.run(move || {
            let shared = Arc::new((kernel.new_wait_queue(), AtomicBool::new(false)));
            let (inside, theirs) = (kernel.clone(), Arc::clone(&shared));
            let waker = spawn(&kernel, "waker", 1, Policy::Fifo(1), move || {
                inside.spend(seed % 100);
                theirs.1.store(true, Relaxed);
                theirs.0.wake_all();
            });
            // The check takes time: a wake-up may come in its middle.
            let done = shared.0.wait_until(u64::MAX, &mut || {
                let seen = shared.1.load(Relaxed);
                kernel.spend(30);
                seen
            });
            join(waker);
            done
        });
        assert_eq!(woken, Ok(true), "seed {seed}");
    }
}

#[test]
fn a_wait_ends_at_its_deadline_with_a_last_look_at_the_condition() {
    let mut sim = sim(&[]);
    let kernel = sim.kernel();
    let boot = kernel.time();
    let ends = sim.run(move || {
        let inside = kernel.clone();
        join(spawn(&kernel, "waiter", 1, Policy::Fifo(1), move || {
            let queue = inside.new_wait_queue();
            let never = queue.wait_until(boot + 1_000, &mut || false);
            let first = inside.time() - boot;
            let at_last = queue.wait_until(boot + 2_000, &mut || inside.time() >= boot + 2_000);
            (never, first, at_last, inside.time() - boot)
        }))
    });
    assert_eq!(ends.unwrap(), (false, 1_000, true, 2_000));
}

#[test]
fn a_holder_of_a_lock_is_not_preempted_before_it_gives_it_back() {
    let mut sim = sim(&[]);
    let kernel = sim.kernel();
    let late = Arc::new(AtomicU64::new(0));
    let told = Arc::clone(&late);
    sim.run(move || {
        let inside = kernel.clone();
        let at = kernel.time() + 1_500;
        let probe = spawn(&kernel, "probe", 0, Policy::Fifo(98), move || {
            inside.sleep_until(at);
            told.store(inside.time() - at, Relaxed);
        });
        let lock = kernel.new_lock("held", ());
        kernel.spend(1_000);
        lock.with_irqsave(|()| kernel.spend(3_000));
        kernel.spend(1_000);
        join(probe);
    })
    .unwrap();
    assert_eq!(late.load(Relaxed), 2_500);
}
