//! The simulated machine as the world of an experiment.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use execlab_abi::engine::Engine;
use execlab_driver::bus::Bus as _;
use execlab_driver::{Driver, DriverConfig, Variant};
use execlab_report::{Access, Environment};
use execlab_submit_latency::{Rig, Setting, World};

use crate::device::{DeviceConfig, SimDevice};
use crate::{Machine, Sim, SimKernel};

/// The driver on the simulated machine.
pub type SimDriver = Driver<SimKernel, SimDevice>;

/// A simulated machine with its device, seen from inside: made within [`Sim::run`].
#[derive(Debug)]
pub struct SimWorld {
    kernel: SimKernel,
    device: Arc<SimDevice>,
    cpu: usize,
    about: Environment,
}

/// The simulation and the device for an experiment.
///
/// # Errors
/// When the plan is not for the simulator, or machine or profile are no good.
pub fn machine_for(setting: &Setting) -> Result<(Sim, SimWorld)> {
    let plan = &setting.plan;
    let Access::Sim { machine, profile } = &plan.access else {
        bail!("the plan is for a real device; this program only simulates");
    };
    // A dilation makes effects visible that noise would hide, and here there is none.
    ensure!(
        (plan.dilation - 1.0).abs() < f64::EPSILON,
        "dilation {}: simulated time needs none",
        plan.dilation
    );
    let mut machine = Machine::load(machine)?;
    // As the probe does on a real machine through /dev/cpu_dma_latency.
    machine.idle.clear();
    let cpu = plan.probe.cpu as usize;
    ensure!(cpu < machine.cpu.len(), "probe.cpu {cpu}: the machine has {} CPUs", machine.cpu.len());
    let profile = execlab_profile::Profile::load(profile)?;
    let profile_name = profile.name.clone();
    let mut sim = Sim::new(&machine, plan.seed);
    let kernel = sim.kernel();
    let device = SimDevice::new(kernel.clone(), &DeviceConfig::new(profile, plan.seed));
    sim.attach(Arc::clone(&device) as Arc<dyn crate::Device>);
    let about = environment(&machine, &profile_name, &device);
    Ok((sim, SimWorld { kernel, device, cpu, about }))
}

fn environment(machine: &Machine, profile: &str, device: &SimDevice) -> Environment {
    let costs = device.costs();
    let device = [
        ("profile", profile.to_owned()),
        ("bus-read-ns", costs.read_ns.to_string()),
        ("bus-write-ns", costs.write_ns.to_string()),
        ("forcewake-ns", costs.forcewake_ns.to_string()),
    ];
    Environment {
        kernel: format!("{} (simulated machine {})", machine.kernel, machine.name),
        kernel_version: format!("preemption {}, HZ={}", machine.preemption.name(), machine.hz),
        cpus: u32::try_from(machine.cpu.len()).unwrap_or(u32::MAX),
        clocksource: "simulated".to_owned(),
        access: "sim".to_owned(),
        device: device.map(|(key, value)| (key.to_owned(), value)).into(),
        clock_error_ns: 0,
        notes: vec![
            format!("machine: {}", machine.description),
            "idle CPUs poll, as with /dev/cpu_dma_latency held at 0".to_owned(),
        ],
    }
}

impl World for SimWorld {
    type Kernel = SimKernel;
    type Bus = SimDevice;
    type Rig = SimRig;

    fn kernel(&self) -> &SimKernel {
        &self.kernel
    }

    fn rig(&self, variant: Variant, engines: &[Engine]) -> Result<SimRig> {
        self.device.reset();
        let config = DriverConfig { variant, engines: engines.to_vec() };
        let driver = Driver::new(Arc::new(self.kernel.clone()), Arc::clone(&self.device), &config)?;
        connect(&self.kernel, self.cpu, &self.device, &driver);
        Ok(SimRig { device: Arc::clone(&self.device), driver })
    }

    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn environment(&self, notes: Vec<String>) -> Result<Environment> {
        let mut about = self.about.clone();
        about.notes.extend(notes);
        Ok(about)
    }
}

/// Lets the device's interrupts reach a driver on `cpu`, for as long as it lives.
pub(crate) fn connect(kernel: &SimKernel, cpu: usize, device: &Arc<SimDevice>, driver: &Arc<SimDriver>) {
    let (device, driver) = (Arc::clone(device), Arc::downgrade(driver));
    let handler = move || {
        while let Some(record) = device.take_irq() {
            if let Some(driver) = driver.upgrade() {
                driver.handle_irq(&record);
            }
        }
    };
    kernel.connect_irq(cpu, Box::new(handler));
}

/// One driver on the simulated machine.
pub struct SimRig {
    device: Arc<SimDevice>,
    driver: Arc<SimDriver>,
}

impl Rig for SimRig {
    type Kernel = SimKernel;
    type Bus = SimDevice;

    fn driver(&self) -> &Arc<SimDriver> {
        &self.driver
    }

    fn counters(&self) -> BTreeMap<String, u64> {
        let stats = self.device.stats();
        let counters = [
            ("device-interrupts", stats.interrupts),
            ("device-csb-events", stats.csb_events),
            ("device-mmio-writes", stats.mmio_writes),
            ("device-violations", stats.violations),
        ];
        counters.map(|(name, value)| (name.to_owned(), value)).into()
    }

    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn finish(self) -> Result<()> {
        self.device.reset();
        Ok(())
    }
}
