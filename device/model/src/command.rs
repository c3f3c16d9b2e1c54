//! The commands: decode one, do it.

use execlab_abi::engine::Engine;
use execlab_abi::lab::{self, Violation};
use execlab_abi::mi::{self, Compare};
use execlab_abi::ring;
use execlab_profile::Point;

use crate::context::Batch;
use crate::engine::timestamp;
use crate::env::Env;
use crate::error::Report;
use crate::fetch::translate;
use crate::gpu::Gpu;
use crate::trace::{TraceEvent, TraceKind};
use crate::translate::{Address, Fault};

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It took so many nanoseconds.
    Took(u64),
    /// The same, and it is an arbitration point.
    Arbitrate(u64),
    /// It does not hold yet; it is so many dwords long.
    Blocked(u32),
}

impl Gpu {
    /// Executes the command at the engine's position at `now`.
    pub(crate) fn execute<E: Env>(
        &mut self,
        engine: Engine,
        now: u64,
        env: &mut E,
    ) -> Result<Outcome, Report> {
        let header = self.dword(engine, env)?;
        let length = mi::command_dwords(header).ok_or_else(|| bad_command(header))?;
        let cost = self.sampler.draw(Point::Command, engine);
        if mi::class(header) == mi::CLASS_MI {
            return self.execute_mi(engine, header, length, cost, now, env);
        }
        if header & mi::PIPE_CONTROL_MASK == mi::PIPE_CONTROL & mi::PIPE_CONTROL_MASK && length >= 6 {
            self.pipe_control(engine, length, now, env)?;
        } else {
            self.skip(engine, length - 1, env)?;
        }
        Ok(Outcome::Took(cost))
    }

    fn execute_mi<E: Env>(
        &mut self,
        engine: Engine,
        header: u32,
        length: u32,
        cost: u64,
        now: u64,
        env: &mut E,
    ) -> Result<Outcome, Report> {
        match mi::opcode(header) {
            mi::OP_NOOP => {}
            mi::OP_USER_INTERRUPT => self.user_interrupt(engine, now.saturating_add(cost), env),
            mi::OP_ARB_CHECK => return Ok(Outcome::Arbitrate(cost)),
            mi::OP_ARB_ON_OFF => self.engines[engine.index()].arbitration = header & 1 != 0,
            mi::OP_BATCH_BUFFER_END => self.batch_end(engine),
            mi::OP_BATCH_BUFFER_START if length == 3 => {
                self.batch_start(engine, header, now, env)?;
                return Ok(Outcome::Took(self.sampler.draw(Point::BatchExecute, engine)));
            }
            mi::OP_STORE_DATA_IMM if matches!(length, 4 | 5) => {
                self.store_data_imm(engine, header, length, now.saturating_add(cost), env)?;
            }
            mi::OP_LOAD_REGISTER_IMM if length >= 3 && length % 2 == 1 => {
                let busy = self.load_register_imm(engine, length / 2, env)?;
                return Ok(Outcome::Took(cost.saturating_add(busy)));
            }
            mi::OP_STORE_REGISTER_MEM if length == 4 => {
                let (register, address) = self.register_and_address(engine, header, env)?;
                let value = self.mmio_read(register, now);
                let gpa = self.resolve(engine, address, env)?;
                self.store(engine, gpa, u64::from(value), false, now.saturating_add(cost), env);
            }
            mi::OP_LOAD_REGISTER_MEM if length == 4 => {
                let (register, address) = self.register_and_address(engine, header, env)?;
                let value = self.load(engine, address, env)?;
                let busy = self.write_register(register, value, env);
                return Ok(Outcome::Took(cost.saturating_add(busy)));
            }
            mi::OP_SEMAPHORE_WAIT if matches!(length, 4 | 5) => {
                let data = self.dword(engine, env)?;
                let address = self.address(engine, header & mi::USE_GGTT != 0, env)?;
                self.skip(engine, length - 4, env)?;
                let compare = Compare::from_header(header).ok_or_else(|| bad_command(header))?;
                let memory = self.load(engine, address, env)?;
                if !compare.holds(memory, data) {
                    return Ok(Outcome::Blocked(length));
                }
                if std::mem::take(&mut self.engines[engine.index()].wait_reported) {
                    let kind = TraceKind::SemaphorePassed;
                    env.trace(TraceEvent { time: now, engine: Some(engine), kind });
                }
            }
            mi::OP_FLUSH_DW if length >= 3 => self.flush_dw(engine, header, length, now, env)?,
            // Commands that change nothing a driver of the lab could see.
            _ => self.skip(engine, length - 1, env)?,
        }
        Ok(Outcome::Took(cost))
    }

    fn batch_start<E: Env>(
        &mut self,
        engine: Engine,
        header: u32,
        now: u64,
        env: &mut E,
    ) -> Result<(), Report> {
        let low = self.dword(engine, env)? & !3;
        let high = self.dword(engine, env)? & 0xffff;
        let address = u64::from(low) | (u64::from(high) << 32);
        let state = &mut self.engines[engine.index()];
        let target = Batch { address, ppgtt: header & mi::BATCH_PPGTT != 0 };
        let nested = header & mi::BATCH_SECOND_LEVEL != 0;
        let running = &mut state.running;
        match (running.batch, running.second, nested) {
            (Some(_), Some(_), true) => {
                return Err(Report::new(Violation::SelfReference, low, [low, high, 3, header]));
            }
            (Some(_), Some(_), false) | (Some(_), None, true) => running.second = Some(target),
            (Some(_) | None, None, _) | (None, Some(_), _) => running.batch = Some(target),
        }
        state.fetch.invalidate();
        self.stats.batches += 1;
        let kind = TraceKind::BatchStart { address };
        env.trace(TraceEvent { time: now, engine: Some(engine), kind });
        Ok(())
    }

    fn batch_end(&mut self, engine: Engine) {
        let state = &mut self.engines[engine.index()];
        // In the ring itself the command does nothing.
        if state.running.second.take().is_none() {
            state.running.batch = None;
        }
        state.fetch.invalidate();
    }

    fn store_data_imm<E: Env>(
        &mut self,
        engine: Engine,
        header: u32,
        length: u32,
        now: u64,
        env: &mut E,
    ) -> Result<(), Report> {
        let address = self.address(engine, header & mi::USE_GGTT != 0, env)?;
        let low = u64::from(self.dword(engine, env)?);
        let qword = length == 5;
        let high = if qword { u64::from(self.dword(engine, env)?) } else { 0 };
        let gpa = self.resolve(engine, address, env)?;
        self.store(engine, gpa, low | (high << 32), qword, now, env);
        Ok(())
    }

    fn load_register_imm<E: Env>(&mut self, engine: Engine, pairs: u32, env: &mut E) -> Result<u64, Report> {
        let mut busy = 0_u64;
        for _ in 0..pairs {
            let register = self.dword(engine, env)? & 0x007f_fffc;
            let value = self.dword(engine, env)?;
            busy = busy.saturating_add(self.write_register(register, value, env));
        }
        Ok(busy)
    }

    /// A register write by the command streamer; returns for how long it keeps the streamer busy. Registers that
    /// make something happen belong to the driver: a command stream's write to one of them is dropped, as hardware
    /// drops those of an unprivileged batch.
    fn write_register<E: Env>(&mut self, register: u32, value: u32, env: &mut E) -> u64 {
        if register == lab::CS_BUSY {
            return self.sampler.scale(u64::from(value));
        }
        let plain = match Engine::decode(register) {
            Some((_, relative)) => {
                relative >= 0x400 || matches!(relative, 0x2c0..=0x340 | ring::CONTEXT_CONTROL)
            }
            None => !has_behaviour(register),
        };
        if plain && register < execlab_abi::MMIO_SIZE {
            self.regs.set(register, value, env);
        }
        0
    }

    fn flush_dw<E: Env>(
        &mut self,
        engine: Engine,
        header: u32,
        length: u32,
        now: u64,
        env: &mut E,
    ) -> Result<(), Report> {
        let low = self.dword(engine, env)?;
        let high = self.dword(engine, env)?;
        let data = if length >= 4 { u64::from(self.dword(engine, env)?) } else { 0 };
        let data_high = if length >= 5 { u64::from(self.dword(engine, env)?) } else { 0 };
        self.skip(engine, length.saturating_sub(5), env)?;
        let qword = length >= 5;
        let address = space(low & mi::FLUSH_DW_GGTT != 0, low & !7, high);
        self.post_sync(engine, header, address, data | (data_high << 32), qword, now, env)
    }

    fn pipe_control<E: Env>(
        &mut self,
        engine: Engine,
        length: u32,
        now: u64,
        env: &mut E,
    ) -> Result<(), Report> {
        let flags = self.dword(engine, env)?;
        let low = self.dword(engine, env)?;
        let high = self.dword(engine, env)?;
        let data = u64::from(self.dword(engine, env)?) | (u64::from(self.dword(engine, env)?) << 32);
        self.skip(engine, length - 6, env)?;
        let address = space(flags & mi::PIPE_CONTROL_GGTT != 0, low & !3, high);
        self.post_sync(engine, flags, address, data, true, now, env)
    }

    /// What MI_FLUSH_DW and PIPE_CONTROL do when the flush is done; `flags` has the bits that they share.
    #[expect(clippy::too_many_arguments, reason = "the fields of one command")]
    fn post_sync<E: Env>(
        &mut self,
        engine: Engine,
        flags: u32,
        address: Address,
        data: u64,
        qword: bool,
        now: u64,
        env: &mut E,
    ) -> Result<(), Report> {
        let operation = (flags >> mi::POST_SYNC_SHIFT) & 3;
        let value = match operation {
            mi::POST_SYNC_IMMEDIATE => Some((data, qword)),
            mi::POST_SYNC_TIMESTAMP => Some((timestamp(now), true)),
            _ => None,
        };
        if let Some((value, qword)) = value {
            let address = match address {
                Address::Ggtt(a) if flags & mi::FLUSH_STORE_INDEX != 0 => self.in_hwsp(engine, a),
                Address::Ppgtt(a) if flags & mi::FLUSH_STORE_INDEX != 0 => self.in_hwsp(engine, a as u32),
                other => other,
            };
            let gpa = self.resolve(engine, address, env)?;
            self.store(engine, gpa, value, qword, now, env);
        }
        if flags & mi::FLUSH_NOTIFY != 0 {
            self.user_interrupt(engine, now, env);
        }
        Ok(())
    }

    fn in_hwsp(&self, engine: Engine, offset: u32) -> Address {
        Address::Ggtt((self.regs.get(engine.reg(ring::HWS_PGA)) & !0xfff) | (offset & 0xfff))
    }

    fn register_and_address<E: Env>(
        &mut self,
        engine: Engine,
        header: u32,
        env: &mut E,
    ) -> Result<(u32, Address), Report> {
        let register = self.dword(engine, env)? & 0x007f_fffc;
        Ok((register, self.address(engine, header & mi::USE_GGTT != 0, env)?))
    }

    fn address<E: Env>(&mut self, engine: Engine, ggtt: bool, env: &mut E) -> Result<Address, Report> {
        let low = self.dword(engine, env)? & !3;
        let high = self.dword(engine, env)?;
        Ok(space(ggtt, low, high))
    }

    fn resolve<E: Env>(&self, engine: Engine, address: Address, env: &mut E) -> Result<u64, Report> {
        let pml4 = self.engines[engine.index()].running.pml4;
        Ok(translate(address, pml4, &self.ggtt, env)?)
    }

    fn load<E: Env>(&self, engine: Engine, address: Address, env: &mut E) -> Result<u32, Report> {
        let gpa = self.resolve(engine, address, env)?;
        env.load32_acquire(gpa).map_err(|_| Fault::Memory { address: gpa, gpa }.into())
    }

    #[inline]
    fn dword<E: Env>(&mut self, engine: Engine, env: &mut E) -> Result<u32, Report> {
        let state = &mut self.engines[engine.index()];
        state.fetch.next(&mut state.running, &self.ggtt, env)
    }

    fn skip<E: Env>(&mut self, engine: Engine, dwords: u32, env: &mut E) -> Result<(), Report> {
        for _ in 0..dwords {
            self.dword(engine, env)?;
        }
        Ok(())
    }
}

/// The address in one of the two spaces. PPGTT addresses have 48 bits.
fn space(ggtt: bool, low: u32, high: u32) -> Address {
    if ggtt { Address::Ggtt(low) } else { Address::Ppgtt(u64::from(low) | (u64::from(high & 0xffff) << 32)) }
}

/// Whether a write to this register outside the engines does more than store.
fn has_behaviour(register: u32) -> bool {
    use execlab_abi::{gt, guc, irq};
    (irq::MASTER..irq::isr(0) + 0x10 * irq::BANKS as u32).contains(&register)
        || register == gt::GDRST
        || gt::FORCEWAKE.contains(&register)
        || gt::FORCEWAKE_ACK.contains(&register)
        || (guc::SOFT_SCRATCH0..guc::soft_scratch(guc::SOFT_SCRATCH_COUNT)).contains(&register)
        || register == guc::SEND_INTERRUPT
        || register >= lab::CS_BUSY
}

fn bad_command(header: u32) -> Report {
    Report::new(Violation::BadCommand, 0, [header, 0, 0, 0])
}
