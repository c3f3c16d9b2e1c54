//! A device, whichever way it is reached.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use execlab_abi::mirror;
use execlab_abi::wire::{CONTROL_PAYLOAD_MAX, Identity, IrqRecord, MAGIC, Op, PostedWrite, VERSION};
use execlab_driver::bus::{Bus, BusCosts, Dma as _};

use crate::clock::{ClockRelation, now_ns};
use crate::health::{AccessCounters, Health, count};
use crate::link::Link;
use crate::memory::{Pages, SharedMemory};
use crate::queues::{Control, Interrupts, Posted};
use crate::virtqueue::VirtQueue;
use crate::{Error, IrqSource};

/// Pings of one clock measurement. The one that was fastest on its way counts.
const PINGS: u32 = 32;
/// What a read of a device that is gone gives, as on PCIe.
const ALL_ONES: u32 = u32::MAX;

/// Who the device says it is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DeviceIdentity {
    /// The fixed fields.
    pub identity: Identity,
    /// Its own description, key by key (`wait`, `profile`, `seed`, `dilation`, `version`).
    pub description: BTreeMap<String, String>,
}

/// What a way to a device brings with it.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) link: Link,
    pub(crate) memory: Arc<SharedMemory>,
    /// Queue 0, 1 and 2, running.
    pub(crate) queues: Vec<VirtQueue>,
    pub(crate) timeout: Duration,
}

/// An execlab device: one type for every way to reach it, so that an experiment is compiled once. The ways
/// differ in how a notification is sent and an interrupt waited for, one branch each.
#[derive(Debug)]
pub struct AnyDevice {
    // First: dropping it stops the device, which must not write to the memory below any more.
    link: Link,
    control: Control,
    posted: Posted,
    interrupts: Interrupts,
    registers: Pages,
    memory: Arc<SharedMemory>,
    health: Health,
    identity: RwLock<Arc<DeviceIdentity>>,
    /// Read, write and forcewake cost in nanoseconds.
    costs: [AtomicU32; 3],
}

impl AnyDevice {
    /// Makes sure that an execlab device of this version answers, and gives it register page and buffers.
    pub(crate) fn start(parts: Parts) -> Result<Arc<Self>, Error> {
        let Parts { link, memory, queues, timeout } = parts;
        let mut queues = queues.into_iter();
        let mut queue = || queues.next().ok_or(Error::Lost("it has fewer than three queues".into()));
        let device = Self {
            control: Control::new(queue()?, &memory, timeout)?,
            posted: Posted::new(queue()?, &memory, timeout)?,
            interrupts: Interrupts::new(queue()?, &memory)?,
            registers: memory.alloc(1)?,
            link,
            memory,
            health: Health::default(),
            identity: RwLock::default(),
            costs: Default::default(),
        };
        device.identify()?;
        device.call(Op::SetRegisterPage, &device.registers.page_addr(0).to_le_bytes(), &mut [])?;
        device.interrupts.announce(&device.link, &device.health);
        Ok(Arc::new(device))
    }

    /// Who the device says it is; renewed by [`select_profile`](Self::select_profile).
    #[must_use]
    pub fn identity(&self) -> Arc<DeviceIdentity> {
        Arc::clone(&self.identity.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// How the device is reached: `native`, `vfio-pci` or `uio_pci_generic`.
    #[must_use]
    pub fn access_name(&self) -> &'static str {
        self.link.name()
    }

    /// Relation of the two clocks, from the best of 32 pings now.
    ///
    /// # Errors
    /// When the device does not answer as agreed.
    pub fn clock_relation(&self) -> Result<ClockRelation, Error> {
        let mut best = self.ping_clock()?;
        for _ in 1..PINGS {
            let ping = self.ping_clock()?;
            if ping.error_ns < best.error_ns {
                best = ping;
            }
        }
        Ok(best)
    }

    fn ping_clock(&self) -> Result<ClockRelation, Error> {
        let mut answer = [0; 16];
        let sent = now_ns();
        let len = self.call(Op::ClockPing, &[], &mut answer)?;
        let received = now_ns();
        expect_length("ClockPing", len, answer.len())?;
        let both = u128::from_le_bytes(answer);
        Ok(ClockRelation::from_ping(sent, both as u64, (both >> 64) as u64, received))
    }

    /// The device's own counters, a JSON object.
    ///
    /// # Errors
    /// When the device does not answer as agreed.
    pub fn statistics(&self) -> Result<String, Error> {
        let mut answer = vec![0; CONTROL_PAYLOAD_MAX];
        let len = self.call(Op::Statistics, &[], &mut answer)?;
        answer.truncate(len);
        String::from_utf8(answer)
            .map_err(|error| Error::BadAnswer { op: "Statistics", why: error.to_string() })
    }

    /// Full reset of the GPU, as after power-on. Interrupt records that were delivered before stay to be taken.
    ///
    /// # Errors
    /// When the device does not answer as agreed.
    pub fn reset(&self) -> Result<(), Error> {
        self.call(Op::Reset, &[], &mut []).map(drop)
    }

    /// Selects a profile that ships with the device, or with an empty name the one it was started with. Resets
    /// the GPU; identity and bus costs are read again.
    ///
    /// # Errors
    /// When there is no such profile, or the device does not answer as agreed.
    pub fn select_profile(&self, name: &str) -> Result<(), Error> {
        self.call(Op::SelectProfile, name.as_bytes(), &mut [])?;
        self.identify()
    }

    /// MMIO read by round trip, mirrored or not.
    ///
    /// # Errors
    /// When the device does not answer as agreed.
    pub fn read_register(&self, offset: u32) -> Result<u32, Error> {
        let mut answer = [0; 4];
        let len = self.call(Op::ReadRegister, &offset.to_le_bytes(), &mut answer)?;
        expect_length("ReadRegister", len, answer.len())?;
        Ok(u32::from_le_bytes(answer))
    }

    /// Waits until the device has applied every posted write. False when that took longer than `timeout`.
    pub fn flush(&self, timeout: Duration) -> bool {
        self.posted.drain(&self.health, timeout)
    }

    /// Interrupts of this device, to wait for.
    #[must_use]
    pub fn irq_source(self: &Arc<Self>) -> IrqSource {
        IrqSource::new(Arc::clone(self))
    }

    /// Whether the device is still there. An experiment asks after each block: [`Bus`] methods cannot report.
    ///
    /// # Errors
    /// [`Error::Lost`] with the first reason that was noticed.
    pub fn check(&self) -> Result<(), Error> {
        if let Some(why) = self.link.hang_up() {
            self.health.lose(|| why);
        }
        self.health.check()
    }

    /// What was done since opening.
    #[must_use]
    pub fn counters(&self) -> AccessCounters {
        self.health.counters.read()
    }

    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    pub(crate) fn interrupts(&self) -> &Interrupts {
        &self.interrupts
    }

    pub(crate) fn health(&self) -> &Health {
        &self.health
    }

    fn call(&self, op: Op, payload: &[u8], answer: &mut [u8]) -> Result<usize, Error> {
        self.control.call(&self.link, &self.health, op, payload, answer)
    }

    fn identify(&self) -> Result<(), Error> {
        let mut answer = vec![0; CONTROL_PAYLOAD_MAX];
        let len = self.call(Op::Identify, &[], &mut answer)?;
        answer.truncate(len);
        let (fixed, text) = answer.split_first_chunk::<{ Identity::SIZE }>().ok_or_else(|| {
            let why = format!("{len} bytes, at least {} expected", Identity::SIZE);
            Error::BadAnswer { op: "Identify", why }
        })?;
        let identity = Identity::from_bytes(fixed);
        if identity.magic != MAGIC || identity.version != VERSION {
            return Err(Error::NotExeclab { magic: identity.magic, theirs: identity.version, ours: VERSION });
        }
        let costs = [identity.bus_read_ns, identity.bus_write_ns, identity.forcewake_ns];
        for (cell, cost) in self.costs.iter().zip(costs) {
            cell.store(cost, Ordering::Relaxed);
        }
        let description = parse_description(&String::from_utf8_lossy(text));
        *self.identity.write().unwrap_or_else(PoisonError::into_inner) =
            Arc::new(DeviceIdentity { identity, description });
        Ok(())
    }
}

fn parse_description(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| line.split_once('='))
        .map(|(k, v)| (k.trim().into(), v.trim().into()))
        .collect()
}

fn expect_length(op: &'static str, got: usize, expected: usize) -> Result<(), Error> {
    if got == expected {
        return Ok(());
    }
    Err(Error::BadAnswer { op, why: format!("{got} bytes, {expected} expected") })
}

impl Bus for AnyDevice {
    type Dma = Pages;
    type Error = Error;

    fn read32(&self, offset: u32) -> u32 {
        if self.health.is_lost() {
            return ALL_ONES;
        }
        if let Some(slot) = mirror::slot(offset) {
            return self.registers.load32_acquire(4 * slot);
        }
        count(&self.health.counters.slow_reads, 1);
        self.read_register(offset).unwrap_or_else(|error| {
            self.health.lose(|| format!("read of register {offset:#x}: {error}"));
            ALL_ONES
        })
    }

    fn write(&self, writes: &[PostedWrite]) {
        self.posted.write(&self.link, &self.health, writes);
    }

    fn take_irq(&self) -> Option<IrqRecord> {
        self.interrupts.take(&self.link, &self.health)
    }

    fn dilation_milli(&self) -> u32 {
        self.identity().identity.dilation_milli
    }

    fn costs(&self) -> BusCosts {
        let [read, write, forcewake] = &self.costs;
        let load = |cost: &AtomicU32| cost.load(Ordering::Relaxed);
        BusCosts { read_ns: load(read), write_ns: load(write), forcewake_ns: load(forcewake) }
    }

    fn alloc(&self, pages: usize) -> Result<Pages, Error> {
        self.memory.alloc(pages)
    }
}
