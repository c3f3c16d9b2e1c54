//! Events that hardware would not send: the driver goes on, counts them, and says so.

#![allow(clippy::unwrap_used, reason = "a broken machine fails its test")]

mod support;

use execlab_abi::csb::{self, Entry};
use execlab_abi::engine::Engine;
use execlab_abi::{irq, wire::IrqRecord};
use execlab_driver::{DriverError, RequestSpec, Variant};
use support::Machine;

/// A device that does nothing on its own for a while.
const LATER: &str = "name = \"later\"\n[delay]\n\"elsp.accept\" = \"5ms\"\n";
/// What ends the only context of an engine.
const LAST: u32 = csb::COMPLETE | csb::ACTIVE_IDLE;

/// A machine with one request in port 0 (context id 1), before the device has looked at it.
fn submitted(variant: Variant) -> Machine {
    let machine = Machine::new(variant, LATER, 1, 0);
    let mut context = machine.driver.context_create(Engine::Rcs0, 1).unwrap();
    machine.driver.submit(&mut context, RequestSpec::default()).unwrap();
    machine
}

/// Forges events and raises the context-switch interrupt for them; what the driver says about its device then.
fn tell(machine: &Machine, events: &[(u32, u32)]) -> Result<(), DriverError> {
    for (status, context_id) in events {
        machine.bus.forge_event(Engine::Rcs0, Entry { status: *status, context_id: *context_id });
    }
    machine.interrupt(&IrqRecord { iir: [irq::CONTEXT_SWITCH, 0, 0, 0], ..Default::default() });
    machine.driver.check_device()
}

#[test]
fn an_event_of_a_context_in_no_port_is_stray_and_leaves_the_port_as_it_is() {
    for variant in Variant::ALL {
        let machine = submitted(variant);
        let said = tell(&machine, &[(LAST, 77)]);
        assert!(matches!(said, Err(DriverError::StrayEvents { count: 1 })), "{said:?}");
        assert!(!machine.driver.is_idle());
        assert_eq!(machine.driver.counters().csb_events, 1);
    }
}

#[test]
fn an_event_for_an_idle_engine_is_stray() {
    for variant in Variant::ALL {
        let machine = Machine::new(variant, LATER, 1, 0);
        let said = tell(&machine, &[(LAST, 1)]);
        assert!(matches!(said, Err(DriverError::StrayEvents { count: 1 })), "{said:?}");
        assert!(machine.driver.is_idle());
    }
}

#[test]
fn a_completion_before_its_seqno_is_reported() {
    for variant in Variant::ALL {
        let said = tell(&submitted(variant), &[(csb::IDLE_ACTIVE, 0), (LAST, 1)]);
        assert!(matches!(said, Err(DriverError::Disorder { unexpected: 0, early: 1 })), "{said:?}");
    }
}

#[test]
fn a_last_event_that_does_not_say_where_the_engine_went_is_reported() {
    for variant in Variant::ALL {
        for status in [csb::COMPLETE, csb::COMPLETE | csb::ELEMENT_SWITCH, csb::PREEMPTED | csb::LITE_RESTORE]
        {
            let said = tell(&submitted(variant), &[(csb::IDLE_ACTIVE, 0), (status, 1)]);
            assert!(
                matches!(said, Err(DriverError::Disorder { unexpected: 1, .. })),
                "{status:#x}: {said:?}"
            );
        }
    }
}

#[test]
fn an_interrupt_without_an_event_changes_nothing() {
    for variant in Variant::ALL {
        let machine = submitted(variant);
        tell(&machine, &[]).unwrap();
        assert_eq!(machine.driver.counters().csb_events, 0);
        machine.settle();
        machine.driver.check_device().unwrap();
    }
}
