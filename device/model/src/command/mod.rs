//! Commands: length and class here, what each does in the modules below.

mod flow;
mod register;
mod store;

use execlab_abi::engine::Engine;
use execlab_abi::lab::Violation;
use execlab_abi::mi;
use execlab_profile::Point;

use crate::context::Context;
use crate::error::{Fault, low};
use crate::{Env, Gpu};

/// How the streamer goes on after a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// With the next command, `cost` ns after this one.
    Next { cost: u64 },
    /// The same, at an arbitration point.
    Arbitrate { cost: u64 },
    /// With the same command once more: a semaphore does not hold.
    Wait,
}

/// A command as its module sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Command {
    /// First dword.
    pub header: u32,
    /// Length in dwords.
    pub dwords: u32,
    /// Modelled time of execution.
    pub t: u64,
}

impl Gpu {
    /// Executes the command at the context's place and moves the place on.
    #[inline]
    pub(crate) fn command<E: Env>(
        &mut self,
        e: Engine,
        context: &mut Context,
        t: u64,
        env: &mut E,
    ) -> Result<Step, Fault> {
        let header = self.fetch_dword(e, context, 0, env)?;
        self.stats.commands += 1;
        if header == mi::NOOP {
            context.advance(1);
            return Ok(Step::Next { cost: self.sampler.draw(Point::Command, e) });
        }
        let Some(dwords) = mi::command_dwords(header) else {
            return Err(self.bad_command(e, context, env));
        };
        if context.depth == 0 && 4 * dwords > context.remaining() {
            // It would reach beyond the tail.
            return Err(self.bad_command(e, context, env));
        }
        let command = Command { header, dwords, t };
        if mi::class(header) == mi::CLASS_MI {
            return self.mi_command(e, context, command, env);
        }
        if header & mi::PIPE_CONTROL_MASK == mi::PIPE_CONTROL & mi::PIPE_CONTROL_MASK {
            self.pipe_control(e, context, command, env)?;
        }
        // Everything else draws or copies, which nothing here looks at.
        Ok(self.step(e, context, command))
    }

    fn mi_command<E: Env>(
        &mut self,
        e: Engine,
        context: &mut Context,
        command: Command,
        env: &mut E,
    ) -> Result<Step, Fault> {
        let mut busy = 0;
        match mi::opcode(command.header) {
            mi::OP_USER_INTERRUPT => self.user_interrupt(e, command.t, env),
            mi::OP_ARB_CHECK => {
                context.advance(1);
                return Ok(Step::Arbitrate { cost: self.sampler.draw(Point::Command, e) });
            }
            mi::OP_ARB_ON_OFF => context.arbitration = command.header & 1 != 0,
            mi::OP_BATCH_BUFFER_END => return self.batch_end(e, context, env),
            mi::OP_BATCH_BUFFER_START => return self.batch_start(e, context, command, env),
            mi::OP_SEMAPHORE_WAIT => return self.semaphore_wait(e, context, command, env),
            mi::OP_STORE_DATA_IMM => self.store_data_imm(e, context, command, env)?,
            mi::OP_FLUSH_DW => self.flush_dw(e, context, command, env)?,
            mi::OP_LOAD_REGISTER_IMM => busy = self.load_register_imm(e, context, command, env)?,
            mi::OP_STORE_REGISTER_MEM => self.store_register_mem(e, context, command, env)?,
            mi::OP_LOAD_REGISTER_MEM => busy = self.load_register_mem(e, context, command, env)?,
            _ => {}
        }
        match self.step(e, context, command) {
            Step::Next { cost } => Ok(Step::Next { cost: cost.saturating_add(busy) }),
            other => Ok(other),
        }
    }

    /// Past the command, at its cost.
    fn step(&mut self, e: Engine, context: &mut Context, command: Command) -> Step {
        context.advance(command.dwords);
        Step::Next { cost: self.sampler.draw(Point::Command, e) }
    }

    /// The current command as a violation.
    #[cold]
    pub(crate) fn bad_command<E: Env>(&mut self, e: Engine, context: &Context, env: &mut E) -> Fault {
        // Dwords that cannot be read count as 0: the first one could.
        let mut words = [0; 4];
        for (at, word) in (0..).zip(&mut words) {
            *word = self.fetch_dword(e, context, at, env).unwrap_or(0);
        }
        Fault::new(Violation::BadCommand, context.place(), words)
    }

    /// Translates the address of a command's memory operand, for an access of `len` bytes within its page.
    pub(crate) fn operand<E: Env>(
        &self,
        context: &Context,
        (address, ggtt): (u64, bool),
        len: u32,
        env: &mut E,
    ) -> Result<u64, Fault> {
        if ggtt { self.ggtt.translate(low(address), len) } else { context.tables.translate(address, env) }
    }
}

/// An address in two dwords of a command; `mask` takes the flags off the low one.
const fn address(lower: u32, upper: u32, mask: u32) -> u64 {
    ((upper as u64 & 0xffff) << 32) | (lower & mask) as u64
}
