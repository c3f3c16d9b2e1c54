//! Commands per second of the model alone, on one core, with memory that is a vector.
//!
//! Rates are per second of this thread's processor time, so that other work on the machine does not count.
//!
//! `cargo bench -p execlab-model` prints one line a workload. Each submits a full ring again and again, as a driver
//! would: tail into the image, four ELSP writes, then whatever is due.
#![allow(missing_docs, reason = "a bench has no interface")]
#![allow(clippy::unwrap_used, reason = "a bench may stop when it cannot set up")]

use std::hint::black_box;
use std::time::Duration;

use execlab_abi::descriptor::Descriptor;
use execlab_abi::engine::Engine;
use execlab_abi::{context, ggtt, irq, mi, ring};
use execlab_model::{BadAddress, Config, Env, Gpu, TraceEvent};
use rustix::time::{ClockId, clock_gettime};

const E: Engine = Engine::Rcs0;
const MEMORY: usize = 1 << 20;
const HWSP: u32 = 0x1000;
const SEQNO: u32 = 0x2000;
const BATCH: u32 = 0x3000;
const LRCA: u32 = 0x4000;
const RING: u32 = 0x1_0000;
const RING_SIZE: u32 = 0x1_0000;
/// How long each workload runs.
const TIME: Duration = Duration::from_secs(1);

struct Memory {
    bytes: Vec<u8>,
    interrupts: u64,
    events: u64,
}

impl Memory {
    fn at<const N: usize>(&mut self, gpa: u64) -> Result<&mut [u8; N], BadAddress> {
        let at = usize::try_from(gpa).map_err(|_| BadAddress)?;
        let end = at.checked_add(N).ok_or(BadAddress)?;
        self.bytes.get_mut(at..end).ok_or(BadAddress)?.try_into().map_err(|_| BadAddress)
    }
    fn put(&mut self, at: u32, value: u32) {
        self.store32_release(u64::from(at), value).unwrap();
    }
}

impl Env for Memory {
    fn read(&mut self, gpa: u64, data: &mut [u8]) -> Result<(), BadAddress> {
        let at = usize::try_from(gpa).map_err(|_| BadAddress)?;
        let end = at.checked_add(data.len()).ok_or(BadAddress)?;
        data.copy_from_slice(self.bytes.get(at..end).ok_or(BadAddress)?);
        Ok(())
    }
    fn write(&mut self, gpa: u64, data: &[u8]) -> Result<(), BadAddress> {
        let at = usize::try_from(gpa).map_err(|_| BadAddress)?;
        let end = at.checked_add(data.len()).ok_or(BadAddress)?;
        self.bytes.get_mut(at..end).ok_or(BadAddress)?.copy_from_slice(data);
        Ok(())
    }
    fn store32_release(&mut self, gpa: u64, value: u32) -> Result<(), BadAddress> {
        *self.at(gpa)? = value.to_le_bytes();
        Ok(())
    }
    fn store64_release(&mut self, gpa: u64, value: u64) -> Result<(), BadAddress> {
        *self.at(gpa)? = value.to_le_bytes();
        Ok(())
    }
    fn load32_acquire(&mut self, gpa: u64) -> Result<u32, BadAddress> {
        Ok(u32::from_le_bytes(*self.at(gpa)?))
    }
    fn interrupt(&mut self) {
        self.interrupts += 1;
    }
    fn mirror(&mut self, _offset: u32, value: u32) {
        black_box(value);
    }
    fn trace(&mut self, _event: TraceEvent) {
        self.events += 1;
    }
}

/// Processor time of this thread.
fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap()
}

/// Runs `commands`, repeated `times` times or as often as the ring takes them, for [`TIME`].
fn run(name: &str, commands: &[u32], times: usize) {
    let mut memory = Memory { bytes: vec![0; MEMORY], interrupts: 0, events: 0 };
    let mut gpu = Gpu::new(Config::default());
    let mut now = 0;
    for page in 0..64_u32 {
        gpu.mmio_write(ggtt::pte_offset(page << 12), (page << 12) | 1, now, &mut memory);
    }
    let setup = [
        (E.reg(ring::MODE), ring::masked_set(ring::MODE_RUN_LIST_ENABLE)),
        (E.reg(ring::HWS_PGA), HWSP),
        (E.reg(ring::IMR), E.ring_imr(irq::USER | irq::CONTEXT_SWITCH)),
        (irq::imr(0), 0),
        (irq::ier(0), u32::MAX),
        (irq::MASTER, irq::MASTER_ENABLE),
    ];
    for (offset, value) in setup {
        gpu.mmio_write(offset, value, now, &mut memory);
    }
    for (at, dword) in (0..).zip([mi::NOOP, mi::NOOP, mi::NOOP, mi::BATCH_BUFFER_END]) {
        memory.put(BATCH + 4 * at, dword);
    }
    let state = LRCA + context::STATE_OFFSET;
    memory.put(state + 4 * context::RING_START as u32, RING);
    memory.put(state + 4 * context::RING_CTL as u32, ring::ctl(RING_SIZE));
    let mut tail = 0;
    let most = (RING_SIZE as usize - 8) / (4 * commands.len());
    for dword in commands.repeat(times.min(most)) {
        memory.put(RING + tail, dword);
        tail += 4;
    }
    tail &= !7;
    let descriptor = Descriptor::new(LRCA, 1);
    let start = cpu_time();
    let mut submissions = 0_u64;
    while cpu_time() - start < TIME {
        memory.put(state + 4 * context::RING_HEAD as u32, 0);
        memory.put(state + 4 * context::RING_TAIL as u32, tail);
        for word in [0, 0, descriptor.hi, descriptor.lo] {
            gpu.mmio_write(E.reg(ring::ELSP), word, now, &mut memory);
        }
        while let Some(due) = gpu.next_deadline() {
            now = now.max(due);
            gpu.advance(now, &mut memory);
        }
        gpu.take_interrupts(now, &mut memory);
        submissions += 1;
    }
    let seconds = (cpu_time() - start).as_secs_f64();
    let stats = *gpu.stats();
    assert_eq!((stats.violations, stats.submissions), (0, submissions), "{name}");
    #[expect(clippy::cast_precision_loss, reason = "a rate to three digits")]
    let rate = |count: u64| count as f64 / seconds / 1e6;
    println!(
        "{name:<28} {:>8.2} M commands/s  {:>7.3} M submissions/s",
        rate(stats.commands),
        rate(submissions)
    );
}

fn main() {
    let request = [mi::STORE_DWORD_GGTT, SEQNO, 0, 1, mi::USER_INTERRUPT, mi::ARB_CHECK, mi::NOOP, mi::NOOP];
    let batch = [mi::BATCH_BUFFER_START_GGTT, BATCH, 0, mi::NOOP];
    run("MI_NOOP", &[mi::NOOP; 8], usize::MAX);
    run("MI_ARB_CHECK", &[mi::ARB_CHECK; 8], usize::MAX);
    run("MI_STORE_DATA_IMM", &request[..4], usize::MAX);
    run("requests (store, interrupt)", &request, usize::MAX);
    run("batches of three commands", &batch, usize::MAX);
    run("one request a submission", &request, 1);
}
