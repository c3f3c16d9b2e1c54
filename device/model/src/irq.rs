//! The GT interrupt banks: RING_IMR → GT IMR → IIR → IER → master → message.

use execlab_abi::engine::Engine;
use execlab_abi::{irq, ring};
use execlab_profile::Point;

use crate::env::Env;
use crate::gpu::Gpu;
use crate::trace::{TraceEvent, TraceKind};

/// State that is not a register.
#[derive(Debug, Default)]
pub(crate) struct Message {
    /// When the message under way arrives.
    pub(crate) due: Option<u64>,
}

impl Gpu {
    /// Raises engine interrupt bits (`irq::USER`, …).
    pub(crate) fn raise<E: Env>(&mut self, engine: Engine, bits: u32, now: u64, env: &mut E) {
        let unmasked = bits & !self.regs.get(engine.reg(ring::IMR));
        let (bank, shift) = engine.irq_bank();
        let new = (unmasked << shift) & !self.regs.get(irq::imr(bank));
        if new == 0 {
            return;
        }
        let was_pending = self.pending();
        let iir = self.regs.get(irq::iir(bank));
        self.regs.set(irq::iir(bank), iir | new, env);
        env.trace(TraceEvent { time: now, engine: Some(engine), kind: TraceKind::EngineInterrupt { bits } });
        self.stats.engine_interrupts += 1;
        if !was_pending && self.pending() {
            let delay = self.sampler.draw(Point::IrqDeliver, engine);
            self.send_message(now.saturating_add(delay), now, env);
        }
    }

    /// Whether an enabled identity is set and the master lets it out.
    pub(crate) fn pending(&self) -> bool {
        self.regs.get(irq::MASTER) & irq::MASTER_ENABLE != 0
            && (0..irq::BANKS).any(|n| self.regs.get(irq::iir(n)) & self.regs.get(irq::ier(n)) != 0)
    }

    fn send_message<E: Env>(&mut self, due: u64, now: u64, env: &mut E) {
        if self.message.due.is_some() {
            return;
        }
        self.message.due = Some(due);
        if due <= now {
            self.deliver_message(now, env);
        }
    }

    /// The message under way arrives.
    pub(crate) fn deliver_message<E: Env>(&mut self, now: u64, env: &mut E) {
        self.message.due = None;
        if !self.pending() {
            return;
        }
        self.stats.interrupts += 1;
        env.trace(TraceEvent { time: now, engine: None, kind: TraceKind::Msi });
        env.interrupt();
    }

    /// The part of `gen8_irq_handler` that reads and clears identities, in one step.
    ///
    /// Returns the enabled identities of the four banks, moved out of IIR, or `None` when there are none or the
    /// master is off.
    pub fn take_interrupts<E: Env>(&mut self, _now: u64, env: &mut E) -> Option<[u32; irq::BANKS]> {
        if !self.pending() {
            return None;
        }
        let mut taken = [0; irq::BANKS];
        for (bank, bits) in taken.iter_mut().enumerate() {
            let iir = self.regs.get(irq::iir(bank));
            *bits = iir & self.regs.get(irq::ier(bank));
            self.regs.set(irq::iir(bank), iir & !*bits, env);
        }
        Some(taken)
    }

    /// A write to the master register or to one of the banks; false if `offset` is none of them.
    pub(crate) fn write_irq<E: Env>(&mut self, offset: u32, value: u32, now: u64, env: &mut E) -> bool {
        if offset == irq::MASTER {
            self.regs.set(offset, value & irq::MASTER_ENABLE, env);
        } else {
            let Some(relative) = offset.checked_sub(irq::isr(0)).filter(|r| *r < 0x10 * irq::BANKS as u32)
            else {
                return false;
            };
            let bank = (relative / 0x10) as usize;
            match offset {
                o if o == irq::iir(bank) => {
                    let left = self.regs.get(o) & !value;
                    self.regs.set(o, left, env);
                    return true;
                }
                o if o == irq::isr(bank) => return true,
                o => self.regs.store(o, value),
            }
        }
        // Enabling something while an identity is set sends the message again (gen8: MSI is an edge).
        if self.pending() {
            self.send_message(now, now, env);
        }
        true
    }

    /// The master register as a read shows it: enable bit and one summary bit per source.
    pub(crate) fn master(&self) -> u32 {
        let iir = [0, 1, 2, 3].map(|n| self.regs.get(irq::iir(n)) & self.regs.get(irq::ier(n)));
        let summary = Engine::ALL
            .into_iter()
            .filter(|engine| engine.irq_bits(&iir) != 0)
            .fold(0, |bits, engine| bits | engine.master_bit());
        self.regs.get(irq::MASTER) | summary
    }
}
