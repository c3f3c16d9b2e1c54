//! Time: nothing early, due times that chain from due times, and bounded work in each call.

mod support;

use execlab_abi::descriptor::Descriptor;
use execlab_abi::engine::Engine;
use execlab_abi::{lab, mi, ring};
use execlab_model::TraceKind;
use support::{Bench, SCRATCH};

const E: Engine = Engine::Rcs0;
/// A delay at every point, each different in its digits, so that a time shows which ones went into it.
const EACH: &str = "name = \"each\"\n[delay]\n\"elsp.accept\" = \"1ns\"\n\"context.restore\" = \"20ns\"\n\
    \"context.save\" = \"300ns\"\n\"arbitration\" = \"4us\"\n\"batch.execute\" = \"50us\"\n\
    \"command.execute\" = \"600us\"\n\"seqno.visible\" = \"7ms\"\n\"csb.visible\" = \"80ms\"\n\
    \"irq.deliver\" = \"900ms\"\n";

/// Times of the trace events that `pick` knows, in order.
fn times<T: PartialEq>(bench: &Bench, pick: impl Fn(TraceKind) -> Option<T>) -> Vec<(u64, T)> {
    bench.world.trace.iter().filter_map(|event| pick(event.kind).map(|kind| (event.time, kind))).collect()
}

/// One context with a batch, a store and an interrupt under [`EACH`].
fn each(steps: impl Fn(&mut Bench)) -> Bench {
    let mut bench = Bench::with_profile(EACH, 1);
    let mut a = bench.context(0);
    bench.poke(SCRATCH, mi::BATCH_BUFFER_END);
    bench.emit(&mut a, &[mi::BATCH_BUFFER_START_GGTT, SCRATCH, 0]);
    bench.emit(&mut a, &[mi::STORE_DWORD_GGTT, SCRATCH + 8, 0, 1, mi::USER_INTERRUPT]);
    bench.submit(E, a.descriptor(), Descriptor::NULL);
    steps(&mut bench);
    bench
}

#[test]
fn every_point_delays_what_it_is_named_after() {
    let bench = each(|bench| bench.settle(u64::MAX / 2));
    // Accept 1, restore 20, the batch's 50 us, its end, the pad behind the batch start, then the store.
    let store = 1 + 20 + 50_000 + 2 * 600_000;
    let end = store + 3 * 600_000;
    let event = |kind| if let TraceKind::Csb { status, .. } = kind { Some(status) } else { None };
    let entry = |kind| if let TraceKind::CsbEntryVisible { index } = kind { Some(index) } else { None };
    let stored = |kind| if let TraceKind::Store { value, .. } = kind { Some(value) } else { None };
    let raised = |kind| if let TraceKind::EngineInterrupt { bits } = kind { Some(bits) } else { None };
    let visible = store + 7_000_000;
    assert!(end + 300 < visible, "the context leaves before its seqno is visible");
    assert_eq!(times(&bench, stored), [(visible, 1)]);
    assert_eq!(times(&bench, event), [(1, 0x1), (visible, 0x18)]);
    assert_eq!(times(&bench, entry), [(1 + 80_000_000, 0), (visible + 80_000_000, 1)]);
    let late = 900_000_000;
    assert_eq!(times(&bench, raised), [(1 + late, 0x100), (visible + late, 0x1), (visible + late, 0x100)]);
}

#[test]
fn due_times_do_not_depend_on_when_the_caller_comes() {
    let punctual = each(|bench| bench.settle(u64::MAX / 2));
    let late = each(|bench| bench.advance(10_000_000_000));
    let often = each(|bench| (0..2_000).for_each(|_| bench.advance(777_777)));
    assert_eq!(punctual.world.trace, late.world.trace);
    assert_eq!(punctual.world.trace, often.world.trace);
}

#[test]
fn a_caller_that_pauses_after_every_action_sees_the_same_and_each_call_goes_on() {
    let run = |halting| {
        each(|bench| {
            bench.world.halting = halting;
            for _ in 0..1_000 {
                let Some(due) = bench.gpu.next_deadline() else { return };
                bench.advance(due.saturating_sub(bench.now));
            }
            panic!("a thousand calls did not bring the end");
        })
    };
    let (at_once, halting) = (run(false), run(true));
    assert_eq!(at_once.world.trace, halting.world.trace);
    assert_eq!(at_once.world.interrupts, halting.world.interrupts);
}

#[test]
fn a_pause_leaves_the_rest_due_and_a_write_comes_after_it_all_the_same() {
    let submit = |halting| {
        let mut bench = Bench::new();
        let mut a = bench.context(0);
        let seqno = a.seqno_address();
        bench.emit(&mut a, &[mi::STORE_DWORD_GGTT, seqno, 0, 1, mi::USER_INTERRUPT]);
        bench.world.halting = halting;
        bench.submit(E, a.descriptor(), Descriptor::NULL);
        let left = bench.gpu.next_deadline();
        bench.write(lab::CS_BUSY, 0);
        (left, bench.world.trace)
    };
    let (whole, paused) = (submit(false), submit(true));
    assert_eq!((whole.0, paused.0), (None, Some(0)));
    assert_eq!(whole.1, paused.1);
}

#[test]
fn nothing_happens_a_nanosecond_before_its_deadline() {
    let mut bench = each(|_| ());
    while let Some(due) = bench.gpu.next_deadline() {
        let before = bench.world.trace.len();
        if due > bench.now {
            bench.advance(due - 1 - bench.now);
            assert_eq!(bench.world.trace.len(), before);
            assert_eq!(bench.gpu.next_deadline(), Some(due));
        }
        bench.advance(1);
        assert_eq!(bench.now, due);
    }
}

#[test]
fn a_time_that_goes_back_counts_as_the_latest_one() {
    let mut bench = each(|bench| bench.advance(2_000_000));
    let (trace, due) = (bench.world.trace.len(), bench.gpu.next_deadline());
    bench.gpu.advance(5, &mut bench.world);
    bench.gpu.mmio_write(0x7_0000, 1, 5, &mut bench.world);
    assert_eq!((bench.world.trace.len(), bench.gpu.next_deadline()), (trace, due));
}

#[test]
fn cs_busy_takes_its_time_once_for_each_pair() {
    let mut bench = Bench::new();
    let mut a = bench.context(0);
    bench.emit(&mut a, &[mi::load_register_imm(2), lab::CS_BUSY, 3_000, lab::CS_BUSY, 400, mi::NOOP]);
    bench.submit(E, a.descriptor(), Descriptor::NULL);
    assert_eq!(bench.gpu.next_deadline(), Some(3_400));
    bench.advance(3_400);
    assert_eq!(bench.events(E), [(0x1, 0), (0x18, a.id)]);
}

/// A batch that starts itself on `engine`, with `commands` in the loop.
fn spinner(bench: &mut Bench, engine: Engine, commands: &[u32]) -> support::Context {
    let at = SCRATCH + 0x100 * engine.index() as u32;
    let start = [mi::BATCH_BUFFER_START_GGTT, at, 0];
    for (n, dword) in (0..).zip(commands.iter().chain(&start)) {
        bench.poke(at + 4 * n, *dword);
    }
    let mut context = bench.context(engine.index() as u32);
    bench.emit(&mut context, &start);
    bench.submit(engine, context.descriptor(), Descriptor::NULL);
    context
}

#[test]
fn a_batch_that_starts_itself_for_free_leaves_the_caller_after_a_bounded_number_of_commands() {
    let mut bench = Bench::new();
    for engine in Engine::ALL {
        spinner(&mut bench, engine, &[mi::ARB_CHECK]);
    }
    let most = 4 * 2_000;
    for gap in [0, 1, 1_000, 1_000_000, 1_000_000_000_000, u64::MAX / 4] {
        let before = bench.gpu.stats().commands;
        bench.advance(gap);
        assert!(bench.gpu.stats().commands - before <= most, "gap {gap}");
        let due = bench.gpu.next_deadline().unwrap();
        assert!(due > bench.now, "the caller gets time for other things");
    }
    assert_eq!(bench.gpu.stats().violations, 0, "a spinner is legal");
}

#[test]
fn a_loop_of_short_commands_is_not_made_up_for_without_end() {
    let mut bench = Bench::new();
    spinner(&mut bench, E, &[mi::load_register_imm(1), lab::CS_BUSY, 1]);
    for gap in [1_000_000_000, 1_000_000_000_000, u64::MAX / 4] {
        let before = bench.gpu.stats().commands;
        bench.advance(gap);
        assert!(bench.gpu.stats().commands - before <= 70_000, "gap {gap}");
    }
}

#[test]
fn a_blocked_semaphore_is_not_made_up_for_without_end() {
    let mut bench = Bench::new();
    let mut a = bench.context(0);
    bench.emit(&mut a, &[mi::semaphore_wait(mi::Compare::Equal), 1, SCRATCH, 0]);
    bench.submit(E, a.descriptor(), Descriptor::NULL);
    bench.advance(u64::MAX / 2);
    bench.poke(SCRATCH, 1);
    bench.settle(1_000_000);
    assert_eq!(bench.events(E).len(), 2);
}

#[test]
fn a_spinner_ends_when_its_batch_is_overwritten_and_yields_to_another_context() {
    let mut bench = Bench::new();
    let spinning = spinner(&mut bench, E, &[mi::ARB_CHECK]);
    let mut other = bench.context(5);
    bench.emit_request(&mut other, 9);
    bench.submit(E, other.descriptor(), spinning.descriptor());
    bench.settle(100_000);
    assert_eq!(bench.events(E), [(0x1, 0), (0x2, spinning.id), (0x14, other.id)]);
    bench.poke(SCRATCH, mi::BATCH_BUFFER_END);
    bench.settle(1_000_000);
    assert_eq!(bench.events(E).last(), Some(&(0x18, spinning.id)));
}

#[test]
fn one_engine_that_spins_does_not_hold_up_another() {
    let mut bench = Bench::new();
    spinner(&mut bench, Engine::Vcs0, &[]);
    let mut other = bench.context(5);
    bench.emit_request(&mut other, 9);
    bench.submit(E, other.descriptor(), Descriptor::NULL);
    assert_eq!(bench.peek(other.seqno_address()), 9);
}

#[test]
fn the_status_registers_follow_what_runs() {
    let mut bench = Bench::with_profile("name = \"s\"\n[delay]\n\"command.execute\" = \"1us\"\n", 1);
    let (mut a, mut b, mut c) = (bench.context(0), bench.context(1), bench.context(2));
    for context in [&mut a, &mut b, &mut c] {
        bench.emit(context, &[mi::NOOP; 4]);
    }
    let status = |bench: &mut Bench| {
        let lo = bench.read(E.reg(ring::EXECLIST_STATUS_LO));
        (lo >> ring::EXECLIST_ACTIVE_ELEMENT_SHIFT & 3, lo, bench.read(E.reg(ring::EXECLIST_STATUS_HI)))
    };
    bench.submit(E, a.descriptor(), b.descriptor());
    let (element, one, id) = status(&mut bench);
    assert_eq!((element, id, one & ring::EXECLIST_QUEUE_FULL), (1, a.id, 0));
    bench.advance(5_000);
    let (element, _, id) = status(&mut bench);
    assert_eq!((element, id), (2, b.id));
    bench.submit(E, c.descriptor(), Descriptor::NULL);
    let (_, full, _) = status(&mut bench);
    assert_ne!(full & ring::EXECLIST_QUEUE_FULL, 0);
    let both = ring::EXECLIST_LIST0_VALID | ring::EXECLIST_LIST1_VALID;
    assert_eq!(full & both, both);
    bench.advance(4_000);
    let (element, two, id) = status(&mut bench);
    assert_eq!((element, id, two & ring::EXECLIST_QUEUE_FULL), (1, c.id, 0));
    assert_ne!((one ^ two) & ring::EXECLIST_CURRENT_LIST, 0, "the other list runs now");
    bench.settle(1_000_000);
    let (element, idle, id) = status(&mut bench);
    assert_eq!((element, id, idle & both), (0, 0, 0));
    assert_eq!(idle >> ring::EXECLIST_LAST_SWITCH_SHIFT & 0x1ff, 0x18);
}
