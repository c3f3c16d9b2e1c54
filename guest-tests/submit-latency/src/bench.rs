//! One block: device reset, a fresh CPU model and driver, load, probe, and everything taken down again.
//!
//! Nothing survives from one block to the next but the device and the way to it, so arms cannot influence each other
//! through the driver's or the GPU's state.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::{Result, anyhow, bail, ensure};
use execlab_driver::Variant;
use execlab_probe::{Measurement, Probe};

use crate::load::{Load, LoadSetting};
use crate::setting::Setting;
use crate::world::{Rig, World};

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
pub struct Bench<'a, W: World> {
    setting: &'a Setting,
    world: &'a W,
    probe: Probe<W::Kernel>,
    cancel: Arc<AtomicBool>,
}

impl<'a, W: World> Bench<'a, W> {
    /// In `world`, with a probe that runs there.
    pub fn new(setting: &'a Setting, world: &'a W, probe: Probe<W::Kernel>, cancel: Arc<AtomicBool>) -> Self {
        Self { setting, world, probe, cancel }
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
            Some(variant) => self.loaded(variant, warm_up, index)?,
        };
        ensure!(!self.cancel.load(Relaxed), "stopped by a signal");
        ensure!(!measured.measurement.samples.is_empty(), "the probe never woke up in the block");
        self.world.check()?;
        Ok(measured)
    }

    fn loaded(&self, variant: Variant, warm_up: u64, index: u32) -> Result<Measured> {
        let rig = self.world.rig(variant, &self.setting.engines)?;
        let plan = &self.setting.plan;
        let setting = LoadSetting {
            cpu: plan.probe.cpu as usize,
            engines: self.setting.engines.clone(),
            contexts: plan.load.contexts,
            batch_ns: plan.load.batch_ns,
            seed: plan.seed ^ (u64::from(index) << 32),
        };
        let load = Load::start(rig.driver(), &setting)?;
        self.probe.measure(warm_up)?;
        let before = counters(&rig, &load);
        let measurement = self.probe.measure(self.setting.block_ns)?;
        let after = counters(&rig, &load);
        let failed = load.has_failed();
        let gone = self.world.check();
        match load.finish(gone.is_err()) {
            _ if gone.is_err() => gone?,
            Err(error) => return Err(self.explain(&rig, &error)),
            Ok(()) if failed => bail!("the load ended before it was told to"),
            Ok(()) => {}
        }
        self.check(&rig)?;
        rig.finish()?;
        Ok(Measured { measurement, counters: difference(&before, after) })
    }

    fn check(&self, rig: &W::Rig) -> Result<()> {
        self.world.check()?;
        rig.driver().check_device()?;
        rig.check()
    }

    /// An error of the load with what the device and the driver know about it.
    fn explain(&self, rig: &W::Rig, error: &anyhow::Error) -> anyhow::Error {
        let device = match self.check(rig) {
            Ok(()) => "the device reports no error".to_owned(),
            Err(found) => format!("{found:#}"),
        };
        let seen = rig.driver().counters();
        anyhow!(
            "{error:#}; {device}; {} submissions, {} ELSP writes, {} CSB events, {} interrupts",
            seen.submissions,
            seen.elsp_writes,
            seen.csb_events,
            seen.interrupts
        )
    }
}

fn counters<R: Rig>(rig: &R, load: &Load<R::Kernel>) -> BTreeMap<String, u64> {
    let mut all = rig.counters();
    all.extend(rig.driver().counters().iter().map(|(name, value)| (name.to_owned(), value)));
    all.insert("load-ring-full-waits".to_owned(), load.ring_full_waits());
    all
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
