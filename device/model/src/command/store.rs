//! Commands that store to memory: seqnos above all.

use execlab_abi::engine::Engine;
use execlab_abi::mi;
use execlab_profile::Point;

use super::{Command, address};
use crate::context::Context;
use crate::engine::Effect;
use crate::error::{Fault, low};
use crate::gpu::ticks;
use crate::{Env, Gpu};

/// What is stored.
#[derive(Debug, Clone, Copy)]
enum Payload {
    Dword(u32),
    Qword(u64),
}

/// Where something is stored: address, and whether it is a GGTT address.
type Place = (u64, bool);

impl Gpu {
    /// MI_STORE_DATA_IMM of a dword (four dwords long) or a qword (five).
    pub(crate) fn store_data_imm<E: Env>(
        &mut self,
        e: Engine,
        context: &Context,
        command: Command,
        env: &mut E,
    ) -> Result<(), Fault> {
        let [header, lower, upper] = self.fetch(e, context, env)?;
        let payload = self.inline_payload(e, context, command, env)?;
        let place = (address(lower, upper, !3), header & mi::USE_GGTT != 0);
        self.store_seqno(e, context, place, payload, command.t, env)
    }

    /// MI_FLUSH_DW: an optional store of a dword (four dwords long), a qword (five) or the timestamp, then the
    /// optional notify.
    pub(crate) fn flush_dw<E: Env>(
        &mut self,
        e: Engine,
        context: &Context,
        command: Command,
        env: &mut E,
    ) -> Result<(), Fault> {
        if operation(command.header) != mi::POST_SYNC_NONE {
            let immediate = self.inline_payload(e, context, command, env)?;
            let [header, lower, upper] = self.fetch(e, context, env)?;
            let ggtt = lower & mi::FLUSH_DW_GGTT != 0;
            let place = post_sync_place(context, header, (address(lower, upper, !7), ggtt));
            let payload = post_sync_payload(header, immediate, command.t);
            self.store_seqno(e, context, place, payload, command.t, env)?;
        }
        if command.header & mi::FLUSH_NOTIFY != 0 {
            self.user_interrupt(e, command.t, env);
        }
        Ok(())
    }

    /// PIPE_CONTROL: an optional store of a qword or the timestamp, then the optional notify.
    pub(crate) fn pipe_control<E: Env>(
        &mut self,
        e: Engine,
        context: &Context,
        command: Command,
        env: &mut E,
    ) -> Result<(), Fault> {
        let flags = self.fetch_dword(e, context, 1, env)?;
        if operation(flags) != mi::POST_SYNC_NONE {
            if command.dwords != 6 {
                return Err(self.bad_command(e, context, env));
            }
            let [_, _, lower, upper, data_lower, data_upper] = self.fetch(e, context, env)?;
            let ggtt = flags & mi::PIPE_CONTROL_GGTT != 0;
            let place = post_sync_place(context, flags, (address(lower, upper, !7), ggtt));
            let immediate = Payload::Qword(qword(data_lower, data_upper));
            let payload = post_sync_payload(flags, immediate, command.t);
            self.store_seqno(e, context, place, payload, command.t, env)?;
        }
        if flags & mi::FLUSH_NOTIFY != 0 {
            self.user_interrupt(e, command.t, env);
        }
        Ok(())
    }

    /// The immediate data of a command whose length says how much it is.
    fn inline_payload<E: Env>(
        &mut self,
        e: Engine,
        context: &Context,
        command: Command,
        env: &mut E,
    ) -> Result<Payload, Fault> {
        match command.dwords {
            4 => Ok(Payload::Dword(self.fetch_dword(e, context, 3, env)?)),
            5 => {
                let [_, _, _, lower, upper] = self.fetch(e, context, env)?;
                Ok(Payload::Qword(qword(lower, upper)))
            }
            _ => Err(self.bad_command(e, context, env)),
        }
    }

    fn store_seqno<E: Env>(
        &mut self,
        e: Engine,
        context: &Context,
        place: Place,
        payload: Payload,
        t: u64,
        env: &mut E,
    ) -> Result<(), Fault> {
        let gpa = self.operand(context, place, 4, env)?;
        let delay = self.sampler.draw(Point::SeqnoVisible, e);
        self.stats.stores += 1;
        match payload {
            Payload::Dword(value) => self.effect(e, Effect::Store32 { gpa, value }, delay, t, env),
            Payload::Qword(value) if gpa.is_multiple_of(8) => {
                self.effect(e, Effect::Store64 { gpa, value }, delay, t, env);
            }
            Payload::Qword(value) => {
                // Not aligned: two dwords, which may lie in two pages.
                let next = (place.0.wrapping_add(4), place.1);
                let upper = self.operand(context, next, 4, env)?;
                self.effect(e, Effect::Store32 { gpa, value: low(value) }, delay, t, env);
                self.effect(e, Effect::Store32 { gpa: upper, value: low(value >> 32) }, delay, t, env);
            }
        }
        Ok(())
    }
}

/// The post-sync operation in a header (MI_FLUSH_DW) or in the flags (PIPE_CONTROL).
const fn operation(flags: u32) -> u32 {
    (flags >> mi::POST_SYNC_SHIFT) & 3
}

/// With the index bit a post-sync operation stores in the context's own status page (the page at the LRCA), as
/// i915's `LRC_PPHWSP_SCRATCH_ADDR` has it.
fn post_sync_place(context: &Context, flags: u32, place: Place) -> Place {
    if flags & mi::FLUSH_STORE_INDEX == 0 {
        return place;
    }
    (u64::from(context.lrca) + (place.0 & 0xff8), true)
}

fn post_sync_payload(flags: u32, immediate: Payload, t: u64) -> Payload {
    match operation(flags) {
        mi::POST_SYNC_IMMEDIATE => immediate,
        mi::POST_SYNC_TIMESTAMP => Payload::Qword(ticks(t)),
        // The depth count: nothing is drawn.
        _ => Payload::Qword(0),
    }
}

const fn qword(lower: u32, upper: u32) -> u64 {
    ((upper as u64) << 32) | lower as u64
}
