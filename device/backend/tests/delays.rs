//! Delays by device time: never early, in every mode, at every length. How late is measured elsewhere: a machine
//! that compiles at the same time proves nothing about that.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on ends there")]

mod support;

use execlab_abi::irq;
use execlab_device::WaitMode;
use support::gpu::ENGINE;
use support::{Guest, Manners, TestDevice};

const MODES: [WaitMode; 3] = [WaitMode::Sleep, WaitMode::Hybrid { spin_ns: 200_000 }, WaitMode::Poll];
const LENGTHS: [(&str, u64); 5] =
    [("0ns", 0), ("20us", 20_000), ("100us", 100_000), ("1ms", 1_000_000), ("10ms", 10_000_000)];
/// Submissions for each mode, point and length.
const ROUNDS: u32 = 3;

/// Submits and waits for the user interrupt, with `length` at `point`: each must come that much after its submission.
fn never_early(point: &str) {
    for mode in MODES {
        for (length, ns) in LENGTHS {
            let device = TestDevice::start(&format!("[delay]\n\"{point}\" = \"{length}\""), mode);
            let mut guest = Guest::connect(&device.socket, Manners { event_idx: true });
            guest.init_gpu();
            let mut last = 0;
            for seqno in 1..=ROUNDS {
                guest.emit_request(seqno);
                let (_, before) = guest.ping();
                guest.post(&Guest::submission());
                let delivered = loop {
                    guest.offer_interrupt_buffer();
                    let record = guest.wait_interrupt();
                    assert!(record.time_ns >= last, "{mode} {length}: records go back in time");
                    last = record.time_ns;
                    if ENGINE.irq_bits(&record.iir) & irq::USER != 0 {
                        break record.time_ns;
                    }
                };
                let after = guest.ping().0;
                assert!(
                    delivered >= before + ns,
                    "{mode} {point} {length}: {} ns early",
                    before + ns - delivered
                );
                assert!(delivered <= after, "{mode} {point} {length}: delivered in the future");
                // The request is over before the next is submitted.
                guest.wait_csb((2 * seqno - 1) % execlab_abi::csb::ENTRIES);
            }
            let counts = guest.statistics();
            println!("{mode:<6} {point:<15} {length:>5}: {}", counts["lateness"]);
            let met = counts["lateness"]["count"].as_u64().unwrap();
            assert_eq!(ns == 0, met == 0, "{mode} {point} {length}: {met} deadlines recorded");
            assert_eq!(counts["model"]["violations"], 0);
        }
    }
}

#[test]
fn elsp_accept_is_never_early() {
    never_early("elsp.accept");
}

#[test]
fn context_restore_is_never_early() {
    never_early("context.restore");
}

#[test]
fn irq_deliver_is_never_early() {
    never_early("irq.deliver");
}

#[test]
fn a_delay_does_not_block_the_queue_behind_it() {
    for mode in MODES {
        let device = TestDevice::start("[delay]\n\"context.restore\" = \"200ms\"", mode);
        let mut guest = Guest::connect(&device.socket, Manners { event_idx: true });
        guest.init_gpu();
        guest.submit_request(1);
        let (before, _) = guest.ping();
        guest.post(&[(execlab_abi::gt::FORCEWAKE[0], execlab_abi::ring::masked_set(1))]);
        assert_eq!(guest.read_register(execlab_abi::gt::FORCEWAKE_ACK[0]), 1);
        let (after, _) = guest.ping();
        guest.offer_interrupt_buffer();
        let record = guest.wait_interrupt();
        assert!(after < record.time_ns, "{mode}: {before} {after} {record:?}");
    }
}
