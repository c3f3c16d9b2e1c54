//! Stop, reset handshake, reset domains, power-on.

mod support;

use execlab_abi::descriptor::Descriptor;
use execlab_abi::engine::Engine;
use execlab_abi::lab::Violation;
use execlab_abi::{csb, ggtt, gt, irq, mi, ring};
use support::{Bench, SCRATCH, hwsp};

const E: Engine = Engine::Vcs0;
const SLOW: &str = "name = \"r\"\n[delay]\n\"reset.ready\" = \"50us\"\n\"command.execute\" = \"1us\"\n";

fn mode_idle(bench: &mut Bench) -> bool {
    bench.read(E.reg(ring::MI_MODE)) & ring::MI_MODE_IDLE != 0
}

/// An engine that waits for SCRATCH to become 1 and then stores a seqno.
fn blocked(bench: &mut Bench) -> support::Context {
    let mut context = bench.context(0);
    bench.emit(&mut context, &[mi::semaphore_wait(mi::Compare::Equal), 1, SCRATCH, 0]);
    bench.emit_request(&mut context, 1);
    bench.submit(E, context.descriptor(), Descriptor::NULL);
    context
}

#[test]
fn stop_ring_stops_after_the_current_command_and_the_engine_goes_on_when_it_is_cleared() {
    let mut bench = Bench::with_profile(SLOW, 1);
    assert!(mode_idle(&mut bench));
    let mut context = bench.context(0);
    bench.emit(&mut context, &[mi::NOOP; 8]);
    bench.submit(E, context.descriptor(), Descriptor::NULL);
    bench.advance(1_500);
    assert!(!mode_idle(&mut bench));
    bench.write(E.reg(ring::MI_MODE), ring::masked_set(ring::MI_MODE_STOP_RING));
    assert!(!mode_idle(&mut bench), "in the middle of a command");
    bench.advance(500);
    assert!(mode_idle(&mut bench));
    assert_eq!(bench.read(E.reg(ring::HEAD)), 8);
    assert_eq!(bench.gpu.next_deadline(), None);
    bench.advance(100_000);
    assert_eq!(bench.events(E), [(0x1, 0)]);
    bench.write(E.reg(ring::MI_MODE), ring::masked_clear(ring::MI_MODE_STOP_RING));
    bench.settle(1_000_000);
    assert_eq!(bench.events(E), [(0x1, 0), (0x18, context.id)]);
}

#[test]
fn reset_ctl_is_ready_after_its_delay_and_holds_the_engine_meanwhile() {
    let mut bench = Bench::with_profile(SLOW, 1);
    let context = blocked(&mut bench);
    let register = E.reg(ring::RESET_CTL);
    bench.settle(10_000);
    bench.write(register, ring::masked_set(ring::RESET_CTL_REQUEST));
    bench.advance(49_999);
    assert_eq!(bench.read(register), ring::RESET_CTL_REQUEST);
    bench.advance(1);
    assert_eq!(bench.read(register), ring::RESET_CTL_REQUEST | ring::RESET_CTL_READY);
    bench.poke(SCRATCH, 1);
    bench.settle(1_000_000);
    assert_eq!(bench.peek(context.seqno_address()), 0, "held");
    bench.submit(E, context.descriptor(), Descriptor::NULL);
    assert_eq!(bench.violation().0, Some(Violation::ElspWhileOff));
    bench.write(register, ring::masked_clear(ring::RESET_CTL_REQUEST));
    assert_eq!(bench.read(register), 0);
    bench.settle(1_000_000);
    assert_eq!(bench.peek(context.seqno_address()), 1);
}

#[test]
fn a_write_to_reset_ctl_without_its_mask_bit_requests_nothing() {
    let mut bench = Bench::new();
    bench.write(E.reg(ring::RESET_CTL), ring::RESET_CTL_REQUEST);
    assert_eq!(bench.read(E.reg(ring::RESET_CTL)), 0);
}

#[test]
fn gdrst_of_one_domain_resets_that_engine_and_reads_zero_after_its_delay() {
    for engine in Engine::ALL {
        let mut bench = Bench::with_profile(SLOW, 1);
        bench.write(gt::GDRST, engine.grdom());
        bench.advance(49_999);
        assert_eq!(bench.read(gt::GDRST), engine.grdom());
        bench.advance(1);
        assert_eq!(bench.read(gt::GDRST), 0);
        for other in Engine::ALL {
            let hwsp = if other == engine { 0 } else { hwsp(other) };
            assert_eq!(bench.read(other.reg(ring::HWS_PGA)), hwsp);
        }
        assert_eq!(bench.gpu.stats().resets, 1);
    }
}

#[test]
fn a_reset_forgets_the_running_context_and_its_pointers_and_a_new_start_works() {
    let mut bench = Bench::new();
    let context = blocked(&mut bench);
    bench.write(gt::GDRST, gt::GRDOM_FULL);
    bench.settle(1_000);
    assert_eq!(bench.gpu.stats().resets, 4);
    assert_eq!(bench.read(E.reg(ring::CONTEXT_STATUS_PTR)) & 7, csb::RESET_WRITE_INDEX);
    assert_eq!(bench.read(E.reg(ring::EXECLIST_STATUS_HI)), 0);
    assert!(mode_idle(&mut bench));
    bench.poke(SCRATCH, 1);
    bench.settle(1_000_000);
    assert_eq!(bench.peek(context.seqno_address()), 0);
    bench.submit(E, context.descriptor(), Descriptor::NULL);
    assert_eq!(bench.violation().0, Some(Violation::ElspWhileOff), "execlists are off after a reset");

    bench.write(E.reg(ring::MODE), ring::masked_set(ring::MODE_RUN_LIST_ENABLE));
    bench.write(E.reg(ring::HWS_PGA), hwsp(E));
    bench.submit(E, context.descriptor(), Descriptor::NULL);
    assert_eq!(bench.peek(hwsp(E) + csb::HWSP_WRITE_INDEX), 1, "the first event landed in entry 0");
    assert_eq!(bench.csb(E, 0), csb::Entry { status: 0x1, context_id: 0 });
    assert_eq!(bench.peek(context.seqno_address()), 1);
}

#[test]
fn stores_under_way_are_gone_after_a_reset() {
    let mut bench = Bench::with_profile("name = \"s\"\n[delay]\n\"seqno.visible\" = \"9us\"\n", 1);
    let mut context = bench.context(0);
    bench.emit_request(&mut context, 1);
    bench.submit(E, context.descriptor(), Descriptor::NULL);
    bench.write(gt::GDRST, E.grdom());
    bench.settle(1_000_000);
    assert_eq!(bench.peek(context.seqno_address()), 0);
}

#[test]
fn both_pointers_can_be_forced_and_the_next_event_follows() {
    let mut bench = Bench::new();
    let last = csb::ENTRIES - 1;
    bench.write(E.reg(ring::CONTEXT_STATUS_PTR), 0xffff << 16 | last << 8 | last);
    assert_eq!(bench.read(E.reg(ring::CONTEXT_STATUS_PTR)), last << 8 | last);
    let mut context = bench.context(0);
    bench.emit_request(&mut context, 1);
    bench.submit(E, context.descriptor(), Descriptor::NULL);
    assert_eq!(bench.csb(E, 0), csb::Entry { status: 0x1, context_id: 0 });
    bench.write(E.reg(ring::CONTEXT_STATUS_PTR), ring::CSB_READ_PTR_MASK << 16 | 0x100);
    assert_eq!(bench.read(E.reg(ring::CONTEXT_STATUS_PTR)), 0x101);
}

#[test]
fn power_on_clears_registers_entries_and_banks_and_tells_the_copies() {
    let mut bench = Bench::new();
    let mut context = bench.context(0);
    bench.emit_request(&mut context, 1);
    bench.submit(E, context.descriptor(), Descriptor::NULL);
    bench.write(0x7_0000, 5);
    let now = bench.now;
    bench.gpu.reset(now, &mut bench.world);
    assert_eq!((bench.read(0x7_0000), bench.read(ggtt::pte_offset(SCRATCH))), (0, 0));
    assert_eq!((bench.read(irq::MASTER), bench.read(irq::imr(1)), bench.read(irq::iir(1))), (0, u32::MAX, 0));
    assert_eq!(bench.read(E.reg(ring::IMR)), u32::MAX);
    assert!(mode_idle(&mut bench));
    for (offset, copy) in bench.world.mirror.clone() {
        if offset & 0xfff != ring::TIMESTAMP {
            assert_eq!(bench.read(offset), copy, "register {offset:#x}");
        }
    }
}

#[test]
fn forcewake_acks_at_once_and_tlb_invalidations_clear_themselves() {
    let mut bench = Bench::new();
    for (request, ack) in gt::FORCEWAKE.into_iter().zip(gt::FORCEWAKE_ACK) {
        bench.write(request, ring::masked_set(1));
        assert_eq!(bench.read(ack), 1);
        bench.write(request, ring::masked_clear(1));
        assert_eq!(bench.read(ack), 0);
    }
    for offset in (gt::TLB_INVALIDATE_FIRST..=gt::TLB_INVALIDATE_LAST).step_by(4) {
        bench.write(offset, 1);
        assert_eq!(bench.read(offset), 0);
    }
}
