//! Simulated threads as coroutines: the one place that knows how they are switched.
#![allow(unsafe_code)] // A suspension deep in a call needs the coroutine's own end of the switch; see `suspend`.

use std::cell::Cell;
use std::ptr;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

type Body = Box<dyn FnOnce() + Send>;

thread_local! {
    /// The coroutine that runs on this OS thread, or null.
    static RUNNING: Cell<*const Yielder<(), ()>> = const { Cell::new(ptr::null()) };
}

/// A simulated thread's stack and where it stands on it. It stays on the OS thread that made it.
pub(crate) struct Fiber(Coroutine<(), (), ()>);

/// What is left of a fiber that has ended: a stack for the next one.
pub(crate) struct Stack(DefaultStack);

impl Fiber {
    /// A fiber that will run `body`, on a stack that is left or a new one.
    pub fn new(stack: Option<Stack>, body: Body) -> Self {
        let stack = stack.map_or_else(DefaultStack::default, |stack| stack.0);
        Self(Coroutine::with_stack(stack, move |yielder, ()| {
            RUNNING.set(yielder);
            body();
        }))
    }

    /// Runs it until it suspends (false) or ends (true).
    ///
    /// # Panics
    /// When it panics.
    pub fn resume(&mut self) -> bool {
        let result = self.0.resume(());
        RUNNING.set(ptr::null());
        matches!(result, CoroutineResult::Return(()))
    }

    /// Its stack, once it has ended.
    pub fn into_stack(self) -> Option<Stack> {
        self.0.done().then(|| Stack(self.0.into_stack()))
    }
}

/// Suspends the running fiber. Outside of one it does nothing.
///
/// It does not return, but unwinds the fiber, when the fiber is dropped meanwhile.
pub(crate) fn suspend() {
    let running = RUNNING.get();
    if running.is_null() {
        return;
    }
    // SAFETY: the pointer was set on this OS thread by the body of the fiber that runs now (`resume` clears it as soon
    // as another context runs, and the line below sets it again), so the yielder on that fiber's stack is alive, and
    // it is used from within its own fiber only.
    unsafe { &*running }.suspend(());
    RUNNING.set(running);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use super::*;

    #[test]
    fn two_fibers_take_turns_and_a_stack_is_used_again() {
        let count = Arc::new(AtomicU32::new(0));
        let fiber = |stack| {
            let count = Arc::clone(&count);
            Fiber::new(
                stack,
                Box::new(move || {
                    (0..3).for_each(|_| {
                        count.fetch_add(1, Relaxed);
                        suspend();
                    });
                }),
            )
        };
        let (mut one, mut two) = (fiber(None), fiber(None));
        for turn in 1..=3 {
            assert!(!one.resume() && !two.resume());
            assert_eq!(count.load(Relaxed), 2 * turn);
        }
        assert!(one.resume() && two.resume());
        let mut three = fiber(one.into_stack());
        assert!(!three.resume());
        assert_eq!(count.load(Relaxed), 7);
    }

    #[test]
    fn dropping_a_suspended_fiber_runs_its_destructors() {
        struct Gone(Arc<AtomicU32>);
        impl Drop for Gone {
            fn drop(&mut self) {
                self.0.fetch_add(1, Relaxed);
            }
        }
        let count = Arc::new(AtomicU32::new(0));
        let gone = Gone(Arc::clone(&count));
        let mut fiber = Fiber::new(
            None,
            Box::new(move || {
                let _gone = gone;
                suspend();
            }),
        );
        assert!(!fiber.resume());
        drop(fiber);
        assert_eq!(count.load(Relaxed), 1);
        suspend();
    }

    /// `cargo test --release -p execlab-sim -- --ignored --nocapture cost_of_a_switch`
    #[test]
    #[ignore = "measures"]
    fn cost_of_a_switch() {
        let mut fiber = Fiber::new(
            None,
            Box::new(|| {
                loop {
                    suspend();
                }
            }),
        );
        let rounds = 10_000_000;
        let start = std::time::Instant::now();
        for _ in 0..rounds {
            assert!(!fiber.resume());
        }
        println!("{:.1} ns there and back", start.elapsed().as_nanos() as f64 / f64::from(rounds));
    }
}
