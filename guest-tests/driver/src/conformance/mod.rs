//! What every variant must do in every world: one suite for the model in a test, for native runs, for a VM, for a
//! simulator.
//!
//! A world brings a kernel and a bus. For each of [`cases`] it starts a device that behaves as the case's [`Device`]
//! says, makes a [`Driver`] of the variant under test, connects its interrupts, and calls [`Case::run`]. Time passes
//! only by what the kernel offers (sleeping, waiting), so a world whose clock stands still must let the device go on
//! there.
//!
//! A case uses its driver alone and leaves it idle. Nothing here panics: a broken world gives a [`Failure`].

mod flow;
mod limits;
mod order;

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use execlab_abi::engine::Engine;

use crate::bus::Bus;
use crate::kernel::Kernel;
use crate::{Context, Driver, DriverError, RequestSpec, WaitError};

/// Nanoseconds after which what should happen counts as never happening.
pub const PATIENCE_NS: u64 = 10_000_000_000;

/// How the device of a case must behave. Delays are modelled ones, before dilation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Device {
    /// No delay anywhere.
    Instant,
    /// Delays of some microseconds at every point, different each time.
    Usual,
    /// CSB entries become visible up to 9 us after the write index.
    LateCsb,
    /// CSB entries become visible 50 us after the write index.
    VeryLateCsb,
    /// CSB entries become visible up to 60 us after the write index, each after the one before.
    ErraticCsb,
    /// A submission is accepted 20 ms after it was written: longer than any machine takes to fill a ring of a page.
    SlowAccept,
    /// A submission is accepted 5 s after it was written.
    Stuck,
}

impl Device {
    /// Every behaviour.
    pub const ALL: [Self; 7] = [
        Self::Instant,
        Self::Usual,
        Self::LateCsb,
        Self::VeryLateCsb,
        Self::ErraticCsb,
        Self::SlowAccept,
        Self::Stuck,
    ];

    /// A delay profile of the device process that behaves so, in TOML. A world may use it or arrange for the same
    /// in another way.
    #[must_use]
    pub const fn profile(self) -> &'static str {
        match self {
            Self::Instant => "name = \"instant\"\n",
            Self::Usual => {
                "name = \"usual\"\n[delay]\n\"elsp.accept\" = { uniform = [\"0ns\", \"3us\"] }\n\
                 \"context.restore\" = { uniform = [\"0ns\", \"5us\"] }\n\"context.save\" = \"400ns\"\n\
                 \"command.execute\" = \"20ns\"\n\"irq.deliver\" = { uniform = [\"0ns\", \"4us\"] }\n\
                 \"seqno.visible\" = { uniform = [\"0ns\", \"500ns\"] }\n"
            }
            Self::LateCsb => {
                "name = \"late\"\n[delay]\n\"csb.visible\" = { uniform = [\"0ns\", \"9us\"] }\n\
                 \"elsp.accept\" = \"1us\"\n"
            }
            Self::VeryLateCsb => "name = \"very-late\"\n[delay]\n\"csb.visible\" = \"50us\"\n",
            Self::ErraticCsb => {
                "name = \"erratic\"\n[delay]\n\"csb.visible\" = { uniform = [\"0ns\", \"60us\"] }\n\
                 \"elsp.accept\" = \"1us\"\n"
            }
            Self::SlowAccept => "name = \"slow\"\n[delay]\n\"elsp.accept\" = \"20ms\"\n",
            Self::Stuck => "name = \"stuck\"\n[delay]\n\"elsp.accept\" = \"5s\"\n",
        }
    }
}

/// A case that was not passed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The driver refused something.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// Something took longer than [`PATIENCE_NS`].
    #[error(transparent)]
    Wait(#[from] WaitError),
    /// Something is not as it should be.
    #[error("{0}")]
    Wrong(String),
}

/// What a case gives.
pub type Outcome = Result<(), Failure>;

/// One case.
pub struct Case<K: Kernel, B: Bus> {
    /// Input and expected result, in words.
    pub name: &'static str,
    /// The device that it needs.
    pub device: Device,
    body: fn(&Bench<K, B>) -> Outcome,
}

impl<K: Kernel, B: Bus> Case<K, B> {
    /// Runs the case with a fresh driver of a fresh device.
    ///
    /// # Errors
    /// [`Failure`] when the case is not passed, the driver does not come to rest afterwards, or the device has
    /// recorded a violation.
    pub fn run(&self, driver: &Arc<Driver<K, B>>) -> Outcome {
        let bench = Bench { driver: Arc::clone(driver), engines: driver.engines().collect() };
        (self.body)(&bench)?;
        bench.until("the driver is idle", || driver.is_idle())?;
        driver.check_device()?;
        let counters = driver.counters();
        wrong_unless(counters.force_restores == 0, || {
            alloc::format!("{} submissions with a tail that did not move", counters.force_restores)
        })?;
        // A bottom half is scheduled by a submission or by an interrupt, and by nothing else.
        let bottom_halves = counters.bh_at_enable + counters.bh_at_irq_exit + counters.bh_in_ksoftirqd;
        wrong_unless(bottom_halves <= counters.submissions + counters.context_switch_interrupts, || {
            alloc::format!("{bottom_halves} bottom halves without need: {counters:?}")
        })
    }
}

/// Every case.
#[must_use]
pub fn cases<K: Kernel, B: Bus>() -> Vec<Case<K, B>> {
    let mut all = Vec::new();
    let mut add = |name, devices: &[Device], body| {
        all.extend(devices.iter().map(|device| Case { name, device: *device, body }));
    };
    let timings = [Device::Instant, Device::Usual, Device::LateCsb, Device::ErraticCsb];
    add("a request on each engine completes and its waiter is woken", &timings, flow::single);
    add("a request with a batch completes on each engine", &timings, flow::batch);
    add("a batch of 30 us takes at least 30 us", &[Device::Instant, Device::Usual], flow::batch_length);
    add("a flood of one context is lite-restored and wraps its ring", &[Device::Usual], flow::flood);
    add("requests without a waiter raise no user interrupt", &timings, flow::no_waiter);
    add("a waiter comes while its request is about to complete", &timings, flow::wait_race);
    add("a thousand requests complete in the order of their contexts", &timings, order::thousand);
    add("a higher priority goes first when a port is free", &[Device::SlowAccept], order::priority);
    add("a priority cannot change while requests are in flight", &[Device::SlowAccept], order::busy);
    add("a full ring refuses, and takes again after requests retired", &[Device::SlowAccept], limits::full);
    add("a submission to a full ring waits for room", &[Device::Usual, Device::SlowAccept], limits::waits);
    add("a submission to a full ring times out on a stuck engine", &[Device::Stuck], limits::room_times_out);
    add("a wait ends at its deadline on a stuck engine", &[Device::Stuck], limits::wait_times_out);
    add("entries later than 10 us are read from the MMIO copy", &[Device::VeryLateCsb], limits::late_csb);
    add("rings of 0 and 513 pages are refused", &[Device::Instant], limits::ring_size);
    all
}

/// A driver and what the cases do with it.
struct Bench<K: Kernel, B: Bus> {
    driver: Arc<Driver<K, B>>,
    engines: Vec<Engine>,
}

impl<K: Kernel, B: Bus> Bench<K, B> {
    fn now(&self) -> u64 {
        self.driver.kernel().now()
    }

    fn deadline(&self) -> u64 {
        self.now() + PATIENCE_NS
    }

    fn first_engine(&self) -> Engine {
        self.engines[0]
    }

    /// A context with a ring of one page.
    fn context(&self, engine: Engine) -> Result<Context<B::Dma>, Failure> {
        Ok(self.driver.context_create(engine, 1)?)
    }

    /// Submits, waiting for room without a user interrupt.
    fn submit(&self, context: &mut Context<B::Dma>, spec: RequestSpec) -> Result<u32, Failure> {
        loop {
            if let Ok(seqno) = self.driver.submit(context, spec) {
                return Ok(seqno);
            }
            self.until("a full ring has room again", || context.retire() > 0)?;
        }
    }

    fn wait(&self, context: &Context<B::Dma>, seqno: u32) -> Outcome {
        self.driver.wait(context, seqno, self.deadline())?;
        wrong_unless(context.is_complete(seqno), || {
            alloc::format!("a wait for request {seqno} ended at {}", context.completed_seqno())
        })
    }

    /// Waits by polling until `condition` holds.
    fn until(&self, what: &str, mut condition: impl FnMut() -> bool) -> Outcome {
        let deadline = self.deadline();
        let mut pause = 2_000;
        while !condition() {
            if self.now() >= deadline {
                let seen = self.driver.counters();
                return Err(Failure::Wrong(alloc::format!("never: {what}; {seen:?}")));
            }
            self.driver.kernel().sleep_until(self.now() + pause);
            pause = (2 * pause).min(1_000_000);
        }
        Ok(())
    }

    /// Waits until all requests of `contexts` are complete, without a user interrupt.
    fn drain(&self, contexts: &mut [Context<B::Dma>]) -> Outcome {
        for context in contexts {
            self.until("every request is complete", || {
                context.retire();
                context.in_flight() == 0
            })?;
        }
        Ok(())
    }
}

fn wrong_unless(holds: bool, what: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(Failure::Wrong(what())) }
}
