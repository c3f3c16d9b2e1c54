//! A machine for tests: kernel, bus and device model on one thread, deterministic.
#![allow(dead_code, reason = "each test binary uses its own part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a broken bench fails its test")]

pub mod bus;
pub mod kernel;

use std::sync::{Arc, Mutex, Weak};

use execlab_abi::engine::Engine;
use execlab_abi::wire::IrqRecord;
use execlab_driver::bus::{Bus as _, BusCosts};
use execlab_driver::conformance::Device;
use execlab_driver::kernel::Kernel as _;
use execlab_driver::{Bug, Driver, DriverConfig, Variant};
use execlab_profile::Profile;

use bus::ModelBus;
use kernel::{Outside, TestKernel};

pub type TestDriver = Driver<TestKernel, ModelBus>;

/// Driver, kernel and device together.
pub struct Machine {
    pub kernel: TestKernel,
    pub bus: Arc<ModelBus>,
    pub driver: Arc<TestDriver>,
    handler: Handler,
}

/// The driver that takes the interrupts.
type Handler = Arc<Mutex<Weak<TestDriver>>>;

struct Beside {
    bus: Arc<ModelBus>,
    handler: Handler,
}

impl Outside for Beside {
    fn due(&self) -> Option<u64> {
        self.bus.due()
    }
    fn advance(&self, now: u64) {
        self.bus.advance(now);
    }
    fn interrupt(&self) -> Option<Box<dyn FnOnce()>> {
        let driver = self.handler.lock().unwrap().upgrade()?;
        let record = self.bus.take_irq()?;
        Some(Box::new(move || driver.handle_irq(&record)))
    }
}

/// What accesses cost, unless a test says otherwise.
const COSTS: BusCosts = BusCosts { read_ns: 100, write_ns: 10, forcewake_ns: 0 };

impl Machine {
    /// A machine whose writes arrive `post_ns` after they were posted.
    pub fn new(variant: Variant, profile: &str, seed: u64, post_ns: u64) -> Self {
        Self::with_costs(variant, profile, seed, post_ns, COSTS)
    }

    /// The same with other bus costs.
    pub fn with_costs(variant: Variant, profile: &str, seed: u64, post_ns: u64, costs: BusCosts) -> Self {
        let profile = Profile::parse(profile, "test").unwrap();
        let kernel = TestKernel::default();
        let bus = ModelBus::new(&kernel, &profile, seed, post_ns, costs);
        let driver = driver(&kernel, &bus, variant);
        Self::with_driver(kernel, bus, driver)
    }

    /// A machine whose driver has a known mistake.
    pub fn with_bug(variant: Variant, profile: &str, seed: u64, post_ns: u64, bug: Bug) -> Self {
        let profile = Profile::parse(profile, "test").unwrap();
        let kernel = TestKernel::default();
        let bus = ModelBus::new(&kernel, &profile, seed, post_ns, COSTS);
        let driver =
            Driver::with_bug(Arc::new(kernel.clone()), Arc::clone(&bus), &config(variant), bug).unwrap();
        Self::with_driver(kernel, bus, driver)
    }

    fn with_driver(kernel: TestKernel, bus: Arc<ModelBus>, driver: Arc<TestDriver>) -> Self {
        let handler = Arc::new(Mutex::new(Arc::downgrade(&driver)));
        kernel.connect(Beside { bus: Arc::clone(&bus), handler: Arc::clone(&handler) });
        Self { kernel, bus, driver, handler }
    }

    /// Another driver takes the device over as the last one left it.
    pub fn reload(self, variant: Variant) -> Self {
        let Self { kernel, bus, driver: last, handler } = self;
        // First: on its way out it turns the interrupts off.
        drop(last);
        let driver = driver(&kernel, &bus, variant);
        *handler.lock().unwrap() = Arc::downgrade(&driver);
        Self { kernel, bus, driver, handler }
    }

    /// An interrupt that the device did not raise.
    pub fn interrupt(&self, record: &IrqRecord) {
        self.kernel.interrupt(|| self.driver.handle_irq(record));
    }

    /// Lets time pass until the driver is idle.
    pub fn settle(&self) {
        let mut left = 1_000_000;
        while !self.driver.is_idle() {
            self.kernel.sleep_until(self.kernel.now() + 1_000);
            left -= 1;
            assert!(left > 0, "the machine never comes to rest");
        }
    }
}

fn driver(kernel: &TestKernel, bus: &Arc<ModelBus>, variant: Variant) -> Arc<TestDriver> {
    Driver::new(Arc::new(kernel.clone()), Arc::clone(bus), &config(variant)).unwrap()
}

fn config(variant: Variant) -> DriverConfig {
    DriverConfig { variant, engines: Engine::ALL.to_vec() }
}

/// The profile that behaves as a case wants it, and how long posted writes take.
pub fn profile(device: Device) -> (&'static str, u64) {
    let post_ns = match device {
        Device::Instant => 0,
        Device::Usual => 300,
        _ => 100,
    };
    (device.profile(), post_ns)
}
