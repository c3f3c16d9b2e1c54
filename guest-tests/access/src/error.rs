//! What can go wrong on the way to a device, each with where it happened and what to do.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a device could not be reached, or did not answer as agreed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The plan is for the simulator, where there is no device to reach.
    #[error("the plan is for the simulator, which has a program of its own: execlab-sim")]
    Simulated,
    /// Memory to share with the device could not be had from the system.
    #[error("cannot get memory to share with the device: {what}: {source}")]
    Memory {
        /// What was tried, and what to do when it fails.
        what: String,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// The memory shared with the device is used up.
    #[error(
        "{asked} pages asked for, {left} left of the memory shared with the device; ask for more at opening"
    )]
    OutOfMemory {
        /// Pages asked for.
        asked: usize,
        /// Pages left.
        left: usize,
    },
    /// A descriptor (eventfd, memfd) could not be made or waited for.
    #[error("{what}: {source}")]
    Descriptor {
        /// What was tried.
        what: &'static str,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// Nobody accepts connections at the socket.
    #[error("cannot connect to {}: {source}; is execlab-device running, with this socket?", socket.display())]
    Connect {
        /// The socket.
        socket: PathBuf,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// The device refused a step of the vhost-user conversation.
    #[error(
        "vhost-user: {step} at {}: {source}; is it an execlab-device that listens there?",
        socket.display()
    )]
    Handshake {
        /// The step, in the protocol's words.
        step: &'static str,
        /// The socket.
        socket: PathBuf,
        /// What the protocol layer says.
        #[source]
        source: vhost::Error,
    },
    /// The device does not offer something without which it cannot be used.
    #[error("{place}: the device does not offer {feature}; this library needs it")]
    MissingFeature {
        /// Socket or PCI address.
        place: String,
        /// The feature, in the specification's words.
        feature: &'static str,
    },
    /// A control request, or a message of the vhost-user conversation, got no answer in time.
    #[error(
        "no answer to {op} within {after:?}; is the device process alive, and does no other client hold it?"
    )]
    NoAnswer {
        /// The request.
        op: &'static str,
        /// How long was waited.
        after: Duration,
    },
    /// The device refused a control request.
    #[error("the device refused {op}: {status} ({reason})")]
    Refused {
        /// The request.
        op: &'static str,
        /// The status, in words.
        status: &'static str,
        /// The device's own reason, when it gave one.
        reason: String,
    },
    /// An answer does not have the form that was agreed.
    #[error("the answer to {op} is malformed: {why}; device and test binary may be of different versions")]
    BadAnswer {
        /// The request.
        op: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// Whoever answers is no execlab device, or one of another version.
    #[error("not an execlab device of wire version {ours}: magic {magic:#010x}, version {theirs}")]
    NotExeclab {
        /// The magic it gave.
        magic: u32,
        /// Its wire version.
        theirs: u32,
        /// Our wire version.
        ours: u32,
    },
    /// The device does not answer any more; nothing that is asked of it will have an effect.
    #[error("the device is lost: {0}")]
    Lost(String),
    /// No PCI function answers as an execlab device.
    #[error("no PCI function {ids} that answers as execlab; is execlab-device attached to this VM?{tried}")]
    NoDevice {
        /// The ids looked for.
        ids: String,
        /// What was found instead, one line each.
        tried: String,
    },
    /// A request for a driver that this library does not know.
    #[error("unknown way to reach a PCI device: {0:?}; known are \"vfio-pci\" and \"uio_pci_generic\"")]
    UnknownDriver(String),
    /// A PCI function could not be taken over.
    #[error("{address}: {what}: {source}")]
    Pci {
        /// PCI address.
        address: String,
        /// What was tried, and what to do when it fails.
        what: String,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// A PCI function is there but cannot be used.
    #[error("{address}: {why}")]
    Unusable {
        /// PCI address.
        address: String,
        /// Why not, and what to do.
        why: String,
    },
    /// VFIO refused.
    #[error("{address}: {what}: {source}")]
    Vfio {
        /// PCI address.
        address: String,
        /// What was tried, and what to do when it fails.
        what: &'static str,
        /// What VFIO says.
        #[source]
        source: vfio_ioctls::VfioError,
    },
}
