//! What every variant must do, on the device model with a deterministic kernel.

#![allow(clippy::unwrap_used, reason = "a broken machine fails its test")]

mod support;

use execlab_abi::engine::Engine;
use execlab_driver::{RequestSpec, SubmitError, Variant, WaitError};
use support::{Ctx, Machine};

const SECOND: u64 = 1_000_000_000;
const INSTANT: &str = "name = \"instant\"\n";
const USUAL: &str = "name = \"usual\"\n[delay]\n\"elsp.accept\" = { uniform = [\"0ns\", \"3us\"] }\n\
    \"context.restore\" = { uniform = [\"0ns\", \"5us\"] }\n\"context.save\" = \"400ns\"\n\"command.execute\" = \"20ns\"\n\
    \"irq.deliver\" = { uniform = [\"0ns\", \"4us\"] }\n\"seqno.visible\" = { uniform = [\"0ns\", \"500ns\"] }\n";
const LATE_CSB: &str = "name = \"late\"\n[delay]\n\"csb.visible\" = { uniform = [\"0ns\", \"9us\"] }\n\"elsp.accept\" = \"1us\"\n";
const VERY_LATE_CSB: &str = "name = \"very-late\"\n[delay]\n\"csb.visible\" = \"50us\"\n";

fn each(profile: &str, test: impl Fn(Machine)) {
    for variant in Variant::ALL {
        eprintln!("variant {}", variant.name());
        test(Machine::new(variant, profile, 7));
    }
}

fn context(machine: &Machine, engine: Engine) -> Ctx {
    machine.driver.context_create(engine, 1).unwrap()
}

/// Submits, letting the device go on while the ring is full.
fn submit(machine: &Machine, context: &mut Ctx, spec: RequestSpec) -> u32 {
    loop {
        match machine.driver.submit(context, spec) {
            Ok(seqno) => return seqno,
            Err(_) => assert!(machine.step(), "a full ring with nothing to wait for"),
        }
    }
}

#[test]
fn a_request_completes_and_its_waiter_is_told() {
    for profile in [INSTANT, USUAL, LATE_CSB] {
        each(profile, |machine| {
            for engine in Engine::ALL {
                let mut c = context(&machine, engine);
                let seqno = submit(&machine, &mut c, RequestSpec::default());
                machine.driver.wait(&c, seqno, machine.kernel.cpu_now() + SECOND).unwrap();
                assert_eq!(c.retire(), 1);
            }
            machine.settle();
            assert!(machine.driver.is_idle());
            machine.driver.check_device().unwrap();
        });
    }
}

#[test]
fn a_thousand_requests_over_contexts_engines_and_priorities_complete() {
    for profile in [INSTANT, USUAL, LATE_CSB] {
        each(profile, |machine| {
            let batch = machine.driver.batch_create(0).unwrap();
            let mut contexts: Vec<Ctx> = (0..12).map(|n| context(&machine, Engine::ALL[n % 4])).collect();
            for (context, priority) in contexts.iter_mut().zip([-1, 0, 1].into_iter().cycle()) {
                context.set_priority(priority).unwrap();
            }
            let mut random = 12345_u32;
            for _ in 0..1000 {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let which = (random >> 16) as usize % contexts.len();
                let batch = (random >> 8).is_multiple_of(2).then_some(batch.address());
                submit(&machine, &mut contexts[which], RequestSpec { batch });
                if random.is_multiple_of(5) {
                    machine.step();
                }
            }
            machine.settle();
            for c in &mut contexts {
                c.retire();
                assert_eq!(c.in_flight(), 0, "seqno {} of context", c.last_seqno());
            }
            assert!(machine.driver.is_idle());
            let counters = machine.driver.counters();
            assert_eq!(counters.submissions, 1000);
            assert_eq!(counters.stray_events, 0);
            machine.driver.check_device().unwrap();
        });
    }
}

#[test]
fn a_flood_of_one_context_is_lite_restored_and_wraps_its_ring() {
    each(USUAL, |machine| {
        let mut c = context(&machine, Engine::Vcs0);
        for _ in 0..2000 {
            submit(&machine, &mut c, RequestSpec::default());
        }
        machine.settle();
        c.retire();
        assert_eq!(c.in_flight(), 0);
        let counters = machine.driver.counters();
        assert!(counters.csb_lite_restores > 10, "{counters:?}");
        machine.driver.check_device().unwrap();
    });
}

#[test]
fn a_full_ring_refuses_and_takes_again_after_requests_retire() {
    each("name = \"slow\"\n[delay]\n\"elsp.accept\" = \"1ms\"\n", |machine| {
        let mut c = context(&machine, Engine::Bcs0);
        let mut submitted = 0;
        while machine.driver.submit(&mut c, RequestSpec::default()).is_ok() {
            submitted += 1;
            assert!(submitted < 1000);
        }
        assert!(submitted > 50);
        machine.settle();
        machine.driver.submit(&mut c, RequestSpec::default()).unwrap();
        assert!(c.in_flight() == 1);
    });
}

#[test]
fn a_wait_ends_at_its_deadline_when_the_request_does_not_complete() {
    each("name = \"stuck\"\n[delay]\n\"elsp.accept\" = \"5s\"\n", |machine| {
        let mut c = context(&machine, Engine::Rcs0);
        let seqno = submit(&machine, &mut c, RequestSpec::default());
        let deadline = machine.kernel.cpu_now() + SECOND;
        let mut later = context(&machine, Engine::Bcs0);
        let _ = submit(&machine, &mut later, RequestSpec::default());
        let result = machine.driver.wait(&c, seqno + 1, deadline);
        assert_eq!(result, Err(WaitError::TimedOut { seqno: seqno + 1, reached: c.last_seqno() }));
    });
}

#[test]
fn an_entry_later_than_ten_microseconds_is_read_from_the_mmio_copy_without_losing_an_event() {
    each(VERY_LATE_CSB, |machine| {
        let mut c = context(&machine, Engine::Vecs0);
        for _ in 0..20 {
            submit(&machine, &mut c, RequestSpec::default());
            machine.settle();
        }
        assert!(machine.driver.counters().csb_late_entries > 0);
    });
}

#[test]
fn a_batch_with_a_length_keeps_its_request_that_long() {
    each(INSTANT, |machine| {
        let batch = machine.driver.batch_create(30_000).unwrap();
        let mut c = context(&machine, Engine::Rcs0);
        let start = machine.kernel.cpu_now();
        let seqno = submit(&machine, &mut c, RequestSpec { batch: Some(batch.address()) });
        machine.driver.wait(&c, seqno, start + SECOND).unwrap();
        assert!(machine.kernel.cpu_now() - start >= 30_000);
    });
}

#[test]
fn higher_priority_goes_first_when_a_port_is_free() {
    each("name = \"slow\"\n[delay]\n\"elsp.accept\" = \"100us\"\n", |machine| {
        let batch = machine.driver.batch_create(50_000).unwrap();
        let batch = Some(batch.address());
        let mut first = context(&machine, Engine::Rcs0);
        let mut low = context(&machine, Engine::Rcs0);
        let mut high = context(&machine, Engine::Rcs0);
        low.set_priority(-5).unwrap();
        high.set_priority(5).unwrap();
        submit(&machine, &mut first, RequestSpec::default());
        assert_eq!(first.set_priority(1), Err(SubmitError::Busy));
        let seqno_low = submit(&machine, &mut low, RequestSpec { batch });
        let seqno_high = submit(&machine, &mut high, RequestSpec { batch });
        machine.driver.wait(&high, seqno_high, machine.kernel.cpu_now() + SECOND).unwrap();
        assert_eq!(low.retire(), 0, "the low one waits");
        machine.driver.wait(&low, seqno_low, machine.kernel.cpu_now() + SECOND).unwrap();
    });
}

#[test]
fn variants_differ_in_where_the_steps_run() {
    let run = |variant| {
        let machine = Machine::new(variant, USUAL, 3);
        let mut c = context(&machine, Engine::Rcs0);
        for _ in 0..200 {
            submit(&machine, &mut c, RequestSpec::default());
            machine.settle();
        }
        machine.driver.counters()
    };
    let (tasklet, direct) = (run(Variant::Tasklet), run(Variant::Direct2018));
    assert!(tasklet.bh_at_enable >= 200, "{tasklet:?}");
    assert_eq!(direct.bh_at_enable, 0, "{direct:?}");
    assert!(direct.bh_at_irq_exit > 0);
    assert_eq!(tasklet.submissions, direct.submissions);
}
