//! Register accesses that cost the driver what they would cost on the bus.

use alloc::sync::Arc;

use execlab_abi::wire::PostedWrite;

use crate::bus::{Bus, BusCosts};
use crate::kernel::Kernel;

/// The device's registers.
pub(crate) struct Mmio<K: Kernel, B: Bus> {
    kernel: Arc<K>,
    bus: Arc<B>,
    costs: BusCosts,
}

impl<K: Kernel, B: Bus> Mmio<K, B> {
    pub(crate) fn new(kernel: Arc<K>, bus: Arc<B>) -> Self {
        let costs = bus.costs();
        Self { kernel, bus, costs }
    }

    /// `ns` of the hardware's time on this kernel's clock.
    pub(crate) fn dilated(&self, ns: u64) -> u64 {
        ns * u64::from(self.bus.dilation_milli()) / 1000
    }

    /// Reads a register.
    pub(crate) fn read(&self, offset: u32) -> u32 {
        self.spend(self.costs.read_ns, 1);
        self.bus.read32(offset)
    }

    /// Writes registers in order.
    pub(crate) fn write(&self, writes: &[PostedWrite]) {
        self.spend(self.costs.write_ns, writes.len() as u32);
        self.bus.write(writes);
    }

    /// Reads a register for nothing but the order: everything written before has reached the device afterwards
    /// (`POSTING_READ`). The register must not be a mirrored one.
    pub(crate) fn posting_read(&self, offset: u32) {
        let _ = self.read(offset);
    }

    /// Writes GGTT entries: mapped write-combining, so they cost next to nothing each.
    pub(crate) fn write_combined(&self, writes: &[PostedWrite]) {
        self.bus.write(writes);
    }

    /// Spends what taking forcewake costs before ELSP or the CSB registers are touched: nothing on parts and years
    /// that need none, by the device's profile.
    pub(crate) fn take_forcewake(&self) {
        self.spend(self.costs.forcewake_ns, 1);
    }

    /// Acknowledges whatever interrupt there is and does nothing about it, as no driver should.
    pub(crate) fn drop_irq(&self) {
        self.spend_irq_ack(1);
        let _ = self.bus.take_irq();
    }

    /// What `gen8_irq_handler` spends: master off; one bank read, its clearing write; master on. The bits themselves
    /// come with the interrupt (see `execlab_abi::wire`), acknowledged.
    pub(crate) fn spend_irq_ack(&self, banks: u32) {
        self.spend(self.costs.write_ns, 2 + banks);
        self.spend(self.costs.read_ns, 1 + banks);
    }

    fn spend(&self, each: u32, times: u32) {
        let ns = u64::from(each) * u64::from(times);
        if ns > 0 {
            self.kernel.spend(ns);
        }
    }
}
