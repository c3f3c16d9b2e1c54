//! The register file: plain storage for everything, and what the known registers do.

use execlab_abi::engine::Engine;
use execlab_abi::{MMIO_SIZE, ggtt, gt, lab, mirror, ring};

use crate::error::{Fault, low};
use crate::gpu::ticks;
use crate::irq::BankRegister;
use crate::{Env, Gpu};

/// What every dword of the register BAR holds. Registers whose value is the model's are kept here too, so a read
/// is a load.
#[derive(Debug)]
pub(crate) struct Registers {
    words: Vec<u32>,
}

impl Registers {
    /// All 0.
    pub(crate) fn new() -> Self {
        Self { words: vec![0; MMIO_SIZE as usize / 4] }
    }

    /// The value at `offset`; 0 outside the BAR.
    #[inline]
    pub(crate) fn get(&self, offset: u32) -> u32 {
        self.words.get(offset as usize / 4).copied().unwrap_or(0)
    }

    /// Stores, with no copy in the register page.
    pub(crate) fn set(&mut self, offset: u32, value: u32) {
        if let Some(word) = self.words.get_mut(offset as usize / 4) {
            *word = value;
        }
    }

    /// Stores a register of [`mirror`]; tells the environment if it changed.
    #[inline]
    pub(crate) fn publish<E: Env>(&mut self, offset: u32, value: u32, env: &mut E) {
        if let Some(word) = self.words.get_mut(offset as usize / 4)
            && *word != value
        {
            *word = value;
            if mirror::slot(offset).is_some() {
                env.mirror(offset, value);
            }
        }
    }

    /// Clears everything; the mirrored registers one by one.
    pub(crate) fn clear<E: Env>(&mut self, env: &mut E) {
        for offset in (0..mirror::SLOTS).filter_map(mirror::register) {
            self.publish(offset, 0, env);
        }
        self.words.fill(0);
    }
}

impl Gpu {
    /// A register as it reads at `t`.
    pub(crate) fn read_register(&self, offset: u32, t: u64) -> u32 {
        if let Some((_, relative)) = Engine::decode(offset) {
            return match relative {
                ring::TIMESTAMP => low(ticks(t)),
                ring::TIMESTAMP_UDW => low(ticks(t) >> 32),
                ring::ELSP => 0,
                _ => self.regs.get(offset),
            };
        }
        if let Some(register) = BankRegister::decode(offset) {
            return self.irq.read(register);
        }
        self.regs.get(offset)
    }

    /// A write to the register part of the BAR.
    pub(crate) fn write_register<E: Env>(&mut self, offset: u32, value: u32, t: u64, env: &mut E) {
        self.written = true;
        if let Some((e, relative)) = Engine::decode(offset) {
            self.write_engine_register(e, relative, value, t, env);
            return;
        }
        if let Some(register) = BankRegister::decode(offset) {
            self.write_bank(register, value, t, env);
            return;
        }
        match offset {
            gt::GDRST => self.write_gdrst(value, t, env),
            gt::TLB_INVALIDATE_FIRST..=gt::TLB_INVALIDATE_LAST => self.regs.set(offset, 0),
            lab::CS_BUSY..lab::ERROR_CLEAR => {}
            lab::ERROR_CLEAR => self.clear_errors(env),
            _ => {
                if let Some(domain) = gt::FORCEWAKE.iter().position(|f| *f == offset) {
                    let new = ring::masked_apply(self.regs.get(offset), value) & 0xffff;
                    self.regs.set(offset, new);
                    self.regs.publish(gt::FORCEWAKE_ACK[domain], new, env);
                } else if !gt::FORCEWAKE_ACK.contains(&offset) {
                    self.regs.publish(offset, value, env);
                }
            }
        }
    }

    fn write_engine_register<E: Env>(&mut self, e: Engine, relative: u32, value: u32, t: u64, env: &mut E) {
        let offset = e.reg(relative);
        match relative {
            ring::ELSP => self.write_elsp(e, value, t, env),
            ring::CONTEXT_STATUS_PTR => self.write_csb_pointer(e, value, env),
            ring::RESET_CTL => self.write_reset_ctl(e, value, t, env),
            ring::MI_MODE => {
                let read_only = ring::MI_MODE_IDLE;
                let old = self.regs.get(offset);
                let new = ring::masked_apply(old, value) & 0xffff & !read_only;
                self.regs.publish(offset, new | (old & read_only), env);
                self.engines[e.index()].stop = new & ring::MI_MODE_STOP_RING != 0;
                self.resume(e, t);
            }
            ring::MODE | ring::CONTEXT_CONTROL => {
                let new = ring::masked_apply(self.regs.get(offset), value) & 0xffff;
                self.regs.set(offset, new);
            }
            // Write 1 to clear; ESR keeps the condition.
            ring::EIR => {
                let new = self.regs.get(offset) & !value;
                self.regs.publish(offset, new, env);
            }
            ring::EXECLIST_STATUS_LO
            | ring::EXECLIST_STATUS_HI
            | ring::TIMESTAMP
            | ring::TIMESTAMP_UDW
            | ring::ESR => {}
            _ if (ring::CONTEXT_STATUS_BUF..ring::CONTEXT_STATUS_PTR).contains(&relative) => {}
            _ => self.regs.publish(offset, value, env),
        }
    }

    /// A write anywhere in BAR 0.
    pub(crate) fn write_bar<E: Env>(&mut self, offset: u32, value: u32, t: u64, env: &mut E) {
        let aligned = offset.is_multiple_of(4);
        if aligned && offset < MMIO_SIZE {
            self.write_register(offset, value, t, env);
        } else if aligned && (ggtt::GSM_OFFSET..ggtt::GSM_OFFSET + ggtt::GSM_SIZE).contains(&offset) {
            self.ggtt.write_half(offset - ggtt::GSM_OFFSET, value);
        } else {
            let fault = Fault::new(lab::Violation::BadOffset, offset, [offset, value, 0, 0]);
            self.report(None, fault, t, env);
        }
    }
}
