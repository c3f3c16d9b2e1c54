//! Context images and address spaces: what is read, what is saved, and where pages are found.

mod support;

use execlab_abi::descriptor::{Descriptor, FORCE_RESTORE, LEGACY_32B, LEGACY_64B, PRIVILEGE, VALID};
use execlab_abi::engine::Engine;
use execlab_abi::lab::Violation;
use execlab_abi::{context, mi, ppgtt, ring};
use support::{Bench, Context, RING_SIZE, SCRATCH, SHIFT};

const E: Engine = Engine::Rcs0;
/// GGTT addresses of pages for page tables and their targets.
const TABLES: u32 = 0x10_0000;
const TARGET: u32 = 0x11_0000;

fn slot(context: &Context, slot: usize) -> u32 {
    context.lrca + context::STATE_OFFSET + 4 * slot as u32
}

fn gpa(ggtt: u32) -> u64 {
    SHIFT + u64::from(ggtt)
}

#[test]
fn a_ring_wraps_in_the_middle_of_a_command() {
    let mut bench = Bench::new();
    let mut a = bench.context(0);
    a.tail = RING_SIZE - 8;
    bench.poke(slot(&a, context::RING_HEAD), a.tail);
    bench.emit(&mut a, &[mi::STORE_DWORD_GGTT, SCRATCH, 0, 0x55]);
    assert_eq!(a.tail, 8);
    bench.submit(E, a.descriptor(), Descriptor::NULL);
    assert_eq!(bench.peek(SCRATCH), 0x55);
    assert_eq!(bench.peek(slot(&a, context::RING_HEAD)), 8);
}

#[test]
fn leaving_saves_head_and_the_ticks_it_ran() {
    let mut bench = Bench::new();
    let mut a = bench.context(0);
    bench.poke(slot(&a, context::CTX_TIMESTAMP), 100);
    bench.emit(&mut a, &[mi::load_register_imm(1), execlab_abi::lab::CS_BUSY, 2_500, mi::NOOP]);
    bench.submit(E, a.descriptor(), Descriptor::NULL);
    bench.settle(10_000);
    assert_eq!(bench.peek(slot(&a, context::RING_HEAD)), a.tail);
    assert_eq!(bench.peek(slot(&a, context::CTX_TIMESTAMP)), 130);
}

#[test]
fn with_the_save_inhibited_the_image_stays_as_it_was() {
    let mut bench = Bench::new();
    let mut a = bench.context(0);
    bench.poke(slot(&a, context::CONTEXT_CONTROL), ring::masked_set(context::CTL_SAVE_INHIBIT));
    bench.emit_request(&mut a, 1);
    bench.submit(E, a.descriptor(), Descriptor::NULL);
    assert_eq!(bench.events(E).last(), Some(&(0x18, a.id)));
    assert_eq!(bench.peek(slot(&a, context::RING_HEAD)), 0);
}

#[test]
fn with_the_restore_inhibited_a_saved_batch_is_not_entered() {
    let mut bench = Bench::new();
    let mut a = bench.context(0);
    bench.poke(slot(&a, context::BB_HEAD_LDW), SCRATCH | context::BB_HEAD_VALID);
    bench.poke(slot(&a, context::CONTEXT_CONTROL), ring::masked_set(context::CTL_RESTORE_INHIBIT));
    bench.emit_request(&mut a, 1);
    bench.submit(E, a.descriptor(), Descriptor::NULL);
    assert_eq!(bench.peek(a.seqno_address()), 1);
    assert_eq!(bench.gpu.stats().violations, 0);
}

#[test]
fn the_image_is_read_after_the_trigger_and_not_before() {
    let mut bench = Bench::with_profile("name = \"r\"\n[delay]\n\"context.restore\" = \"5us\"\n", 1);
    let mut a = bench.context(0);
    bench.submit(E, a.descriptor(), Descriptor::NULL);
    bench.emit_request(&mut a, 4);
    bench.settle(10_000);
    assert_eq!(bench.peek(a.seqno_address()), 4);
    assert_eq!(bench.events(E), [(0x1, 0), (0x18, a.id)]);
}

#[test]
fn a_lite_restore_reads_the_tail_and_nothing_else() {
    let mut bench = Bench::new();
    let mut a = bench.context(0);
    bench.emit(&mut a, &[mi::semaphore_wait(mi::Compare::Equal), 1, SCRATCH, 0]);
    bench.submit(E, a.descriptor(), Descriptor::NULL);
    bench.poke(slot(&a, context::RING_START), 0xdead_0000);
    bench.emit_request(&mut a, 4);
    bench.submit(E, a.descriptor(), Descriptor::NULL);
    bench.poke(SCRATCH, 1);
    bench.settle(1_000_000);
    assert_eq!(bench.peek(a.seqno_address()), 4);
}

#[test]
fn force_restore_reads_the_whole_image_again() {
    let mut bench = Bench::new();
    let mut a = bench.context(0);
    bench.emit(&mut a, &[mi::semaphore_wait(mi::Compare::Equal), 1, SCRATCH, 0]);
    bench.submit(E, a.descriptor(), Descriptor::NULL);
    let forced = Descriptor { lo: a.descriptor().lo | FORCE_RESTORE, hi: a.id };
    bench.poke(slot(&a, context::RING_START), 0xdead_0000);
    bench.submit(E, forced, Descriptor::NULL);
    assert_eq!(bench.violation().0, Some(Violation::UnmappedPage));
    assert_eq!(bench.read(E.reg(ring::START)), 0xdead_0000);
}

/// Maps `va` to TARGET's page through `levels` tables below TABLES, the last entry with `flags`.
fn map(bench: &mut Bench, va: u64, top: u32, bottom: u32, flags: u64) {
    for level in (bottom..=top).rev() {
        let depth = top - level;
        let table = TABLES + 0x1000 * depth;
        let index = ((va >> ppgtt::level_shift(level)) & 0x1ff) as u32;
        let next = if level == bottom { gpa(TARGET) } else { gpa(table + 0x1000) };
        let base = if flags & ppgtt::PAGE_2M != 0 && level == bottom { next & !0x1f_ffff } else { next };
        bench.poke64(table + 8 * index, base | ppgtt::PRESENT | if level == bottom { flags } else { 0 });
    }
}

/// Runs a batch at PPGTT address `va`, and a store through PPGTT from the ring.
fn run_batch(bench: &mut Bench, a: &mut Context, mode: u32, va: u64) {
    let [lo, hi] = [va as u32, (va >> 32) as u32];
    let ppgtt_store = mi::STORE_DWORD_GGTT & !mi::USE_GGTT;
    bench.emit(a, &[mi::BATCH_BUFFER_START_GGTT | mi::BATCH_PPGTT, lo, hi, mi::NOOP]);
    bench.emit(a, &[ppgtt_store, lo + 0x40, hi, 0x99]);
    let lo = a.lrca | (mode << execlab_abi::descriptor::ADDRESSING_MODE_SHIFT) | PRIVILEGE | VALID;
    bench.submit(E, Descriptor { lo, hi: a.id }, Descriptor::NULL);
    bench.settle(1_000);
}

fn batch_commands(bench: &mut Bench, at: u32) {
    let commands = [mi::STORE_DWORD_GGTT, SCRATCH, 0, 0x42, mi::BATCH_BUFFER_END];
    for (n, dword) in (0..).zip(commands) {
        bench.poke(at + 4 * n, dword);
    }
}

#[test]
fn four_level_page_tables_find_a_page() {
    let mut bench = Bench::new();
    let mut a = bench.context(0);
    let va = 0x7f12_3456_7000;
    map(&mut bench, va, 3, 0, 0);
    bench.poke(slot(&a, context::PDP0_LDW), gpa(TABLES) as u32);
    batch_commands(&mut bench, TARGET);
    run_batch(&mut bench, &mut a, LEGACY_64B, va);
    assert_eq!((bench.peek(SCRATCH), bench.peek(TARGET + 0x40)), (0x42, 0x99));
    assert_eq!(bench.gpu.stats().violations, 0);
}

#[test]
fn a_two_megabyte_page_ends_the_walk_early() {
    let mut bench = Bench::new();
    let mut a = bench.context(0);
    // The large page begins at the 2 MiB boundary below TARGET's page.
    let within = gpa(TARGET) & 0x1f_ffff;
    let va = 0x1_4020_0000 + within;
    map(&mut bench, va, 3, 1, ppgtt::PAGE_2M);
    bench.poke(slot(&a, context::PDP0_LDW), gpa(TABLES) as u32);
    batch_commands(&mut bench, TARGET);
    run_batch(&mut bench, &mut a, LEGACY_64B, va);
    assert_eq!((bench.peek(SCRATCH), bench.peek(TARGET + 0x40)), (0x42, 0x99));
}

#[test]
fn thirty_two_bit_tables_start_at_the_four_page_directories() {
    let mut bench = Bench::new();
    let mut a = bench.context(0);
    let va = 0x8123_4000;
    map(&mut bench, va, 1, 0, 0);
    // PDP2's pair lies two pairs before PDP0's.
    bench.poke(slot(&a, context::PDP0_LDW - 8), gpa(TABLES) as u32);
    batch_commands(&mut bench, TARGET);
    run_batch(&mut bench, &mut a, LEGACY_32B, va);
    assert_eq!((bench.peek(SCRATCH), bench.peek(TARGET + 0x40)), (0x42, 0x99));
}

#[test]
fn a_missing_table_entry_is_reported_with_address_and_level() {
    for level in 0..4 {
        let mut bench = Bench::new();
        let mut a = bench.context(0);
        let va = 0x7f12_3456_7000;
        map(&mut bench, va, 3, 0, 0);
        let index = ((va >> ppgtt::level_shift(level)) & 0x1ff) as u32;
        bench.poke64(TABLES + 0x1000 * (3 - level) + 8 * index, 0xff00);
        bench.poke(slot(&a, context::PDP0_LDW), gpa(TABLES) as u32);
        run_batch(&mut bench, &mut a, LEGACY_64B, va);
        let (code, _, words, _) = bench.violation();
        assert_eq!(code, Some(Violation::UnmappedPpgtt));
        assert_eq!(words, [va as u32, (va >> 32) as u32, level, 0xff00]);
    }
}
