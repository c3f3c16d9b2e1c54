//! Door 1 on the wire: a virtio device with three queues. All fields are little-endian.
//!
//! * [`QUEUE_CONTROL`]: one request ([`ControlRequest`] plus payload) in device-readable descriptors, one
//!   response ([`ControlResponse`] plus payload) in device-writable ones.
//! * [`QUEUE_MMIO`]: posted writes. A chain is device-readable and holds any number of [`PostedWrite`]s, applied
//!   in order, chain after chain: one ordered stream, as a PCIe link is. The used length is 0, and a used entry
//!   means "applied".
//! * [`QUEUE_IRQ`]: a chain is device-writable and takes one [`IrqRecord`]. The device delivers what the GT
//!   interrupt handler's first half would find, and acknowledges it in the same step: identities are moved out
//!   of IIR into the record, so none is lost and none is seen twice. Identities that find no chain stay in IIR.

/// Index of the control queue.
pub const QUEUE_CONTROL: u16 = 0;
/// Index of the posted-write queue.
pub const QUEUE_MMIO: u16 = 1;
/// Index of the interrupt queue.
pub const QUEUE_IRQ: u16 = 2;
/// Number of queues.
pub const QUEUE_COUNT: u16 = 3;
/// Size of each queue in descriptors.
pub const QUEUE_SIZE: u16 = 256;

/// Version of everything in this module; [`Identity::version`].
pub const VERSION: u32 = 1;
/// "ELAB": [`Identity::magic`].
pub const MAGIC: u32 = 0x4241_4c45;
/// virtio device type under `vhost-user-test-device-pci`: 39 (audio policy) has a name in QEMU's table and no
/// Linux driver.
pub const VIRTIO_ID: u16 = 39;
/// PCI vendor of virtio devices.
pub const PCI_VENDOR: u16 = 0x1af4;
/// PCI device ids a guest may find the device under: the test device with [`VIRTIO_ID`], and virtio-blk in its
/// non-transitional form as a carrier.
pub const PCI_DEVICES: [u16; 2] = [0x1040 + VIRTIO_ID, 0x1042];

/// One posted MMIO write: a register or half a GGTT entry, by BAR 0 offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct PostedWrite {
    /// BAR 0 offset, dword aligned.
    pub offset: u32,
    /// Value.
    pub value: u32,
}

impl PostedWrite {
    /// Bytes on the wire.
    pub const SIZE: usize = 8;

    /// As bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; Self::SIZE] {
        let o = self.offset.to_le_bytes();
        let v = self.value.to_le_bytes();
        [o[0], o[1], o[2], o[3], v[0], v[1], v[2], v[3]]
    }

    /// From bytes.
    #[must_use]
    pub const fn from_bytes(b: [u8; Self::SIZE]) -> Self {
        Self {
            offset: u32::from_le_bytes([b[0], b[1], b[2], b[3]]),
            value: u32::from_le_bytes([b[4], b[5], b[6], b[7]]),
        }
    }
}

/// What a control request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Op {
    /// Who are you? No payload; response: [`Identity`].
    Identify = 1,
    /// Payload: guest-physical address (u64) of a page that takes the register mirror, see [`crate::mirror`].
    /// 0 takes it away. Response: empty.
    SetRegisterPage = 2,
    /// Full reset of the GPU, as after power-on; the register page stays. Response: empty.
    Reset = 3,
    /// No payload; response: UTF-8 JSON object of counters.
    Statistics = 4,
    /// No payload; response: device time in nanoseconds (u64) when the request was taken, u64 when answered.
    ClockPing = 5,
    /// Payload: UTF-8 name of a profile that ships with the device, or empty for the one it was started with.
    /// Response: empty. Takes effect with a full reset.
    SelectProfile = 6,
    /// Payload: register offset (u32); response: value (u32) as an MMIO read would give it now.
    ReadRegister = 7,
}

impl Op {
    /// The request with that number.
    #[must_use]
    pub const fn from_code(code: u32) -> Option<Self> {
        Some(match code {
            1 => Self::Identify,
            2 => Self::SetRegisterPage,
            3 => Self::Reset,
            4 => Self::Statistics,
            5 => Self::ClockPing,
            6 => Self::SelectProfile,
            7 => Self::ReadRegister,
            _ => return None,
        })
    }
}

/// Head of a control request: `op`, `payload length`, `cookie`.
pub const CONTROL_REQUEST_SIZE: usize = 16;
/// Head of a control response: `status`, `payload length`, `cookie`.
pub const CONTROL_RESPONSE_SIZE: usize = 16;
/// Longest payload either way, in bytes.
pub const CONTROL_PAYLOAD_MAX: usize = 4096 - CONTROL_RESPONSE_SIZE;

/// Head of a control request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlRequest {
    /// [`Op`] as a number.
    pub op: u32,
    /// Bytes of payload that follow.
    pub len: u32,
    /// Returned in the response.
    pub cookie: u64,
}

impl ControlRequest {
    /// As bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; CONTROL_REQUEST_SIZE] {
        head_bytes(self.op, self.len, self.cookie)
    }

    /// From bytes.
    #[must_use]
    pub fn from_bytes(b: &[u8; CONTROL_REQUEST_SIZE]) -> Self {
        let (op, len, cookie) = head_fields(b);
        Self { op, len, cookie }
    }
}

/// How a control request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// No such [`Op`].
    UnknownOp = 1,
    /// The payload has the wrong length or content; the response's payload is a UTF-8 reason.
    BadPayload = 2,
    /// The response would not fit the writable part of the chain.
    NoRoom = 3,
    /// No such profile; the response's payload is a UTF-8 reason.
    UnknownProfile = 4,
}

impl Status {
    /// The status with that number.
    #[must_use]
    pub const fn from_code(code: u32) -> Option<Self> {
        Some(match code {
            0 => Self::Ok,
            1 => Self::UnknownOp,
            2 => Self::BadPayload,
            3 => Self::NoRoom,
            4 => Self::UnknownProfile,
            _ => return None,
        })
    }
}

/// Head of a control response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlResponse {
    /// [`Status`] as a number.
    pub status: u32,
    /// Bytes of payload that follow.
    pub len: u32,
    /// The request's cookie.
    pub cookie: u64,
}

impl ControlResponse {
    /// As bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; CONTROL_RESPONSE_SIZE] {
        head_bytes(self.status, self.len, self.cookie)
    }

    /// From bytes.
    #[must_use]
    pub fn from_bytes(b: &[u8; CONTROL_RESPONSE_SIZE]) -> Self {
        let (status, len, cookie) = head_fields(b);
        Self { status, len, cookie }
    }
}

fn head_bytes(a: u32, b: u32, c: u64) -> [u8; 16] {
    let mut out = [0; 16];
    out[..4].copy_from_slice(&a.to_le_bytes());
    out[4..8].copy_from_slice(&b.to_le_bytes());
    out[8..].copy_from_slice(&c.to_le_bytes());
    out
}

fn head_fields(b: &[u8; 16]) -> (u32, u32, u64) {
    (u32_at(b, 0), u32_at(b, 4), u64_at(b, 8))
}

fn u32_at(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}

fn u64_at(b: &[u8], at: usize) -> u64 {
    u64::from(u32_at(b, at)) | (u64::from(u32_at(b, at + 4)) << 32)
}

/// Payload of [`Op::Identify`]: fixed fields, then a UTF-8 description (`key=value`, one a line: `wait`,
/// `profile`, `seed`, `dilation`, `version`).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Identity {
    /// [`MAGIC`].
    pub magic: u32,
    /// [`VERSION`].
    pub version: u32,
    /// Cost of one MMIO read for the driver, in nanoseconds, already multiplied by the dilation.
    pub bus_read_ns: u32,
    /// Cost of one MMIO write for the driver, in nanoseconds, already dilated.
    pub bus_write_ns: u32,
    /// Cost of taking forcewake, in nanoseconds, already dilated.
    pub forcewake_ns: u32,
    /// Dilation in thousandths (1000 = none).
    pub dilation_milli: u32,
    /// The device's seed.
    pub seed: u64,
}

impl Identity {
    /// Bytes of the fixed fields.
    pub const SIZE: usize = 32;

    /// As bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut out = [0; Self::SIZE];
        let words = [
            self.magic,
            self.version,
            self.bus_read_ns,
            self.bus_write_ns,
            self.forcewake_ns,
            self.dilation_milli,
        ];
        for (at, word) in words.into_iter().enumerate() {
            out[4 * at..4 * at + 4].copy_from_slice(&word.to_le_bytes());
        }
        out[24..].copy_from_slice(&self.seed.to_le_bytes());
        out
    }

    /// From bytes.
    #[must_use]
    pub fn from_bytes(b: &[u8; Self::SIZE]) -> Self {
        Self {
            magic: u32_at(b, 0),
            version: u32_at(b, 4),
            bus_read_ns: u32_at(b, 8),
            bus_write_ns: u32_at(b, 12),
            forcewake_ns: u32_at(b, 16),
            dilation_milli: u32_at(b, 20),
            seed: u64_at(b, 24),
        }
    }
}

/// One delivered interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IrqRecord {
    /// Identities moved out of the four GT banks' IIR.
    pub iir: [u32; crate::irq::BANKS],
    /// Counts records since reset, from 1.
    pub sequence: u64,
    /// Device time of delivery in nanoseconds.
    pub time_ns: u64,
}

impl IrqRecord {
    /// Bytes on the wire.
    pub const SIZE: usize = 32;

    /// As bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut out = [0; Self::SIZE];
        for (at, word) in self.iir.into_iter().enumerate() {
            out[4 * at..4 * at + 4].copy_from_slice(&word.to_le_bytes());
        }
        out[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        out[24..].copy_from_slice(&self.time_ns.to_le_bytes());
        out
    }

    /// From bytes.
    #[must_use]
    pub fn from_bytes(b: &[u8; Self::SIZE]) -> Self {
        Self {
            iir: [u32_at(b, 0), u32_at(b, 4), u32_at(b, 8), u32_at(b, 12)],
            sequence: u64_at(b, 16),
            time_ns: u64_at(b, 24),
        }
    }
}
