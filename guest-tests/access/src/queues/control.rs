//! Queue 0: one request, one answer.

use std::hint;
use std::sync::Arc;
use std::time::{Duration, Instant};

use execlab_abi::wire::{
    CONTROL_PAYLOAD_MAX, CONTROL_REQUEST_SIZE, CONTROL_RESPONSE_SIZE, ControlRequest, ControlResponse, Op,
    QUEUE_CONTROL, Status,
};

use crate::Error;
use crate::health::Health;
use crate::link::Link;
use crate::lock::PiLock;
use crate::memory::{PAGE, Pages, SharedMemory};
use crate::virtqueue::{Segment, VirtQueue};

/// How long the answer is spun for, so that a clock ping is not blurred by a sleep.
const SPIN: Duration = Duration::from_micros(500);
/// How long to sleep between looks after that. Control requests are no hot path, and where the device has one
/// interrupt only, that one belongs to queue 2.
const NAP: Duration = Duration::from_micros(50);
/// First cookie. Its upper half is not a sector of any disk: should the function be a real virtio-blk device,
/// it sees a request far beyond its end and refuses.
const FIRST_COOKIE: u64 = 0x454c_4142_0000_0000;

/// The control queue.
#[derive(Debug)]
pub(crate) struct Control {
    timeout: Duration,
    inner: PiLock<Inner>,
}

#[derive(Debug)]
struct Inner {
    queue: VirtQueue,
    /// Page 0 takes the request, page 1 the response.
    buffers: Pages,
    cookie: u64,
}

impl Control {
    pub(crate) fn new(
        queue: VirtQueue,
        memory: &Arc<SharedMemory>,
        timeout: Duration,
    ) -> Result<Self, Error> {
        let buffers = memory.alloc(2)?;
        Ok(Self { timeout, inner: PiLock::new(Inner { queue, buffers, cookie: FIRST_COOKIE }) })
    }

    /// Sends `op` with `payload` and copies the answer's payload into `answer`; returns its length, which is at
    /// most that of `answer`.
    ///
    /// # Errors
    /// When the device is lost, does not answer in time, refuses, or answers malformed.
    pub(crate) fn call(
        &self,
        link: &Link,
        health: &Health,
        op: Op,
        payload: &[u8],
        answer: &mut [u8],
    ) -> Result<usize, Error> {
        health.check()?;
        if payload.len() > CONTROL_PAYLOAD_MAX {
            return Err(refused(op, Status::BadPayload, "longer than a page"));
        }
        let mut inner = self.inner.lock();
        inner.cookie += 1;
        inner.send(link, health, op, payload);
        let written = match inner.wait_used(op, self.timeout) {
            Ok(written) => written,
            Err(error) => {
                // The answer may still come, into a buffer that would be another request's by then.
                health.lose(|| error.to_string());
                return Err(error);
            }
        };
        inner.read_answer(op, written, answer)
    }
}

impl Inner {
    fn send(&mut self, link: &Link, health: &Health, op: Op, payload: &[u8]) {
        let head = ControlRequest { op: op as u32, len: payload.len() as u32, cookie: self.cookie };
        self.buffers.copy_in(0, &head.to_bytes());
        self.buffers.copy_in(CONTROL_REQUEST_SIZE, payload);
        let request = Segment {
            addr: self.buffers.addr(0),
            len: (CONTROL_REQUEST_SIZE + payload.len()) as u32,
            writable: false,
        };
        let response = Segment { addr: self.buffers.addr(PAGE), len: PAGE as u32, writable: true };
        // One request at a time in a queue of more than two descriptors: there are always two.
        if let (Some(first), Some(second)) = (self.queue.reserve(), self.queue.reserve()) {
            self.queue.post(&[(first, request), (second, response)]);
        }
        if self.queue.publish() {
            link.notify(QUEUE_CONTROL, health);
        }
    }

    fn wait_used(&mut self, op: Op, timeout: Duration) -> Result<usize, Error> {
        let start = Instant::now();
        loop {
            match self.queue.take_used() {
                Ok(Some(used)) => return Ok(used.len as usize),
                Ok(None) => {}
                Err(error) => return Err(malformed(op, error.to_string())),
            }
            let waited = start.elapsed();
            if waited > timeout {
                return Err(Error::NoAnswer { op: name(op), after: timeout });
            }
            if waited > SPIN {
                std::thread::sleep(NAP);
            } else {
                hint::spin_loop();
            }
        }
    }

    fn read_answer(&self, op: Op, written: usize, answer: &mut [u8]) -> Result<usize, Error> {
        let mut head = [0; CONTROL_RESPONSE_SIZE];
        if !(CONTROL_RESPONSE_SIZE..=PAGE).contains(&written) {
            return Err(malformed(op, format!("{written} bytes written")));
        }
        self.buffers.copy_out(PAGE, &mut head);
        let head = ControlResponse::from_bytes(&head);
        let len = head.len as usize;
        if head.cookie != self.cookie {
            return Err(malformed(op, format!("cookie {:#x} instead of {:#x}", head.cookie, self.cookie)));
        }
        if len > written - CONTROL_RESPONSE_SIZE {
            return Err(malformed(op, format!("payload of {len} bytes in {written} written")));
        }
        let payload = PAGE + CONTROL_RESPONSE_SIZE;
        match Status::from_code(head.status) {
            Some(Status::Ok) if len <= answer.len() => {
                self.buffers.copy_out(payload, &mut answer[..len]);
                Ok(len)
            }
            Some(Status::Ok) => {
                Err(malformed(op, format!("payload of {len} bytes, {} expected", answer.len())))
            }
            Some(status) => {
                let mut reason = vec![0; len];
                self.buffers.copy_out(payload, &mut reason);
                Err(refused(op, status, &String::from_utf8_lossy(&reason)))
            }
            None => Err(malformed(op, format!("unknown status {}", head.status))),
        }
    }
}

fn malformed(op: Op, why: String) -> Error {
    Error::BadAnswer { op: name(op), why }
}

fn refused(op: Op, status: Status, reason: &str) -> Error {
    let status = match status {
        Status::Ok => "done",
        Status::UnknownOp => "unknown request",
        Status::BadPayload => "bad payload",
        Status::NoRoom => "the answer does not fit a page",
        Status::UnknownProfile => "unknown profile",
    };
    Error::Refused { op: name(op), status, reason: reason.to_owned() }
}

fn name(op: Op) -> &'static str {
    match op {
        Op::Identify => "Identify",
        Op::SetRegisterPage => "SetRegisterPage",
        Op::Reset => "Reset",
        Op::Statistics => "Statistics",
        Op::ClockPing => "ClockPing",
        Op::SelectProfile => "SelectProfile",
        Op::ReadRegister => "ReadRegister",
    }
}
