//! Where theory knows the answer, the simulation must give it within 2 %.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod support;

use execlab_driver::kernel::{Kernel as _, Policy};
use execlab_sim::{Device, SimKernel};
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use support::{join, machine, sim, spawn};

fn within_2_percent(measured: f64, theory: f64) {
    assert!((measured / theory - 1.0).abs() < 0.02, "measured {measured}, theory {theory}");
}

/// An exponentially distributed length.
fn exponential(rng: &mut SmallRng, mean: f64) -> u64 {
    (-mean * (1.0 - rng.random::<f64>()).ln()) as u64
}

/// A probe that comes at random meets sections of length L at rate λ: it waits λ·E[L²]/2 in the mean.
#[test]
fn a_probe_over_irq_off_sections_waits_half_of_lambda_times_the_mean_square() {
    let mut sim = sim(&[]);
    let kernel = sim.kernel();
    let (short, long, gap) = (2_000_u64, 6_000_u64, 10_000_u64);
    let period = short + long + 2 * gap;
    let mean = sim.run(move || {
        let inside = kernel.clone();
        let probe = spawn(&kernel, "probe", 0, Policy::Fifo(98), move || {
            let mut rng = SmallRng::seed_from_u64(3);
            let (mut late, rounds) = (0, 200_000);
            for _ in 0..rounds {
                // Two whole periods of the load: no phase is likelier than another.
                let at = inside.time() + 40_000 + rng.random_range(0..2 * period);
                inside.sleep_until(at);
                late += inside.time() - at;
            }
            late as f64 / f64::from(rounds)
        });
        spawn(&kernel.clone(), "load", 0, Policy::Other, move || {
            loop {
                kernel.irq_off(|| kernel.spend(short));
                kernel.spend(gap);
                kernel.irq_off(|| kernel.spend(long));
                kernel.spend(gap);
            }
        });
        join(probe)
    });
    // The load runs unless the probe does, which takes no time here.
    let squares = (short * short + long * long) as f64;
    within_2_percent(mean.unwrap(), squares / period as f64 / 2.0);
}

/// A random arrival waits half a period for a periodic event: here a fair thread for the tick that ends its slice.
#[test]
fn a_random_arrival_waits_half_a_period_for_the_tick() {
    let mut sim =
        sim(&[("timer_slack = \"50us\"", "timer_slack = \"100ms\""), ("nohz = true", "nohz = false")]);
    let kernel = sim.kernel();
    let mean = sim.run(move || {
        let mut rng = SmallRng::seed_from_u64(5);
        let (mut late, rounds) = (0, 20_000);
        for _ in 0..rounds {
            // The slack is so long that the next tick, on an otherwise idle CPU, ends the sleep.
            let at = kernel.time() + rng.random_range(1..4_000_000);
            kernel.sleep_until(at);
            late += kernel.time() - at;
        }
        late as f64 / f64::from(rounds)
    });
    within_2_percent(mean.unwrap(), 2_000_000.0);
}

/// Raises its interrupt at exponentially distributed distances, and counts arrivals and their times.
struct Poisson {
    kernel: SimKernel,
    mean: f64,
    rng: std::sync::Mutex<SmallRng>,
    next: AtomicU64,
    arrivals: std::sync::Mutex<std::collections::VecDeque<u64>>,
}

impl Device for Poisson {
    fn next_deadline(&self) -> Option<u64> {
        Some(self.next.load(Relaxed))
    }
    fn advance(&self, now: u64) {
        self.arrivals.lock().unwrap().push_back(now);
        let gap = exponential(&mut self.rng.lock().unwrap(), self.mean);
        self.next.store(now + gap.max(1), Relaxed);
        self.kernel.raise_irq();
    }
}

/// M/D/1: Poisson arrivals, a fixed service time; the mean wait before service is ρ·S / (2·(1 − ρ)).
#[test]
fn an_interrupt_that_serves_poisson_arrivals_is_an_m_d_1_queue() {
    let (service, utilisation) = (1_000_u64, 0.6);
    let mut sim = execlab_sim::Sim::new(&machine(&[]), 1);
    let kernel = sim.kernel();
    let device = Arc::new(Poisson {
        kernel: kernel.clone(),
        mean: service as f64 / utilisation,
        rng: std::sync::Mutex::new(SmallRng::seed_from_u64(11)),
        next: AtomicU64::new(kernel.time() + 1),
        arrivals: std::sync::Mutex::default(),
    });
    sim.attach(Arc::clone(&device) as Arc<dyn Device>);
    let (waits, inside) = (Arc::new((AtomicU64::new(0), AtomicU64::new(0))), kernel.clone());
    let told = Arc::clone(&waits);
    kernel.connect_irq(
        0,
        Box::new(move || {
            // Edges coalesce: one interrupt serves all that have come.
            loop {
                let next = device.arrivals.lock().unwrap().pop_front();
                let Some(arrived) = next else { break };
                told.0.fetch_add(inside.time() - arrived, Relaxed);
                told.1.fetch_add(1, Relaxed);
                inside.spend(service);
            }
        }),
    );
    sim.run(move || kernel.spend(400_000_000)).unwrap();
    let mean = waits.0.load(Relaxed) as f64 / waits.1.load(Relaxed) as f64;
    within_2_percent(mean, utilisation * service as f64 / (2.0 * (1.0 - utilisation)));
}
