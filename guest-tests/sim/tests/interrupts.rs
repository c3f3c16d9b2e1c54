//! Interrupts, bottom halves and ksoftirqd.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod support;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use execlab_driver::kernel::{Kernel as _, Place, Policy, TaskletId};
use execlab_sim::{Device, SimKernel};
use support::{Log, join, sim, sleep, spawn};

/// Raises its interrupt at the times in a list.
struct Edges {
    kernel: SimKernel,
    at: Vec<u64>,
    next: AtomicU64,
}

impl Edges {
    fn new(kernel: &SimKernel, at: Vec<u64>) -> Arc<Self> {
        Arc::new(Self { kernel: kernel.clone(), at, next: AtomicU64::new(0) })
    }
}

impl Device for Edges {
    fn next_deadline(&self) -> Option<u64> {
        self.at.get(self.next.load(Relaxed) as usize).copied()
    }
    fn advance(&self, _now: u64) {
        self.next.fetch_add(1, Relaxed);
        self.kernel.raise_irq();
    }
}

/// Times since boot at which `handler` ran, for edges at `at` and `body` on CPU 0 from boot on.
fn handled_at(at: &[u64], body: impl FnOnce(&SimKernel) + Send + 'static) -> Vec<u64> {
    let mut sim = sim(&[]);
    let kernel = sim.kernel();
    let boot = kernel.time();
    sim.attach(Edges::new(&kernel, at.iter().map(|at| boot + at).collect()));
    let (times, inside) = (Arc::new(std::sync::Mutex::new(Vec::new())), kernel.clone());
    let told = Arc::clone(&times);
    kernel.connect_irq(0, Box::new(move || told.lock().unwrap().push(inside.time() - boot)));
    sim.run(move || body(&kernel)).unwrap();
    let times = times.lock().unwrap();
    times.clone()
}

#[test]
fn an_interrupt_in_an_irq_off_section_is_late_by_exactly_the_rest_of_it() {
    let times = handled_at(&[100, 1_300, 3_000], |kernel| {
        kernel.spend(1_000);
        kernel.irq_off(|| kernel.irq_off(|| kernel.spend(1_000)));
        kernel.spend(2_000);
    });
    assert_eq!(times, [100, 2_000, 3_000]);
}

#[test]
fn edges_that_come_while_interrupts_are_off_are_one_interrupt() {
    let times = handled_at(&[1_100, 1_200, 1_300], |kernel| {
        kernel.spend(1_000);
        kernel.irq_off(|| kernel.spend(1_000));
        kernel.spend(1_000);
    });
    assert_eq!(times, [2_000]);
}

#[test]
fn an_interrupt_comes_into_a_bh_off_section_and_its_bottom_half_waits_for_the_end() {
    let log = Log::default();
    let mut sim = sim(&[]);
    let kernel = sim.kernel();
    let boot = kernel.time();
    sim.attach(Edges::new(&kernel, vec![boot + 500]));
    let (inside, told) = (kernel.clone(), log.clone());
    let tasklet =
        kernel.new_tasklet(Box::new(move |place| told.add(format!("{place:?} {}", inside.time() - boot))));
    let (inside, told) = (kernel.clone(), log.clone());
    kernel.connect_irq(
        0,
        Box::new(move || {
            told.add(format!("irq {}", inside.time() - boot));
            inside.tasklet_hi_schedule(tasklet);
            inside.tasklet_hi_schedule(tasklet);
        }),
    );
    sim.run(move || kernel.bh_off(|| kernel.spend(2_000))).unwrap();
    assert_eq!(log.take(), ["irq 500", "BhEnable 2000"]);
}

#[test]
fn a_bottom_half_at_irq_exit_runs_with_interrupts_on_and_pauses_the_burst_below() {
    let log = Log::default();
    let mut sim = sim(&[]);
    let kernel = sim.kernel();
    let boot = kernel.time();
    sim.attach(Edges::new(&kernel, vec![boot + 1_000, boot + 1_400]));
    let (inside, told) = (kernel.clone(), log.clone());
    let tasklet = kernel.new_tasklet(Box::new(move |place| {
        told.add(format!("{place:?} from {}", inside.time() - boot));
        inside.spend(1_000);
        told.add(format!("to {}", inside.time() - boot));
    }));
    let (inside, told) = (kernel.clone(), log.clone());
    kernel.connect_irq(
        0,
        Box::new(move || {
            inside.spend(100);
            told.add(format!("irq {}", inside.time() - boot));
            inside.tasklet_hi_schedule(tasklet);
        }),
    );
    let end = sim.run(move || {
        kernel.spend(5_000);
        kernel.time() - boot
    });
    // The second interrupt is on top of the first one's bottom half, and schedules it once more.
    let expected = ["irq 1100", "IrqExit from 1100", "irq 1500", "to 2200", "IrqExit from 2200", "to 3200"];
    assert_eq!(log.take(), expected);
    assert_eq!(end.unwrap(), 5_000 + 2 * 1_000 + 2 * 100);
}

/// Where the runs of a tasklet that schedules itself `runs` times take place, each `ns` long.
fn places(ns: u64, runs: u64, changes: &[(&str, &str)]) -> Vec<Place> {
    let mut sim = sim(changes);
    let kernel = sim.kernel();
    let (own, places) = (Arc::new(OnceLock::<TaskletId>::new()), Arc::new(std::sync::Mutex::new(Vec::new())));
    let (inside, told, id) = (kernel.clone(), Arc::clone(&places), Arc::clone(&own));
    let tasklet = kernel.new_tasklet(Box::new(move |place| {
        inside.spend(ns);
        let mut places = told.lock().unwrap();
        places.push(place);
        if (places.len() as u64) < runs {
            inside.tasklet_hi_schedule(*id.get().unwrap());
        }
    }));
    own.set(tasklet).unwrap();
    sim.run(move || {
        kernel.bh_off(|| kernel.tasklet_hi_schedule(tasklet));
        sleep(&kernel, 100_000_000);
    })
    .unwrap();
    let places = places.lock().unwrap();
    places.clone()
}

#[test]
fn after_ten_rounds_bottom_halves_go_to_ksoftirqd() {
    let places = places(1_000, 25, &[]);
    assert_eq!(places[..10], [Place::BhEnable; 10]);
    assert_eq!(places[10..], [Place::Ksoftirqd; 15]);
}

#[test]
fn after_a_jiffy_bottom_halves_go_to_ksoftirqd() {
    // 2 ms are one jiffy of 4 ms at HZ=250: it ends somewhere within the first 4 ms.
    let inline = places(1_000_000, 8, &[]).iter().filter(|place| **place == Place::BhEnable).count();
    assert!((1..=4).contains(&inline), "{inline}");
    // At HZ=1000 they are two.
    let inline = places(900_000, 8, &[("hz = 250", "hz = 1000")]);
    let inline = inline.iter().filter(|place| **place == Place::BhEnable).count();
    assert!((2..=3).contains(&inline), "{inline}");
}

#[test]
fn a_thread_that_waits_for_the_cpu_ends_a_run_of_bottom_halves() {
    let mut sim = sim(&[]);
    let kernel = sim.kernel();
    let (own, late) = (Arc::new(OnceLock::<TaskletId>::new()), Arc::new(AtomicU64::new(0)));
    let (inside, id) = (kernel.clone(), Arc::clone(&own));
    let tasklet = kernel.new_tasklet(Box::new(move |_| {
        inside.spend(100_000);
        inside.tasklet_hi_schedule(*id.get().unwrap());
    }));
    own.set(tasklet).unwrap();
    let told = Arc::clone(&late);
    sim.run(move || {
        let inside = kernel.clone();
        let at = kernel.time() + 250_000;
        let probe = spawn(&kernel, "probe", 0, Policy::Fifo(98), move || {
            inside.sleep_until(at);
            told.store(inside.time() - at, Relaxed);
        });
        kernel.bh_off(|| kernel.tasklet_hi_schedule(tasklet));
        join(probe);
    })
    .unwrap();
    assert_eq!(late.load(Relaxed), 50_000, "the rest of the pass that it came into");
}

#[test]
fn a_tasklet_scheduled_outside_of_sections_and_interrupts_runs_in_ksoftirqd() {
    let mut sim = sim(&[]);
    let (kernel, log) = (sim.kernel(), Log::default());
    let told = log.clone();
    let tasklet = kernel.new_tasklet(Box::new(move |place| told.add(format!("{place:?}"))));
    sim.run(move || {
        kernel.tasklet_hi_schedule(tasklet);
        sleep(&kernel, 1_000_000);
    })
    .unwrap();
    assert_eq!(log.take(), ["Ksoftirqd"]);
}

#[test]
fn tasklets_wait_for_a_runnable_ksoftirqd_in_4_9_and_not_in_4_16() {
    for (kernel_version, expected) in [("kernel = \"4.15\"", "Ksoftirqd"), ("kernel = \"4.16\"", "BhEnable")]
    {
        let mut sim = sim(&[("kernel = \"4.17\"", kernel_version)]);
        let (kernel, log) = (sim.kernel(), Log::default());
        let told = log.clone();
        let one = kernel.new_tasklet(Box::new(|_| ()));
        let two = kernel.new_tasklet(Box::new(move |place| told.add(format!("{place:?}"))));
        sim.run(move || {
            // The first one makes ksoftirqd runnable; it does not preempt a thread that has just begun.
            kernel.tasklet_hi_schedule(one);
            kernel.bh_off(|| kernel.tasklet_hi_schedule(two));
            sleep(&kernel, 1_000_000);
        })
        .unwrap();
        assert_eq!(log.take(), [expected], "{kernel_version}");
    }
}
