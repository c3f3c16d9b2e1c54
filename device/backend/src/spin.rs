//! Meeting deadlines by looking at the clock, and at the rings, all the time.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use execlab_abi::wire::{QUEUE_CONTROL, QUEUE_COUNT, QUEUE_MMIO};
use vm_memory::{GuestAddress, GuestMemoryMmap};

use crate::core::{Core, Device};
use crate::memory;
use crate::timeline::{Step, WaitMode};

/// Longest time in hybrid mode before a spinning thread goes back to its file descriptors: a load that always has
/// a deadline near must not keep it from signals and exit events.
const HYBRID_TURN_NS: u64 = 100_000_000;
/// The queues other than that of posted writes are looked at once in so many rounds.
const SELDOM: u32 = 16;

/// The available indexes of the live rings, looked at without the mutex.
///
/// It keeps the memory it reads alive by itself, and is made anew when [`crate::core::Published::generation`]
/// says that memory or rings have changed.
struct Watch {
    generation: u64,
    memory: Arc<GuestMemoryMmap>,
    rings: [Option<(GuestAddress, u16)>; QUEUE_COUNT as usize],
}

impl Watch {
    fn new(core: &Core, generation: u64) -> Self {
        // What was available before is served once in any case, see `run`.
        let rings = std::array::from_fn(|queue| core.rings.available_index(queue));
        Self { generation, memory: core.world.memory(), rings }
    }

    /// Whether `queue`'s available index is another than at the last look.
    #[inline]
    fn has_news(&mut self, queue: u16) -> bool {
        let Some((address, seen)) = &mut self.rings[usize::from(queue)] else { return false };
        match memory::load::<u16>(&self.memory, *address, Ordering::Acquire) {
            Ok(index) if index != *seen => {
                *seen = index;
                true
            }
            _ => false,
        }
    }
}

/// Meets deadlines and serves the rings until there is no reason to: in poll mode until no ring is live, in hybrid
/// mode until no deadline is near. The caller has set [`Core::spinning`]; it is clear again afterwards.
///
/// No system call is made unless the guest wants an interrupt.
pub fn run(device: &Device) {
    let published = &device.published;
    let began = device.clock.now();
    let mut watch = {
        let mut core = device.lock_spinning();
        let watch = Watch::new(&core, published.generation.load(Ordering::Acquire));
        serve_all(&mut core);
        watch
    };
    let mut round = 0_u32;
    loop {
        let now = device.clock.now();
        let step = device.wait.step(published.next_deadline.load(Ordering::Acquire), now);
        if published.generation.load(Ordering::Acquire) != watch.generation {
            let mut core = device.lock_spinning();
            watch = Watch::new(&core, published.generation.load(Ordering::Acquire));
            serve_all(&mut core);
        }
        round = round.wrapping_add(1);
        if watch.has_news(QUEUE_MMIO) {
            serve(&mut device.lock_spinning(), QUEUE_MMIO);
        }
        if round.is_multiple_of(SELDOM) {
            for queue in (0..QUEUE_COUNT).filter(|q| *q != QUEUE_MMIO) {
                if watch.has_news(queue) {
                    serve(&mut device.lock_spinning(), queue);
                }
            }
        }
        let stay = match device.wait {
            WaitMode::Poll => published.live.load(Ordering::Acquire),
            _ => matches!(step, Step::Due | Step::Spin) && now.saturating_sub(began) < HYBRID_TURN_NS,
        } && !published.stop.load(Ordering::Relaxed);
        if step == Step::Due {
            device.lock_spinning().settle();
        }
        if !stay && leave(device) {
            return;
        }
        std::hint::spin_loop();
    }
}

/// Ends spinning, unless a ring has more to serve: with nobody watching its index, that would wait for a kick that
/// need not come.
fn leave(device: &Device) -> bool {
    let mut core = device.lock_spinning();
    if core.serve(usize::from(QUEUE_MMIO)) | core.serve(usize::from(QUEUE_CONTROL)) {
        core.settle();
        return false;
    }
    core.spinning = false;
    if core.settle() {
        // Near: somebody has to meet it. The timeline thread does, at once, with a turn of its own.
        let now = core.world.now();
        core.alarm.set(now, now);
    }
    true
}

fn serve(core: &mut Core, queue: u16) {
    core.serve(usize::from(queue));
    core.settle();
}

fn serve_all(core: &mut Core) {
    serve(core, QUEUE_MMIO);
    serve(core, QUEUE_CONTROL);
}
