//! How fast it is: `cargo test --release -p execlab-sim --test speed -- --ignored --nocapture`

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::sync::Arc;
use std::time::Instant;

use execlab_abi::engine::Engine;
use execlab_driver::bus::Bus as _;
use execlab_driver::kernel::{Kernel as _, Policy, Thread as _, Threads as _};
use execlab_driver::{Driver, DriverConfig, RequestSpec, Variant};
use execlab_profile::Profile;
use execlab_sim::device::{DeviceConfig, SimDevice};
use execlab_sim::{Device, Machine, Sim};

const REQUESTS: u32 = 500_000;

/// Submits as fast as the ring allows, with a probe on the same CPU if wanted; requests per second of host time.
fn rate(variant: Variant, probe: bool) -> f64 {
    let machine = Machine::builtin("kbl-2018").unwrap();
    let mut sim = Sim::new(&machine, 1);
    let kernel = sim.kernel();
    let device = SimDevice::new(kernel.clone(), &DeviceConfig::new(Profile::builtin("kbl-2018").unwrap(), 1));
    sim.attach(Arc::clone(&device) as Arc<dyn Device>);
    let start = Instant::now();
    let boot = kernel.time();
    let inside = kernel.clone();
    sim.run(move || {
        if probe {
            let asleep = kernel.clone();
            kernel
                .spawn("probe", 0, Policy::Fifo(98), move || {
                    loop {
                        asleep.sleep_until(asleep.time() + 100_000);
                    }
                })
                .unwrap();
        }
        let config = DriverConfig { variant, engines: vec![Engine::Bcs0] };
        let driver = Driver::new(Arc::new(kernel.clone()), Arc::clone(&device), &config).unwrap();
        let weak = Arc::downgrade(&driver);
        let taken = Arc::clone(&device);
        kernel.connect_irq(
            0,
            Box::new(move || {
                while let Some(record) = taken.take_irq() {
                    if let Some(driver) = weak.upgrade() {
                        driver.handle_irq(&record);
                    }
                }
            }),
        );
        let load = kernel.clone();
        let load = kernel.spawn("load", 0, Policy::Other, move || {
            let mut context = driver.context_create(Engine::Bcs0, 4).unwrap();
            let batch = driver.batch_create(0).unwrap();
            let spec = RequestSpec { batch: Some(batch.address()) };
            for _ in 0..REQUESTS {
                driver.submit_waiting(&mut context, spec, load.time() + 1_000_000_000).unwrap();
            }
            driver.wait(&context, context.last_seqno(), load.time() + 1_000_000_000).unwrap();
            driver.check_device().unwrap();
        });
        load.unwrap().join().unwrap();
    })
    .unwrap();
    let (host, simulated) = (start.elapsed(), inside.time() - boot);
    println!(
        "{}{}: {:.2} s of host time for {:.3} s, {} ns a request",
        variant.name(),
        if probe { " with probe" } else { "" },
        host.as_secs_f64(),
        simulated as f64 / 1e9,
        simulated / u64::from(REQUESTS),
    );
    f64::from(REQUESTS) / host.as_secs_f64()
}

#[test]
#[ignore = "measures"]
fn requests_per_second_of_host_time() {
    for variant in Variant::ALL {
        for probe in [false, true] {
            println!("  {:.0} requests/s", rate(variant, probe));
        }
    }
}

/// What one call costs the host while nothing else is due, and what a burst costs that another CPU's crosses.
#[test]
#[ignore = "measures"]
fn nanoseconds_of_host_time_for_a_call() {
    let calls = 5_000_000_u32;
    let measure = |what: &str, body: fn(&execlab_sim::SimKernel, u32), others: usize| {
        let mut sim = Sim::new(&Machine::builtin("kbl-2018").unwrap(), 1);
        let kernel = sim.kernel();
        for cpu in 1..=others {
            let inside = kernel.clone();
            let busy = move || loop {
                inside.spend(100);
            };
            kernel.spawn("other", cpu, Policy::Other, busy).unwrap();
        }
        let start = Instant::now();
        sim.run(move || body(&kernel, calls)).unwrap();
        println!("{what}: {:.1} ns", start.elapsed().as_nanos() as f64 / f64::from(calls));
    };
    measure("spend", |kernel, calls| (0..calls).for_each(|_| kernel.spend(100)), 0);
    measure("irq_off", |kernel, calls| (0..calls).for_each(|_| kernel.irq_off(|| ())), 0);
    measure(
        "lock",
        |kernel, calls| {
            let lock = kernel.new_lock("own", 0_u32);
            (0..calls)
                .for_each(|_| execlab_driver::kernel::SpinLock::with_irqsave(&lock, |value| *value += 1));
        },
        0,
    );
    measure("spend beside another busy CPU", |kernel, calls| (0..calls).for_each(|_| kernel.spend(100)), 1);
}
