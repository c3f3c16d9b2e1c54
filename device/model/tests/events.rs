//! Each row of the event table: what was submitted, and the CSB entries that come of it.

mod support;

use execlab_abi::descriptor::Descriptor;
use execlab_abi::engine::Engine;
use execlab_abi::{csb, irq, mi, ring};
use support::{Bench, SCRATCH, hwsp};

const E: Engine = Engine::Vcs0;
/// Commands take a microsecond each, so that a submission can meet a running context.
const SLOW: &str = "name = \"slow\"\n[delay]\n\"command.execute\" = \"1us\"\n";

/// A command list that blocks until SCRATCH is 1.
fn blocker() -> [u32; 4] {
    [mi::semaphore_wait(mi::Compare::Equal), 1, SCRATCH, 0]
}

#[test]
fn idle_engine_with_one_element_reports_idle_to_active_then_complete_and_idle() {
    let mut bench = Bench::new();
    let mut a = bench.context(0);
    bench.emit_request(&mut a, 7);
    bench.submit(E, a.descriptor(), Descriptor::NULL);
    assert_eq!(bench.events(E), [(0x1, 0), (0x18, a.id)]);
    assert_eq!(bench.peek(a.seqno_address()), 7);
}

#[test]
fn two_elements_report_an_element_switch_between_them() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (bench.context(0), bench.context(1));
    bench.emit_request(&mut a, 1);
    bench.emit_request(&mut b, 2);
    bench.submit(E, a.descriptor(), b.descriptor());
    assert_eq!(bench.events(E), [(0x1, 0), (0x14, a.id), (0x18, b.id)]);
}

#[test]
fn a_list_queued_behind_the_last_element_starts_with_one_interrupt_after_both_events() {
    let mut bench = Bench::with_profile(SLOW, 1);
    let (mut a, mut b) = (bench.context(0), bench.context(1));
    // Without an arbitration point in it, A cannot be preempted.
    bench.emit(&mut a, &[mi::ARB_DISABLE, mi::NOOP, mi::NOOP, mi::NOOP]);
    bench.emit_request(&mut b, 2);
    bench.submit(E, a.descriptor(), Descriptor::NULL);
    bench.settle(1_000);
    bench.gpu.take_interrupts(bench.now, &mut bench.world);
    bench.submit(E, b.descriptor(), Descriptor::NULL);
    let before = bench.world.interrupts;
    bench.settle(4_000);
    assert_eq!(bench.events(E), [(0x1, 0), (0x18, a.id), (0x1, 0)]);
    assert_eq!(bench.world.interrupts - before, 1);
    bench.settle(1_000_000);
    assert_eq!(bench.events(E).last(), Some(&(0x18, b.id)));
}

#[test]
fn the_running_context_submitted_again_is_a_lite_restore_at_once() {
    let mut bench = Bench::new();
    let mut a = bench.context(0);
    bench.emit(&mut a, &blocker());
    bench.submit(E, a.descriptor(), Descriptor::NULL);
    bench.emit_request(&mut a, 9);
    bench.submit(E, a.descriptor(), Descriptor::NULL);
    assert_eq!(bench.events(E), [(0x1, 0), (0x8002, a.id)]);
    assert_eq!(bench.peek(a.seqno_address()), 0);
    bench.poke(SCRATCH, 1);
    bench.settle(1_000_000);
    assert_eq!(bench.peek(a.seqno_address()), 9);
    assert_eq!(bench.events(E), [(0x1, 0), (0x8002, a.id), (0x18, a.id)]);
}

#[test]
fn the_running_second_element_submitted_again_is_a_lite_restore() {
    let mut bench = Bench::new();
    let (mut a, mut b) = (bench.context(0), bench.context(1));
    bench.emit_request(&mut a, 1);
    bench.emit(&mut b, &blocker());
    bench.submit(E, a.descriptor(), b.descriptor());
    bench.submit(E, b.descriptor(), Descriptor::NULL);
    assert_eq!(bench.events(E), [(0x1, 0), (0x14, a.id), (0x8002, b.id)]);
}

#[test]
fn another_context_preempts_at_the_next_arbitration_point_and_the_first_resumes_where_it_was() {
    let mut bench = Bench::with_profile(SLOW, 1);
    let (mut a, mut c) = (bench.context(0), bench.context(2));
    bench.emit(&mut a, &[mi::NOOP, mi::NOOP, mi::NOOP, mi::ARB_CHECK]);
    bench.emit_request(&mut a, 5);
    bench.emit_request(&mut c, 6);
    bench.submit(E, a.descriptor(), Descriptor::NULL);
    bench.settle(1_500);
    bench.submit(E, c.descriptor(), Descriptor::NULL);
    assert_eq!(bench.events(E), [(0x1, 0)], "no arbitration point yet");
    bench.settle(1_000_000);
    assert_eq!(bench.events(E), [(0x1, 0), (0x2, a.id), (0x18, c.id)]);
    assert_eq!((bench.peek(a.seqno_address()), bench.peek(c.seqno_address())), (0, 6));
    bench.submit(E, a.descriptor(), Descriptor::NULL);
    bench.settle(1_000_000);
    assert_eq!(bench.peek(a.seqno_address()), 5);
}

#[test]
fn a_context_preempted_inside_a_batch_resumes_inside_it() {
    let mut bench = Bench::new();
    let (mut a, mut c) = (bench.context(0), bench.context(2));
    let batch = SCRATCH + 0x100;
    let wait = blocker();
    let commands = [
        wait[0],
        wait[1],
        wait[2],
        wait[3],
        mi::STORE_DWORD_GGTT,
        SCRATCH + 8,
        0,
        0x77,
        mi::BATCH_BUFFER_END,
    ];
    for (at, dword) in (0..).zip(commands) {
        bench.poke(batch + 4 * at, dword);
    }
    bench.emit(&mut a, &[mi::BATCH_BUFFER_START_GGTT, batch, 0]);
    bench.emit_request(&mut a, 5);
    bench.emit_request(&mut c, 6);
    bench.submit(E, a.descriptor(), Descriptor::NULL);
    bench.submit(E, c.descriptor(), a.descriptor());
    assert_eq!(bench.events(E), [(0x1, 0), (0x2, a.id), (0x14, c.id)]);
    bench.poke(SCRATCH, 1);
    bench.settle(1_000_000);
    assert_eq!(bench.peek(SCRATCH + 8), 0x77);
    assert_eq!(bench.peek(a.seqno_address()), 5);
}

#[test]
fn force_restore_of_the_running_context_reloads_it() {
    let mut bench = Bench::new();
    let mut a = bench.context(0);
    bench.emit(&mut a, &blocker());
    bench.submit(E, a.descriptor(), Descriptor::NULL);
    bench.submit(E, a.descriptor().with_force_restore(), Descriptor::NULL);
    assert_eq!(bench.events(E), [(0x1, 0), (0x2, a.id)]);
    bench.poke(SCRATCH, 1);
    bench.settle(1_000_000);
    assert_eq!(bench.events(E).last(), Some(&(0x18, a.id)));
}

#[test]
fn entries_land_in_the_status_page_before_the_index_and_wrap_at_six() {
    let mut bench = Bench::new();
    let mut a = bench.context(0);
    for n in 0..5_u32 {
        bench.emit_request(&mut a, n);
        bench.submit(E, a.descriptor(), Descriptor::NULL);
        let last = (2 * n + 1) % csb::ENTRIES;
        assert_eq!(bench.peek(hwsp(E) + csb::HWSP_WRITE_INDEX), last);
        assert_eq!(bench.csb(E, last), csb::Entry { status: 0x18, context_id: a.id });
        assert_eq!(bench.read(E.reg(ring::CONTEXT_STATUS_PTR)) & 7, last);
        assert_eq!(bench.read(E.reg(ring::CONTEXT_STATUS_BUF) + 8 * last), 0x18);
    }
}

#[test]
fn a_late_entry_comes_after_its_index_and_its_interrupt() {
    let mut bench = Bench::with_profile("name = \"late\"\n[delay]\n\"csb.visible\" = \"5us\"\n", 1);
    let a = bench.context(0);
    bench.submit(E, a.descriptor(), Descriptor::NULL);
    assert_eq!(bench.peek(hwsp(E) + csb::HWSP_WRITE_INDEX), 1);
    assert_eq!(bench.peek64(hwsp(E) + csb::HWSP_BUF0), csb::Entry::POISON);
    assert_eq!(bench.world.interrupts, 1);
    bench.advance(4_999);
    assert_eq!(bench.peek64(hwsp(E) + csb::HWSP_BUF0), csb::Entry::POISON);
    bench.advance(1);
    assert_eq!(bench.csb(E, 0), csb::Entry { status: 0x1, context_id: 0 });
}

#[test]
fn an_interrupt_is_masked_at_each_level_and_sent_again_when_the_master_opens() {
    let mut bench = Bench::new();
    let mut a = bench.context(0);
    bench.write(irq::MASTER, 0);
    bench.emit_request(&mut a, 1);
    bench.submit(E, a.descriptor(), Descriptor::NULL);
    assert_eq!(bench.world.interrupts, 0);
    let (bank, shift) = E.irq_bank();
    assert_eq!(bench.read(irq::iir(bank)) >> shift, irq::CONTEXT_SWITCH | irq::USER);
    assert_eq!(bench.read(irq::MASTER), E.master_bit());
    bench.write(irq::MASTER, irq::MASTER_ENABLE);
    assert_eq!(bench.world.interrupts, 1);
    bench.write(irq::iir(bank), u32::MAX);
    assert_eq!(bench.read(irq::iir(bank)), 0);
    bench.write(E.reg(ring::IMR), E.ring_imr(irq::CONTEXT_SWITCH));
    bench.emit_request(&mut a, 2);
    bench.submit(E, a.descriptor(), Descriptor::NULL);
    assert_eq!(bench.read(irq::iir(bank)) >> shift, irq::CONTEXT_SWITCH);
}
