//! The world of POSIX threads: a CPU of this machine that is modelled by priorities, and a device process.

mod environment;
mod recycle;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use execlab_abi::engine::Engine;
use execlab_abi::wire::IrqRecord;
use execlab_access::{AnyDevice, IrqSource};
use execlab_driver::bus::Bus as _;
use execlab_driver::{Driver, DriverConfig, Variant};
use execlab_posix::{Config as CpuConfig, Cpu, IrqLine, IrqThread, Posix, System};
use execlab_probe::KeepAwake;
use execlab_report::{Environment, ProbePlan};
use execlab_submit_latency::{Rig, Setting, World};

use recycle::Recycler;

/// The driver under test.
type Gpu = Driver<Posix, Recycler>;

/// How long the device may take to apply what was posted.
const FLUSH: Duration = Duration::from_secs(10);

/// An open device, and a CPU of this machine.
pub struct PosixWorld {
    device: Arc<AnyDevice>,
    bus: Arc<Recycler>,
    config: CpuConfig,
    /// For the probe, which belongs to no block.
    cpu: (Cpu, Posix),
    probe: ProbePlan,
    /// What was found and done on the way.
    notes: Vec<String>,
    _awake: Option<KeepAwake>,
    /// Given up last: until then the machine is set up, and ours.
    _system: System,
}

impl PosixWorld {
    /// Opens the device that the plan names, and makes this machine and the calling thread ready.
    ///
    /// # Errors
    /// When there is no such device, it runs with another dilation, a CPU or priority is refused, or another run measures
    /// on this machine.
    pub fn open(setting: &Setting) -> Result<Self> {
        let plan = &setting.plan;
        let cpu = plan.probe.cpu as usize;
        // Everything of ours lives on the probe's CPU, so that the others are free for the device.
        execlab_posix::pin(cpu, "main")?;
        let device = execlab_access::open(&plan.access)?;
        let asked = (plan.dilation * 1000.0).round();
        let found = f64::from(device.identity().identity.dilation_milli);
        ensure!(
            (asked - found).abs() < 1.0,
            "the device runs with dilation {}, the plan says {}; start both with the same",
            found / 1000.0,
            plan.dilation
        );
        let system = System::prepare(cpu)?;
        let mut notes = system.notes().to_vec();
        let (awake, how) = keep_awake(cpu)?;
        notes.push(how);
        let config = CpuConfig { cpu, priorities: true, dilation: plan.dilation };
        let cpu = Cpu::start(config)?;
        let kernel = cpu.kernel();
        Ok(Self {
            bus: Arc::new(Recycler::new(Arc::clone(&device))),
            device,
            config,
            cpu: (cpu, kernel),
            probe: plan.probe.clone(),
            notes,
            _awake: awake,
            _system: system,
        })
    }
}

impl World for PosixWorld {
    type Kernel = Posix;
    type Bus = Recycler;
    type Rig = PosixRig;

    fn kernel(&self) -> &Posix {
        &self.cpu.1
    }

    fn rig(&self, variant: Variant, engines: &[Engine]) -> Result<PosixRig> {
        reset(&self.device)?;
        let cpu = Cpu::start(self.config)?;
        let kernel = cpu.kernel();
        let config = DriverConfig { variant, engines: engines.to_vec() };
        let driver = Gpu::new(Arc::new(kernel.clone()), Arc::clone(&self.bus), &config)?;
        let device = Arc::clone(&self.device);
        let line = Line { source: device.irq_source(), device: Arc::clone(&device) };
        let handled = Arc::clone(&driver);
        let irq = IrqThread::start(&kernel, line, move |record| handled.handle_irq(&record))?;
        Ok(PosixRig { irq, driver, cpu, device })
    }

    fn check(&self) -> Result<()> {
        Ok(self.device.check()?)
    }

    fn environment(&self, notes: Vec<String>) -> Result<Environment> {
        let notes = self.notes.iter().cloned().chain(notes).collect();
        environment::describe(&self.device, &self.probe, notes)
    }
}

/// A GPU as after power-on, with nothing of the past in the queues.
fn reset(device: &AnyDevice) -> Result<()> {
    ensure!(device.flush(FLUSH), "the device did not apply posted writes within {FLUSH:?}");
    device.reset().context("reset of the GPU")?;
    while device.take_irq().is_some() {}
    Ok(())
}

/// One driver with a modelled CPU of its own.
pub struct PosixRig {
    irq: IrqThread,
    driver: Arc<Gpu>,
    cpu: Cpu,
    device: Arc<AnyDevice>,
}

impl Rig for PosixRig {
    type Kernel = Posix;
    type Bus = Recycler;

    fn driver(&self) -> &Arc<Gpu> {
        &self.driver
    }

    fn counters(&self) -> BTreeMap<String, u64> {
        let mut all = self.cpu.stats().to_map();
        let bus = self.device.counters();
        let more = [
            ("bus-notifications", bus.notifications),
            ("bus-posted-writes", bus.writes),
            ("bus-posted-queue-full", bus.full_waits),
            ("bus-slow-reads", bus.slow_reads),
            ("bus-interrupt-wake-ups", bus.wakeups),
        ];
        all.extend(more.map(|(name, value)| (name.to_owned(), value)));
        all
    }

    fn check(&self) -> Result<()> {
        if let Some(error) = self.irq.error() {
            bail!("waiting for interrupts: {error}");
        }
        let refused = self.cpu.stats().refused;
        ensure!(refused == 0, "{refused} irq-off sections could not be raised to SCHED_FIFO 99");
        Ok(())
    }

    fn finish(self) -> Result<()> {
        let Self { irq, driver, cpu, device } = self;
        drop(irq);
        reset(&device)?;
        drop(driver);
        drop(cpu);
        Ok(())
    }
}

/// Keeps the CPU out of idle states, in all arms alike. A kernel that polls when idle needs no thread for it; and where
/// it does not, the thread costs: in Linux 6.1 a thread that comes back from SCHED_FIFO may have to wait a tick for it.
fn keep_awake(cpu: usize) -> Result<(Option<KeepAwake>, String)> {
    let command_line = std::fs::read_to_string("/proc/cmdline").unwrap_or_default();
    if command_line.split_whitespace().any(|word| word == "idle=poll") {
        return Ok((None, "the kernel polls when idle (idle=poll), in all arms".to_owned()));
    }
    let thread = KeepAwake::start(cpu)?;
    Ok((Some(thread), "a SCHED_IDLE thread keeps the CPU out of idle states, in all arms".to_owned()))
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
