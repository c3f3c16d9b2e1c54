//! A lock that may be taken at SCHED_FIFO 99 while its holder runs on the same CPU at no priority at all.
//!
//! A plain spinlock would hang there for ever: the spinner never lets the holder run. This one spins shortly,
//! for a holder on another CPU, and then uses the kernel's priority-inheriting futex, which lends the holder
//! the waiter's priority. Without contention it is one atomic exchange each way, and it never allocates.
#![allow(unsafe_code)] // A lock hands out `&mut` to what it protects.

use std::cell::{Cell, UnsafeCell};
use std::hint;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering, fence};

use rustix::io::Errno;
use rustix::thread::futex::{Flags, lock_pi, unlock_pi};

/// Rounds of spinning before the kernel is asked: about a microsecond, the length of a critical section here.
const SPINS: u32 = 100;

/// A priority-inheriting lock around a `T`.
#[derive(Debug, Default)]
pub(crate) struct PiLock<T> {
    /// Thread id of the holder, 0 when free, as `FUTEX_LOCK_PI` wants it (futex(2)).
    word: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the lock gives out one reference at a time, so sharing it moves a `T` between threads at most.
unsafe impl<T: Send> Sync for PiLock<T> {}

impl<T> PiLock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self { word: AtomicU32::new(0), value: UnsafeCell::new(value) }
    }

    /// Waits for the lock. Taking it twice in one thread is a bug and panics.
    pub(crate) fn lock(&self) -> PiGuard<'_, T> {
        let me = thread_id();
        if !self.try_take(me) {
            self.lock_contended(me);
        }
        PiGuard { lock: self, me }
    }

    fn try_take(&self, me: u32) -> bool {
        self.word.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn lock_contended(&self, me: u32) {
        for _ in 0..SPINS {
            hint::spin_loop();
            if self.try_take(me) {
                return;
            }
        }
        loop {
            match lock_pi(&self.word, Flags::PRIVATE, None) {
                Ok(()) => {
                    fence(Ordering::Acquire);
                    return;
                }
                Err(Errno::DEADLK) => {
                    assert_ne!(self.word.load(Ordering::Relaxed) & 0x3fff_ffff, me, "lock taken twice");
                }
                // Interrupted, or the holder is just leaving: once more. A kernel without PI futexes says
                // ENOSYS, and then this is a spinlock.
                Err(_) => {
                    hint::spin_loop();
                    if self.try_take(me) {
                        return;
                    }
                }
            }
        }
    }
}

/// The right to use what a [`PiLock`] protects.
#[derive(Debug)]
pub(crate) struct PiGuard<'a, T> {
    lock: &'a PiLock<T>,
    me: u32,
}

impl<T> Deref for PiGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one, and it borrows the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for PiGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard is the only one, and it is borrowed exclusively.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for PiGuard<'_, T> {
    fn drop(&mut self) {
        let word = &self.lock.word;
        if word.compare_exchange(self.me, 0, Ordering::Release, Ordering::Relaxed).is_err() {
            // Somebody waits in the kernel, which hands the lock over.
            fence(Ordering::Release);
            let handed = unlock_pi(word, Flags::PRIVATE);
            debug_assert!(handed.is_ok(), "{handed:?}");
        }
    }
}

fn thread_id() -> u32 {
    thread_local! {
        static ID: Cell<u32> = const { Cell::new(0) };
    }
    ID.with(|id| {
        if id.get() == 0 {
            id.set(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs());
        }
        id.get()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::thread;
    use std::time::{Duration, Instant};

    #[test]
    fn four_threads_counting_lose_nothing() {
        let lock = Arc::new(PiLock::new(0_u64));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let lock = Arc::clone(&lock);
                thread::spawn(move || (0..20_000).for_each(|_| *lock.lock() += 1))
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
        assert_eq!(*lock.lock(), 80_000);
    }

    #[test]
    fn a_waiter_in_the_kernel_gets_the_lock_when_the_holder_leaves() {
        let lock = Arc::new(PiLock::new(0_u32));
        let guard = lock.lock();
        let waiter = {
            let lock = Arc::clone(&lock);
            thread::spawn(move || *lock.lock() += 1)
        };
        // FUTEX_WAITERS appears once the other thread sleeps in the kernel.
        while lock.word.load(Ordering::Relaxed) & (1 << 31) == 0 {
            thread::yield_now();
        }
        drop(guard);
        waiter.join().unwrap();
        assert_eq!(*lock.lock(), 1);
    }

    /// The case the lock is for: the holder has no priority, a thread of middle priority keeps it from running,
    /// and the waiter of high priority lends the holder its own.
    #[test]
    fn a_waiter_at_fifo_99_lifts_the_holder_over_a_fifo_50_hog() {
        use execlab_posix::{Policy, RtThread};
        // Shorter than the kernel lets a FIFO thread have the CPU (0.95 s of each second).
        let limit = Duration::from_millis(500);
        let lock = Arc::new(PiLock::new(()));
        let (held, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let on_cpu = |name: &str, policy| RtThread::new(name).cpu(0).policy(policy);
        let (its_lock, its_held) = (Arc::clone(&lock), Arc::clone(&held));
        let holder = on_cpu("holder", Policy::Other).spawn(move || {
            let guard = its_lock.lock();
            its_held.store(true, Ordering::Release);
            while guard.lock.word.load(Ordering::Relaxed) & (1 << 31) == 0 {
                hint::spin_loop();
            }
        });
        let holder = holder.unwrap();
        while !held.load(Ordering::Acquire) {
            thread::yield_now();
        }
        let its_done = Arc::clone(&done);
        let hog = on_cpu("hog", Policy::Fifo(50)).spawn(move || {
            let start = Instant::now();
            while !its_done.load(Ordering::Acquire) && start.elapsed() < limit {
                hint::spin_loop();
            }
            start.elapsed()
        });
        // Goes to the hog's CPU when it has its priority, or it would not come to get it.
        let waiter = RtThread::new("waiter").policy(Policy::Fifo(99)).spawn(move || {
            let mut cpu = rustix::thread::CpuSet::new();
            cpu.set(0);
            rustix::thread::sched_setaffinity(None, &cpu).unwrap();
            drop(lock.lock());
            done.store(true, Ordering::Release);
        });
        // Without the right to SCHED_FIFO there is nobody to starve anybody, and the holder needs a waiter to end.
        let (Ok(hog), Ok(waiter)) = (hog, waiter) else {
            println!("skipped: no right to SCHED_FIFO");
            return;
        };
        waiter.join().unwrap();
        assert!(hog.join().unwrap() < limit, "the holder waited for the hog to end");
        holder.join().unwrap();
    }

    #[test]
    #[should_panic(expected = "lock taken twice")]
    fn taking_a_lock_twice_panics() {
        let lock = PiLock::new(());
        let _first = lock.lock();
        let _second = lock.lock();
    }
}
