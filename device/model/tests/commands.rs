//! What each command does, in a ring and in a batch.

mod support;

use execlab_abi::descriptor::Descriptor;
use execlab_abi::engine::Engine;
use execlab_abi::{gt, irq, lab, mi, ring};
use support::{Bench, SCRATCH, SHIFT};

const E: Engine = Engine::Bcs0;
/// Where a test's batches lie.
const BATCH: u32 = SCRATCH + 0x400;
const SECOND: u32 = SCRATCH + 0x800;
/// A register that nothing else uses.
const PLAIN: u32 = 0x7_0000;
/// One tick of RING_TIMESTAMP is 250/3 ns: three ticks are 250 ns.
const TICK3: u64 = 250;

/// Runs `commands` in the ring of context 0 and expects it to complete.
fn run(bench: &mut Bench, commands: &[u32]) {
    let mut context = bench.context(0);
    bench.emit(&mut context, commands);
    bench.submit(E, context.descriptor(), Descriptor::NULL);
    bench.settle(1_000_000);
    assert_eq!(bench.events(E).last(), Some(&(0x18, context.id)), "violation {:?}", bench.violation());
}

fn put(bench: &mut Bench, at: u32, dwords: &[u32]) {
    for (n, dword) in (0..).zip(dwords) {
        bench.poke(at + 4 * n, *dword);
    }
}

#[test]
fn store_data_imm_stores_a_dword_or_a_qword_aligned_or_not() {
    let mut bench = Bench::new();
    let qword = mi::STORE_DWORD_GGTT + 1;
    run(&mut bench, &[mi::STORE_DWORD_GGTT, SCRATCH, 0, 0x1234_5678]);
    run(&mut bench, &[qword | mi::STORE_QWORD, SCRATCH + 8, 0, 1, 2]);
    run(&mut bench, &[qword | mi::STORE_QWORD, SCRATCH + 0x14, 0, 3, 4]);
    assert_eq!(bench.peek(SCRATCH), 0x1234_5678);
    assert_eq!(bench.peek64(SCRATCH + 8), 0x2_0000_0001);
    assert_eq!((bench.peek(SCRATCH + 0x14), bench.peek(SCRATCH + 0x18)), (3, 4));
}

#[test]
fn load_register_imm_writes_each_pair_through_the_register_file() {
    let mut bench = Bench::new();
    let masked = ring::masked_set(gt::GRDOM_RENDER);
    run(&mut bench, &[mi::load_register_imm(2), PLAIN, 7, gt::FORCEWAKE[0], masked]);
    assert_eq!(bench.read(PLAIN), 7);
    assert_eq!(bench.read(gt::FORCEWAKE_ACK[0]), gt::GRDOM_RENDER);
}

#[test]
fn store_and_load_register_mem_move_between_registers_and_memory() {
    let mut bench = Bench::new();
    bench.write(PLAIN, 0xaa55);
    bench.poke(SCRATCH + 4, 0x77);
    run(&mut bench, &[mi::STORE_REGISTER_MEM_GGTT, PLAIN, SCRATCH, 0]);
    run(&mut bench, &[mi::LOAD_REGISTER_MEM_GGTT, PLAIN, SCRATCH + 4, 0]);
    assert_eq!((bench.peek(SCRATCH), bench.read(PLAIN)), (0xaa55, 0x77));
}

#[test]
fn store_register_mem_of_the_engines_timestamp_is_the_time_of_execution() {
    let mut bench = Bench::new();
    bench.advance(1_000 * TICK3);
    let stamp = E.reg(ring::TIMESTAMP);
    let busy = [mi::load_register_imm(1), lab::CS_BUSY, 10 * TICK3 as u32];
    let [busy, offset, ns] = busy;
    run(
        &mut bench,
        &[
            mi::STORE_REGISTER_MEM_GGTT,
            stamp,
            SCRATCH,
            0,
            busy,
            offset,
            ns,
            mi::NOOP,
            mi::STORE_REGISTER_MEM_GGTT,
            stamp,
            SCRATCH + 4,
            0,
        ],
    );
    assert_eq!((bench.peek(SCRATCH), bench.peek(SCRATCH + 4)), (3_000, 3_030));
}

#[test]
fn flush_dw_stores_dword_qword_timestamp_and_into_the_contexts_own_status_page_and_notifies() {
    let mut bench = Bench::new();
    let qword = mi::FLUSH_DW_STORE + 1;
    let ggtt = mi::FLUSH_DW_GGTT;
    run(&mut bench, &[mi::FLUSH_DW_STORE, SCRATCH | ggtt, 0, 9]);
    run(&mut bench, &[qword, (SCRATCH + 8) | ggtt, 0, 1, 2]);
    let stamp = mi::FLUSH_DW_STORE | (mi::POST_SYNC_TIMESTAMP << mi::POST_SYNC_SHIFT);
    bench.advance(4 * TICK3);
    run(&mut bench, &[stamp, (SCRATCH + 16) | ggtt, 0, 0]);
    let before = bench.gpu.stats().user_interrupts;
    run(&mut bench, &[mi::FLUSH_DW_STORE | mi::FLUSH_STORE_INDEX | mi::FLUSH_NOTIFY, 0x1c0, 0, 5]);
    assert_eq!((bench.peek(SCRATCH), bench.peek64(SCRATCH + 8)), (9, 0x2_0000_0001));
    assert_eq!(bench.peek64(SCRATCH + 16), 12);
    let context = bench.context(0);
    assert_eq!(bench.peek(context.lrca + 0x1c0), 5);
    assert_eq!(bench.gpu.stats().user_interrupts, before + 1);
}

#[test]
fn flush_dw_with_the_invalidate_flag_in_bit_seven_keeps_its_length() {
    let mut bench = Bench::new();
    let flush = mi::FLUSH_DW_STORE | 1 << 7;
    run(&mut bench, &[flush, SCRATCH | mi::FLUSH_DW_GGTT, 0, 3, mi::NOOP, mi::NOOP]);
    assert_eq!(bench.peek(SCRATCH), 3);
}

#[test]
fn pipe_control_stores_a_qword_or_the_timestamp_and_notifies() {
    let mut bench = Bench::new();
    let store = |operation: u32| mi::PIPE_CONTROL_GGTT | (operation << mi::POST_SYNC_SHIFT);
    let flags = store(mi::POST_SYNC_IMMEDIATE) | mi::PIPE_CONTROL_CS_STALL | mi::FLUSH_NOTIFY;
    let before = bench.gpu.stats().user_interrupts;
    run(&mut bench, &[mi::PIPE_CONTROL, flags, SCRATCH, 0, 0x11, 0x22]);
    bench.advance(8 * TICK3);
    run(&mut bench, &[mi::PIPE_CONTROL, store(mi::POST_SYNC_TIMESTAMP), SCRATCH + 8, 0, 0, 0]);
    run(&mut bench, &[mi::PIPE_CONTROL, mi::PIPE_CONTROL_CS_STALL, SCRATCH + 16, 0, 1, 1]);
    assert_eq!(bench.peek64(SCRATCH), 0x22_0000_0011);
    assert_eq!(bench.peek64(SCRATCH + 8), 24);
    assert_eq!(bench.peek64(SCRATCH + 16), 0, "without an operation nothing is stored");
    assert_eq!(bench.gpu.stats().user_interrupts, before + 1);
}

#[test]
fn commands_that_nothing_models_are_skipped_by_their_length() {
    let mut bench = Bench::new();
    let fake = mi::BATCH_BUFFER_END;
    let blit = (mi::CLASS_2D << 29) | (0x53 << 22) | 4;
    let draw = (mi::CLASS_3D << 29) | (3 << 27) | (3 << 24) | 1;
    let select = 0x6904_0000;
    let math = (0x1a << 23) | 1;
    let mut commands = vec![math, fake, fake, blit, fake, fake, fake, fake, fake];
    commands.extend([draw, fake, fake, select]);
    commands.extend([mi::STORE_DWORD_GGTT, SCRATCH, 0, 1]);
    run(&mut bench, &commands);
    assert_eq!(bench.peek(SCRATCH), 1);
}

#[test]
fn a_batch_runs_and_returns_and_a_second_level_returns_to_the_first() {
    let mut bench = Bench::new();
    let second = mi::BATCH_BUFFER_START_GGTT | mi::BATCH_SECOND_LEVEL;
    let store = |at: u32, value: u32| [mi::STORE_DWORD_GGTT, SCRATCH + at, 0, value];
    let mut first = vec![second, SECOND, 0];
    first.extend(store(4, 2));
    first.push(mi::BATCH_BUFFER_END);
    put(&mut bench, BATCH, &first);
    let mut nested = store(0, 1).to_vec();
    nested.push(mi::BATCH_BUFFER_END);
    put(&mut bench, SECOND, &nested);
    let mut commands = vec![mi::BATCH_BUFFER_START_GGTT, BATCH, 0];
    commands.extend(store(8, 3));
    run(&mut bench, &commands);
    let stored = [0, 4, 8].map(|at| bench.peek(SCRATCH + at));
    assert_eq!(stored, [1, 2, 3]);
    assert_eq!(bench.gpu.stats().batches, 2);
}

#[test]
fn a_batch_that_starts_another_without_the_second_level_bit_is_replaced_by_it() {
    let mut bench = Bench::new();
    let lost = [mi::STORE_DWORD_GGTT, SCRATCH, 0, 1];
    let mut first = vec![mi::BATCH_BUFFER_START_GGTT, SECOND, 0];
    first.extend(lost);
    put(&mut bench, BATCH, &first);
    put(&mut bench, SECOND, &[mi::BATCH_BUFFER_END]);
    run(&mut bench, &[mi::BATCH_BUFFER_START_GGTT, BATCH, 0]);
    assert_eq!(bench.peek(SCRATCH), 0);
}

#[test]
fn a_batch_may_change_the_command_that_follows() {
    let mut bench = Bench::new();
    let store = [mi::STORE_DWORD_GGTT, BATCH + 16, 0, mi::BATCH_BUFFER_END];
    put(&mut bench, BATCH, &store);
    put(&mut bench, BATCH + 16, &[mi::BATCH_BUFFER_START_GGTT, BATCH, 0]);
    run(&mut bench, &[mi::BATCH_BUFFER_START_GGTT, BATCH, 0]);
}

#[test]
fn each_comparison_of_a_semaphore_lets_through_exactly_what_holds() {
    use mi::Compare::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    let cases = [
        (Greater, [false, false, true]),
        (GreaterOrEqual, [false, true, true]),
        (Less, [true, false, false]),
        (LessOrEqual, [true, true, false]),
        (Equal, [false, true, false]),
        (NotEqual, [true, false, true]),
    ];
    for (compare, passes) in cases {
        for (memory, pass) in [4, 5, 6].into_iter().zip(passes) {
            let mut bench = Bench::new();
            let mut context = bench.context(0);
            bench.poke(SCRATCH, memory);
            bench.emit(&mut context, &[mi::semaphore_wait(compare), 5, SCRATCH, 0]);
            bench.submit(E, context.descriptor(), Descriptor::NULL);
            assert_eq!(bench.events(E).len(), if pass { 2 } else { 1 }, "{compare:?} {memory}");
        }
    }
}

#[test]
fn a_blocked_semaphore_looks_again_by_itself_and_at_each_register_write() {
    let mut bench = Bench::new();
    let mut context = bench.context(0);
    bench.emit(&mut context, &[mi::semaphore_wait(mi::Compare::Equal), 1, SCRATCH, 0]);
    bench.submit(E, context.descriptor(), Descriptor::NULL);
    let blocked = (irq::WAIT_SEMAPHORE, bench.gpu.stats().semaphore_waits);
    let (bank, shift) = E.irq_bank();
    assert_eq!(blocked.1, 1);
    assert_ne!((bench.read(irq::iir(bank)) >> shift) & blocked.0, 0, "the wait raises its interrupt");
    let due = bench.gpu.next_deadline().unwrap();
    bench.poke(SCRATCH, 1);
    bench.advance(due - bench.now - 1);
    assert_eq!(bench.events(E).len(), 1);
    bench.advance(1);
    assert_eq!(bench.events(E).len(), 2);

    bench.poke(SCRATCH, 0);
    bench.emit(&mut context, &[mi::semaphore_wait(mi::Compare::Equal), 1, SCRATCH, 0]);
    bench.submit(E, context.descriptor(), Descriptor::NULL);
    bench.poke(SCRATCH, 1);
    bench.write(PLAIN, 0);
    assert_eq!(bench.events(E).len(), 4);
}

#[test]
fn arbitration_off_keeps_the_context_until_it_is_on_and_a_point_comes() {
    let mut bench = Bench::new();
    let (mut a, mut c) = (bench.context(0), bench.context(2));
    let [wait, data, low, high] = [mi::semaphore_wait(mi::Compare::Equal), 1, SCRATCH, 0];
    let commands = [
        mi::ARB_DISABLE,
        wait,
        data,
        low,
        high,
        mi::ARB_CHECK,
        mi::STORE_DWORD_GGTT,
        SCRATCH + 4,
        0,
        1,
        mi::ARB_ENABLE,
        mi::ARB_CHECK,
        mi::STORE_DWORD_GGTT,
        SCRATCH + 8,
        0,
        1,
    ];
    bench.emit(&mut a, &commands);
    bench.emit_request(&mut c, 1);
    bench.submit(E, a.descriptor(), Descriptor::NULL);
    bench.submit(E, c.descriptor(), Descriptor::NULL);
    assert_eq!(bench.events(E), [(0x1, 0)]);
    assert_eq!(bench.read(E.reg(ring::EXECLIST_STATUS_LO)) & ring::EXECLIST_ARB_ENABLE, 0);
    bench.poke(SCRATCH, 1);
    bench.settle(1_000_000);
    assert_eq!(bench.events(E), [(0x1, 0), (0x2, a.id), (0x18, c.id)]);
    assert_eq!((bench.peek(SCRATCH + 4), bench.peek(SCRATCH + 8)), (1, 0));
}

#[test]
fn a_store_goes_to_the_page_behind_the_entry_not_to_its_address() {
    let mut bench = Bench::new();
    run(&mut bench, &[mi::STORE_DWORD_GGTT, SCRATCH, 0, 1]);
    assert_eq!(bench.peek(SCRATCH), 1);
    assert_eq!(bench.world.bytes[SCRATCH as usize], 0);
    assert_eq!(bench.world.bytes[SHIFT as usize + SCRATCH as usize], 1);
}
