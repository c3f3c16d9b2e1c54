//! The live rings: which there are, taking chains from them, giving them back, and when to notify.

use std::sync::atomic::{Ordering, fence};

use execlab_abi::wire::{QUEUE_COUNT, QUEUE_IRQ, QUEUE_SIZE};
use vhost_user_backend::{VringMutex, VringState, VringT as _};
use virtio_bindings::bindings::virtio_ring::VRING_AVAIL_F_NO_INTERRUPT;
use virtio_queue::{Queue, QueueOwnedT as _, QueueT as _};
use vm_memory::{Address as _, GuestAddress, GuestMemoryAtomic, GuestMemoryMmap};

use super::chain::{Chain, ChainError};
use crate::memory;

/// A queue as vhost-user-backend hands it to its workers.
pub type Vring = VringMutex<GuestMemoryAtomic<GuestMemoryMmap>>;
type State = VringState<GuestMemoryAtomic<GuestMemoryMmap>>;

/// The guest's queues. One is here from its first event after being enabled until it is stopped.
///
/// A vring has a mutex of its own inside vhost-user-backend. It is taken while the core's is held, never the
/// other way round, and nobody waits for it: the front end's thread takes it only to change a ring's state.
pub struct Rings {
    rings: [Option<Vring>; QUEUE_COUNT as usize],
    quiet: bool,
}

/// What one pass over a ring did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pass {
    /// There is more, or may be: call again.
    pub more: bool,
    /// The ring makes no sense.
    pub bad: bool,
}

impl Rings {
    /// No rings. `quiet`: the guest is never asked for kicks, somebody looks at the indexes all the time.
    #[must_use]
    pub const fn new(quiet: bool) -> Self {
        Self { rings: [None, None, None], quiet }
    }

    /// Takes in queue `queue` if it is live and not here yet. Whether it was taken in.
    pub fn adopt(&mut self, queue: usize, vring: &Vring, memory: &GuestMemoryMmap) -> bool {
        let Some(slot @ None) = self.rings.get_mut(queue) else { return false };
        let mut state = vring.get_mut();
        if !is_live(&state) {
            return false;
        }
        if self.quiet || queue == usize::from(QUEUE_IRQ) {
            // Nobody waits for interrupt buffers yet. Without EVENT_IDX this sets NO_NOTIFY; with it the index that was announced last stays behind.
            let _ = state.get_queue_mut().disable_notification(memory);
        }
        drop(state);
        *slot = Some(vring.clone());
        true
    }

    /// Forgets queue `queue`. Whether it was the last one.
    pub fn remove(&mut self, queue: usize) -> bool {
        let had = self.rings.get_mut(queue).is_some_and(|slot| slot.take().is_some());
        had && !self.any()
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.rings = [None, None, None];
    }

    /// Whether any ring is live.
    #[must_use]
    pub fn any(&self) -> bool {
        self.rings.iter().any(Option::is_some)
    }

    /// Where queue `queue`'s available index lies, and up to where it has been served.
    #[must_use]
    pub fn available_index(&self, queue: usize) -> Option<(GuestAddress, u16)> {
        let vring = self.rings.get(queue)?.as_ref()?;
        let state = vring.get_ref();
        let ring = state.get_queue();
        Some((GuestAddress(ring.avail_ring()).checked_add(2)?, ring.next_avail()))
    }

    /// Gives every chain that is available now to `handle`, which answers with the bytes it wrote, returns them to
    /// the guest and notifies it if it wants that.
    pub fn serve(
        &self,
        queue: usize,
        memory: &GuestMemoryMmap,
        mut handle: impl FnMut(Result<Chain, ChainError>) -> u32,
    ) -> Pass {
        let Some(vring) = self.rings.get(queue).and_then(Option::as_ref) else { return Pass::default() };
        let mut state = vring.get_mut();
        if !is_live(&state) {
            return Pass::default();
        }
        if !self.quiet {
            let _ = state.get_queue_mut().disable_notification(memory);
        }
        let mut served = 0;
        while served < QUEUE_SIZE {
            match take(state.get_queue_mut(), memory) {
                Ok(Some((head, chain))) => {
                    let written = handle(chain);
                    give_back(state.get_queue_mut(), memory, head, written);
                    served += 1;
                }
                Ok(None) => break,
                Err(_) => return Pass { more: false, bad: true },
            }
        }
        if served > 0 {
            notify(&mut state, memory);
        }
        // If nothing could be taken although the index says otherwise, calling again would change nothing.
        let more = !self.quiet && state.get_queue_mut().enable_notification(memory).unwrap_or(false);
        Pass { more: more && served > 0, bad: false }
    }

    /// Gives chains of queue `queue` to `fill` one at a time, until it has nothing more to put into them. It
    /// answers with the bytes it wrote, or `None` to leave the chain where it is. Whether it was left wanting a
    /// chain; the guest is then asked for a kick with the next one.
    pub fn fill(
        &self,
        queue: usize,
        memory: &GuestMemoryMmap,
        mut fill: impl FnMut(&Result<Chain, ChainError>) -> Option<u32>,
    ) -> bool {
        let Some(vring) = self.rings.get(queue).and_then(Option::as_ref) else { return true };
        let mut state = vring.get_mut();
        if !is_live(&state) {
            return true;
        }
        if !self.quiet {
            let _ = state.get_queue_mut().disable_notification(memory);
        }
        let mut served = 0;
        let mut asked = false;
        let starved = loop {
            match take(state.get_queue_mut(), memory) {
                Ok(Some((head, chain))) => match fill(&chain) {
                    Some(written) => {
                        give_back(state.get_queue_mut(), memory, head, written);
                        served += 1;
                        if served >= QUEUE_SIZE {
                            break false;
                        }
                    }
                    None => {
                        state.get_queue_mut().go_to_previous_position();
                        break false;
                    }
                },
                Ok(None) if !self.quiet && !asked => {
                    // Ask for a kick first and look again after, lest one be missed.
                    asked = true;
                    if !state.get_queue_mut().enable_notification(memory).unwrap_or(false) {
                        break true;
                    }
                }
                Ok(None) | Err(_) => break true,
            }
        };
        if asked && !starved {
            let _ = state.get_queue_mut().disable_notification(memory);
        }
        if served > 0 {
            notify(&mut state, memory);
        }
        starved
    }
}

impl std::fmt::Debug for Rings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let live = self.rings.each_ref().map(Option::is_some);
        f.debug_struct("Rings").field("live", &live).field("quiet", &self.quiet).finish()
    }
}

fn is_live(state: &State) -> bool {
    state.is_enabled() && state.get_queue().ready()
}

/// A chain's head with what its descriptors say.
type Offered = (u16, Result<Chain, ChainError>);

/// The next available chain, if there is one.
///
/// # Errors
/// [`ChainError::BadRing`]: there is no telling which is the next.
fn take(queue: &mut Queue, memory: &GuestMemoryMmap) -> Result<Option<Offered>, ChainError> {
    let size = queue.size();
    let mut available = queue.iter(memory).map_err(|_| ChainError::BadRing)?;
    Ok(available.next().map(|chain| {
        let head = chain.head_index();
        (head, if head < size { Chain::collect(chain) } else { Err(ChainError::Empty) })
    }))
}

fn give_back(queue: &mut Queue, memory: &GuestMemoryMmap, head: u16, written: u32) {
    // A head beyond the table was never the guest's to get back, and the library would log it each time.
    if head < queue.size() && queue.add_used(memory, head, written).is_err() {
        tracing::debug!("the used ring is not guest memory");
    }
}

/// Notifies the guest of used chains if it wants to be.
fn notify(state: &mut State, memory: &GuestMemoryMmap) {
    let queue = state.get_queue_mut();
    let wanted = if queue.event_idx_enabled() {
        queue.needs_notification(memory).unwrap_or(true)
    } else {
        // virtio-queue leaves this flag to us.
        fence(Ordering::SeqCst);
        let flags: u16 =
            memory::load(memory, GuestAddress(queue.avail_ring()), Ordering::Acquire).unwrap_or(0);
        u32::from(u16::from_le(flags)) & VRING_AVAIL_F_NO_INTERRUPT == 0
    };
    if wanted && let Err(e) = state.signal_used_queue() {
        tracing::debug!("cannot notify the guest: {e}");
    }
}
