//! A limit on how long a conversation over a socket may take, for a library that reads until it gets something.

use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Shuts a socket down when its time is over, unless dropped before.
#[derive(Debug)]
pub(crate) struct Watchdog {
    fired: Arc<AtomicBool>,
    /// Dropped to call the thread off.
    alive: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    pub(crate) fn new(socket: &UnixStream, limit: Duration) -> io::Result<Self> {
        let socket = socket.try_clone()?;
        let (alive, called_off) = channel::<()>();
        let fired = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&fired);
        let watch = move || {
            if called_off.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                flag.store(true, Ordering::Release);
                // Fails only where there is no connection left, which ends the conversation as well.
                let _ = socket.shutdown(Shutdown::Both);
            }
        };
        let thread = thread::Builder::new().name("watchdog".into()).spawn(watch)?;
        Ok(Self { fired, alive: Some(alive), thread: Some(thread) })
    }

    /// Whether the time was over.
    pub(crate) fn fired(&self) -> bool {
        self.fired.load(Ordering::Acquire)
    }

    /// Calls it off; whether that was too late.
    pub(crate) fn call_off(mut self) -> bool {
        self.end();
        self.fired()
    }

    fn end(&mut self) {
        self.alive = None;
        if let Some(thread) = self.thread.take() {
            // It cannot panic.
            let _ = thread.join();
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn a_silent_peer_ends_the_read_and_a_watchdog_called_off_does_nothing() {
        let (mut here, _there) = UnixStream::pair().unwrap();
        assert!(!Watchdog::new(&here, Duration::from_secs(3600)).unwrap().call_off());
        let watchdog = Watchdog::new(&here, Duration::from_millis(5)).unwrap();
        assert_eq!(here.read(&mut [0]).unwrap(), 0);
        assert!(watchdog.fired());
    }
}
