//! Threads that run as they were asked to, or not at all.

use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use crate::sched::{apply_policy, pin};
use crate::{Policy, SchedError};

/// Stack that a thread touches before it starts, so that it takes no page fault later.
const STACK_PREFAULT: usize = 64 * 1024;

/// A thread to be started: policy, CPU, touched stack.
#[derive(Debug, Clone)]
#[must_use = "nothing runs before `spawn`"]
pub struct RtThread {
    name: String,
    cpu: Option<usize>,
    policy: Policy,
}

impl RtThread {
    /// A SCHED_OTHER thread that may run anywhere.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), cpu: None, policy: Policy::Other }
    }

    /// Pins it.
    pub fn cpu(mut self, cpu: usize) -> Self {
        self.cpu = Some(cpu);
        self
    }

    /// Gives it a policy.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Starts it, and returns when it runs as asked; `body` has not begun before that is certain.
    ///
    /// # Errors
    /// [`SchedError`] when the thread cannot be started, or CPU or policy is refused or reads back differently.
    pub fn spawn<R, F>(self, body: F) -> Result<RtHandle<R>, SchedError>
    where
        R: Send + 'static,
        F: FnOnce() -> R + Send + 'static,
    {
        let (told, ready) = mpsc::channel();
        let (name, spawned) = (self.name.clone(), self.name.clone());
        let handle = thread::Builder::new()
            .name(spawned)
            .spawn(move || {
                let set = self.apply();
                let accepted = set.is_ok();
                let _ = told.send(set);
                accepted.then(|| {
                    prefault_stack();
                    body()
                })
            })
            .map_err(|source| SchedError::Spawn { thread: name.clone(), source })?;
        match ready.recv() {
            Ok(Ok(())) => Ok(RtHandle(handle)),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(SchedError::Spawn {
                thread: name,
                source: std::io::Error::other("it ended before it said anything"),
            }),
        }
    }

    /// Makes the calling thread such a thread.
    ///
    /// # Errors
    /// As [`RtThread::spawn`].
    pub fn apply(&self) -> Result<(), SchedError> {
        if let Some(cpu) = self.cpu {
            pin(cpu, &self.name)?;
        }
        apply_policy(self.policy, &self.name)
    }
}

/// A started thread. Dropping it leaves the thread alone.
#[derive(Debug)]
pub struct RtHandle<R>(JoinHandle<Option<R>>);

impl<R> RtHandle<R> {
    /// Waits for the thread's end and returns what it returned; nothing when it panicked.
    pub fn join(self) -> Option<R> {
        self.0.join().ok().flatten()
    }

    /// The thread, for instance to unpark it.
    #[must_use]
    pub fn thread(&self) -> &thread::Thread {
        self.0.thread()
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

/// Touches the stack below the caller.
#[inline(never)]
fn prefault_stack() {
    let mut below = [0_u8; STACK_PREFAULT];
    std::hint::black_box(&mut below);
}
