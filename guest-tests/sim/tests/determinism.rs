//! The same seed is the same run.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod support;

use std::sync::Arc;

use execlab_driver::kernel::{Kernel as _, Policy, SpinLock as _, Step};
use execlab_sim::{Machine, Perturb, Sim};
use support::{join, sleep, spawn};

/// Some of everything on four CPUs.
fn hash(seed: u64, perturb: Perturb) -> u64 {
    let mut sim = Sim::new(&Machine::builtin("kbl-2018").unwrap(), seed);
    sim.perturb(perturb);
    let kernel = sim.kernel();
    let tasklet = {
        let inside = kernel.clone();
        kernel.new_tasklet(Box::new(move |_| inside.step(Step::Dequeue)))
    };
    sim.run(move || {
        let lock = Arc::new(kernel.new_lock("all", 0_u64));
        let threads: Vec<_> = (0..8)
            .map(|number| {
                let (inside, lock) = (kernel.clone(), Arc::clone(&lock));
                let policy = if number % 3 == 0 { Policy::Fifo(10) } else { Policy::Other };
                spawn(&kernel, "worker", number % 4, policy, move || {
                    for turn in 0..20 {
                        inside.step(Step::Emit);
                        lock.with_irqsave(|value| {
                            inside.spend(300);
                            *value += 1;
                        });
                        inside.bh_off(|| inside.tasklet_hi_schedule(tasklet));
                        if turn % 4 == 0 {
                            sleep(&inside, 20_000);
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(join);
        assert_eq!(lock.with_irqsave(|value| *value), 160);
    })
    .unwrap();
    sim.trace_hash()
}

#[test]
fn a_hundred_runs_of_a_seed_have_one_hash_and_other_seeds_have_others() {
    for perturb in [Perturb::default(), Perturb { ties: true, stretch_permille: 200 }] {
        let first = hash(7, perturb);
        assert!((0..100).all(|_| hash(7, perturb) == first));
        let mut others: Vec<u64> = (0..20).map(|seed| hash(seed, perturb)).collect();
        others.sort_unstable();
        others.dedup();
        assert_eq!(others.len(), 20);
    }
}

/// The same in debug and release builds, and on any host: when the model changes, so does this number.
#[test]
fn the_hash_of_a_seed_is_the_one_that_is_written_here() {
    assert_eq!(hash(7, Perturb::default()), 11_047_298_655_171_467_728);
}
