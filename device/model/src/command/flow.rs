//! Commands that change where the streamer goes on: batches, semaphores, and the user interrupt.

use execlab_abi::engine::Engine;
use execlab_abi::lab::Violation;
use execlab_abi::{irq, mi};
use execlab_profile::Point;

use super::{Command, Step, address};
use crate::context::{Context, Frame};
use crate::engine::Effect;
use crate::error::{Fault, low};
use crate::{Env, Gpu, TraceKind};

impl Gpu {
    /// MI_USER_INTERRUPT, or the notify bit of a flush: follows every store that was executed before.
    pub(crate) fn user_interrupt<E: Env>(&mut self, e: Engine, t: u64, env: &mut E) {
        self.stats.user_interrupts += 1;
        self.effect(e, Effect::Interrupt { bits: irq::USER }, 0, t, env);
    }

    /// MI_BATCH_BUFFER_START: from the ring into the first level, from there on or into the second.
    pub(crate) fn batch_start<E: Env>(
        &mut self,
        e: Engine,
        context: &mut Context,
        command: Command,
        env: &mut E,
    ) -> Result<Step, Fault> {
        if command.dwords != 3 {
            return Err(self.bad_command(e, context, env));
        }
        let [header, lower, upper] = self.fetch(e, context, env)?;
        let target = address(lower, upper, u32::MAX) & mi::BATCH_ADDRESS_MASK;
        let nested = header & mi::BATCH_SECOND_LEVEL != 0;
        match context.depth {
            0 => {
                context.advance(3);
                context.depth = 1;
            }
            1 if nested => {
                context.advance(3);
                context.depth = 2;
            }
            _ if nested => {
                let words = [low(target), low(target >> 32), 3, header];
                return Err(Fault::new(Violation::SelfReference, context.place(), words));
            }
            // A chain: the new batch takes the place of this one.
            _ => {}
        }
        let ppgtt = header & mi::BATCH_PPGTT != 0;
        context.batch[context.depth - 1] = Frame { address: target, ppgtt };
        self.stats.batches += 1;
        self.trace(Some(e), TraceKind::BatchStart { address: target }, command.t, env);
        Ok(Step::Next { cost: self.sampler.draw(Point::BatchExecute, e) })
    }

    /// MI_BATCH_BUFFER_END: back to the level above. In a ring there is nothing to end.
    pub(crate) fn batch_end<E: Env>(
        &mut self,
        e: Engine,
        context: &mut Context,
        env: &mut E,
    ) -> Result<Step, Fault> {
        if context.depth == 0 {
            return Err(self.bad_command(e, context, env));
        }
        context.depth -= 1;
        Ok(Step::Next { cost: self.sampler.draw(Point::Command, e) })
    }

    /// MI_SEMAPHORE_WAIT: compares memory with the inline dword, and waits while that does not hold.
    pub(crate) fn semaphore_wait<E: Env>(
        &mut self,
        e: Engine,
        context: &mut Context,
        command: Command,
        env: &mut E,
    ) -> Result<Step, Fault> {
        let compare = match mi::Compare::from_header(command.header) {
            Some(compare) if command.dwords == 4 => compare,
            _ => return Err(self.bad_command(e, context, env)),
        };
        let [header, data, lower, upper] = self.fetch(e, context, env)?;
        let place = (address(lower, upper, !3), header & mi::USE_GGTT != 0);
        let memory = self.load_operand(context, place, env)?;
        if compare.holds(memory, data) {
            if context.waiting {
                context.waiting = false;
                self.trace(Some(e), TraceKind::SemaphorePassed, command.t, env);
            }
            context.advance(4);
            return Ok(Step::Next { cost: self.sampler.draw(Point::Command, e) });
        }
        if !context.waiting {
            context.waiting = true;
            self.stats.semaphore_waits += 1;
            self.trace(Some(e), TraceKind::SemaphoreBlocked, command.t, env);
            self.effect(e, Effect::Interrupt { bits: irq::WAIT_SEMAPHORE }, 0, command.t, env);
        }
        Ok(Step::Wait)
    }
}
