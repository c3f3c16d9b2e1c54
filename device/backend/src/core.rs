//! What is shared among the threads of the device: one [`Core`] behind one mutex, and the few numbers that are
//! read without it.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread::Thread;

use vm_memory::GuestMemoryMmap;

use crate::alarm::Alarm;
use crate::clock::Clock;
use crate::door::rings::Rings;
use crate::door::{control, interrupts, posted};
use crate::lateness::Lateness;
use crate::settings::Settings;
use crate::timeline::{NEVER, Step, WaitMode};
use crate::world::World;

/// Looks at a mutex that is taken before waiting for it: some tens of microseconds, longer than anybody who runs
/// keeps it in normal service.
const LOOKS: u32 = 2000;

/// The model and what surrounds it. Threads take turns; whoever has changed something calls
/// [`settle`](Self::settle) before it lets go.
#[derive(Debug)]
pub struct Core {
    /// The GPU in its surroundings.
    pub world: World,
    /// The guest's queues.
    pub rings: Rings,
    /// Wakes the timeline thread.
    pub alarm: Alarm,
    /// Somebody is looking at the clock all the time and will meet every deadline, and will settle when it stops:
    /// the alarm is not needed.
    pub spinning: bool,
    shared: Arc<Published>,
}

/// What threads may look at without the mutex.
#[derive(Debug)]
pub struct Published {
    /// The earliest deadline, or [`NEVER`].
    pub next_deadline: AtomicU64,
    /// Changes whenever guest memory or the set of live rings does.
    pub generation: AtomicU64,
    /// Whether any ring is live.
    pub live: AtomicBool,
    /// The process is about to end.
    pub stop: AtomicBool,
}

/// The device as its threads hold it.
#[derive(Debug)]
pub struct Device {
    core: Mutex<Core>,
    /// Numbers that are read without the mutex.
    pub published: Arc<Published>,
    /// Device time.
    pub clock: Clock,
    /// How deadlines are waited for.
    pub wait: WaitMode,
    poller: OnceLock<Thread>,
}

impl Device {
    /// A device without a guest.
    ///
    /// # Errors
    /// A timer could not be had.
    pub fn new(settings: Settings) -> io::Result<Self> {
        let clock = Clock::start();
        let wait = settings.wait;
        let lateness = Lateness::new().ok_or_else(|| io::Error::other("impossible histogram bounds"))?;
        let published = Arc::new(Published {
            next_deadline: AtomicU64::new(NEVER),
            generation: AtomicU64::new(0),
            live: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        });
        let core = Core {
            world: World::new(Arc::new(settings), clock, lateness),
            rings: Rings::new(wait == WaitMode::Poll),
            alarm: Alarm::new()?,
            spinning: false,
            shared: Arc::clone(&published),
        };
        Ok(Self { core: Mutex::new(core), published, clock, wait, poller: OnceLock::new() })
    }

    /// The core. A thread that died holding it does not take the others along.
    pub fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The core, for a thread that makes no system call if it can help it: it looks again for a while. Then it
    /// waits like any other, for whoever has the core may need this thread's CPU to go on.
    pub fn lock_spinning(&self) -> MutexGuard<'_, Core> {
        for _ in 0..LOOKS {
            match self.core.try_lock() {
                Ok(core) => return core,
                Err(TryLockError::Poisoned(e)) => return e.into_inner(),
                Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
            }
        }
        self.lock()
    }

    /// Names the thread to be woken when a ring comes to life.
    pub fn set_poller(&self, thread: Thread) {
        // There is one poll thread and it says so once.
        let _ = self.poller.set(thread);
    }

    /// Wakes the poll thread, if there is one, so that it looks at what is live and whether to stop.
    pub fn wake_poller(&self) {
        if let Some(thread) = self.poller.get() {
            thread.unpark();
        }
    }
}

impl Core {
    /// Serves what the guest has put on queue `queue`. Whether there is more: it stops after one look at the ring
    /// so that others get their turn.
    pub fn serve(&mut self, queue: usize) -> bool {
        let Self { world, rings, .. } = self;
        match u16::try_from(queue) {
            Ok(execlab_abi::wire::QUEUE_CONTROL) => {
                // As on PCI Express, a read pushes the writes that were posted before it ahead of itself: drivers
                // read back a mask to know that it is in force.
                let more = posted::serve(rings, world);
                control::serve(rings, world) || more
            }
            Ok(execlab_abi::wire::QUEUE_MMIO) => posted::serve(rings, world),
            // The interrupt queue's buffers are taken when there is something to put into them.
            _ => false,
        }
    }

    /// Meets what is due, delivers interrupts, publishes the next deadline, and sets the alarm for it unless
    /// somebody spins. Whether the caller should begin to spin, because the deadline is near.
    pub fn settle(&mut self) -> bool {
        let Self { world, rings, .. } = self;
        // An interrupt goes out when its cause has happened, and does not wait for what comes after it.
        interrupts::deliver(rings, world);
        world.run_due(|world| interrupts::deliver(rings, world));
        let next = self.world.next_deadline();
        self.shared.next_deadline.store(next, Ordering::Release);
        if self.spinning {
            self.alarm.clear();
            return false;
        }
        let now = self.world.now();
        match self.world.settings().wait.step(next, now) {
            Step::Idle => self.alarm.clear(),
            Step::SleepUntil(at) => self.alarm.set(at, now),
            Step::Due => self.alarm.set(now, now),
            Step::Spin => return true,
        }
        false
    }

    /// The set of live rings, or guest memory, has changed.
    pub fn changed(&mut self) {
        self.shared.live.store(self.rings.any(), Ordering::Release);
        self.shared.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// New guest memory.
    pub fn set_memory(&mut self, memory: Arc<GuestMemoryMmap>) {
        self.world.set_memory(memory);
        self.changed();
    }

    /// The guest took its rings away: what it had set up is forgotten.
    pub fn guest_gone(&mut self) {
        self.rings.clear();
        self.world.guest_gone();
        self.changed();
        self.settle();
    }
}
