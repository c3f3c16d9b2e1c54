//! A GPU with a guest's memory around it: what a case plays with.

use execlab_abi::engine::Engine;
use execlab_abi::lab::Violation;
use execlab_abi::{csb, ggtt, irq};
use execlab_model::{BadAddress, Config, Env, Gpu, TraceEvent, TraceKind};
use execlab_profile::Sampler;

use super::bus::Bus;
use super::memory::Memory;
use crate::Reached;

/// Number of violations, which are the first labels.
const VIOLATIONS: usize = Violation::ALL.len();

/// Number of labels.
const LABELS: usize = VIOLATIONS + EVENTS.len();

/// Names of what [`World::reached`] can hold: the violations, then what the model tells about. Those that a target
/// cannot reach by its nature are left empty.
#[must_use]
pub const fn labels(out_of_reach: &[Violation]) -> [&'static str; LABELS] {
    let mut labels = [""; LABELS];
    let mut at = 0;
    while at < VIOLATIONS {
        labels[at] = Violation::ALL[at].name();
        let mut n = 0;
        while n < out_of_reach.len() {
            if out_of_reach[n] as u32 == Violation::ALL[at] as u32 {
                labels[at] = "";
            }
            n += 1;
        }
        at += 1;
    }
    let mut event = 0;
    while event < EVENTS.len() {
        labels[at + event] = EVENTS[event];
        event += 1;
    }
    labels
}

/// Things that the model tells about, apart from violations.
const EVENTS: [&str; 10] = [
    "submission taken",
    "context started",
    "context stopped",
    "batch entered",
    "store seen",
    "semaphore blocked",
    "semaphore passed",
    "interrupt sent",
    "preempted",
    "lite restore",
];

/// Place of a trace event in [`EVENTS`], or beyond it for one without a label.
fn number(kind: TraceKind) -> usize {
    match kind {
        TraceKind::Accept => 0,
        TraceKind::ContextStart { .. } => 1,
        TraceKind::ContextStop { .. } => 2,
        TraceKind::BatchStart { .. } => 3,
        TraceKind::Store { .. } => 4,
        TraceKind::SemaphoreBlocked => 5,
        TraceKind::SemaphorePassed => 6,
        TraceKind::Msi => 7,
        TraceKind::Csb { status, .. } if status & csb::PREEMPTED != 0 => {
            if status & csb::LITE_RESTORE != 0 {
                9
            } else {
                8
            }
        }
        TraceKind::Csb { status, .. } => EVENTS.len() + 1 + (status & 0x1f) as usize,
        _ => EVENTS.len(),
    }
}

/// Longest that a correct guest waits for a reset or for two requests, in nanoseconds of device time: 1 s.
const PATIENCE_NS: u64 = 1_000_000_000;

/// Most things that may happen while a case lets them: far more than any case needs, far less than a hang.
const MAX_EVENTS: u32 = 100_000;

/// The outside of the GPU.
#[derive(Debug, Default)]
pub struct World {
    /// Guest memory.
    pub memory: Memory,
    /// What has happened.
    pub reached: Reached,
    last: [usize; 5],
    misaligned: Option<u64>,
    homeless: Option<u32>,
}

impl World {
    fn aligned(&mut self, gpa: u64, to: u64) {
        if !gpa.is_multiple_of(to) {
            self.misaligned = Some(gpa);
        }
    }

    /// Notes a trace event, and which event of the same engine came before it.
    fn note(&mut self, event: TraceEvent) {
        let number = match event.kind {
            TraceKind::Violation(violation) => {
                Violation::ALL.iter().position(|v| *v == violation).unwrap_or(VIOLATIONS)
            }
            kind => VIOLATIONS + number(kind),
        };
        if number < LABELS {
            self.reached.name(number);
        }
        let last = &mut self.last[event.engine.map_or(4, Engine::index)];
        self.reached.hash((*last << 8 | number) as u64);
        *last = number;
    }
}

impl Env for World {
    fn read(&mut self, gpa: u64, data: &mut [u8]) -> Result<(), BadAddress> {
        self.memory.device_read(gpa, data).ok_or(BadAddress)
    }
    fn write(&mut self, gpa: u64, data: &[u8]) -> Result<(), BadAddress> {
        self.memory.device_write(gpa, data).ok_or(BadAddress)
    }
    fn store32_release(&mut self, gpa: u64, value: u32) -> Result<(), BadAddress> {
        self.aligned(gpa, 4);
        self.write(gpa, &value.to_le_bytes())
    }
    fn store64_release(&mut self, gpa: u64, value: u64) -> Result<(), BadAddress> {
        self.aligned(gpa, 8);
        self.write(gpa, &value.to_le_bytes())
    }
    fn load32_acquire(&mut self, gpa: u64) -> Result<u32, BadAddress> {
        self.aligned(gpa, 4);
        self.read_u32(gpa)
    }
    fn interrupt(&mut self) {}
    fn mirror(&mut self, offset: u32, _: u32) {
        if execlab_abi::mirror::slot(offset).is_none() {
            self.homeless = Some(offset);
        }
    }
    fn trace(&mut self, event: TraceEvent) {
        self.note(event);
    }
}

/// A GPU, its surroundings and the time.
///
/// One GPU serves case after case, as one device process serves guest after guest, and a full reset for each case
/// would cost more than the case: the next one begins where the last one's correct guest has left off.
#[derive(Debug)]
pub struct Lab {
    /// The device.
    pub gpu: Gpu,
    /// Its surroundings.
    pub world: World,
    /// Device time in nanoseconds.
    pub now: u64,
    /// Halves of GGTT entries that the case has written.
    written: Vec<u32>,
}

impl Default for Lab {
    fn default() -> Self {
        Self { gpu: Gpu::new(Config::default()), world: World::default(), now: 0, written: Vec::new() }
    }
}

impl Lab {
    /// Empty memory, an empty GGTT and delays from `sampler`.
    pub fn begin(&mut self, sampler: Sampler) {
        self.gpu.set_sampler(sampler);
        self.forget();
        self.world.reached = Reached::default();
        self.world.last = [0; 5];
        self.world.misaligned = None;
        self.world.homeless = None;
    }

    /// Time passes.
    pub fn advance(&mut self, ns: u64) {
        self.now = self.now.saturating_add(ns);
        self.gpu.advance(self.now, &mut self.world);
    }

    /// The device's time goes from deadline to deadline, at most `most` of them and not beyond `ns` from now.
    pub fn settle(&mut self, most: u32, ns: u64) {
        let end = self.now.saturating_add(ns);
        for _ in 0..most {
            match self.gpu.next_deadline() {
                Some(due) if due <= end => self.advance(due.saturating_sub(self.now)),
                _ => return,
            }
        }
    }

    /// What the device did wrong so far, if anything.
    ///
    /// # Errors
    /// The first offence.
    pub fn check(&self) -> Result<(), String> {
        if let Some(offence) = self.world.memory.offence() {
            return Err(offence.to_owned());
        }
        if let Some(gpa) = self.world.misaligned {
            return Err(format!("an access in one piece at {gpa:#x} is not aligned"));
        }
        if let Some(offset) = self.world.homeless {
            return Err(format!("register {offset:#x} has no slot in the register page"));
        }
        // A deadline in the past that is not acted upon would make the caller spin.
        match self.gpu.next_deadline() {
            Some(due) if due < self.now => Err(format!("deadline {due} is before {}", self.now)),
            _ => Ok(()),
        }
    }
}

impl Bus for Lab {
    fn write(&mut self, offset: u32, value: u32) {
        if (ggtt::GSM_OFFSET..ggtt::GSM_OFFSET + ggtt::GSM_SIZE).contains(&offset) {
            self.world.memory.note_entry(value);
            self.written.push(offset);
        }
        self.gpu.mmio_write(offset, value, self.now, &mut self.world);
    }

    fn read(&mut self, offset: u32) -> u32 {
        self.gpu.mmio_read(offset, self.now)
    }

    fn put(&mut self, page: u32, at: u32, value: u32) {
        self.world.memory.put(page, at, value);
    }

    fn get(&self, page: u32, at: u32) -> u32 {
        self.world.memory.get(page, at)
    }

    fn finish(&mut self) -> Result<(), String> {
        let end = self.now.saturating_add(PATIENCE_NS);
        self.settle(MAX_EVENTS, PATIENCE_NS);
        match self.gpu.next_deadline() {
            Some(due) if due <= end => Err(format!("still busy after {MAX_EVENTS} deadlines")),
            Some(due) => Err(format!("still busy after {PATIENCE_NS} ns, next at {due}")),
            None => Ok(()),
        }
    }

    fn take_interrupts(&mut self) -> [u32; irq::BANKS] {
        self.gpu.take_interrupts(self.now, &mut self.world).unwrap_or_default()
    }

    fn reset(&mut self) {
        self.gpu.reset(self.now, &mut self.world);
    }

    fn forget(&mut self) {
        for offset in std::mem::take(&mut self.written) {
            self.gpu.mmio_write(offset, 0, self.now, &mut self.world);
        }
        self.world.memory.clear();
    }
}
