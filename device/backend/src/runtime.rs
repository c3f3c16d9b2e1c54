//! The timeline thread: an event-manager loop that waits for the alarm, for a word from other threads, and for
//! signals. A control socket for people will be one more subscriber here.

use std::io::Read as _;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use event_manager::{EventManager, EventOps, Events, MutEventSubscriber, SubscriberOps as _};
use vmm_sys_util::epoll::EventSet;
use vmm_sys_util::eventfd::EventFd;

use crate::core::Device;
use crate::error::DeviceError;
use crate::serve::Stopper;
use crate::spin;
use crate::thread_place::place;

type Subscriber = Box<dyn MutEventSubscriber + Send>;

/// Starts the timeline thread and waits until it has its CPU and priority, which in poll mode go to the poll
/// thread instead. `signals` becomes readable when the process is to end.
///
/// # Errors
/// What [`place`] says, or that a resource was refused.
pub fn start(
    device: &Arc<Device>,
    wake: EventFd,
    signals: Option<OwnedFd>,
    stopper: Stopper,
    cpu: Option<usize>,
    realtime: Option<u8>,
) -> Result<JoinHandle<()>, DeviceError> {
    let alarm = device.lock().alarm.as_raw_fd();
    let mut subscribers: Vec<Subscriber> = vec![
        Box::new(AlarmSubscriber { device: Arc::clone(device), alarm }),
        Box::new(WakeSubscriber { wake }),
    ];
    if let Some(signals) = signals {
        subscribers.push(Box::new(SignalSubscriber { signals: signals.into(), stopper }));
    }
    let mut manager = EventManager::<Subscriber>::new()
        .map_err(|e| DeviceError::Daemon(format!("no event manager: {e}")))?;
    for subscriber in subscribers {
        manager.add_subscriber(subscriber);
    }
    let (ready, started) = mpsc::channel();
    let device = Arc::clone(device);
    let thread = thread::Builder::new()
        .name("timeline".into())
        .spawn(move || {
            let placed = place(cpu, realtime);
            let good = placed.is_ok();
            // The starter waits for this word; if it has gone, so has the process.
            let _ = ready.send(placed);
            if good {
                run(&device, &mut manager);
            }
        })
        .map_err(DeviceError::system("start the timeline thread"))?;
    started.recv().unwrap_or(Ok(()))?;
    Ok(thread)
}

fn run(device: &Device, manager: &mut EventManager<Subscriber>) {
    while !device.published.stop.load(Ordering::Acquire) {
        if let Err(e) = manager.run() {
            tracing::error!("the timeline's event loop failed: {e}");
            return;
        }
    }
}

/// Registers `fd` for reading.
fn watch(fd: RawFd, ops: &mut EventOps<'_>) {
    if let Err(e) = ops.add(Events::new_raw(fd, EventSet::IN)) {
        tracing::error!("cannot watch a file descriptor: {e}");
    }
}

/// The earliest deadline has come, or is so near that spinning begins.
struct AlarmSubscriber {
    device: Arc<Device>,
    alarm: RawFd,
}

impl MutEventSubscriber for AlarmSubscriber {
    fn process(&mut self, _events: Events, _ops: &mut EventOps<'_>) {
        let spin = {
            let mut core = self.device.lock();
            // Clearing also makes the descriptor unreadable again; settling sets it anew.
            core.alarm.clear();
            let spin = core.settle();
            core.spinning |= spin;
            spin
        };
        if spin {
            spin::run(&self.device);
        }
    }

    fn init(&mut self, ops: &mut EventOps<'_>) {
        watch(self.alarm, ops);
    }
}

/// Another thread wants the loop to look around: the device stops.
struct WakeSubscriber {
    wake: EventFd,
}

impl MutEventSubscriber for WakeSubscriber {
    fn process(&mut self, _events: Events, _ops: &mut EventOps<'_>) {
        // Only its coming matters.
        let _ = self.wake.read();
    }

    fn init(&mut self, ops: &mut EventOps<'_>) {
        watch(self.wake.as_raw_fd(), ops);
    }
}

/// SIGTERM or SIGINT.
struct SignalSubscriber {
    signals: std::fs::File,
    stopper: Stopper,
}

impl MutEventSubscriber for SignalSubscriber {
    fn process(&mut self, _events: Events, _ops: &mut EventOps<'_>) {
        // Read it away, or the loop comes here again at once.
        let mut info = [0; size_of::<libc::signalfd_siginfo>()];
        if self.signals.read(&mut info).is_ok() {
            tracing::info!("told to end");
            self.stopper.stop();
        }
    }

    fn init(&mut self, ops: &mut EventOps<'_>) {
        watch(self.signals.as_raw_fd(), ops);
    }
}
