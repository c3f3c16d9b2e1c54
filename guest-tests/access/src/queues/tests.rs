//! The queues against a device that a test plays itself, so that it can misbehave.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use execlab_abi::wire::{
    CONTROL_RESPONSE_SIZE, ControlRequest, ControlResponse, IrqRecord, Op, PostedWrite, Status,
};

use super::{Control, Interrupts, Posted};
use crate::Error;
use crate::health::Health;
use crate::link::Link;
use crate::memory::SharedMemory;
use crate::memory::tests::{DeviceView, private};
use crate::virtqueue::VirtQueue;
use crate::virtqueue::tests::Model;

const LINK: Link = Link::Detached;
/// For devices that answer.
const LONG: Duration = Duration::from_secs(20);
/// For devices that do not.
const SHORT: Duration = Duration::from_millis(20);

fn queue(size: u16) -> (Arc<SharedMemory>, VirtQueue, Model, DeviceView) {
    let memory = private(64);
    let queue = VirtQueue::new(&memory, size, true).unwrap();
    let (model, view) = (Model::new(&queue), DeviceView::new(&memory));
    (memory, queue, model, view)
}

/// A response head, a payload, and how many bytes the device claims to have written.
type Response = (ControlResponse, Vec<u8>, Option<u32>);

/// One request to a device that answers with what `respond` makes of the request's head: the result, and whether
/// the device counts as lost.
fn call(
    answer: &mut [u8],
    respond: impl FnOnce(ControlRequest) -> Response + Send + 'static,
) -> (Result<usize, Error>, Result<(), Error>) {
    let (memory, queue, mut model, view) = queue(4);
    let control = Control::new(queue, &memory, LONG).unwrap();
    let health = Health::default();
    let device = thread::spawn(move || {
        let (head, chain) = loop {
            match model.pop() {
                Some(chain) => break chain,
                None => thread::yield_now(),
            }
        };
        assert_eq!((chain.len(), chain[0].writable, chain[1].writable), (2, false, true));
        let request = ControlRequest::from_bytes(&view.read(chain[0].addr, 16).try_into().unwrap());
        assert_eq!(chain[0].len, 16 + request.len);
        let (response, payload, written) = respond(request);
        view.write(chain[1].addr, &response.to_bytes());
        view.write(chain[1].addr + CONTROL_RESPONSE_SIZE as u64, &payload);
        model.push(head, written.unwrap_or((CONTROL_RESPONSE_SIZE + payload.len()) as u32));
    });
    let result = control.call(&LINK, &health, Op::ReadRegister, &[1, 2, 3, 4], answer);
    device.join().unwrap();
    (result, health.check())
}

fn ok(request: ControlRequest, len: u32) -> ControlResponse {
    ControlResponse { status: Status::Ok as u32, len, cookie: request.cookie }
}

#[test]
fn an_answer_arrives_with_its_payload() {
    let mut answer = [0; 8];
    let (result, _) = call(&mut answer, |request| {
        assert_eq!((request.op, request.len), (Op::ReadRegister as u32, 4));
        (ok(request, 4), vec![9, 8, 7, 6], None)
    });
    assert_eq!((result.unwrap(), &answer[..4]), (4, &[9, 8, 7, 6][..]));
}

#[test]
fn a_refusal_carries_the_devices_reason() {
    let (result, health) = call(&mut [], |request| {
        let head = ControlResponse { status: Status::BadPayload as u32, len: 7, cookie: request.cookie };
        (head, b"too odd".to_vec(), None)
    });
    let text = result.unwrap_err().to_string();
    assert!(text.contains("too odd") && text.contains("ReadRegister"), "{text}");
    assert!(health.is_ok(), "a refusal is no loss");
}

#[test]
fn every_malformed_answer_is_an_error_that_says_why() {
    type Case = (&'static str, fn(ControlRequest) -> Response);
    let cases: [Case; 6] = [
        ("cookie", |r| (ControlResponse { cookie: r.cookie + 1, ..ok(r, 0) }, vec![], None)),
        ("bytes written", |r| (ok(r, 0), vec![], Some(15))),
        ("bytes written", |r| (ok(r, 0), vec![], Some(u32::MAX))),
        ("payload of 100", |r| (ok(r, 100), vec![1], None)),
        ("payload of 2", |r| (ok(r, 2), vec![1, 2], None)),
        ("unknown status 77", |r| (ControlResponse { status: 77, ..ok(r, 0) }, vec![], None)),
    ];
    for (expected, respond) in cases {
        let text = call(&mut [0; 1], respond).0.unwrap_err().to_string();
        assert!(text.contains(expected), "{text:?} does not say {expected:?}");
    }
}

#[test]
fn a_device_that_does_not_answer_is_lost_and_not_asked_again() {
    let (memory, queue, mut model, _) = queue(4);
    let control = Control::new(queue, &memory, SHORT).unwrap();
    let health = Health::default();
    let ask = || control.call(&LINK, &health, Op::Identify, &[], &mut []).unwrap_err();
    assert!(matches!(ask(), Error::NoAnswer { op: "Identify", .. }));
    assert!(matches!(ask(), Error::Lost(_)));
    assert!(model.pop().is_some());
    assert!(model.pop().is_none(), "the second request was never sent");
}

fn numbered(count: u32) -> Vec<PostedWrite> {
    (0..count).map(|n| PostedWrite { offset: 4 * n, value: !n }).collect()
}

/// Applies the next chain; its writes.
fn apply(model: &mut Model, view: &DeviceView) -> Option<Vec<PostedWrite>> {
    let (head, chain) = model.pop()?;
    let bytes = view.read(chain[0].addr, chain[0].len);
    model.push(head, 0);
    Some(bytes.chunks_exact(8).map(|b| PostedWrite::from_bytes(b.try_into().unwrap())).collect())
}

#[test]
fn a_long_batch_arrives_in_order_in_several_chains() {
    let (memory, queue, mut model, view) = queue(8);
    let posted = Posted::new(queue, &memory, LONG).unwrap();
    posted.write(&LINK, &Health::default(), &numbered(40));
    let chains: Vec<_> = std::iter::from_fn(|| apply(&mut model, &view)).collect();
    assert_eq!(chains.iter().map(Vec::len).collect::<Vec<_>>(), [16, 16, 8]);
    assert_eq!(chains.concat(), numbered(40));
}

#[test]
fn a_batch_longer_than_the_queue_waits_for_room_and_keeps_its_order() {
    let (memory, queue, mut model, view) = queue(4);
    let posted = Posted::new(queue, &memory, LONG).unwrap();
    let health = Arc::new(Health::default());
    let device = thread::spawn(move || {
        let mut got = Vec::new();
        while got.len() < 1000 {
            match apply(&mut model, &view) {
                Some(writes) => got.extend(writes),
                None => thread::yield_now(),
            }
        }
        got
    });
    posted.write(&LINK, &health, &numbered(1000));
    assert!(posted.drain(&health, LONG));
    assert_eq!(device.join().unwrap(), numbered(1000));
    assert!(health.counters.read().full_waits > 0);
}

#[test]
fn a_device_that_applies_nothing_is_lost_and_writing_returns() {
    let (memory, queue, _model, _) = queue(4);
    let posted = Posted::new(queue, &memory, SHORT).unwrap();
    let health = Health::default();
    posted.write(&LINK, &health, &numbered(1000));
    assert!(health.check().unwrap_err().to_string().contains("posted write"));
    posted.write(&LINK, &health, &numbered(1));
    assert!(!posted.drain(&health, SHORT));
}

#[test]
fn interrupt_records_keep_coming_round_the_queue_several_times() {
    let (memory, queue, mut model, view) = queue(8);
    let (interrupts, health) = (Interrupts::new(queue, &memory).unwrap(), Health::default());
    interrupts.announce(&LINK, &health);
    for sequence in 1..=50 {
        assert!(!interrupts.pending());
        let record = IrqRecord { iir: [1, 2, 3, 4 + sequence as u32], sequence, time_ns: 1000 * sequence };
        let (head, chain) = model.pop().expect("the device always has a buffer");
        assert_eq!((chain.len(), chain[0].writable, chain[0].len), (1, true, 32));
        view.write(chain[0].addr, &record.to_bytes());
        model.push(head, 32);
        assert!(interrupts.pending());
        assert_eq!(interrupts.take(&LINK, &health), Some(record));
    }
    assert_eq!(interrupts.take(&LINK, &health), None);
    assert_eq!(health.counters.read().interrupts, 50);
}

#[test]
fn a_short_interrupt_record_is_a_loss() {
    let (memory, queue, mut model, _) = queue(8);
    let (interrupts, health) = (Interrupts::new(queue, &memory).unwrap(), Health::default());
    interrupts.announce(&LINK, &health);
    let (head, _) = model.pop().unwrap();
    model.push(head, 8);
    assert_eq!(interrupts.take(&LINK, &health), None);
    assert!(health.check().is_err());
}
