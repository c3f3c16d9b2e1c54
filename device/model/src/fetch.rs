//! Instruction fetch: dwords from the ring or a batch, a few at a time.

use execlab_abi::lab::Violation;

use crate::context::Running;
use crate::env::Env;
use crate::error::Report;
use crate::translate::{Address, Fault, Ggtt, translate_ppgtt};

/// Bytes read from memory at once.
const CHUNK: usize = 256;

/// A small prefetch buffer. It holds dwords that follow the current position in a straight line; a jump, a wait or
/// the end of a burst throws it away, so that what the CPU writes meanwhile is seen.
#[derive(Debug, Clone)]
pub(crate) struct Fetch {
    bytes: [u8; CHUNK],
    at: usize,
    len: usize,
}

impl Fetch {
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; CHUNK], at: 0, len: 0 }
    }

    pub(crate) fn invalidate(&mut self) {
        self.len = 0;
        self.at = 0;
    }

    /// The next dword; the position in `running` moves on.
    pub(crate) fn next<E: Env>(
        &mut self,
        running: &mut Running,
        ggtt: &Ggtt,
        env: &mut E,
    ) -> Result<u32, Report> {
        if self.at == self.len {
            self.refill(running, ggtt, env)?;
        }
        let b = &self.bytes[self.at..self.at + 4];
        let dword = u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
        self.at += 4;
        match running.second.as_mut().or(running.batch.as_mut()) {
            Some(batch) => batch.address = batch.address.wrapping_add(4),
            None => {
                running.head += 4;
                if running.head == running.size {
                    running.head = 0;
                    // The buffer ends where the ring does, see `refill`.
                }
            }
        }
        Ok(dword)
    }

    fn refill<E: Env>(&mut self, running: &Running, ggtt: &Ggtt, env: &mut E) -> Result<(), Report> {
        self.invalidate();
        let (address, available) = match running.second.or(running.batch) {
            Some(batch) => (batch.at(), CHUNK),
            None => {
                let end = if running.tail > running.head { running.tail } else { running.size };
                if running.head == running.tail {
                    // A command that reaches beyond the tail.
                    let words = [running.start, running.ctl, running.head, running.tail];
                    return Err(Report::new(Violation::BadCommand, running.start, words));
                }
                let address = running.start.wrapping_add(running.head);
                (Address::Ggtt(address), (end - running.head) as usize)
            }
        };
        let to_page_end = match address {
            Address::Ggtt(a) => 4096 - (a & 0xfff) as usize,
            Address::Ppgtt(a) => 4096 - (a & 0xfff) as usize,
        };
        let len = CHUNK.min(available).min(to_page_end) & !3;
        let gpa = translate(address, running.pml4, ggtt, env)?;
        env.read(gpa, &mut self.bytes[..len])
            .map_err(|_| Report::from(Fault::Memory { address: gpa, gpa }))?;
        self.len = len;
        Ok(())
    }
}

/// Guest-physical address of a command streamer's address.
pub(crate) fn translate<E: Env>(address: Address, pml4: u64, ggtt: &Ggtt, env: &mut E) -> Result<u64, Fault> {
    match address {
        Address::Ggtt(a) => ggtt.translate(a),
        Address::Ppgtt(a) => translate_ppgtt(env, pml4, a),
    }
}

/// Moves the position back by `dwords`, to execute a command again.
pub(crate) fn rewind(running: &mut Running, dwords: u32) {
    match running.second.as_mut().or(running.batch.as_mut()) {
        Some(batch) => batch.address = batch.address.wrapping_sub(4 * u64::from(dwords)),
        None => running.head = (running.head + running.size - 4 * dwords % running.size) % running.size,
    }
}
