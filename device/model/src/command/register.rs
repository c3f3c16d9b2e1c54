//! Commands between registers and memory.

use execlab_abi::engine::Engine;
use execlab_abi::{MMIO_SIZE, gt, lab, mi, ring};

use super::{Command, address};
use crate::context::Context;
use crate::engine::Effect;
use crate::error::{Fault, low};
use crate::{Env, Gpu, ppgtt};

impl Gpu {
    /// MI_LOAD_REGISTER_IMM: any number of pairs. Gives the time that [`lab::CS_BUSY`] asks for.
    pub(crate) fn load_register_imm<E: Env>(
        &mut self,
        e: Engine,
        context: &Context,
        command: Command,
        env: &mut E,
    ) -> Result<u64, Fault> {
        if command.dwords < 3 || command.dwords.is_multiple_of(2) {
            return Err(self.bad_command(e, context, env));
        }
        let mut busy = 0_u64;
        for pair in 0..command.dwords / 2 {
            let offset = self.fetch_dword(e, context, 1 + 2 * pair, env)? & mi::REGISTER_MASK;
            let value = self.fetch_dword(e, context, 2 + 2 * pair, env)?;
            busy = busy.saturating_add(self.load_register(e, context, offset, value, command.t, env)?);
        }
        Ok(busy)
    }

    /// MI_STORE_REGISTER_MEM.
    pub(crate) fn store_register_mem<E: Env>(
        &mut self,
        e: Engine,
        context: &Context,
        command: Command,
        env: &mut E,
    ) -> Result<(), Fault> {
        let (offset, place) = self.register_operand(e, context, command, env)?;
        let gpa = self.operand(context, place, 4, env)?;
        let value = if offset == e.reg(ring::HEAD) {
            // The streamer's own head moves while it runs.
            context.head
        } else {
            self.read_register(offset, command.t)
        };
        self.effect(e, Effect::Store32 { gpa, value }, 0, command.t, env);
        Ok(())
    }

    /// MI_LOAD_REGISTER_MEM.
    pub(crate) fn load_register_mem<E: Env>(
        &mut self,
        e: Engine,
        context: &Context,
        command: Command,
        env: &mut E,
    ) -> Result<u64, Fault> {
        let (offset, place) = self.register_operand(e, context, command, env)?;
        let value = self.load_operand(context, place, env)?;
        self.load_register(e, context, offset, value, command.t, env)
    }

    /// A dword of memory.
    pub(crate) fn load_operand<E: Env>(
        &self,
        context: &Context,
        (at, ggtt): (u64, bool),
        env: &mut E,
    ) -> Result<u32, Fault> {
        let gpa = self.operand(context, (at, ggtt), 4, env)?;
        env.load32_acquire(gpa)
            .map_err(|_| if ggtt { self.ggtt.fault(low(at), 4) } else { ppgtt::fault(at, 0, low(gpa)) })
    }

    /// Register and memory operand of a command between the two.
    fn register_operand<E: Env>(
        &mut self,
        e: Engine,
        context: &Context,
        command: Command,
        env: &mut E,
    ) -> Result<(u32, (u64, bool)), Fault> {
        if command.dwords != 4 {
            return Err(self.bad_command(e, context, env));
        }
        let [header, register, lower, upper] = self.fetch(e, context, env)?;
        let place = (address(lower, upper, !3), header & mi::USE_GGTT != 0);
        Ok((register & mi::REGISTER_MASK, place))
    }

    /// A streamer's write to a register; gives the time that it takes. Registers that submit to an engine or reset
    /// one are not in a streamer's reach.
    fn load_register<E: Env>(
        &mut self,
        e: Engine,
        context: &Context,
        offset: u32,
        value: u32,
        t: u64,
        env: &mut E,
    ) -> Result<u64, Fault> {
        if offset == lab::CS_BUSY {
            return Ok(self.sampler.scale(u64::from(value)));
        }
        let relative = Engine::decode(offset).map(|(_, relative)| relative);
        let out_of_reach = matches!(relative, Some(ring::ELSP | ring::RESET_CTL)) || offset == gt::GDRST;
        if out_of_reach || offset >= MMIO_SIZE {
            return Err(self.bad_command(e, context, env));
        }
        self.write_register(offset, value, t, env);
        Ok(0)
    }
}
