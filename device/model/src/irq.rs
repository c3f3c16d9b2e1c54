//! Interrupts: from an engine through RING_IMR, the delivery delay, the GT bank and the master to the MSI.

use execlab_abi::engine::Engine;
use execlab_abi::{irq, ring};
use execlab_profile::Point;

use crate::engine::Raised;
use crate::{Env, Gpu, TraceKind};

/// The four GT banks and the master.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Banks {
    iir: [u32; irq::BANKS],
    imr: [u32; irq::BANKS],
    ier: [u32; irq::BANKS],
    master: bool,
}

/// A register of [`Banks`] by BAR 0 offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BankRegister {
    /// GEN8_MASTER_IRQ.
    Master,
    /// Level; reads 0, as every source here is a pulse.
    Isr,
    /// Mask.
    Imr(usize),
    /// Identity.
    Iir(usize),
    /// Enable.
    Ier(usize),
}

impl BankRegister {
    /// The register at `offset`.
    pub(crate) fn decode(offset: u32) -> Option<Self> {
        if offset == irq::MASTER {
            return Some(Self::Master);
        }
        let at = offset.checked_sub(irq::isr(0))?;
        let bank = (at / 0x10) as usize;
        if bank >= irq::BANKS {
            return None;
        }
        Some(match at % 0x10 {
            0 => Self::Isr,
            4 => Self::Imr(bank),
            8 => Self::Iir(bank),
            _ => Self::Ier(bank),
        })
    }
}

impl Banks {
    /// Power-on: everything masked and disabled.
    pub(crate) const fn new() -> Self {
        Self { iir: [0; irq::BANKS], imr: [u32::MAX; irq::BANKS], ier: [0; irq::BANKS], master: false }
    }

    /// IIR & IER of each bank.
    fn pending(&self) -> [u32; irq::BANKS] {
        std::array::from_fn(|bank| self.iir[bank] & self.ier[bank])
    }

    /// Whether the line to the MSI logic is up.
    fn line(&self) -> bool {
        self.master && self.pending() != [0; irq::BANKS]
    }

    /// A register as it reads.
    pub(crate) fn read(&self, register: BankRegister) -> u32 {
        match register {
            BankRegister::Master => {
                let [gt0, gt1, gt2, gt3] = self.pending();
                // Summary bits: RCS, BCS, VCS0, VCS1, PM, GuC, VECS.
                let sources =
                    [gt0 & 0xffff, gt0 >> 16, gt1 & 0xffff, gt1 >> 16, gt2 & 0xffff, gt2 >> 16, gt3];
                let summary = (0..).zip(sources).fold(0, |m, (bit, s)| m | (u32::from(s != 0) << bit));
                summary | if self.master { irq::MASTER_ENABLE } else { 0 }
            }
            BankRegister::Isr => 0,
            BankRegister::Imr(bank) => self.imr[bank],
            BankRegister::Iir(bank) => self.iir[bank],
            BankRegister::Ier(bank) => self.ier[bank],
        }
    }

    fn write(&mut self, register: BankRegister, value: u32) {
        match register {
            BankRegister::Master => self.master = value & irq::MASTER_ENABLE != 0,
            BankRegister::Isr => {}
            BankRegister::Imr(bank) => self.imr[bank] = value,
            BankRegister::Iir(bank) => self.iir[bank] &= !value,
            BankRegister::Ier(bank) => self.ier[bank] = value,
        }
    }
}

impl Gpu {
    /// An engine raises some of its sixteen bits. What RING_IMR masks is gone; the rest reaches IIR after the
    /// delivery delay, never before bits that the engine raised earlier.
    pub(crate) fn raise<E: Env>(&mut self, e: Engine, bits: u32, t: u64, env: &mut E) {
        let (_, shift) = e.irq_bank();
        let bits = bits & !(self.regs.get(e.reg(ring::IMR)) >> shift) & 0xffff;
        if bits == 0 {
            return;
        }
        let due = t.saturating_add(self.sampler.draw(Point::IrqDeliver, e));
        let queue = &mut self.engines[e.index()].irqs;
        if queue.is_empty() && due <= t {
            self.deliver(e, bits, t, env);
            return;
        }
        let due = queue.back_mut().map_or(due, |last| due.max(last.due));
        if queue.push(Raised { due, bits }).is_err()
            && let Some(last) = queue.back_mut()
        {
            // More interrupts under way than any handler could tell apart: they coalesce, as edges do.
            *last = Raised { due, bits: last.bits | bits };
        }
    }

    /// Engine bits arrive at the GT bank.
    pub(crate) fn deliver<E: Env>(&mut self, e: Engine, bits: u32, t: u64, env: &mut E) {
        let (bank, shift) = e.irq_bank();
        let new = (bits << shift) & !self.irq.imr[bank];
        if new == 0 {
            return;
        }
        self.stats.engine_interrupts += 1;
        self.trace(Some(e), TraceKind::EngineInterrupt { bits: new >> shift }, t, env);
        self.change_banks(t, env, |banks| banks.iir[bank] |= new);
    }

    /// Writes a register of the banks.
    pub(crate) fn write_bank<E: Env>(&mut self, register: BankRegister, value: u32, t: u64, env: &mut E) {
        self.change_banks(t, env, |banks| banks.write(register, value));
    }

    /// Moves what a handler would find out of IIR.
    pub(crate) fn take_pending<E: Env>(&mut self, t: u64, env: &mut E) -> Option<[u32; irq::BANKS]> {
        if !self.irq.line() {
            return None;
        }
        let pending = self.irq.pending();
        self.change_banks(t, env, |banks| {
            for (iir, taken) in banks.iir.iter_mut().zip(pending) {
                *iir &= !taken;
            }
        });
        Some(pending)
    }

    /// Changes the banks, keeps the register copies, and sends the MSI if the line rose.
    fn change_banks<E: Env>(&mut self, t: u64, env: &mut E, change: impl FnOnce(&mut Banks)) {
        let was = self.irq.line();
        change(&mut self.irq);
        for bank in 0..irq::BANKS {
            self.regs.publish(irq::iir(bank), self.irq.iir[bank], env);
        }
        self.regs.publish(irq::MASTER, self.irq.read(BankRegister::Master), env);
        if !was && self.irq.line() {
            self.stats.interrupts += 1;
            self.trace(None, TraceKind::Msi, t, env);
            env.interrupt();
        }
    }
}
