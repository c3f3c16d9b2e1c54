//! One block: device reset, a fresh CPU model and driver, load, probe, and everything taken down again.
//!
//! Nothing survives from one block to the next but the device process and the connection to it, so arms cannot
//! influence each other through the driver's or the GPU's state.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use execlab_abi::wire::IrqRecord;
use execlab_access::{AnyDevice, IrqSource};
use execlab_driver::bus::Bus as _;
use execlab_driver::{DriverConfig, Variant};
use execlab_posix::{Config as CpuConfig, Cpu, IrqLine, IrqThread};
use execlab_probe::{Measurement, Probe};

use crate::load::{Gpu, Load, LoadSetting};
use crate::recycle::Recycler;
use crate::setting::Setting;

/// How long the device may take to apply what was posted.
const FLUSH: Duration = Duration::from_secs(10);
/// The load runs that long before the block, unmeasured, a tenth of the block at most.
const WARM_UP_NS: u64 = 50_000_000;

/// What one block gave.
pub struct Measured {
    /// The probe's samples.
    pub measurement: Measurement,
    /// What driver, CPU and bus counted meanwhile.
    pub counters: BTreeMap<String, u64>,
}

/// All that lasts for the run.
pub struct Bench {
    setting: Setting,
    device: Arc<AnyDevice>,
    bus: Arc<Recycler>,
    probe: Probe,
    cancel: Arc<AtomicBool>,
}

impl Bench {
    /// Around an open device and a started probe.
    pub fn new(setting: Setting, device: Arc<AnyDevice>, probe: Probe, cancel: Arc<AtomicBool>) -> Self {
        let bus = Arc::new(Recycler::new(Arc::clone(&device)));
        Self { setting, device, bus, probe, cancel }
    }

    /// Measures one block of an arm; `index` is the block's place in the run.
    ///
    /// # Errors
    /// When the device hangs, is gone, or reports a violation, or the run was cancelled.
    pub fn block(&self, variant: Option<Variant>, index: u32) -> Result<Measured> {
        let warm_up = WARM_UP_NS.min(self.setting.block_ns / 10);
        let measured = match variant {
            None => {
                self.probe.measure(warm_up)?;
                let measurement = self.probe.measure(self.setting.block_ns)?;
                Measured { measurement, counters: BTreeMap::new() }
            }
            Some(variant) => Rig::start(self, variant)?.block(self, warm_up, index)?,
        };
        ensure!(!self.cancel.load(Relaxed), "stopped by a signal");
        ensure!(!measured.measurement.samples.is_empty(), "the probe never woke up in the block");
        self.device.check()?;
        Ok(measured)
    }

    /// A GPU as after power-on, with nothing of the past in the queues.
    fn reset(&self) -> Result<()> {
        ensure!(self.device.flush(FLUSH), "the device did not apply posted writes within {FLUSH:?}");
        self.device.reset().context("reset of the GPU")?;
        while self.device.take_irq().is_some() {}
        Ok(())
    }
}

/// One driver with its CPU. Fields are dropped in this order: no interrupt comes for a driver that is gone.
struct Rig {
    irq: IrqThread,
    driver: Arc<Gpu>,
    cpu: Cpu,
}

impl Rig {
    fn start(bench: &Bench, variant: Variant) -> Result<Self> {
        bench.reset()?;
        let plan = &bench.setting.plan;
        let config = CpuConfig { cpu: plan.probe.cpu as usize, priorities: true, dilation: plan.dilation };
        let cpu = Cpu::start(config)?;
        let kernel = cpu.kernel();
        let config = DriverConfig { variant, engines: bench.setting.engines.clone() };
        let driver = Gpu::new(Arc::new(kernel.clone()), Arc::clone(&bench.bus), &config)?;
        let line = Line { source: bench.device.irq_source(), device: Arc::clone(&bench.device) };
        let handled = Arc::clone(&driver);
        let irq = IrqThread::start(&kernel, line, move |record| handled.handle_irq(&record))?;
        Ok(Self { irq, driver, cpu })
    }

    fn block(self, bench: &Bench, warm_up: u64, index: u32) -> Result<Measured> {
        let plan = &bench.setting.plan;
        let setting = LoadSetting {
            cpu: plan.probe.cpu as usize,
            engines: bench.setting.engines.clone(),
            contexts: plan.load.contexts,
            batch_ns: plan.load.batch_ns,
            seed: plan.seed ^ (u64::from(index) << 32),
        };
        let load = Load::start(&self.driver, &setting)?;
        bench.probe.measure(warm_up)?;
        let before = self.counters(bench, &load);
        let measurement = bench.probe.measure(bench.setting.block_ns)?;
        let after = self.counters(bench, &load);
        let failed = load.has_failed();
        let gone = bench.device.check();
        match load.finish(gone.is_err()) {
            _ if gone.is_err() => gone?,
            Err(error) => return Err(self.explain(bench, &error)),
            Ok(()) if failed => bail!("the load ended before it was told to"),
            Ok(()) => {}
        }
        self.check(bench)?;
        let Self { irq, driver, cpu } = self;
        drop(irq);
        bench.reset()?;
        drop(driver);
        drop(cpu);
        Ok(Measured { measurement, counters: difference(&before, after) })
    }

    fn counters(&self, bench: &Bench, load: &Load) -> BTreeMap<String, u64> {
        let mut all = self.cpu.stats().to_map();
        all.extend(self.driver.counters().iter().map(|(name, value)| (name.to_owned(), value)));
        let bus = bench.device.counters();
        let more = [
            ("bus-notifications", bus.notifications),
            ("bus-posted-writes", bus.writes),
            ("bus-posted-queue-full", bus.full_waits),
            ("bus-slow-reads", bus.slow_reads),
            ("bus-interrupt-wake-ups", bus.wakeups),
            ("load-ring-full-waits", load.ring_full_waits()),
        ];
        all.extend(more.map(|(name, value)| (name.to_owned(), value)));
        all
    }

    fn check(&self, bench: &Bench) -> Result<()> {
        bench.device.check()?;
        self.driver.check_device()?;
        if let Some(error) = self.irq.error() {
            bail!("waiting for interrupts: {error}");
        }
        let refused = self.cpu.stats().refused;
        ensure!(refused == 0, "{refused} irq-off sections could not be raised to SCHED_FIFO 99");
        Ok(())
    }

    /// An error of the load with what the device and the driver know about it.
    fn explain(&self, bench: &Bench, error: &anyhow::Error) -> anyhow::Error {
        let device = match self.check(bench) {
            Ok(()) => "the device reports no error".to_owned(),
            Err(found) => format!("{found:#}"),
        };
        let seen = self.driver.counters();
        anyhow!(
            "{error:#}; {device}; {} submissions, {} ELSP writes, {} CSB events, {} interrupts",
            seen.submissions,
            seen.elsp_writes,
            seen.csb_events,
            seen.interrupts
        )
    }
}

/// What was counted between two snapshots. A longest span is the longest since the driver was made.
fn difference(before: &BTreeMap<String, u64>, after: BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let since = |(name, value): (String, u64)| {
        let past = before.get(&name).copied().unwrap_or(0);
        let value = if name.contains("longest") { value } else { value.saturating_sub(past) };
        (name, value)
    };
    after.into_iter().map(since).collect()
}

/// The device's interrupts for the interrupt thread.
struct Line {
    source: IrqSource,
    device: Arc<AnyDevice>,
}

/// How long the interrupt thread sleeps before it looks whether it is to stop.
const IRQ_SLICE: Duration = Duration::from_millis(20);

impl IrqLine for Line {
    type Record = IrqRecord;

    fn wait(&mut self) -> io::Result<()> {
        self.source.wait(Some(IRQ_SLICE)).map(drop).map_err(io::Error::other)
    }

    fn take(&mut self) -> Option<IrqRecord> {
        self.device.take_irq()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_differences_and_longest_spans_are_not() {
        let map = |n, l| BTreeMap::from([("n".to_owned(), n), ("longest-ns".to_owned(), l)]);
        assert_eq!(difference(&map(10, 7), map(15, 9)), map(5, 9));
        assert_eq!(difference(&BTreeMap::new(), map(15, 9)), map(15, 9));
    }
}
