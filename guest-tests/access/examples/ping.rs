//! Is there a device, and how long is the way to it?
//!
//! `ping native SOCKET`, or in a guest `ping [vfio-pci|uio_pci_generic]…`: through the first driver that works, or
//! through each of those named.

use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;
use execlab_abi::wire::PostedWrite;
use execlab_abi::{csb, guc};
use execlab_access::{AnyDevice, NativeOptions, native, now_ns, pci};
use execlab_driver::bus::Bus as _;

#[path = "../tests/support/mod.rs"]
mod support;

const ROUNDS: usize = 200;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["native", socket] => ping(&native::connect(Path::new(socket), &NativeOptions::default())?)?,
        [] => ping(&pci::open(None)?)?,
        ref drivers => drivers.iter().try_for_each(|driver| ping(&pci::open(Some(driver))?))?,
    }
    println!("ping: ok");
    Ok(())
}

fn ping(device: &Arc<AnyDevice>) -> anyhow::Result<()> {
    println!("access   {}", device.access_name());
    println!("device   {:?}", device.identity().description);
    println!("costs    {:?}", device.costs());
    println!("clock    {:?}", device.clock_relation()?);
    show("read by round trip", reads(device)?);
    show("posted write to register page", echoes(device)?);
    show("posted write, return of write()", posts(device)?);
    show("submission to interrupt", interrupts(device)?);
    println!("counters {:?}", device.counters());
    println!("device's {}", device.statistics()?);
    Ok(device.check()?)
}

fn show(what: &str, mut samples: Vec<u64>) {
    samples.sort_unstable();
    let at = |percent: usize| samples[(samples.len() - 1) * percent / 100] as f64 / 1000.0;
    println!("{what:32} p50 {:9.1} µs  p99 {:9.1} µs  min {:9.1} µs", at(50), at(99), at(0));
}

fn timed(mut trip: impl FnMut(usize) -> anyhow::Result<()>) -> anyhow::Result<Vec<u64>> {
    (0..ROUNDS)
        .map(|n| {
            let start = now_ns();
            trip(n)?;
            Ok(now_ns() - start)
        })
        .collect()
}

fn reads(device: &Arc<AnyDevice>) -> anyhow::Result<Vec<u64>> {
    timed(|_| device.read_register(guc::soft_scratch(3)).map(drop).map_err(Into::into))
}

fn echoes(device: &Arc<AnyDevice>) -> anyhow::Result<Vec<u64>> {
    let offset = guc::soft_scratch(3);
    timed(|n| {
        let value = 0x1000 + n as u32;
        device.write(&[PostedWrite { offset, value }]);
        let start = Instant::now();
        while device.read32(offset) != value {
            ensure!(start.elapsed() < Duration::from_secs(5), "write {n} does not show in the register page");
            std::hint::spin_loop();
        }
        Ok(())
    })
}

fn posts(device: &Arc<AnyDevice>) -> anyhow::Result<Vec<u64>> {
    let writes = [0, 1, 2, 3].map(|value| PostedWrite { offset: guc::soft_scratch(4), value });
    let samples = timed(|_| {
        device.write(&writes);
        Ok(())
    })?;
    ensure!(device.flush(Duration::from_secs(5)), "posted writes are not applied");
    Ok(samples)
}

/// From the submission to the handler's thread, which sleeps until the interrupt wakes it.
fn interrupts(device: &Arc<AnyDevice>) -> anyhow::Result<Vec<u64>> {
    let context = support::EmptyContext::new(device)?;
    let (asleep, about_to_sleep) = mpsc::channel();
    let (taken, handled) = mpsc::channel();
    thread::scope(|scope| {
        let irqs = device.irq_source();
        let handler = scope.spawn(move || -> anyhow::Result<()> {
            for n in 0..ROUNDS {
                asleep.send(())?;
                ensure!(irqs.wait(Some(Duration::from_secs(5)))?, "no interrupt for submission {n}");
                let now = now_ns();
                while device.take_irq().is_some() {}
                taken.send(now)?;
            }
            Ok(())
        });
        let rounds = (0..ROUNDS).map(|_| {
            about_to_sleep.recv()?;
            // Lets the handler fall asleep; one that did not only makes this sample shorter.
            thread::sleep(Duration::from_millis(1));
            let start = now_ns();
            context.submit(device);
            Ok(handled.recv()? - start)
        });
        let samples = rounds.collect::<anyhow::Result<Vec<u64>>>();
        // The handler's own error says more than the closed channel.
        handler.join().map_err(|_| anyhow::anyhow!("the handler panicked"))??;
        ensure!(context.last_event().status & csb::COMPLETE != 0, "no completion in the status page");
        samples
    })
}
