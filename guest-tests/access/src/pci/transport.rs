//! The registers of a modern virtio-pci function (virtio 1.3, §4.1.4.3) and the handshake that starts it.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use execlab_abi::wire::{QUEUE_COUNT, QUEUE_IRQ, QUEUE_SIZE};
use execlab_driver::bus::Dma as _;
use vm_memory::{AtomicInteger, FileOffset, MmapRegion, VolatileMemory as _};

use super::capabilities::{Place, Places};
use super::function::Function;
use crate::memory::{PAGE, SharedMemory};
use crate::virtqueue::VirtQueue;
use crate::{Error, features};

/// Device status bits (virtio 1.3, §2.1).
const ACKNOWLEDGE: u8 = 1;
const DRIVER: u8 = 2;
const DRIVER_OK: u8 = 4;
const FEATURES_OK: u8 = 8;

/// Fields of `virtio_pci_common_cfg`.
const DEVICE_FEATURE_SELECT: usize = 0x00;
const DEVICE_FEATURE: usize = 0x04;
const DRIVER_FEATURE_SELECT: usize = 0x08;
const DRIVER_FEATURE: usize = 0x0c;
const CONFIG_MSIX_VECTOR: usize = 0x10;
const NUM_QUEUES: usize = 0x12;
const DEVICE_STATUS: usize = 0x14;
const QUEUE_SELECT: usize = 0x16;
const QUEUE_SIZE_FIELD: usize = 0x18;
const QUEUE_MSIX_VECTOR: usize = 0x1a;
const QUEUE_ENABLE: usize = 0x1c;
const QUEUE_NOTIFY_OFF: usize = 0x1e;
const QUEUE_DESC: usize = 0x20;
const QUEUE_DRIVER: usize = 0x28;
const QUEUE_DEVICE: usize = 0x30;

/// VIRTIO_MSI_NO_VECTOR.
pub(crate) const NO_VECTOR: u16 = 0xffff;
/// How long a device may take to become 0 after a reset.
const RESET_TIMEOUT: Duration = Duration::from_secs(2);

/// A mapped piece of a BAR.
#[derive(Debug)]
struct Registers {
    map: MmapRegion,
    /// Where in the mapping the piece begins.
    start: usize,
}

impl Registers {
    /// Maps `place` of the BAR that begins at `base` in `file`.
    fn map(file: File, base: u64, place: Place) -> io::Result<Self> {
        let first = u64::from(place.offset) & !(PAGE as u64 - 1);
        let start = (u64::from(place.offset) - first) as usize;
        let size = (start + place.length as usize).next_multiple_of(PAGE);
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        let map = MmapRegion::build(Some(FileOffset::new(file, base + first)), size, prot, libc::MAP_SHARED)
            .map_err(io::Error::other)?;
        Ok(Self { map, start })
    }

    /// The register at `offset`. An atomic access of the right width is what MMIO needs: one instruction.
    fn at<A: AtomicInteger>(&self, offset: usize) -> Option<&A> {
        self.map.get_atomic_ref(self.start + offset).ok()
    }

    fn read8(&self, offset: usize) -> u8 {
        self.at::<AtomicU8>(offset).map_or(u8::MAX, |r| r.load(Ordering::Acquire))
    }

    fn read16(&self, offset: usize) -> u16 {
        self.at::<AtomicU16>(offset).map_or(u16::MAX, |r| r.load(Ordering::Acquire))
    }

    fn read32(&self, offset: usize) -> u32 {
        self.at::<AtomicU32>(offset).map_or(u32::MAX, |r| r.load(Ordering::Acquire))
    }

    fn write8(&self, offset: usize, value: u8) {
        if let Some(register) = self.at::<AtomicU8>(offset) {
            register.store(value, Ordering::Release);
        }
    }

    fn write16(&self, offset: usize, value: u16) {
        if let Some(register) = self.at::<AtomicU16>(offset) {
            register.store(value, Ordering::Release);
        }
    }

    fn write32(&self, offset: usize, value: u32) {
        if let Some(register) = self.at::<AtomicU32>(offset) {
            register.store(value, Ordering::Release);
        }
    }

    fn write64(&self, offset: usize, value: u64) {
        self.write32(offset, value as u32);
        self.write32(offset + 4, (value >> 32) as u32);
    }
}

/// A started virtio-pci function. Dropping it resets the device, so that it stops using the memory it was given.
#[derive(Debug)]
pub(crate) struct Transport {
    common: Registers,
    notify: Registers,
    isr: Registers,
    /// Offset in the notification area for each queue.
    doorbells: Vec<usize>,
}

impl Transport {
    /// Maps the registers of `function`; `bar` gives a file to map a BAR from, and where in it the BAR begins.
    pub(crate) fn map(
        function: &Function,
        bar: impl Fn(u8) -> Result<(File, u64), Error>,
    ) -> Result<(Self, u32), Error> {
        let Places { common, notify, notify_multiplier, isr } = function.places()?;
        let map = |place: Place| {
            let (file, base) = bar(place.bar)?;
            Registers::map(file, base, place)
                .map_err(|source| function.error(&format!("mapping BAR {}", place.bar), source))
        };
        let transport =
            Self { common: map(common)?, notify: map(notify)?, isr: map(isr)?, doorbells: Vec::new() };
        Ok((transport, notify_multiplier))
    }

    /// Resets the device, agrees on features, and starts the three queues; queue 2 interrupts with `vector`, the
    /// others with none: they are polled.
    pub(crate) fn start(
        &mut self,
        function: &Function,
        notify_multiplier: u32,
        memory: &Arc<SharedMemory>,
        vector: u16,
    ) -> Result<Vec<VirtQueue>, Error> {
        if !self.reset() {
            return Err(function.unusable("it does not finish a reset; is the device process alive?".into()));
        }
        self.common.write8(DEVICE_STATUS, ACKNOWLEDGE);
        self.common.write8(DEVICE_STATUS, ACKNOWLEDGE | DRIVER);
        let taken = features::choose(self.offered(), || function.address().to_owned())?;
        for half in 0..2 {
            self.common.write32(DRIVER_FEATURE_SELECT, half);
            self.common.write32(DRIVER_FEATURE, (taken >> (32 * half)) as u32);
        }
        self.common.write8(DEVICE_STATUS, ACKNOWLEDGE | DRIVER | FEATURES_OK);
        if self.common.read8(DEVICE_STATUS) & FEATURES_OK == 0 {
            return Err(function.unusable(format!("it refuses the features {taken:#x} that it offered")));
        }
        let queues = self.common.read16(NUM_QUEUES);
        if queues < QUEUE_COUNT {
            return Err(function.unusable(format!("it has {queues} queues, {QUEUE_COUNT} are needed")));
        }
        self.common.write16(CONFIG_MSIX_VECTOR, NO_VECTOR);
        let event_idx = features::has_event_idx(taken);
        let queues = (0..QUEUE_COUNT)
            .map(|index| {
                let vector = if index == QUEUE_IRQ { vector } else { NO_VECTOR };
                self.start_queue(function, notify_multiplier, index, memory, event_idx, vector)
            })
            .collect::<Result<_, _>>()?;
        self.common.write8(DEVICE_STATUS, ACKNOWLEDGE | DRIVER | FEATURES_OK | DRIVER_OK);
        Ok(queues)
    }

    fn offered(&self) -> u64 {
        let half = |half: u32| {
            self.common.write32(DEVICE_FEATURE_SELECT, half);
            u64::from(self.common.read32(DEVICE_FEATURE))
        };
        half(0) | (half(1) << 32)
    }

    fn start_queue(
        &mut self,
        function: &Function,
        notify_multiplier: u32,
        index: u16,
        memory: &Arc<SharedMemory>,
        event_idx: bool,
        vector: u16,
    ) -> Result<VirtQueue, Error> {
        self.common.write16(QUEUE_SELECT, index);
        let most = self.common.read16(QUEUE_SIZE_FIELD);
        // A power of two, whatever a device of another make says.
        let size = if most < QUEUE_SIZE { (most + 1).next_power_of_two() / 2 } else { QUEUE_SIZE };
        if size < 4 {
            return Err(function.unusable(format!("its queue {index} takes {most} descriptors only")));
        }
        let queue = VirtQueue::new(memory, size, event_idx)?;
        self.common.write16(QUEUE_SIZE_FIELD, size);
        self.common.write16(QUEUE_MSIX_VECTOR, vector);
        if vector != NO_VECTOR && self.common.read16(QUEUE_MSIX_VECTOR) != vector {
            return Err(function.unusable(format!("it has no MSI-X vector {vector} for queue {index}")));
        }
        let parts = queue.parts().map(|part| part.page_addr(0));
        for (field, address) in [QUEUE_DESC, QUEUE_DRIVER, QUEUE_DEVICE].into_iter().zip(parts) {
            self.common.write64(field, address);
        }
        let doorbell = usize::from(self.common.read16(QUEUE_NOTIFY_OFF)) * notify_multiplier as usize;
        self.doorbells.push(doorbell);
        self.common.write16(QUEUE_ENABLE, 1);
        Ok(queue)
    }

    /// Writes status 0 and waits until the device has taken it.
    fn reset(&self) -> bool {
        self.common.write8(DEVICE_STATUS, 0);
        let start = Instant::now();
        while self.common.read8(DEVICE_STATUS) != 0 {
            if start.elapsed() > RESET_TIMEOUT {
                return false;
            }
            std::hint::spin_loop();
        }
        true
    }

    /// Rings the doorbell of `queue`.
    pub(crate) fn notify(&self, queue: u16) {
        if let Some(doorbell) = self.doorbells.get(usize::from(queue)) {
            self.notify.write16(*doorbell, queue);
        }
    }

    /// Reads the ISR byte, which takes an INTx back.
    pub(crate) fn acknowledge(&self) -> u8 {
        self.isr.read8(0)
    }

    /// Whether the function answers at all, and has not asked for a reset.
    pub(crate) fn trouble(&self) -> Option<String> {
        /// DEVICE_NEEDS_RESET (virtio 1.3, §2.1).
        const NEEDS_RESET: u8 = 64;
        match self.common.read8(DEVICE_STATUS) {
            u8::MAX => Some("its PCI function is gone".into()),
            status if status & NEEDS_RESET != 0 => Some("its PCI function asks for a reset".into()),
            0 => Some("its PCI function was reset by somebody else".into()),
            _ => None,
        }
    }
}

impl Drop for Transport {
    fn drop(&mut self) {
        // A device that does not take the reset is told no more than this.
        let _ = self.reset();
    }
}
