//! Who runs when.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod support;

use execlab_driver::kernel::{Kernel as _, Policy, Threads as _};
use support::{Log, join, sim, sleep, spawn};

#[test]
fn threads_woken_at_one_time_run_by_priority_and_then_in_order_of_their_wake_up() {
    let mut sim = sim(&[]);
    let (kernel, log) = (sim.kernel(), Log::default());
    let told = log.clone();
    sim.run(move || {
        let at = kernel.time() + 100_000;
        let policies = [
            ("idle", Policy::Idle),
            ("low", Policy::Fifo(1)),
            ("other", Policy::Other),
            ("high", Policy::Fifo(99)),
        ];
        let more = [("low-2", Policy::Fifo(1)), ("middle", Policy::Fifo(50))];
        let threads: Vec<_> = policies
            .into_iter()
            .chain(more)
            .map(|(name, policy)| {
                let (inside, log) = (kernel.clone(), told.clone());
                spawn(&kernel, name, 1, policy, move || {
                    inside.sleep_until(at);
                    inside.spend(1_000_000);
                    log.add(name);
                })
            })
            .collect();
        threads.into_iter().for_each(join);
    })
    .unwrap();
    assert_eq!(log.take(), ["high", "middle", "low", "low-2", "other", "idle"]);
}

#[test]
fn a_fifo_thread_preempts_a_fair_one_within_an_interrupt_and_a_switch() {
    let costs = [
        ("irq_entry = \"0ns\"", "irq_entry = \"300ns\""),
        ("timer_irq = \"0ns\"", "timer_irq = \"700ns\""),
        ("irq_exit = \"0ns\"", "irq_exit = \"200ns\""),
        ("wake = \"0ns\"", "wake = \"400ns\""),
        ("context_switch = \"0ns\"", "context_switch = \"1us\""),
    ];
    let mut sim = sim(&costs);
    let kernel = sim.kernel();
    let late = sim.run(move || {
        let inside = kernel.clone();
        let at = kernel.time() + 500_000;
        let probe = spawn(&kernel, "probe", 0, Policy::Fifo(98), move || {
            inside.sleep_until(at);
            inside.time() - at
        });
        kernel.spend(1_000_000);
        join(probe)
    });
    assert_eq!(late.unwrap(), 300 + 700 + 400 + 200 + 1000);
}

#[test]
fn under_voluntary_preemption_a_fifo_thread_waits_for_the_end_of_the_burst() {
    let mut sim = sim(&[("\"full\"", "\"voluntary\"")]);
    let kernel = sim.kernel();
    let late = sim.run(move || {
        let inside = kernel.clone();
        let at = kernel.time() + 500_000;
        let probe = spawn(&kernel, "probe", 0, Policy::Fifo(98), move || {
            inside.sleep_until(at);
            inside.time() - at
        });
        kernel.spend(1_000_000);
        join(probe)
    });
    assert_eq!(late.unwrap(), 500_000);
}

#[test]
fn two_fair_threads_share_a_cpu_and_a_fifo_thread_shares_nothing() {
    let mut sim = sim(&[]);
    let kernel = sim.kernel();
    let ends = sim.run(move || {
        let hog = |name: &str, cpu, policy| {
            let inside = kernel.clone();
            spawn(&kernel, name, cpu, policy, move || {
                (0..10_000).for_each(|_| inside.spend(10_000));
                inside.time() - execlab_sim_start()
            })
        };
        let (one, two) = (hog("one", 1, Policy::Other), hog("two", 1, Policy::Other));
        let fifo = hog("fifo", 1, Policy::Fifo(1));
        [join(one), join(two), join(fifo)]
    });
    let [one, two, fifo] = ends.unwrap();
    assert!((100_000_000..100_100_000).contains(&fifo), "{fifo}");
    assert!(one.abs_diff(300_000_000) < 10_000_000 && two.abs_diff(300_000_000) < 10_000_000, "{one} {two}");
}

/// When a machine boots.
fn execlab_sim_start() -> u64 {
    1_000_000_000
}

#[test]
fn a_timer_of_a_fair_thread_fires_after_its_slack_and_earlier_with_an_interrupt_that_comes_anyway() {
    let mut sim = sim(&[]);
    let kernel = sim.kernel();
    let (alone, with_fifo) = sim
        .run(move || {
            let at = kernel.time() + 100_000;
            kernel.sleep_until(at);
            let alone = kernel.time() - at;
            let at = kernel.time() + 100_000;
            let inside = kernel.clone();
            let fifo = spawn(&kernel, "fifo", 0, Policy::Fifo(1), move || inside.sleep_until(at + 20_000));
            kernel.sleep_until(at);
            let with_fifo = kernel.time() - at;
            join(fifo);
            (alone, with_fifo)
        })
        .unwrap();
    assert_eq!((alone, with_fifo), (50_000, 20_000));
}

#[test]
fn yielding_lets_the_other_thread_of_the_same_priority_run() {
    for policy in [Policy::Fifo(5), Policy::Other] {
        let mut sim = sim(&[]);
        let (kernel, log) = (sim.kernel(), Log::default());
        let told = log.clone();
        sim.run(move || {
            let threads = ["one", "two"].map(|name| {
                let (inside, log) = (kernel.clone(), told.clone());
                spawn(&kernel, name, 1, policy, move || {
                    inside.sleep_until(execlab_sim_start() + 1_000_000);
                    for _ in 0..3 {
                        log.add(name);
                        inside.spend(100);
                        inside.yield_now();
                    }
                })
            });
            threads.into_iter().for_each(join);
        })
        .unwrap();
        assert_eq!(log.take(), ["one", "two", "one", "two", "one", "two"], "{policy}");
    }
}

#[test]
fn an_idle_cpu_pays_the_exit_latency_of_the_state_that_its_next_timer_allows() {
    let idle = "[[idle]]\nname = \"C1\"\nexit = \"2us\"\nresidency = \"2us\"\n[[idle]]\nname = \"C6\"\nexit = \"85us\"\nresidency = \"200us\"\n[cost]";
    let mut sim = sim(&[("[cost]", idle)]);
    let kernel = sim.kernel();
    let late = sim.run(move || {
        let inside = kernel.clone();
        join(spawn(&kernel, "sleeper", 1, Policy::Fifo(1), move || {
            [100_000, 10_000_000].map(|ns| {
                // Twice, so that what the CPU did before does not count.
                (0..20).for_each(|_| sleep(&inside, ns));
                let at = inside.time() + ns;
                inside.sleep_until(at);
                inside.time() - at
            })
        }))
    });
    assert_eq!(late.unwrap(), [2_000, 85_000]);
}

#[test]
fn a_slow_cpu_takes_longer_for_its_own_work_and_as_long_for_an_access_to_the_device() {
    let step = "[step]\nemit = \"1us\"\n[softirq]";
    let mut sim = sim(&[("[softirq]", step), ("{ speed = 1.0 }]", "{ speed = 0.25 }]")]);
    let kernel = sim.kernel();
    let took = sim.run(move || {
        let inside = kernel.clone();
        join(spawn(&kernel, "slow", 1, Policy::Fifo(1), move || {
            let start = inside.time();
            inside.step(execlab_driver::kernel::Step::Emit);
            let work = inside.time() - start;
            inside.spend(500);
            (work, inside.time() - start - work)
        }))
    });
    assert_eq!(took.unwrap(), (4_000, 500));
}
