//! Where the steps of each variant run: the table of the README, seen from the bus.

#![allow(clippy::unwrap_used, reason = "a broken machine fails its test")]

mod support;

use execlab_abi::engine::Engine;
use execlab_driver::bus::BusCosts;
use execlab_driver::conformance::Device;
use execlab_driver::kernel::Kernel as _;
use execlab_driver::{Counters, RequestSpec, Variant};
use support::Machine;
use support::bus::Seen;
use support::kernel::Level;

const OFF: bool = true;
const ON: bool = false;
/// Every answer of the device comes well after the submission that caused it.
const FAR: &str = "name = \"far\"\n[delay]\n\"elsp.accept\" = \"20us\"\n\"irq.deliver\" = \"5us\"\n";

/// Submits 200 requests one at a time.
fn paced(variant: Variant) -> (Seen, Counters) {
    let machine = Machine::new(variant, FAR, 3, 100);
    let mut context = machine.driver.context_create(Engine::Rcs0, 1).unwrap();
    for _ in 0..200 {
        machine.driver.submit(&mut context, RequestSpec::default()).unwrap();
        machine.settle();
        context.retire();
    }
    machine.driver.check_device().unwrap();
    (machine.bus.seen(), machine.driver.counters())
}

#[test]
fn tasklet_reads_the_csb_in_the_bottom_half_with_interrupts_on_and_writes_elsp_there_with_interrupts_off() {
    let (seen, counters) = paced(Variant::Tasklet);
    assert_eq!(seen.csb.keys().copied().collect::<Vec<_>>(), [(ON, Level::Softirq)]);
    assert_eq!(seen.elsp.keys().copied().collect::<Vec<_>>(), [(OFF, Level::Softirq)]);
    assert_eq!(counters.bh_at_enable, 200, "{counters:?}");
    assert!(counters.bh_at_irq_exit >= 200, "{counters:?}");
}

#[test]
fn direct_2018_reads_the_csb_and_writes_elsp_in_the_submitter_with_interrupts_off() {
    let (seen, counters) = paced(Variant::Direct2018);
    // From the submitter and from the interrupt: the same lock, interrupts off on both paths.
    assert_eq!(seen.csb.keys().copied().collect::<Vec<_>>(), [(OFF, Level::Task), (OFF, Level::Softirq)]);
    assert_eq!(seen.csb[&(OFF, Level::Task)], 200);
    assert_eq!(seen.elsp.iter().map(|(k, v)| (*k, *v)).collect::<Vec<_>>(), [((OFF, Level::Task), 200)]);
    assert_eq!(counters.bh_at_enable, 0, "{counters:?}");
    assert!(counters.bh_at_irq_exit >= 200, "{counters:?}");
}

#[test]
fn no_variant_reads_the_csb_or_writes_elsp_in_the_hardirq_half() {
    for variant in Variant::ALL {
        let (seen, _) = paced(variant);
        let hardirq =
            |places: &support::bus::Places| places.keys().any(|(_, level)| *level == Level::Hardirq);
        assert!(!hardirq(&seen.csb) && !hardirq(&seen.elsp), "{}: {seen:?}", variant.name());
    }
}

#[test]
fn direct_2018_has_more_work_with_interrupts_off_than_tasklet() {
    let (tasklet, direct) = (paced(Variant::Tasklet).1, paced(Variant::Direct2018).1);
    assert_eq!(tasklet.elsp_writes, direct.elsp_writes);
    assert!(direct.bh_total_ns <= tasklet.bh_total_ns, "{direct:?}\n{tasklet:?}");
    assert!(direct.irq_off_sections < tasklet.irq_off_sections, "one section instead of two");
}

#[test]
fn requests_beyond_both_ports_do_not_kick_the_bottom_half() {
    let machine = Machine::new(Variant::Tasklet, FAR, 3, 100);
    let mut contexts: Vec<_> =
        (0..4).map(|_| machine.driver.context_create(Engine::Bcs0, 1).unwrap()).collect();
    for context in &mut contexts {
        machine.driver.submit(context, RequestSpec::default()).unwrap();
    }
    // The first goes to the hardware, the second asks in vain for an acknowledgement, the others need not ask.
    assert_eq!(machine.driver.counters().bh_at_enable, 2);
    machine.settle();
    machine.driver.check_device().unwrap();
}

#[test]
fn the_same_seed_gives_the_same_run_to_the_nanosecond() {
    let run = |variant| {
        let machine = Machine::new(variant, Device::Usual.profile(), 11, 300);
        let mut context = machine.driver.context_create(Engine::Vecs0, 1).unwrap();
        for _ in 0..500 {
            while machine.driver.submit(&mut context, RequestSpec::default()).is_err() {
                machine.kernel.sleep_until(machine.kernel.now() + 500);
            }
        }
        machine.settle();
        (machine.kernel.now(), machine.driver.counters(), machine.bus.seen())
    };
    for variant in Variant::ALL {
        assert_eq!(run(variant), run(variant), "{}", variant.name());
    }
}

#[test]
fn a_submission_spends_four_writes_and_forcewake_where_the_bus_asks_for_it_with_interrupts_off() {
    for (forcewake_ns, expected) in [(0, 400), (20_000, 20_400)] {
        for variant in Variant::ALL {
            let costs = BusCosts { read_ns: 1000, write_ns: 100, forcewake_ns };
            let machine = Machine::with_costs(variant, FAR, 1, 0, costs);
            let mut context = machine.driver.context_create(Engine::Rcs0, 1).unwrap();
            let start = machine.kernel.now();
            machine.driver.submit(&mut context, RequestSpec::default()).unwrap();
            assert_eq!(machine.kernel.now() - start, expected, "{}", variant.name());
            assert_eq!(machine.driver.counters().irq_off_longest_ns, expected, "{}", variant.name());
        }
    }
}

#[test]
fn an_interrupt_spends_master_off_bank_read_and_clear_and_master_on() {
    let costs = BusCosts { read_ns: 1000, write_ns: 100, forcewake_ns: 0 };
    let machine = Machine::with_costs(Variant::Tasklet, FAR, 1, 0, costs);
    let start = machine.kernel.now();
    machine.driver.handle_irq(&execlab_abi::wire::IrqRecord { iir: [0x100, 0, 0, 0], ..Default::default() });
    // Two of the master register, one IIR clear; the master's summary and one IIR read.
    assert_eq!(machine.kernel.now() - start, 3 * 100 + 2 * 1000);
    assert_eq!(machine.driver.counters().context_switch_interrupts, 1);
}

#[test]
fn a_second_driver_takes_over_engines_whose_csb_is_somewhere_in_its_ring() {
    for variant in Variant::ALL {
        let mut machine = Machine::new(Variant::Tasklet, Device::Usual.profile(), 5, 300);
        for _ in 0..3 {
            for engine in Engine::ALL {
                let mut context = machine.driver.context_create(engine, 1).unwrap();
                for _ in 0..5 {
                    let seqno = machine.driver.submit(&mut context, RequestSpec::default()).unwrap();
                    machine.driver.wait(&context, seqno, machine.kernel.now() + 1_000_000_000).unwrap();
                }
            }
            machine.settle();
            machine.driver.check_device().unwrap();
            machine = machine.reload(variant);
        }
    }
}

#[test]
fn a_context_may_be_dropped_while_its_requests_are_in_flight() {
    let machine = Machine::new(Variant::Direct2018, FAR, 1, 100);
    for _ in 0..3 {
        let mut context = machine.driver.context_create(Engine::Vcs0, 1).unwrap();
        machine.driver.submit(&mut context, RequestSpec::default()).unwrap();
    }
    machine.settle();
    machine.driver.check_device().unwrap();
}
