//! Descriptor chains, control messages and ring indexes into the device process's door.

use arbitrary::{Result, Unstructured};
use execlab_abi::engine::{ENGINE_COUNT, Engine};
use execlab_abi::mi;
use execlab_abi::wire::{ControlRequest, QUEUE_COUNT, QUEUE_SIZE};

use crate::hostile::bus::Bus as _;
use crate::hostile::door::{BUFFER_PAGES, BUFFERS, Descriptor, Door, NEXT, PAGES, RINGS, WRITE};
use crate::hostile::guest::{self, Recovery};
use crate::hostile::{layout, pick};
use crate::{Reached, Runner, Target, Verdict};

/// Most steps in a case.
const MAX_STEPS: usize = 32;

/// A guest whose driver has gone mad, behind a front end that has not.
pub const TARGET: Target = Target {
    name: "wire",
    about: "descriptor chains, control messages and ring indexes into the device process's door",
    max_len: 1024,
    labels: &LABELS,
    seeds: super::gpu::seeds,
    runner,
};

/// What is wrong with a chain, by `ChainError`'s numbers, and the answers to control requests by `Status`'s.
const LABELS: [&str; 16] = [
    "",
    "head outside the table",
    "endless chain",
    "too many segments",
    "too many bytes",
    "readable after writable",
    "not memory",
    "unexpected writable",
    "unexpected readable",
    "wrong size",
    "bad ring",
    "answered: done",
    "answered: unknown operation",
    "answered: bad payload",
    "answered: no room",
    "answered: unknown profile",
];
/// The label of the first answer.
const ANSWERS: usize = 11;

fn runner() -> Runner {
    let mut door = Door::new();
    Box::new(move |input| match &mut door {
        Ok(door) => case(door, input),
        Err(e) => Err(format!("no device: {e}")),
    })
}

fn case(door: &mut Door, input: &[u8]) -> Verdict {
    let (choice, bytes) = input.split_first().map_or((0, input), |(first, rest)| (usize::from(*first), rest));
    begin(door, choice & 4 != 0);
    if choice & 0x30 == 0 {
        // An interrupt that waits for a buffer: without one, nobody looks at the interrupt queue.
        guest::set_up(door);
        guest::fill_ring(door, 0, &[mi::USER_INTERRUPT, mi::NOOP]);
        guest::submit(door, Engine::Bcs0, guest::descriptor(0), execlab_abi::descriptor::Descriptor::NULL);
        door.finish()?;
    }
    let mut reached = Reached::default();
    // Running out of bytes is not wrong.
    let _ = play(door, &mut Unstructured::new(bytes), &mut reached);
    begin(door, choice & 8 != 0);
    // The full reset clears ten megabytes, so few cases end with it.
    let recovery = if choice >> 4 == 7 { Recovery::Full } else { Recovery::Engines };
    let served = guest::serve(door, Engine::ALL[choice % ENGINE_COUNT], recovery);
    door.trouble().map_or(served, Err)?;
    Ok(reached)
}

/// Empty memory and rings from their beginning. The register page is taken away first, or its copies would land in
/// what a new guest uses for something else.
fn begin(door: &mut Door, event_idx: bool) {
    door.restart_rings(event_idx);
    door.take_register_page();
    door.forget();
    door.restart_rings(event_idx);
}

fn play(door: &mut Door, u: &mut Unstructured<'_>, reached: &mut Reached) -> Result<()> {
    for _ in 0..MAX_STEPS {
        if u.is_empty() {
            break;
        }
        let queue = u.int_in_range(0..=QUEUE_COUNT - 1)?;
        step(door, queue, u)?;
        if u.ratio(2, 3)? {
            door.kick(queue);
            note(door, reached);
        }
    }
    Ok(())
}

/// Notes what the device made of it.
fn note(door: &Door, reached: &mut Reached) {
    let error = door.chain_error() as usize;
    if (1..ANSWERS).contains(&error) {
        reached.name(error);
    }
    // Answers lie where a step has asked for them, behind the cookie that it has put there.
    for page in 0..BUFFER_PAGES {
        let [status, _, cookie] = [0, 4, 8].map(|at| door.get(BUFFERS + page, at));
        let status = status as usize;
        if cookie == COOKIE && ANSWERS + status < LABELS.len() {
            reached.name(ANSWERS + status);
            reached.hash((page as usize * 64 + status) as u64);
        }
    }
}

/// Tells a response from what a guest has put into the same page.
const COOKIE: u32 = 0x0c00_c1e5;

fn step(door: &mut Door, queue: u16, u: &mut Unstructured<'_>) -> Result<()> {
    match u.int_in_range(0..=9)? {
        0..=2 => {
            let head = chain(door, queue, u)?;
            door.offer(queue, head);
        }
        3 | 4 => request(door, u)?,
        5 | 6 => posted(door, u)?,
        7 => {
            let index = if u.arbitrary()? { u.arbitrary()? } else { u.int_in_range(0..=QUEUE_SIZE + 1)? };
            door.set_available(queue, index);
        }
        8 => door.offer(queue, u.arbitrary()?),
        _ => {
            // Anything anywhere in rings and buffers.
            let page = u.int_in_range(RINGS..=PAGES)?;
            let at = u64::from(u.int_in_range(0..=0x1ff_u32)?) * 2;
            door.store(layout::gpa(page) + at, &pick::value(u)?.to_le_bytes());
        }
    }
    Ok(())
}

/// Writes a chain and gives its head. Most are what the queue expects, or nearly.
fn chain(door: &Door, queue: u16, u: &mut Unstructured<'_>) -> Result<u16> {
    let head = u.int_in_range(0..=7)?;
    // Now and then longer than any chain may be.
    let count = if u.ratio(1, 16)? { 70 } else { u.int_in_range(1..=4)? };
    for n in 0..count {
        let address = match u.int_in_range(0..=7)? {
            0 => u.arbitrary()?,
            1 => layout::gpa(PAGES) - u64::from(u.int_in_range(0..=64_u32)?),
            2 => u64::MAX - u64::from(u.int_in_range(0..=64_u32)?),
            _ => layout::gpa(BUFFERS + u.int_in_range(0..=BUFFER_PAGES - 1)?),
        };
        let length = match u.int_in_range(0..=7)? {
            0 => pick::value(u)?,
            1 => 0,
            _ => 8 * u.int_in_range(0..=8)?,
        };
        let write = if queue == 1 { u.ratio(1, 8)? } else { n > 0 || queue == 2 };
        let mut flags = if write { WRITE } else { 0 } | if n + 1 < count { NEXT } else { 0 };
        let mut next = head + n + 1;
        if u.ratio(1, 16)? {
            flags = u.arbitrary()?;
            next = u.int_in_range(0..=QUEUE_SIZE)?;
        }
        door.describe(queue, head + n, Descriptor { address, length, flags, next });
    }
    Ok(head)
}

/// Offers a control request that is well formed as a chain.
fn request(door: &mut Door, u: &mut Unstructured<'_>) -> Result<()> {
    let op = u.int_in_range(0..=8)?;
    let payload: Vec<u8> = match u.int_in_range(0..=4)? {
        0 => vec![],
        1 => pick::register(u)?.to_le_bytes().to_vec(),
        2 => layout::gpa(u.int_in_range(0..=PAGES)?).to_le_bytes().to_vec(),
        3 => b"kbl-2018"[..u.int_in_range(0..=8)?].to_vec(),
        _ => u.arbitrary::<[u8; 9]>()?.to_vec(),
    };
    // A full reset, or a change of profile, costs milliseconds: one for many requests.
    let op = if matches!(op, 3 | 6) && u.ratio(15, 16)? && payload != b"kbl" { 7 } else { op };
    let len = if u.ratio(1, 8)? { pick::value(u)? } else { payload.len() as u32 };
    let head = ControlRequest { op, len, cookie: u64::from(COOKIE) }.to_bytes();
    door.store(layout::gpa(BUFFERS), &[&head, payload.as_slice()].concat());
    let room = if u.ratio(1, 4)? { u.int_in_range(0..=40)? } else { 4096 };
    let address = layout::gpa(BUFFERS + 1);
    let length = (head.len() + payload.len()) as u32;
    door.describe(0, 0, Descriptor { address: layout::gpa(BUFFERS), length, flags: NEXT, next: 1 });
    door.describe(0, 1, Descriptor { address, length: room, flags: WRITE, next: 0 });
    door.offer(0, 0);
    door.kick(0);
    Ok(())
}

/// Offers a chain of posted writes that is well formed as a chain.
fn posted(door: &mut Door, u: &mut Unstructured<'_>) -> Result<()> {
    let count = u.int_in_range(1..=8)?;
    for n in 0..count {
        let (offset, value) = (pick::register(u)?, pick::value(u)?);
        let at = 8 * n;
        door.put(BUFFERS + 2, at, offset);
        door.put(BUFFERS + 2, at + 4, value);
    }
    let address = layout::gpa(BUFFERS + 2);
    door.describe(1, 0, Descriptor { address, length: 8 * count, flags: 0, next: 0 });
    door.offer(1, 0);
    door.kick(1);
    Ok(())
}
