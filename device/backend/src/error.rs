//! What keeps the device process from starting or serving.

use std::io;
use std::path::PathBuf;

/// Why the device cannot start or go on. Guest-caused trouble is never among these: that is counted, shown in
/// the error registers, and survived.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The socket path does not fit `sockaddr_un`.
    #[error("socket path {} is {length} bytes long; Unix sockets take at most {limit}: choose a shorter one", .path.display())]
    PathTooLong {
        /// The path.
        path: PathBuf,
        /// Its length in bytes.
        length: usize,
        /// The longest that works.
        limit: usize,
    },
    /// Another process listens there.
    #[error("{} is in use: another process listens on it; stop that one or choose another path", .0.display())]
    SocketInUse(PathBuf),
    /// Something else lies there.
    #[error("{} exists and is not a socket; it is left alone, choose another path", .0.display())]
    NotASocket(PathBuf),
    /// The socket could not be made, tested or removed.
    #[error("cannot {what} socket {}: {source}", .path.display())]
    Socket {
        /// What was tried.
        what: &'static str,
        /// The path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The profile is no good.
    #[error(transparent)]
    Profile(#[from] execlab_profile::ProfileError),
    /// The poll thread could not have its CPU.
    #[error("cannot run on CPU {cpu}: {source}")]
    Cpu {
        /// The CPU's number.
        cpu: usize,
        /// What the system said.
        source: io::Error,
    },
    /// SCHED_FIFO was asked for and refused.
    #[error(
        "cannot take SCHED_FIFO priority {priority}: {source}; it needs root, CAP_SYS_NICE or RLIMIT_RTPRIO"
    )]
    Realtime {
        /// The priority.
        priority: u8,
        /// What the system said.
        source: io::Error,
    },
    /// A system resource was refused.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The vhost-user library refused to start.
    #[error("cannot start the vhost-user daemon: {0}")]
    Daemon(String),
}

impl DeviceError {
    /// Wraps what the system said about `what`.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}
