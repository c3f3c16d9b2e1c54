//! Hostile input: random registers, memory, images and commands. The model must not panic, must come back, and must
//! touch only pages that the GGTT or a page table names.

mod support;

use execlab_abi::descriptor::Descriptor;
use execlab_abi::engine::Engine;
use execlab_abi::{MMIO_SIZE, context, ggtt, gt, irq, lab, mi, ring};
use support::{Bench, Context, Random, SCRATCH, SHIFT, hwsp};

/// Rounds of random writes, each some dozens.
const ROUNDS: u64 = 4_000;
/// Times of advancing, in nanoseconds: none, some, and far too much.
const GAPS: [u64; 6] = [0, 1, 900, 40_000, 3_000_000, 1 << 45];

/// A dword that is often almost right.
fn dword(random: &mut Random) -> u32 {
    const HEADERS: [u32; 18] = [
        mi::NOOP,
        mi::USER_INTERRUPT,
        mi::ARB_CHECK,
        mi::ARB_DISABLE,
        mi::ARB_ENABLE,
        mi::BATCH_BUFFER_END,
        mi::STORE_DWORD_GGTT,
        mi::STORE_DWORD_GGTT + 1,
        mi::STORE_DWORD_GGTT & !mi::USE_GGTT,
        mi::STORE_REGISTER_MEM_GGTT,
        mi::LOAD_REGISTER_MEM_GGTT,
        mi::SEMAPHORE_WAIT_POLL_GGTT,
        mi::BATCH_BUFFER_START_GGTT,
        mi::BATCH_BUFFER_START_GGTT | mi::BATCH_SECOND_LEVEL,
        mi::BATCH_BUFFER_START_GGTT | mi::BATCH_PPGTT,
        mi::FLUSH_DW_STORE | mi::FLUSH_NOTIFY,
        mi::PIPE_CONTROL,
        mi::load_register_imm(1),
    ];
    match random.below(8) {
        0..=3 => HEADERS[random.below(HEADERS.len() as u64) as usize],
        4 => SCRATCH + random.below(0x1000) as u32,
        5 => register(random),
        6 => random.below(64) as u32,
        _ => random.next() as u32,
    }
}

/// An offset in BAR 0, most often of a register that does something.
fn register(random: &mut Random) -> u32 {
    let engine = Engine::ALL[random.below(4) as usize];
    match random.below(8) {
        0..=3 => engine.reg(4 * random.below(0x100) as u32),
        4 => irq::MASTER + 4 * random.below(0x60) as u32,
        5 => [gt::GDRST, lab::CS_BUSY, lab::ERROR_CLEAR, MMIO_SIZE - 4][random.below(4) as usize],
        6 => ggtt::pte_offset(random.below(0x20_0000) as u32),
        _ => random.next() as u32,
    }
}

fn scribble(bench: &mut Bench, random: &mut Random, at: u32, dwords: u32) {
    for n in 0..dwords {
        let value = dword(random);
        bench.poke(at + 4 * n, value);
    }
}

fn round(bench: &mut Bench, contexts: &mut [Context; 3], random: &mut Random) {
    let engine = Engine::ALL[random.below(4) as usize];
    match random.below(12) {
        0 | 1 => {
            let (offset, value) = (register(random), dword(random));
            bench.write(offset, value);
        }
        2 => {
            let now = bench.now;
            bench.gpu.take_interrupts(now, &mut bench.world);
        }
        3 => scribble(bench, random, SCRATCH, 32),
        4 => {
            let slot = context::CONTEXT_CONTROL + 2 * random.below(26) as usize;
            let value = dword(random);
            let lrca = contexts[random.below(3) as usize].lrca;
            bench.poke(lrca + context::STATE_OFFSET + 4 * slot as u32, value);
        }
        5..=8 => {
            let commands: Vec<u32> = (0..1 + random.below(12)).map(|_| dword(random)).collect();
            let first = random.below(3) as usize;
            bench.emit(&mut contexts[first], &commands);
            let second = contexts[(first + 1) % 3].descriptor();
            let pair = [contexts[first].descriptor(), [second, Descriptor::NULL][random.below(2) as usize]];
            bench.submit(engine, pair[0], pair[1]);
        }
        9 => {
            bench.write(gt::GDRST, engine.grdom());
            bench.advance(1_000);
            bench.write(engine.reg(ring::MODE), ring::masked_set(ring::MODE_RUN_LIST_ENABLE));
            bench.write(engine.reg(ring::HWS_PGA), hwsp(engine));
            *contexts = [0, 1, 2].map(|n| bench.context(n));
        }
        _ => {
            let gap = GAPS[random.below(GAPS.len() as u64) as usize];
            // Leave time for the rest of the test.
            if bench.now < u64::MAX / 4 {
                bench.advance(gap);
            }
        }
    }
    let offset = register(random);
    bench.read(offset);
}

#[test]
fn random_registers_images_and_commands_neither_panic_nor_hang_nor_break_the_next_guest() {
    for seed in 0..16 {
        let mut random = Random::new(seed);
        let profile = [
            "name = \"none\"\n",
            "name = \"some\"\n[delay]\n\"seqno.visible\" = { uniform = [\"0ns\", \"9us\"] }\n\
             \"command.execute\" = \"30ns\"\n\"irq.deliver\" = \"2us\"\n\"csb.visible\" = \"1us\"\n",
        ];
        let mut bench = Bench::with_profile(profile[(seed % 2) as usize], seed);
        let mut contexts = [0, 1, 2].map(|n| bench.context(n));
        for _ in 0..ROUNDS {
            round(&mut bench, &mut contexts, &mut random);
            bench.world.trace.clear();
        }
        assert!(bench.gpu.stats().violations > 0 && bench.gpu.stats().commands > 1_000);

        // The same GPU serves a correct guest afterwards.
        bench.now = bench.now.max(1 << 50);
        let now = bench.now;
        bench.gpu.reset(now, &mut bench.world);
        bench.init();
        let mut good = bench.context(7);
        bench.emit_request(&mut good, 0x600d);
        bench.submit(Engine::Rcs0, good.descriptor(), Descriptor::NULL);
        bench.settle(1_000_000);
        assert_eq!(bench.peek(good.seqno_address()), 0x600d, "seed {seed}");
        assert_eq!(bench.events(Engine::Rcs0), [(0x1, 0), (0x18, good.id)]);
    }
}

#[test]
fn a_guest_whose_entries_all_point_to_its_own_pages_is_never_touched_elsewhere() {
    for seed in 100..108 {
        let mut random = Random::new(seed);
        let mut bench = Bench::new();
        let mut contexts = [0, 1, 2].map(|n| bench.context(n));
        // No entry changes in these rounds, and page tables are all empty, so only SHIFT and above may be touched.
        for _ in 0..ROUNDS {
            let commands: Vec<u32> = (0..1 + random.below(12)).map(|_| dword(&mut random)).collect();
            let first = random.below(3) as usize;
            bench.emit(&mut contexts[first], &commands);
            let engine = Engine::ALL[random.below(4) as usize];
            bench.submit(engine, contexts[first].descriptor(), Descriptor::NULL);
            bench.advance(GAPS[random.below(5) as usize]);
            if random.below(4) == 0 {
                bench.write(gt::GDRST, gt::GRDOM_FULL);
                bench.init();
                contexts = [0, 1, 2].map(|n| bench.context(n));
            }
        }
        let below = &bench.world.bytes[..SHIFT as usize];
        let above = &bench.world.bytes[SHIFT as usize + 512 * 4096..];
        assert!(below.iter().chain(above).all(|byte| *byte == 0), "seed {seed}");
    }
}
