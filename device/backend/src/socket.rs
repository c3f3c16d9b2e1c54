//! The listening socket's file: made with care for what lies there, removed when it is ours.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::DeviceError;

/// Longest path of a Unix socket in bytes: `sun_path` holds 108 with the terminating zero.
pub const PATH_LIMIT: usize = 107;

/// Device, inode and time of birth: an inode's number alone is soon used again.
type FileId = (u64, u64, Option<SystemTime>);

fn file_id(meta: &Metadata) -> FileId {
    (meta.dev(), meta.ino(), meta.created().ok())
}

/// A socket file that is removed when dropped, unless somebody has put another in its place.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    id: FileId,
}

impl SocketFile {
    /// Listens at `path`. A socket on which nobody listens any more is replaced.
    ///
    /// # Errors
    /// [`DeviceError::PathTooLong`], [`DeviceError::SocketInUse`], [`DeviceError::NotASocket`] or
    /// [`DeviceError::Socket`].
    pub fn listen(path: &Path) -> Result<(Self, UnixListener), DeviceError> {
        let failed = |what| move |source| DeviceError::Socket { what, path: path.to_owned(), source };
        let length = path.as_os_str().len();
        if length > PATH_LIMIT {
            return Err(DeviceError::PathTooLong { path: path.to_owned(), length, limit: PATH_LIMIT });
        }
        remove_stale(path)?;
        let listener = UnixListener::bind(path).map_err(failed("make"))?;
        let meta = std::fs::symlink_metadata(path).map_err(failed("look at"))?;
        Ok((Self { path: path.to_owned(), id: file_id(&meta) }, listener))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let ours = std::fs::symlink_metadata(&self.path).is_ok_and(|m| file_id(&m) == self.id);
        if ours && let Err(e) = std::fs::remove_file(&self.path) {
            tracing::warn!("cannot remove {}: {e}", self.path.display());
        }
    }
}

fn remove_stale(path: &Path) -> Result<(), DeviceError> {
    let failed = |what| move |source| DeviceError::Socket { what, path: path.to_owned(), source };
    match std::fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(failed("look at")(e)),
        Ok(meta) if !meta.file_type().is_socket() => return Err(DeviceError::NotASocket(path.to_owned())),
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(DeviceError::SocketInUse(path.to_owned())),
        Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {
            tracing::info!("replacing the stale socket {}", path.display());
            std::fs::remove_file(path).map_err(failed("replace stale"))
        }
        Err(e) => Err(failed("test")(e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_path_is_made_and_removed_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let (file, _listener) = SocketFile::listen(&path).unwrap();
        assert!(path.exists());
        drop(file);
        assert!(!path.exists());
    }

    #[test]
    fn a_stale_socket_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        SocketFile::listen(&path).unwrap();
    }

    #[test]
    fn a_live_socket_is_refused_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let _live = UnixListener::bind(&path).unwrap();
        assert!(matches!(SocketFile::listen(&path), Err(DeviceError::SocketInUse(_))));
        assert!(path.exists());
    }

    #[test]
    fn a_plain_file_is_refused_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        std::fs::write(&path, "keep me").unwrap();
        assert!(matches!(SocketFile::listen(&path), Err(DeviceError::NotASocket(_))));
        assert_eq!(std::fs::read(&path).unwrap(), b"keep me");
    }

    #[test]
    fn a_path_of_108_bytes_is_refused_and_one_of_107_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let fill = |length: usize| {
            let room = length - dir.path().as_os_str().len() - 1;
            dir.path().join("x".repeat(room))
        };
        assert!(matches!(
            SocketFile::listen(&fill(108)),
            Err(DeviceError::PathTooLong { length: 108, limit: 107, .. })
        ));
        SocketFile::listen(&fill(107)).unwrap();
    }

    #[test]
    fn a_socket_that_somebody_replaced_is_not_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let (file, _listener) = SocketFile::listen(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let _other = UnixListener::bind(&path).unwrap();
        drop(file);
        assert!(path.exists());
    }
}
