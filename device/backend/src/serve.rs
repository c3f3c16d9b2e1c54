//! One front end after another.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use vhost::vhost_user::{Error as VhostError, Listener};
use vhost_user_backend::{Error as DaemonError, ShutdownHandle, VhostUserDaemon};
use vm_memory::{GuestMemoryAtomic, GuestMemoryMmap};
use vmm_sys_util::eventfd::EventFd;

use crate::core::Device;
use crate::door::Door;
use crate::error::DeviceError;
use crate::settings::Settings;
use crate::socket::SocketFile;
use crate::timeline::WaitMode;
use crate::{poll as poll_thread, runtime, statistics};

/// A device that listens on its socket.
pub struct Server {
    device: Arc<Device>,
    socket: SocketFile,
    listener: UnixListener,
    stopper: Stopper,
    threads: Vec<JoinHandle<()>>,
    served: Arc<AtomicU64>,
}

impl Server {
    /// Starts the device's threads and listens at `socket`. `signals`, from [`crate::sys::ending_signals`], ends
    /// it when readable.
    ///
    /// # Errors
    /// Any [`DeviceError`].
    pub fn start(socket: &Path, settings: Settings, signals: Option<OwnedFd>) -> Result<Self, DeviceError> {
        let (socket, listener) = SocketFile::listen(socket)?;
        let (wait, cpu, realtime) = (settings.wait, settings.cpu, settings.realtime);
        let device = Arc::new(Device::new(settings).map_err(DeviceError::system("make a timer"))?);
        let wake = EventFd::new(libc::EFD_NONBLOCK | libc::EFD_CLOEXEC)
            .map_err(DeviceError::system("make an event"))?;
        let ended = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)
            .map_err(|e| DeviceError::system("make an event")(e.into()))?;
        let stopper = Stopper {
            device: Arc::clone(&device),
            wake: Arc::new(wake.try_clone().map_err(DeviceError::system("copy an event"))?),
            ended: Arc::new(ended),
            connection: Arc::default(),
        };
        let mut server =
            Self { device, socket, listener, stopper, threads: Vec::new(), served: Arc::default() };
        // In poll mode the CPU belongs to the thread that polls.
        let (spot, urgency) = if wait == WaitMode::Poll { (None, None) } else { (cpu, realtime) };
        let timeline = runtime::start(&server.device, wake, signals, server.stopper.clone(), spot, urgency)?;
        server.threads.push(timeline);
        if wait == WaitMode::Poll {
            server.threads.push(poll_thread::start(&server.device, cpu, realtime)?);
        }
        Ok(server)
    }

    /// A handle that ends [`run`](Self::run) from elsewhere.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// The device, to look at.
    #[must_use]
    pub const fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Serves front ends until told to stop. A front end that breaks the protocol loses its connection; the next
    /// one is served.
    ///
    /// # Errors
    /// The listening socket failed, or the vhost-user library could not start its threads.
    pub fn run(&self) -> Result<(), DeviceError> {
        tracing::info!("listening on {}", self.socket.path().display());
        let listener = self.listener.try_clone().map_err(DeviceError::system("copy the listener"))?;
        let mut listener = Listener::from(listener);
        while self.wait_for_front_end()? {
            self.serve_one(&mut listener)?;
        }
        Ok(())
    }

    /// Waits for a connection; `false` when told to stop.
    fn wait_for_front_end(&self) -> Result<bool, DeviceError> {
        loop {
            let ended = &*self.stopper.ended;
            let mut fds = [PollFd::new(&self.listener, PollFlags::IN), PollFd::new(ended, PollFlags::IN)];
            match poll(&mut fds, None) {
                Err(rustix::io::Errno::INTR) => continue,
                Err(e) => return Err(DeviceError::System { what: "wait for a front end", source: e.into() }),
                Ok(_) => {}
            }
            if !fds[1].revents().is_empty() {
                return Ok(false);
            }
            if !fds[0].revents().is_empty() {
                return Ok(true);
            }
        }
    }

    fn serve_one(&self, listener: &mut Listener) -> Result<(), DeviceError> {
        let number = self.served.fetch_add(1, Ordering::Relaxed) + 1;
        self.device.lock().world.clear_counts();
        let memory = GuestMemoryAtomic::new(GuestMemoryMmap::new());
        let door = Door::new(Arc::clone(&self.device));
        let closer = door.clone();
        // A daemon per connection: the library's handler can be owned only once.
        let mut daemon = VhostUserDaemon::new("vhost-user".into(), door, memory)
            .map_err(|e| DeviceError::Daemon(e.to_string()))?;
        if let Err(e) = daemon.start(listener) {
            tracing::warn!("front end {number} could not be served: {e}");
            return Ok(());
        }
        tracing::info!("front end {number} has come");
        self.stopper.set_connection(daemon.shutdown_handle());
        let end = daemon.wait();
        self.stopper.set_connection(None);
        match end {
            Ok(())
            | Err(DaemonError::HandleRequest(VhostError::Disconnected | VhostError::PartialMessage)) => {}
            Err(e) => tracing::warn!("front end {number} broke the protocol: {e}"),
        }
        closer.close();
        {
            let mut core = self.device.lock();
            tracing::info!("front end {number} has gone: {}", statistics::json(&core.world));
            // Before the workers are joined: one that spins leaves when there is nothing to spin for.
            core.guest_gone();
            core.set_memory(Arc::new(GuestMemoryMmap::new()));
        }
        // Dropping the daemon tells the workers to exit and joins them.
        drop(daemon);
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopper.stop();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the device panicked");
            }
        }
    }
}

/// Ends a [`Server`] from another thread.
#[derive(Clone)]
pub struct Stopper {
    device: Arc<Device>,
    wake: Arc<EventFd>,
    ended: Arc<OwnedFd>,
    connection: Arc<Mutex<Option<ShutdownHandle>>>,
}

impl Stopper {
    /// Ends the server: closes the connection that it serves, and listens no more.
    pub fn stop(&self) {
        self.device.published.stop.store(true, Ordering::Release);
        if let Err(e) = self.wake.write(1) {
            tracing::error!("cannot wake the timeline thread: {e}");
        }
        if let Err(e) = rustix::io::write(&*self.ended, &1_u64.to_ne_bytes()) {
            tracing::error!("cannot end the listening loop: {e}");
        }
        self.device.wake_poller();
        if let Some(connection) = self.connection().as_ref() {
            connection.shutdown();
        }
    }

    fn set_connection(&self, connection: Option<ShutdownHandle>) {
        let mut slot = self.connection();
        // Told to stop while the connection was being set up.
        if self.device.published.stop.load(Ordering::Acquire)
            && let Some(connection) = &connection
        {
            connection.shutdown();
        }
        *slot = connection;
    }

    fn connection(&self) -> std::sync::MutexGuard<'_, Option<ShutdownHandle>> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
