//! Each violation: what provokes it, what is left to read, and whether the engine goes on.

mod support;

use execlab_abi::descriptor::Descriptor;
use execlab_abi::engine::Engine;
use execlab_abi::lab::{self, Violation};
use execlab_abi::{MMIO_SIZE, context, ggtt, gt, irq, mi, ring};
use support::{Bench, MEMORY, RING_SIZE, SCRATCH, hwsp};

const E: Engine = Engine::Rcs0;
/// A GGTT page without an entry.
const NOWHERE: u32 = 0x8000_0000;

/// Runs `commands` and expects them to hang the engine with `violation`; gives address and words.
fn hang(commands: &[u32], violation: Violation) -> (u32, [u32; 4]) {
    let mut bench = Bench::new();
    let mut context = bench.context(0);
    bench.emit(&mut context, commands);
    bench.submit(E, context.descriptor(), Descriptor::NULL);
    bench.settle(1_000_000);
    let (code, addr, words, count) = bench.violation();
    assert_eq!((code, count), (Some(violation), 1), "{commands:x?}");
    assert_eq!(bench.read(lab::ERROR_ENGINE), 0);
    assert_eq!(bench.events(E), [(0x1, 0)], "the engine hangs");
    assert_eq!(bench.read(E.reg(ring::EIR)), ring::ERROR_INSTRUCTION);
    assert_ne!(bench.read(irq::iir(0)) & irq::CS_ERROR, 0);
    assert_eq!(bench.gpu.next_deadline(), None);
    recover(&mut bench);
    (addr, words)
}

/// After a reset the engine works again.
fn recover(bench: &mut Bench) {
    bench.write(gt::GDRST, E.grdom());
    bench.settle(1_000);
    bench.write(E.reg(ring::MODE), ring::masked_set(ring::MODE_RUN_LIST_ENABLE));
    bench.write(E.reg(ring::HWS_PGA), hwsp(E));
    let mut good = bench.context(3);
    bench.emit_request(&mut good, 0x600d);
    bench.submit(E, good.descriptor(), Descriptor::NULL);
    bench.settle(1_000_000);
    assert_eq!(bench.peek(good.seqno_address()), 0x600d);
}

#[test]
fn elsp_before_the_acknowledgement_is_ignored_and_shows_both_submissions() {
    let mut bench = Bench::with_profile("name = \"a\"\n[delay]\n\"elsp.accept\" = \"5us\"\n", 1);
    let (mut a, mut b) = (bench.context(0), bench.context(1));
    bench.emit_request(&mut a, 1);
    bench.emit_request(&mut b, 2);
    bench.advance(77);
    bench.submit(E, a.descriptor(), Descriptor::NULL);
    bench.submit(E, b.descriptor(), Descriptor::NULL);
    let (code, addr, words, _) = bench.violation();
    assert_eq!((code, addr), (Some(Violation::ElspBeforeAck), E.reg(ring::ELSP)));
    assert_eq!(words, [a.descriptor().lo, a.id, b.descriptor().lo, b.id]);
    assert_eq!(bench.read(lab::ERROR_TIME_LO), 77);
    bench.settle(1_000_000);
    assert_eq!(bench.events(E), [(0x1, 0), (0x18, a.id)]);
    bench.submit(E, b.descriptor(), Descriptor::NULL);
    bench.settle(1_000_000);
    assert_eq!(bench.peek(b.seqno_address()), 2);
    bench.write(lab::ERROR_CLEAR, 1);
    assert_eq!(bench.violation(), (None, 0, [0; 4], 0));
}

#[test]
fn a_submission_waits_for_an_acknowledgement_that_is_held_behind_a_store() {
    let mut bench = Bench::with_profile("name = \"s\"\n[delay]\n\"seqno.visible\" = \"5us\"\n", 1);
    let mut a = bench.context(0);
    bench.emit_request(&mut a, 1);
    bench.emit(&mut a, &[mi::semaphore_wait(mi::Compare::Equal), 1, SCRATCH, 0]);
    bench.submit(E, a.descriptor(), Descriptor::NULL);
    bench.submit(E, a.descriptor(), Descriptor::NULL);
    assert_eq!(bench.events(E), [(0x1, 0)], "0x8002 follows the seqno");
    bench.submit(E, a.descriptor(), Descriptor::NULL);
    assert_eq!(bench.violation().0, Some(Violation::ElspBeforeAck));
    bench.advance(5_000);
    assert_eq!(bench.events(E), [(0x1, 0), (0x8002, a.id)]);
}

#[test]
fn malformed_pairs_are_ignored() {
    let bench = &mut Bench::new();
    let (a, b) = (bench.context(0).descriptor(), bench.context(1).descriptor());
    let reserved = Descriptor { hi: 1 << 21, ..a };
    let invalid = Descriptor { lo: a.lo & !1, ..a };
    let renamed = Descriptor { hi: a.hi + 1, ..a };
    let same_id = Descriptor { hi: a.hi, ..b };
    let cases = [
        (Descriptor::NULL, Descriptor::NULL, Violation::InvalidDescriptor),
        (Descriptor::NULL, b, Violation::InvalidDescriptor),
        (invalid, Descriptor::NULL, Violation::InvalidDescriptor),
        (reserved, Descriptor::NULL, Violation::InvalidDescriptor),
        (b, invalid, Violation::InvalidDescriptor),
        (b, reserved, Violation::InvalidDescriptor),
        (a, a, Violation::SameContextTwice),
        (a, renamed, Violation::SameContextTwice),
        (a, same_id, Violation::SameContextTwice),
    ];
    for (first, second, violation) in cases {
        bench.submit(E, first, second);
        let (code, _, words, _) = bench.violation();
        assert_eq!((code, words), (Some(violation), [second.hi, second.lo, first.hi, first.lo]));
    }
    assert_eq!((bench.gpu.stats().submissions, bench.events(E).len()), (0, 0));
}

#[test]
fn elsp_with_execlists_off_is_ignored() {
    let mut bench = Bench::new();
    let a = bench.context(0);
    bench.write(E.reg(ring::MODE), ring::masked_clear(ring::MODE_RUN_LIST_ENABLE));
    bench.submit(E, a.descriptor(), Descriptor::NULL);
    assert_eq!(bench.violation().0, Some(Violation::ElspWhileOff));
}

#[test]
fn addresses_without_an_entry_stop_the_engine_with_the_address() {
    let store = [mi::STORE_DWORD_GGTT, NOWHERE + 8, 0, 1];
    assert_eq!(hang(&store, Violation::UnmappedPage), (NOWHERE + 8, [NOWHERE + 8, 0, 0, 4]));
    let batch = [mi::BATCH_BUFFER_START_GGTT, NOWHERE, 0];
    assert_eq!(hang(&batch, Violation::UnmappedPage), (NOWHERE, [NOWHERE, 0, 0, 64]));
    hang(&[mi::semaphore_wait(mi::Compare::Equal), 1, NOWHERE, 0], Violation::UnmappedPage);
    hang(&[mi::STORE_DWORD_GGTT & !mi::USE_GGTT, 0x1000, 0, 1], Violation::UnmappedPpgtt);
}

#[test]
fn an_entry_that_points_outside_memory_stops_the_engine_with_the_entry() {
    let mut bench = Bench::new();
    let pte = ggtt::pte(MEMORY + 0x1000);
    bench.write(ggtt::pte_offset(NOWHERE), pte as u32);
    let mut context = bench.context(0);
    bench.emit(&mut context, &[mi::BATCH_BUFFER_START_GGTT, NOWHERE, 0]);
    bench.submit(E, context.descriptor(), Descriptor::NULL);
    let (code, addr, words, _) = bench.violation();
    assert_eq!((code, addr), (Some(Violation::UnmappedPage), NOWHERE));
    assert_eq!(words, [NOWHERE, pte as u32, 0, 64]);
    recover(&mut bench);

    let mut context = bench.context(0);
    bench.emit(&mut context, &[mi::STORE_DWORD_GGTT, NOWHERE, 0, 1]);
    bench.submit(E, context.descriptor(), Descriptor::NULL);
    assert_eq!(bench.violation().0, Some(Violation::UnmappedPage));
    assert_eq!(bench.gpu.stats().hangs, 2);
}

#[test]
fn an_unmapped_image_or_status_page_stops_the_engine() {
    let mut bench = Bench::new();
    bench.submit(E, Descriptor::new(NOWHERE, 1), Descriptor::NULL);
    assert_eq!((bench.violation().0, bench.violation().1), (Some(Violation::UnmappedPage), NOWHERE + 0x1000));
    recover(&mut bench);
    let a = bench.context(0);
    bench.write(E.reg(ring::HWS_PGA), NOWHERE);
    bench.submit(E, a.descriptor(), Descriptor::NULL);
    assert_eq!(bench.violation().0, Some(Violation::UnmappedPage));
    recover(&mut bench);
}

#[test]
fn images_that_make_no_ring_stop_the_engine() {
    let cases = [
        (context::RING_CTL, ring::ctl(RING_SIZE) & !ring::CTL_VALID),
        (context::RING_HEAD, RING_SIZE),
        (context::RING_TAIL, RING_SIZE + 8),
    ];
    for (slot, value) in cases {
        let mut bench = Bench::new();
        let a = bench.context(0);
        bench.poke(a.lrca + context::STATE_OFFSET + 4 * slot as u32, value);
        bench.submit(E, a.descriptor(), Descriptor::NULL);
        let (code, addr, words, _) = bench.violation();
        assert_eq!((code, addr, words[0]), (Some(Violation::BadRing), a.lrca, a.ring()));
        recover(&mut bench);
    }
}

#[test]
fn a_tail_outside_the_ring_stops_the_engine_at_the_lite_restore() {
    let mut bench = Bench::new();
    let mut a = bench.context(0);
    bench.emit(&mut a, &[mi::semaphore_wait(mi::Compare::Equal), 1, SCRATCH, 0]);
    bench.submit(E, a.descriptor(), Descriptor::NULL);
    bench.poke(a.lrca + context::STATE_OFFSET + 4 * context::RING_TAIL as u32, 2 * RING_SIZE);
    bench.submit(E, a.descriptor(), Descriptor::NULL);
    let (code, _, words, _) = bench.violation();
    assert_eq!((code, words[3]), (Some(Violation::BadRing), 2 * RING_SIZE));
}

#[test]
fn commands_that_cannot_be_taken_stop_the_engine_and_are_shown() {
    let class_one = [1 << 29, 2, 3, 4];
    assert_eq!(hang(&class_one, Violation::BadCommand).1, class_one);
    let short_store = [mi::STORE_DWORD_GGTT - 1, SCRATCH, 0, mi::NOOP];
    assert_eq!(hang(&short_store, Violation::BadCommand).1, short_store);
    hang(&[mi::load_register_imm(1) - 1, 0, mi::NOOP, mi::NOOP], Violation::BadCommand);
    hang(&[mi::STORE_REGISTER_MEM_GGTT + 1, 0, SCRATCH, 0, 0, 0], Violation::BadCommand);
    hang(&[mi::BATCH_BUFFER_START_GGTT + 1, SCRATCH, 0, 0], Violation::BadCommand);
    hang(&[mi::semaphore_wait(mi::Compare::Equal) | 7 << 12, 0, SCRATCH, 0], Violation::BadCommand);
    hang(&[mi::BATCH_BUFFER_END, mi::NOOP], Violation::BadCommand);
    let beyond_the_tail = [mi::STORE_DWORD_GGTT, SCRATCH];
    hang(&beyond_the_tail, Violation::BadCommand);
}

#[test]
fn a_command_stream_cannot_submit_or_reset() {
    for offset in [E.reg(ring::ELSP), Engine::Bcs0.reg(ring::RESET_CTL), gt::GDRST, MMIO_SIZE] {
        hang(&[mi::load_register_imm(1), offset, u32::MAX, mi::NOOP], Violation::BadCommand);
    }
}

#[test]
fn a_third_level_of_batches_is_a_self_reference_and_a_loop_is_not() {
    let mut bench = Bench::new();
    let nested = mi::BATCH_BUFFER_START_GGTT | mi::BATCH_SECOND_LEVEL;
    for (at, dword) in (0..).zip([nested, SCRATCH, 0]) {
        bench.poke(SCRATCH + 4 * at, dword);
    }
    let mut context = bench.context(0);
    bench.emit(&mut context, &[mi::BATCH_BUFFER_START_GGTT, SCRATCH, 0]);
    bench.submit(E, context.descriptor(), Descriptor::NULL);
    let (code, _, words, _) = bench.violation();
    assert_eq!((code, words), (Some(Violation::SelfReference), [SCRATCH, 0, 3, nested]));
}

#[test]
fn an_entry_over_an_unread_one_is_an_overrun_for_a_driver_that_moves_the_read_pointer() {
    let mut bench = Bench::new();
    let mut a = bench.context(0);
    let read_all = |bench: &mut Bench| {
        let index = bench.read(E.reg(ring::CONTEXT_STATUS_PTR)) & 7;
        bench.write(E.reg(ring::CONTEXT_STATUS_PTR), ring::CSB_READ_PTR_MASK << 16 | index << 8);
    };
    let mut submit = |bench: &mut Bench| {
        bench.emit_request(&mut a, 1);
        bench.submit(E, a.descriptor(), Descriptor::NULL);
    };
    (0..5).for_each(|_| submit(&mut bench));
    assert_eq!(bench.gpu.stats().csb_overruns, 0, "a driver that leaves the pointer alone");
    read_all(&mut bench);
    (0..3).for_each(|_| submit(&mut bench));
    assert_eq!(bench.gpu.stats().csb_overruns, 0, "six entries fit");
    submit(&mut bench);
    assert_eq!(bench.gpu.stats().csb_overruns, 2);
    assert_eq!(bench.violation().0, Some(Violation::CsbOverrun));
    assert_eq!(bench.gpu.stats().hangs, 0);
}

#[test]
fn writes_outside_the_bar_or_not_aligned_are_reported() {
    let mut bench = Bench::new();
    for offset in [MMIO_SIZE, ggtt::GSM_OFFSET - 4, ggtt::GSM_OFFSET + ggtt::GSM_SIZE, 2, u32::MAX - 3] {
        bench.write(offset, 5);
        let (code, addr, words, _) = bench.violation();
        assert_eq!((code, addr, words), (Some(Violation::BadOffset), offset, [offset, 5, 0, 0]));
        assert_eq!(bench.read(offset), 0);
    }
}
