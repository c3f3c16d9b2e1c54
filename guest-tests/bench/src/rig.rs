//! A driver on the smallest kernel, with a bus that stamps the ELSP write.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use execlab_abi::csb::next_index;
use execlab_abi::engine::Engine;
use execlab_abi::ring;
use execlab_abi::wire::{IrqRecord, PostedWrite};
use execlab_access::{AnyDevice, Error, IrqSource, NativeOptions, Pages, native};
use execlab_driver::bus::{Bus, BusCosts};
use execlab_driver::kernel::Place;
use execlab_driver::{Context, Driver, DriverConfig, RequestSpec, Variant};
use execlab_posix::now_ns;

use crate::kernel::Inline;

/// The engine that is measured.
const ENGINE: Engine = Engine::Bcs0;
/// How long one submission may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Looks at what is spun for between two readings of the clock.
const LOOKS: u32 = 1000;

/// The device, with the time of the last ELSP write.
pub struct Stamping {
    device: Arc<AnyDevice>,
    elsp_ns: AtomicU64,
}

impl Bus for Stamping {
    type Dma = Pages;
    type Error = Error;

    fn read32(&self, offset: u32) -> u32 {
        self.device.read32(offset)
    }
    fn write(&self, writes: &[PostedWrite]) {
        if writes.first().is_some_and(|w| w.offset == ENGINE.reg(ring::ELSP)) {
            self.elsp_ns.store(now_ns(), Relaxed);
        }
        self.device.write(writes);
    }
    fn take_irq(&self) -> Option<IrqRecord> {
        self.device.take_irq()
    }
    fn dilation_milli(&self) -> u32 {
        self.device.dilation_milli()
    }
    fn costs(&self) -> BusCosts {
        self.device.costs()
    }
    fn alloc(&self, pages: usize) -> Result<Pages, Error> {
        self.device.alloc(pages)
    }
}

/// What is watched for after a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watch {
    /// The first CSB entry: the submission was accepted.
    FirstEvent,
    /// The second: the context was restored and ran.
    SecondEvent,
    /// The first interrupt, spinning on its queue.
    InterruptPolled,
    /// The first interrupt, blocked until it comes.
    InterruptBlocked,
}

/// Everything that a measurement needs.
pub struct Rig {
    /// The device.
    pub device: Arc<AnyDevice>,
    bus: Arc<Stamping>,
    kernel: Arc<Inline>,
    driver: Arc<Driver<Inline, Stamping>>,
    context: Context<Pages>,
    irqs: IrqSource,
}

impl Rig {
    /// Connects to the device on `socket` and sets it up.
    pub fn connect(socket: &Path) -> Result<Self> {
        let device = native::connect(socket, &NativeOptions::default())?;
        let bus = Arc::new(Stamping { device: Arc::clone(&device), elsp_ns: AtomicU64::new(0) });
        let kernel = Arc::new(Inline::default());
        let config = DriverConfig { variant: Variant::Direct2018, engines: vec![ENGINE] };
        let driver = Driver::new(Arc::clone(&kernel), Arc::clone(&bus), &config)?;
        let context = driver.context_create(ENGINE, 4)?;
        let irqs = device.irq_source();
        Ok(Self { device, bus, kernel, driver, context, irqs })
    }

    /// A value of the device's description of itself.
    pub fn described(&self, key: &str) -> String {
        let identity = self.device.identity();
        identity.description.get(key).cloned().unwrap_or_else(|| "unknown".to_owned())
    }

    /// One submission to an idle engine; nanoseconds from the ELSP write to what is watched for. The engine is idle
    /// again afterwards.
    pub fn submission(&mut self, watch: Watch) -> Result<u64> {
        // The index in the status page, which the driver set itself at the start: a register could still show what
        // the device had there before the driver's first writes reached it.
        let index = |rig: &Self| rig.driver.csb_write_index(ENGINE);
        let before = index(self).context("the engine is not driven")?;
        self.driver.submit(&mut self.context, RequestSpec::default())?;
        let deadline = now_ns() + PATIENCE.as_nanos() as u64;
        let first = |index: Option<u32>| index != Some(before);
        let second = |index: Option<u32>| first(index) && index != Some(next_index(before));
        let seen = match watch {
            Watch::FirstEvent => self.spin(deadline, |rig| first(index(rig))),
            Watch::SecondEvent => self.spin(deadline, |rig| second(index(rig))),
            Watch::InterruptPolled => self.spin(deadline, |rig| rig.irqs.poll()),
            Watch::InterruptBlocked => {
                let came = self.irqs.wait(Some(PATIENCE))?;
                came.then(now_ns)
            }
        };
        let Some(seen) = seen else {
            self.driver.check_device()?;
            bail!("nothing came of a submission within {} s", PATIENCE.as_secs());
        };
        let written = self.bus.elsp_ns.load(Relaxed);
        self.settle(deadline)?;
        Ok(seen.saturating_sub(written))
    }

    fn spin(&self, deadline: u64, done: impl Fn(&Self) -> bool) -> Option<u64> {
        loop {
            // Between two looks at the clock, many at what is measured: the end is seen without that cost.
            for _ in 0..LOOKS {
                if done(self) {
                    return Some(now_ns());
                }
                std::hint::spin_loop();
            }
            if now_ns() > deadline {
                return None;
            }
        }
    }

    /// Handles interrupts until the submission is through, and none of it is under way any more.
    fn settle(&mut self, deadline: u64) -> Result<()> {
        loop {
            self.handle_interrupts();
            self.context.retire();
            if self.driver.is_idle() && self.context.in_flight() == 0 {
                break;
            }
            if now_ns() > deadline {
                bail!("a submission did not complete within {} s", PATIENCE.as_secs());
            }
            std::hint::spin_loop();
        }
        // The last event was seen in memory; its interrupt comes in the same instant of device time. The device
        // answers a request when it has done all that was due, and the next one when it has delivered all of that.
        for _ in 0..2 {
            self.device.read_register(ENGINE.reg(ring::MODE))?;
        }
        self.handle_interrupts();
        self.driver.check_device().context("the device complains")
    }

    fn handle_interrupts(&self) {
        while let Some(record) = self.bus.take_irq() {
            self.driver.handle_irq(&record);
            self.kernel.run_tasklets(Place::IrqExit);
        }
    }
}
