//! What a guest does wrong is counted, shown, and survived; the next correct request is served.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on ends there")]

mod support;

use execlab_abi::lab::{self, Violation};
use execlab_abi::wire::{Op, PostedWrite, QUEUE_CONTROL, QUEUE_IRQ, QUEUE_MMIO, QUEUE_SIZE, Status};
use execlab_device::WaitMode;
use execlab_device::door::chain::ChainError;
use support::gpu::SEQNO;
use support::ring::Buffer;
use support::{BASE, Guest, Manners, SIZE, TestDevice};

const MODES: [WaitMode; 3] = [WaitMode::Sleep, WaitMode::Hybrid { spin_ns: 200_000 }, WaitMode::Poll];
const END: u64 = BASE + SIZE as u64;
const WORD: u32 = PostedWrite::SIZE as u32;

/// Expects the chain to come back empty and the error state to name it.
fn refused(guest: &mut Guest, queue: u16, buffers: &[Buffer], error: ChainError) {
    let count = guest.read_register(lab::ERROR_COUNT);
    let head = guest.offer(queue, buffers);
    if queue == QUEUE_IRQ {
        // Buffers are looked at when there is something to put in.
        raise_interrupt(guest);
    }
    assert_eq!(guest.wait_used(queue), (head, 0), "{error:?}");
    assert_eq!(guest.read_register(lab::ERROR_COUNT), count + 1, "{error:?}");
    assert_eq!(guest.read_register(lab::ERROR_CODE), Violation::BadDescriptorChain as u32);
    assert_eq!(guest.read_register(lab::ERROR_ENGINE), lab::NO_ENGINE);
    assert_eq!(guest.read_register(lab::ERROR_WORDS), u32::from(queue));
    assert_eq!(guest.read_register(lab::ERROR_WORDS + 4), error as u32);
}

/// Makes an interrupt pending, whatever there was.
fn raise_interrupt(guest: &mut Guest) {
    guest.init_gpu();
    guest.submit_request(1);
}

/// A correct guest is served.
fn works(guest: &mut Guest) {
    assert_eq!(guest.control(Op::Reset, &[]).0, Status::Ok);
    guest.init_gpu();
    guest.offer_interrupt_buffer();
    guest.submit_request(1);
    guest.wait_interrupt();
    guest.wait_csb(1);
    assert_eq!(guest.peek(SEQNO), 1);
}

#[test]
fn malformed_posted_chains_are_refused_whole() {
    for mode in MODES {
        let device = TestDevice::start("", mode);
        let mut guest = Guest::connect(&device.socket, Manners { event_idx: true });
        let at = guest.buffer(QUEUE_MMIO, 0);
        let good = Buffer::readable(at, WORD);
        let cases: &[(&[Buffer], ChainError)] = &[
            (&[Buffer::writable(at, WORD)], ChainError::UnexpectedWritable),
            (&[good, Buffer::writable(at, WORD)], ChainError::UnexpectedWritable),
            (&[Buffer::writable(at, WORD), good], ChainError::ReadableAfterWritable),
            (&[Buffer::readable(at, 0)], ChainError::WrongSize),
            (&[Buffer::readable(at, WORD - 1)], ChainError::WrongSize),
            (&[Buffer::readable(END - 4, WORD)], ChainError::NotMemory),
            (&[good, Buffer::readable(END, WORD)], ChainError::NotMemory),
            (&[Buffer::readable(u64::MAX - 3, WORD)], ChainError::NotMemory),
            (&[Buffer::readable(at, !7)], ChainError::TooManyBytes),
            (&[good; 65], ChainError::TooManySegments),
            (&[good.then(QUEUE_SIZE)], ChainError::Endless),
            (&[good.then(u16::MAX)], ChainError::Endless),
        ];
        for (buffers, error) in cases {
            refused(&mut guest, QUEUE_MMIO, buffers, *error);
        }
        works(&mut guest);
    }
}

#[test]
fn a_chain_that_loops_is_refused() {
    let device = TestDevice::start("", WaitMode::Sleep);
    let mut guest = Guest::connect(&device.socket, Manners { event_idx: false });
    let at = guest.buffer(QUEUE_MMIO, 0);
    // The first descriptor follows itself.
    refused(&mut guest, QUEUE_MMIO, &[Buffer::readable(at, WORD).then(0)], ChainError::TooManySegments);
    works(&mut guest);
}

#[test]
fn malformed_interrupt_buffers_are_refused_and_the_interrupt_waits_for_a_good_one() {
    let device = TestDevice::start("", WaitMode::Sleep);
    let mut guest = Guest::connect(&device.socket, Manners { event_idx: true });
    let at = guest.buffer(QUEUE_IRQ, 0);
    refused(&mut guest, QUEUE_IRQ, &[Buffer::readable(at, 32)], ChainError::UnexpectedReadable);
    refused(&mut guest, QUEUE_IRQ, &[Buffer::writable(at, 31)], ChainError::WrongSize);
    refused(&mut guest, QUEUE_IRQ, &[Buffer::writable(END - 31, 32)], ChainError::NotMemory);
    guest.offer_interrupt_buffer();
    guest.wait_interrupt();
    works(&mut guest);
}

#[test]
fn control_chains_without_room_or_head_are_refused() {
    let device = TestDevice::start("", WaitMode::Sleep);
    let mut guest = Guest::connect(&device.socket, Manners { event_idx: true });
    let (request, response) = (guest.buffer(QUEUE_CONTROL, 0), guest.buffer(QUEUE_CONTROL, 1));
    let cases = [
        [Buffer::readable(request, 15), Buffer::writable(response, 64)],
        [Buffer::readable(request, 16), Buffer::writable(response, 15)],
    ];
    for buffers in cases {
        refused(&mut guest, QUEUE_CONTROL, &buffers, ChainError::WrongSize);
    }
    works(&mut guest);
}

#[test]
fn bad_control_requests_are_answered_with_a_status() {
    let device = TestDevice::start("", WaitMode::Sleep);
    let mut guest = Guest::connect(&device.socket, Manners { event_idx: true });
    let mut status = |op: u32, len: u32, payload: &[u8], room: u32| {
        let (status, reason) = guest.control_raw(op, len, payload, room);
        (Status::from_code(status).unwrap(), String::from_utf8(reason).unwrap())
    };
    assert_eq!(status(0, 0, &[], 4096).0, Status::UnknownOp);
    assert_eq!(status(u32::MAX, 0, &[], 4096).0, Status::UnknownOp);
    assert_eq!(status(Op::Identify as u32, 4, &[0; 4], 4096).0, Status::BadPayload);
    assert_eq!(status(Op::ReadRegister as u32, 4, &[0; 2], 4096).0, Status::BadPayload);
    assert_eq!(status(Op::ReadRegister as u32, u32::MAX, &[0; 4], 4096).0, Status::BadPayload);
    assert_eq!(status(Op::SetRegisterPage as u32, 8, &(BASE + 4).to_le_bytes(), 4096).0, Status::BadPayload);
    assert_eq!(status(Op::SetRegisterPage as u32, 8, &END.to_le_bytes(), 4096).0, Status::BadPayload);
    assert_eq!(status(Op::SelectProfile as u32, 2, &[0xff, 0xfe], 4096).0, Status::BadPayload);
    assert_eq!(status(Op::Statistics as u32, 0, &[], 16), (Status::NoRoom, String::new()));
    let (_, reason) = status(Op::ReadRegister as u32, 2, &[0; 2], 4096);
    assert!(reason.contains("4 bytes"), "{reason}");
    works(&mut guest);
}

#[test]
fn an_impossible_available_index_is_counted_and_a_restart_of_the_ring_heals_it() {
    for mode in MODES {
        let device = TestDevice::start("", mode);
        let mut guest = Guest::connect(&device.socket, Manners { event_idx: false });
        guest.ping();
        let ring = &guest.rings[usize::from(QUEUE_MMIO)];
        ring.publish(&guest.memory, 0x4000);
        ring.kick.write(1).unwrap();
        let begin = std::time::Instant::now();
        while guest.read_register(lab::ERROR_CODE) != Violation::BadDescriptorChain as u32 {
            assert!(begin.elapsed() < support::PATIENCE, "{mode}: not seen");
        }
        assert_eq!(guest.read_register(lab::ERROR_WORDS + 4), ChainError::BadRing as u32);
        guest.stop_ring(QUEUE_MMIO);
        guest.start_ring(QUEUE_MMIO);
        works(&mut guest);
    }
}

#[test]
fn heads_beyond_the_table_are_counted_and_not_given_back() {
    let device = TestDevice::start("", WaitMode::Sleep);
    let mut guest = Guest::connect(&device.socket, Manners { event_idx: false });
    let memory = guest.memory.clone();
    guest.rings[usize::from(QUEUE_MMIO)].offer_head(&memory, QUEUE_SIZE);
    guest.rings[usize::from(QUEUE_MMIO)].offer_head(&memory, u16::MAX);
    guest.post(&[(execlab_abi::gt::FORCEWAKE[0], execlab_abi::ring::masked_set(1))]);
    assert_eq!(guest.statistics()["door"]["malformed_chains"], 2);
    works(&mut guest);
}

#[test]
fn writes_outside_the_bar_and_misaligned_ones_are_violations() {
    let device = TestDevice::start("", WaitMode::Sleep);
    let mut guest = Guest::connect(&device.socket, Manners { event_idx: true });
    for offset in [u32::MAX, 0x2031, 0x0100_0000] {
        let count = guest.read_register(lab::ERROR_COUNT);
        guest.post(&[(offset, 1)]);
        assert_eq!(guest.read_register(lab::ERROR_COUNT), count + 1, "{offset:#x}");
        assert_eq!(guest.read_register(lab::ERROR_CODE), Violation::BadOffset as u32);
    }
    works(&mut guest);
}

#[test]
fn spurious_kicks_on_every_queue_change_nothing() {
    for mode in MODES {
        let device = TestDevice::start("", mode);
        let mut guest = Guest::connect(&device.socket, Manners { event_idx: true });
        for _ in 0..50 {
            guest.rings.iter().for_each(|ring| ring.kick.write(1).unwrap());
        }
        works(&mut guest);
        assert_eq!(guest.statistics()["door"]["malformed_chains"], 0);
    }
}

#[test]
fn a_batch_without_end_keeps_nobody_from_being_served() {
    for mode in MODES {
        let device = TestDevice::start("", mode);
        let mut guest = Guest::connect(&device.socket, Manners { event_idx: true });
        guest.init_gpu();
        guest.emit_endless_batch();
        let begin = std::time::Instant::now();
        guest.post(&Guest::submission());
        for _ in 0..5 {
            guest.ping();
            guest.post(&[(execlab_abi::gt::FORCEWAKE[0], execlab_abi::ring::masked_set(1))]);
        }
        println!("{mode}: 1 submission, 5 pings, 5 writes in {:?}", begin.elapsed());
        works(&mut guest);
    }
}
