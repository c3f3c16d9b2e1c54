//! The device as a front end sees it, without QEMU.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on ends there")]

mod support;

use execlab_abi::csb;
use execlab_abi::engine::Engine;
use execlab_abi::wire::{Identity, MAGIC, Op, QUEUE_IRQ, QUEUE_MMIO, Status, VERSION};
use execlab_abi::{gt, irq, ring};
use execlab_device::WaitMode;
use support::gpu::{ENGINE, ID, SEQNO};
use support::{Guest, Manners, TestDevice};
use vhost::vhost_user::VhostUserFrontend as _;
use vhost::vhost_user::message::VhostUserConfigFlags;

const MODES: [WaitMode; 3] = [WaitMode::Sleep, WaitMode::Hybrid { spin_ns: 200_000 }, WaitMode::Poll];
const PLAIN: Manners = Manners { event_idx: false };
const EVENT_IDX: Manners = Manners { event_idx: true };

#[test]
fn identify_gives_version_bus_costs_and_a_description() {
    let device = TestDevice::start(
        "name = \"x\"\n[bus]\nmmio_read = \"1us\"\nmmio_write = \"200ns\"",
        WaitMode::Sleep,
    );
    let mut guest = Guest::connect(&device.socket, PLAIN);
    let (status, payload) = guest.control(Op::Identify, &[]);
    assert_eq!(status, Status::Ok);
    let (fixed, description) = payload.split_first_chunk::<{ Identity::SIZE }>().unwrap();
    let identity = Identity::from_bytes(fixed);
    assert_eq!((identity.magic, identity.version), (MAGIC, VERSION));
    assert_eq!((identity.bus_read_ns, identity.bus_write_ns, identity.dilation_milli), (1000, 200, 1000));
    let description = std::str::from_utf8(description).unwrap();
    for line in ["wait=sleep", "profile=x", "seed=1", "dilation=1"] {
        assert!(description.lines().any(|l| l == line), "{line} in {description}");
    }
}

#[test]
fn config_space_of_any_length_is_answered_with_that_length() {
    let device = TestDevice::start("", WaitMode::Sleep);
    let mut guest = Guest::connect(&device.socket, PLAIN);
    for size in [4, 57, 60, 64, 256] {
        let (_, config) = guest
            .frontend
            .get_config(0, size, VhostUserConfigFlags::empty(), &vec![0; size as usize])
            .unwrap();
        assert_eq!(config.len(), size as usize);
        if size >= 36 {
            assert_eq!(config[34], 3, "num_queues of virtio-blk");
            assert_eq!(config[..8], [0; 8], "capacity");
        }
    }
}

#[test]
fn clock_pings_never_go_back() {
    let device = TestDevice::start("", WaitMode::Sleep);
    let mut guest = Guest::connect(&device.socket, EVENT_IDX);
    let mut last = 0;
    for _ in 0..20 {
        let (taken, answered) = guest.ping();
        assert!(last <= taken && taken <= answered, "{last} {taken} {answered}");
        last = answered;
    }
}

#[test]
fn posted_writes_reach_the_register_page_and_reads_in_every_mode() {
    for mode in MODES {
        let device = TestDevice::start("", mode);
        let mut guest = Guest::connect(&device.socket, EVENT_IDX);
        guest.set_register_page();
        assert_eq!(guest.mirrored(gt::FORCEWAKE_ACK[0]), 0);
        guest.post(&[(gt::FORCEWAKE[0], ring::masked_set(1))]);
        assert_eq!(guest.mirrored(gt::FORCEWAKE_ACK[0]), 1);
        assert_eq!(guest.read_register(gt::FORCEWAKE_ACK[0]), 1);
        // A page given late holds what was written before.
        assert_eq!(guest.control(Op::SetRegisterPage, &0_u64.to_le_bytes()).0, Status::Ok);
        guest.post(&[(gt::FORCEWAKE[0], ring::masked_clear(1))]);
        assert_eq!(guest.mirrored(gt::FORCEWAKE_ACK[0]), 1);
        guest.set_register_page();
        assert_eq!(guest.mirrored(gt::FORCEWAKE_ACK[0]), 0);
    }
}

#[test]
fn a_submission_gives_seqno_csb_and_interrupt_in_every_mode() {
    for mode in MODES {
        for manners in [PLAIN, EVENT_IDX] {
            let device = TestDevice::start("", mode);
            let mut guest = Guest::connect(&device.socket, manners);
            guest.init_gpu();
            guest.submit_request(1);
            guest.wait_csb(1);
            assert_eq!(guest.peek(SEQNO), 1);
            assert_eq!((guest.csb(0).status, guest.csb(0).context_id), (csb::IDLE_ACTIVE, 0));
            assert_eq!(guest.csb(1).status, csb::COMPLETE | csb::ACTIVE_IDLE);
            assert_eq!(guest.csb(1).context_id, ID);
            // No buffer was there, so one record holds them all. With it the device has taken the
            // queue over: from here a buffer that is offered before a doorbell is known at it.
            guest.offer_interrupt_buffer();
            let joined = guest.wait_interrupt();
            assert_eq!(ENGINE.irq_bits(&joined.iir), irq::USER | irq::CONTEXT_SWITCH, "{mode}");
            assert_eq!(joined.sequence, 1);
            guest.offer_interrupt_buffer();
            guest.submit_request(2);
            // The interrupt of the first event does not wait for the request.
            let first = guest.wait_interrupt();
            assert_eq!(ENGINE.irq_bits(&first.iir), irq::CONTEXT_SWITCH, "{mode}");
            assert_eq!(first.sequence, 2);
            // Those of the request and of its end, together or apart, as buffers came.
            let (mut bits, mut sequence) = (0, 2);
            while bits != irq::USER | irq::CONTEXT_SWITCH {
                guest.offer_interrupt_buffer();
                let record = guest.wait_interrupt();
                sequence += 1;
                assert_eq!(record.sequence, sequence, "{mode}");
                assert_eq!(bits & ENGINE.irq_bits(&record.iir), 0, "{mode}: the same interrupt twice");
                bits |= ENGINE.irq_bits(&record.iir);
            }
            assert_eq!(guest.peek(SEQNO), 2);
        }
    }
}

#[test]
fn interrupts_without_a_buffer_join_and_none_is_lost() {
    for mode in MODES {
        let device = TestDevice::start("", mode);
        let mut guest = Guest::connect(&device.socket, EVENT_IDX);
        guest.init_gpu();
        guest.submit_request(1);
        guest.submit_request(2);
        guest.wait_csb(3);
        guest.offer_interrupt_buffer();
        let record = guest.wait_interrupt();
        assert_eq!(record.sequence, 1);
        assert_ne!(ENGINE.irq_bits(&record.iir) & irq::USER, 0);
        // Taken is taken: the next record is the next interrupt's.
        guest.offer_interrupt_buffer();
        guest.submit_request(3);
        assert_eq!(guest.wait_interrupt().sequence, 2);
        assert_eq!(guest.statistics()["door"]["interrupts_delivered"], 2);
    }
}

#[test]
fn a_full_reset_clears_registers_and_starts_records_anew() {
    let device = TestDevice::start("", WaitMode::Sleep);
    let mut guest = Guest::connect(&device.socket, EVENT_IDX);
    guest.set_register_page();
    guest.init_gpu();
    guest.post(&[(gt::FORCEWAKE[1], ring::masked_set(1))]);
    assert_eq!(guest.control(Op::Reset, &[]).0, Status::Ok);
    assert_eq!(guest.mirrored(gt::FORCEWAKE_ACK[1]), 0);
    guest.init_gpu();
    guest.offer_interrupt_buffer();
    guest.submit_request(1);
    assert_eq!(guest.wait_interrupt().sequence, 1);
}

#[test]
fn profiles_that_ship_can_be_selected_and_files_cannot() {
    let device = TestDevice::start("name = \"mine\"", WaitMode::Sleep);
    let mut guest = Guest::connect(&device.socket, EVENT_IDX);
    for (name, status) in [
        ("kbl-2018", Status::Ok),
        ("no-such", Status::UnknownProfile),
        ("/etc/passwd", Status::UnknownProfile),
    ] {
        assert_eq!(guest.control(Op::SelectProfile, name.as_bytes()).0, status, "{name}");
        assert_eq!(guest.statistics()["profile"], "kbl-2018");
    }
    assert_eq!(guest.control(Op::SelectProfile, b"").0, Status::Ok);
    assert_eq!(guest.statistics()["profile"], "mine");
}

#[test]
fn a_guest_that_wants_no_notification_gets_none_and_one_that_does_gets_it() {
    let device = TestDevice::start("", WaitMode::Sleep);
    let mut guest = Guest::connect(&device.socket, PLAIN);
    let write = [(Engine::Rcs0.reg(ring::HWS_PGA), 0)];
    guest.post(&write);
    // The notification comes after the used index that `post` waits for.
    let begin = std::time::Instant::now();
    while guest.rings[usize::from(QUEUE_MMIO)].notifications() == 0 {
        assert!(begin.elapsed() < support::PATIENCE, "no notification");
    }
    guest.rings[usize::from(QUEUE_MMIO)].no_interrupt(&guest.memory);
    for _ in 0..3 {
        guest.post(&write);
    }
    let call = guest.rings[usize::from(QUEUE_MMIO)].call.try_clone().unwrap();
    // Stopping the ring waits for whoever is at it, so a notification that was coming has come.
    guest.stop_ring(QUEUE_MMIO);
    assert!(call.read().is_err());
}

#[test]
fn poll_mode_asks_for_no_kick() {
    let device = TestDevice::start("", WaitMode::Poll);
    let mut guest = Guest::connect(&device.socket, PLAIN);
    let kicks = |guest: &Guest| guest.rings.iter().map(|r| r.kicks).sum::<u32>();
    // The core takes the rings over a moment after they were enabled; kicks until then are asked for.
    let start = std::time::Instant::now();
    loop {
        let before = kicks(&guest);
        guest.init_gpu();
        guest.ping();
        if kicks(&guest) == before {
            break;
        }
        assert!(start.elapsed().as_secs() < 10, "the device asks for kicks for ever");
    }
    let before = kicks(&guest);
    for _ in 0..10 {
        guest.init_gpu();
        guest.ping();
    }
    assert_eq!(kicks(&guest), before);
}

#[test]
fn three_front_ends_one_after_another_each_find_a_fresh_gpu() {
    for mode in MODES {
        let device = TestDevice::start("", mode);
        for _ in 0..3 {
            let mut guest = Guest::connect(&device.socket, EVENT_IDX);
            assert_eq!(guest.read_register(gt::FORCEWAKE_ACK[0]), 0);
            guest.post(&[(gt::FORCEWAKE[0], ring::masked_set(1))]);
            guest.init_gpu();
            guest.offer_interrupt_buffer();
            guest.submit_request(1);
            assert_eq!(guest.wait_interrupt().sequence, 1);
            let counts = guest.statistics();
            assert_eq!(
                (&counts["model"]["submissions"], &counts["door"]["malformed_chains"]),
                (&1.into(), &0.into())
            );
        }
        device.stop().unwrap();
    }
}

#[test]
fn stopping_every_ring_resets_and_the_same_front_end_goes_on() {
    for mode in MODES {
        let device = TestDevice::start("", mode);
        let mut guest = Guest::connect(&device.socket, EVENT_IDX);
        guest.post(&[(gt::FORCEWAKE[0], ring::masked_set(1))]);
        // One ring alone is no reset.
        guest.stop_ring(QUEUE_IRQ);
        assert_eq!(guest.read_register(gt::FORCEWAKE_ACK[0]), 1);
        guest.start_ring(QUEUE_IRQ);
        (0..3).for_each(|queue| guest.stop_ring(queue));
        (0..3).for_each(|queue| guest.start_ring(queue));
        assert_eq!(guest.read_register(gt::FORCEWAKE_ACK[0]), 0);
        guest.init_gpu();
        guest.offer_interrupt_buffer();
        guest.submit_request(1);
        guest.wait_interrupt();
    }
}

#[test]
fn a_submission_that_is_under_way_when_the_guest_leaves_harms_nobody() {
    for mode in MODES {
        let device = TestDevice::start("[delay]\n\"context.restore\" = \"3ms\"", mode);
        for _ in 0..3 {
            let mut guest = Guest::connect(&device.socket, EVENT_IDX);
            guest.init_gpu();
            guest.submit_request(1);
            drop(guest);
        }
        let mut guest = Guest::connect(&device.socket, EVENT_IDX);
        guest.init_gpu();
        guest.offer_interrupt_buffer();
        guest.submit_request(1);
        guest.wait_interrupt();
    }
}
