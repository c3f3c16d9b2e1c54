//! Queue 0: control requests. [`decode`] and [`encode`] are pure; [`serve`] connects them to the world.

use execlab_abi::wire::{
    CONTROL_PAYLOAD_MAX, CONTROL_REQUEST_SIZE, CONTROL_RESPONSE_SIZE, ControlRequest, ControlResponse,
    Identity, MAGIC, Op, QUEUE_CONTROL, Status, VERSION,
};
use vm_memory::GuestMemoryMmap;

use super::chain::{Chain, ChainError};
use super::rings::Rings;
use crate::statistics;
use crate::world::World;

/// What the guest asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command<'a> {
    /// [`Op::Identify`].
    Identify,
    /// [`Op::SetRegisterPage`] with its guest-physical address.
    SetRegisterPage(u64),
    /// [`Op::Reset`].
    Reset,
    /// [`Op::Statistics`].
    Statistics,
    /// [`Op::ClockPing`].
    ClockPing,
    /// [`Op::SelectProfile`] with its name.
    SelectProfile(&'a str),
    /// [`Op::ReadRegister`] with its BAR 0 offset.
    ReadRegister(u32),
}

/// An answer before it is put on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// How it ended.
    pub status: Status,
    /// The operation's result, or a reason in UTF-8.
    pub payload: Vec<u8>,
}

impl Reply {
    fn ok(payload: impl Into<Vec<u8>>) -> Self {
        Self { status: Status::Ok, payload: payload.into() }
    }

    fn refused(status: Status, reason: impl Into<String>) -> Self {
        Self { status, payload: reason.into().into_bytes() }
    }
}

/// Reads a request: the cookie, and the command or why it is refused. `None` if the bytes are too few for a head.
///
/// Bytes beyond the announced payload are ignored.
#[must_use]
pub fn decode(bytes: &[u8]) -> Option<(u64, Result<Command<'_>, Reply>)> {
    let (head, rest) = bytes.split_first_chunk::<CONTROL_REQUEST_SIZE>()?;
    let head = ControlRequest::from_bytes(head);
    Some((head.cookie, decode_command(head, rest)))
}

fn decode_command(head: ControlRequest, rest: &[u8]) -> Result<Command<'_>, Reply> {
    let op = Op::from_code(head.op)
        .ok_or_else(|| Reply::refused(Status::UnknownOp, format!("no operation {}", head.op)))?;
    let bad = |reason: &str| Reply::refused(Status::BadPayload, format!("{op:?}: {reason}"));
    let payload = usize::try_from(head.len)
        .ok()
        .filter(|len| *len <= CONTROL_PAYLOAD_MAX)
        .and_then(|len| rest.get(..len))
        .ok_or_else(|| bad("the payload is shorter than its announced length"))?;
    let empty = |command| if payload.is_empty() { Ok(command) } else { Err(bad("takes no payload")) };
    match op {
        Op::Identify => empty(Command::Identify),
        Op::Reset => empty(Command::Reset),
        Op::Statistics => empty(Command::Statistics),
        Op::ClockPing => empty(Command::ClockPing),
        Op::SetRegisterPage => {
            let address = payload.try_into().map_err(|_| bad("takes an address of 8 bytes"))?;
            Ok(Command::SetRegisterPage(u64::from_le_bytes(address)))
        }
        Op::ReadRegister => {
            let offset = payload.try_into().map_err(|_| bad("takes an offset of 4 bytes"))?;
            Ok(Command::ReadRegister(u32::from_le_bytes(offset)))
        }
        Op::SelectProfile => {
            Ok(Command::SelectProfile(std::str::from_utf8(payload).map_err(|_| bad("takes a UTF-8 name"))?))
        }
    }
}

/// The response as bytes, for a chain with room for `room`. `None` if not even a head fits.
#[must_use]
pub fn encode(reply: &Reply, cookie: u64, room: u64) -> Option<Vec<u8>> {
    let head = CONTROL_RESPONSE_SIZE as u64;
    if room < head {
        return None;
    }
    let fits = reply.payload.len() <= CONTROL_PAYLOAD_MAX && head + reply.payload.len() as u64 <= room;
    let (status, payload) = if fits { (reply.status, &reply.payload[..]) } else { (Status::NoRoom, &[][..]) };
    let len = u32::try_from(payload.len()).ok()?;
    let mut bytes = ControlResponse { status: status as u32, len, cookie }.to_bytes().to_vec();
    bytes.extend_from_slice(payload);
    Some(bytes)
}

/// Answers every request that is available. Whether there is more.
///
/// This is the only place in the door that formats and allocates, and it does so with the core's lock held: a
/// request delays a doorbell by some microseconds. Ask between measurements.
pub fn serve(rings: &Rings, world: &mut World) -> bool {
    let memory = world.memory();
    let pass = rings.serve(usize::from(QUEUE_CONTROL), &memory, |chain| {
        match chain.and_then(|chain| answer(&chain, world, &memory)) {
            Ok(written) => {
                world.counters.control_requests += 1;
                written
            }
            Err(e) => {
                world.malformed(QUEUE_CONTROL, e);
                0
            }
        }
    });
    if pass.bad {
        world.malformed(QUEUE_CONTROL, ChainError::BadRing);
    }
    pass.more
}

fn answer(chain: &Chain, world: &mut World, memory: &GuestMemoryMmap) -> Result<u32, ChainError> {
    let taken = world.now();
    chain.check(memory)?;
    let mut buffer = [0; CONTROL_REQUEST_SIZE + CONTROL_PAYLOAD_MAX];
    let length = chain.reader(memory).read(&mut buffer)?;
    let (cookie, command) = decode(&buffer[..length]).ok_or(ChainError::WrongSize)?;
    if chain.writable_bytes() < CONTROL_RESPONSE_SIZE as u64 {
        return Err(ChainError::WrongSize);
    }
    let reply = command.map_or_else(|refusal| refusal, |command| execute(command, world, taken));
    let bytes = encode(&reply, cookie, chain.writable_bytes()).ok_or(ChainError::WrongSize)?;
    chain.writer(memory).write(&bytes)?;
    u32::try_from(bytes.len()).map_err(|_| ChainError::WrongSize)
}

fn execute(command: Command<'_>, world: &mut World, taken: u64) -> Reply {
    match command {
        Command::Identify => Reply::ok(identity(world)),
        Command::SetRegisterPage(address) => match world.set_register_page(address) {
            Ok(()) => Reply::ok([]),
            Err(e) => Reply::refused(Status::BadPayload, e.to_string()),
        },
        Command::Reset => {
            world.reset();
            Reply::ok([])
        }
        Command::Statistics => Reply::ok(statistics::json(world)),
        Command::ClockPing => {
            let mut payload = taken.to_le_bytes().to_vec();
            payload.extend_from_slice(&world.now().to_le_bytes());
            Reply::ok(payload)
        }
        Command::SelectProfile(name) => match world.select_profile(name) {
            Ok(()) => Reply::ok([]),
            Err(e) => Reply::refused(Status::UnknownProfile, e.to_string()),
        },
        Command::ReadRegister(offset) => Reply::ok(world.read(offset).to_le_bytes()),
    }
}

fn identity(world: &World) -> Vec<u8> {
    let settings = world.settings();
    let bus = settings.bus(world.profile());
    let short = |ns: u64| u32::try_from(ns).unwrap_or(u32::MAX);
    let fixed = Identity {
        magic: MAGIC,
        version: VERSION,
        bus_read_ns: short(bus.read),
        bus_write_ns: short(bus.write),
        forcewake_ns: short(bus.forcewake),
        dilation_milli: (settings.dilation * 1000.0).round() as u32,
        seed: settings.seed,
    };
    let mut bytes = fixed.to_bytes().to_vec();
    let description = format!(
        "wait={}\nprofile={}\nseed={}\ndilation={}\nversion={}\n",
        settings.wait,
        world.profile().name,
        settings.seed,
        settings.dilation,
        env!("CARGO_PKG_VERSION"),
    );
    bytes.extend_from_slice(description.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(op: u32, len: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = ControlRequest { op, len, cookie: 9 }.to_bytes().to_vec();
        bytes.extend_from_slice(payload);
        bytes
    }

    #[test]
    fn every_operation_is_read_with_its_payload() {
        let cases: &[(Op, &[u8], Command<'_>)] = &[
            (Op::Identify, &[], Command::Identify),
            (Op::SetRegisterPage, &0x1_2345_6000_u64.to_le_bytes(), Command::SetRegisterPage(0x1_2345_6000)),
            (Op::Reset, &[], Command::Reset),
            (Op::Statistics, &[], Command::Statistics),
            (Op::ClockPing, &[], Command::ClockPing),
            (Op::SelectProfile, b"kbl-2018", Command::SelectProfile("kbl-2018")),
            (Op::SelectProfile, b"", Command::SelectProfile("")),
            (Op::ReadRegister, &0x2234_u32.to_le_bytes(), Command::ReadRegister(0x2234)),
        ];
        for (op, payload, command) in cases {
            let bytes = request(*op as u32, payload.len() as u32, payload);
            assert_eq!(decode(&bytes), Some((9, Ok(*command))), "{op:?}");
        }
    }

    #[test]
    fn less_than_a_head_is_no_request() {
        assert_eq!(decode(&[]), None);
        assert_eq!(decode(&[0; CONTROL_REQUEST_SIZE - 1]), None);
    }

    #[test]
    fn bytes_behind_the_payload_are_ignored_and_missing_ones_refused() {
        let status = |bytes: &[u8]| decode(bytes).map(|(_, c)| c.map_or_else(|r| r.status, |_| Status::Ok));
        assert_eq!(status(&request(Op::Reset as u32, 0, b"rubbish")), Some(Status::Ok));
        assert_eq!(status(&request(Op::ReadRegister as u32, 4, &[0; 3])), Some(Status::BadPayload));
        assert_eq!(status(&request(Op::ReadRegister as u32, u32::MAX, &[0; 4])), Some(Status::BadPayload));
        assert_eq!(status(&request(77, 0, &[])), Some(Status::UnknownOp));
    }

    #[test]
    fn a_reply_that_does_not_fit_says_so_if_that_fits() {
        let reply = Reply::ok(*b"12345678");
        let status = |room| encode(&reply, 5, room).map(|b| (b[0], b.len()));
        assert_eq!(status(24), Some((Status::Ok as u8, 24)));
        assert_eq!(status(23), Some((Status::NoRoom as u8, 16)));
        assert_eq!(status(16), Some((Status::NoRoom as u8, 16)));
        assert_eq!(status(15), None);
        let long = Reply::ok(vec![0; CONTROL_PAYLOAD_MAX + 1]);
        assert_eq!(encode(&long, 5, u64::MAX).unwrap()[0], Status::NoRoom as u8);
    }
}
